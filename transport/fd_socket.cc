#include "transport/fd_socket.h"

#include "base/own_user.h"

#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <mutex>
#include <new>
#include <span>
#include <string>

namespace hetcoll {
namespace {

enum class Kind : std::uint32_t { kAsk, kGive, kRefuse };

// One packet. A kGive brings `count` descriptors along.
struct Message {
    std::uint64_t magic;
    Kind kind;
    std::uint32_t count;
    std::uint64_t token; // what is asked for
    std::uint64_t bytes[kMaxFds];
};
constexpr std::uint64_t kMagic = 0x6865746c6c666432u;
constexpr std::size_t kShortMessage = offsetof(Message, bytes);

struct Control {
    alignas(cmsghdr) char bytes[CMSG_SPACE(sizeof(int) * kMaxFds)];
};

struct Address {
    sockaddr_un address{};
    socklen_t length = 0;

    explicit Address(std::uint64_t name)
    {
        address.sun_family = AF_UNIX; // sun_path[0] stays 0: the abstract namespace
        const int digits = std::snprintf(address.sun_path + 1, sizeof address.sun_path - 1,
                                         "hetcoll.%016llx", static_cast<unsigned long long>(name));
        length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 +
                                        static_cast<std::size_t>(digits));
    }
    [[nodiscard]] const sockaddr *get() const noexcept
    {
        return reinterpret_cast<const sockaddr *>(&address);
    }
};

UniqueFd open_socket()
{
    return UniqueFd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

// The kernel says who made the other end.
bool is_same_user(int socket)
{
    ucred other{};
    socklen_t length = sizeof other;
    return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &other, &length) == 0 &&
           is_own_user(other.uid);
}

// 0, or the error of sendmsg.
int send_message(int socket, const Message &message, std::span<const UniqueFd> fds)
{
    iovec data{const_cast<Message *>(&message),
               message.kind == Kind::kGive ? sizeof message : kShortMessage};
    msghdr header{};
    header.msg_iov = &data;
    header.msg_iovlen = 1;
    Control control{};
    if (!fds.empty()) {
        header.msg_control = control.bytes;
        header.msg_controllen = CMSG_SPACE(sizeof(int) * fds.size());
        cmsghdr *const rights = CMSG_FIRSTHDR(&header);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(sizeof(int) * fds.size());
        for (std::size_t i = 0; i < fds.size(); ++i) {
            const int fd = fds[i].get();
            std::memcpy(CMSG_DATA(rights) + i * sizeof fd, &fd, sizeof fd);
        }
    }
    return sendmsg(socket, &header, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0 ? 0 : errno;
}

bool has_to_be_tried_again(int code)
{
    return code == EAGAIN || code == ENOBUFS || code == ETOOMANYREFS;
}

struct Received {
    Message message{};
    std::vector<UniqueFd> fds;
};

// kGone: the other end is closed, or has sent what is no message of ours.
enum class Arrival : std::uint8_t { kMessage, kNothing, kGone };

Arrival receive_message(int socket, Received &received)
{
    received = {};
    Control control;
    iovec data{&received.message, sizeof received.message};
    msghdr header{};
    header.msg_iov = &data;
    header.msg_iovlen = 1;
    header.msg_control = control.bytes;
    header.msg_controllen = sizeof control.bytes;
    const ssize_t got = recvmsg(socket, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got < 0) {
        const bool may_come =
            errno == EAGAIN || errno == EINTR || errno == ENOMEM || errno == ENOBUFS;
        return may_come ? Arrival::kNothing : Arrival::kGone;
    }
    for (cmsghdr *part = CMSG_FIRSTHDR(&header); part != nullptr;
         part = CMSG_NXTHDR(&header, part)) {
        if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_RIGHTS) {
            const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
            for (std::size_t i = 0; i < count; ++i) {
                int fd = -1;
                std::memcpy(&fd, CMSG_DATA(part) + i * sizeof fd, sizeof fd);
                received.fds.emplace_back(fd);
            }
        }
    }
    const Message &message = received.message;
    const std::size_t whole = message.kind == Kind::kGive ? sizeof message : kShortMessage;
    const bool ours = static_cast<std::size_t>(got) == whole && message.magic == kMagic &&
                      message.count <= kMaxFds;
    return ours ? Arrival::kMessage : Arrival::kGone;
}

Status cannot_ask(const char *why, const char *remedy)
{
    return error(Errc::kUnsupported,
                 "the owner of a buffer cannot be asked for its file descriptors (%s)%s", why,
                 remedy);
}

constexpr const char *kHasEnded =
    ": it has ended, has no free descriptor (ulimit -n), may not accept connections (a seccomp "
    "filter), or runs in another network namespace, let the containers share one (docker run "
    "--network)";

} // namespace

UniqueFd::~UniqueFd() { mark_.close(fd_); }

struct FdSocket::Impl {
    // Our pending request to an owner.
    struct Asked {
        bool sent = false;
        bool answered = false;
        bool refused = false;
        bool lost = false;       // the owner has gone, and has not answered
        std::uint32_t looks = 0; // for the answer
        FdBundle bundle;
    };
    // An owner, as long as there is something that we have asked it for.
    struct Owner {
        UniqueFd socket;
        std::map<std::uint64_t, Asked> asked; // by token
    };
    // A process of our user that has connected.
    struct Asker {
        UniqueFd socket;
        std::optional<std::uint64_t> unanswered; // a token: the answer could not be sent yet
    };

    Log log;
    UniqueFd socket; // that others connect to
    UniqueFd spare;  // makes room for one more when all descriptors are used up
    std::uint64_t name = 0;
    std::mutex mutex; // of the rest
    FdSource *source = nullptr;
    std::map<std::uint64_t, Owner> owners; // by name
    std::vector<Asker> askers;

    const char *listen();
    [[nodiscard]] UniqueFd accept_one() const
    {
        return UniqueFd(accept4(socket.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    }
    void accept_all();
    void let_nobody_in();
    void answer_all();
    bool serve(Asker &asker);
    bool answer(int to, std::uint64_t token);
    Status connect(Owner &owner, std::uint64_t to);
    void receive_answers(Owner &owner);
};

// A process of another user is disconnected before a byte from it is read. Calls ask this often,
// and accept4() takes microseconds to say that nobody is there: it makes a socket first.
void FdSocket::Impl::accept_all()
{
    if (socket.get() < 0) {
        (void)listen(); // again: it could not, the last time
    }
    pollfd waits{.fd = socket.get(), .events = POLLIN, .revents = 0};
    while (poll(&waits, 1, 0) == 1) {
        const bool ours = socket.is_ours();
        UniqueFd other = ours ? accept_one() : UniqueFd();
        if (other.get() < 0 && ours && (errno == EMFILE || errno == ENFILE)) {
            spare = UniqueFd(); // who asks learns by the end of the connection that it has failed
            other = accept_one();
            const int code = errno;
            const bool shown_out = other.get() >= 0;
            other = UniqueFd();
            spare = UniqueFd(open("/dev/null", O_RDONLY | O_CLOEXEC));
            if (shown_out) {
                continue;
            }
            errno = code;
        }
        if (other.get() >= 0) {
            if (is_same_user(other.get())) {
                askers.push_back({.socket = std::move(other), .unanswered = std::nullopt});
            }
        } else if (!ours || (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR)) {
            let_nobody_in();
            (void)listen();
            return;
        } else if (errno == EAGAIN) {
            return; // whoever asked has gone
        }
    }
}

// Those that ask learn it by the end of their connections. A process that was forked off keeps
// these alive, and our name with them; but then nobody can connect any more, which is_deaf() sees.
void FdSocket::Impl::let_nobody_in()
{
    if (socket.is_ours()) {
        (void)shutdown(socket.get(), SHUT_RDWR);
    }
    socket = UniqueFd();
}

// Listens at our name. Returns the call that failed, with errno set, or null.
const char *FdSocket::Impl::listen()
{
    constexpr int kMost = 4096; // the system's limit holds too
    UniqueFd made = open_socket();
    if (made.get() < 0) {
        return "socket";
    }
    const Address address(name);
    if (bind(made.get(), address.get(), address.length) != 0) {
        return "bind";
    }
    if (::listen(made.get(), kMost) != 0) {
        return "listen";
    }
    socket = std::move(made);
    return nullptr;
}

void FdSocket::Impl::answer_all()
{
    accept_all();
    std::erase_if(askers, [this](Asker &asker) { return !serve(asker); });
}

// False if the asker is gone.
bool FdSocket::Impl::serve(Asker &asker)
{
    while (asker.socket.is_ours() &&
           (!asker.unanswered || answer(asker.socket.get(), *asker.unanswered))) {
        asker.unanswered.reset();
        Received received;
        const Arrival arrival = receive_message(asker.socket.get(), received);
        if (arrival != Arrival::kMessage || received.message.kind != Kind::kAsk) {
            return arrival == Arrival::kNothing;
        }
        asker.unanswered = received.message.token;
    }
    return asker.socket.is_ours();
}

// False if it has to be tried again.
bool FdSocket::Impl::answer(int to, std::uint64_t token)
{
    Message message{};
    message.magic = kMagic;
    message.kind = Kind::kRefuse;
    message.token = token;
    FdBundle bundle;
    if (source != nullptr) {
        auto found = source->fds_of(token);
        if (found.ok() && found->fds.size() <= kMaxFds) {
            bundle = std::move(*found);
            message.kind = Kind::kGive;
            message.count = static_cast<std::uint32_t>(bundle.fds.size());
            std::memcpy(message.bytes, bundle.bytes.data(),
                        bundle.bytes.size() * sizeof(std::uint64_t));
        } else if (!found.ok()) {
            hetcoll::log(log, 1, "a peer is refused device memory: %s",
                         found.status().message().c_str());
        }
    }
    const int code = send_message(to, message, bundle.fds);
    if (has_to_be_tried_again(code)) {
        return false;
    }
    if (code != 0) {
        hetcoll::log(log, 1, "a file descriptor cannot be passed to a peer: %s",
                     std::strerror(code));
    }
    return true;
}

// The owner has no socket afterwards where it has too much to do: it is to be tried again.
Status FdSocket::Impl::connect(Owner &owner, std::uint64_t to)
{
    UniqueFd made = open_socket();
    const Address address(to);
    if (made.get() < 0) {
        return cannot_ask(std::strerror(errno), ": see ulimit -n");
    }
    if (::connect(made.get(), address.get(), address.length) != 0) {
        return errno == EAGAIN || errno == EINTR
                   ? Status()
                   : cannot_ask(std::strerror(errno), errno == ECONNREFUSED ? kHasEnded : "");
    }
    if (!is_same_user(made.get())) {
        return cannot_ask("it is another user's", ": run both as the same user");
    }
    owner.socket = std::move(made);
    return {};
}

namespace {

// Whoever has this name lets nobody in.
bool is_deaf(std::uint64_t name)
{
    const UniqueFd trial = open_socket();
    const Address address(name);
    return trial.get() >= 0 && ::connect(trial.get(), address.get(), address.length) != 0 &&
           errno == ECONNREFUSED;
}

// Seldom, and ever more seldom: the owner has to show each trial out.
bool is_time_to_try(std::uint32_t looks) noexcept
{
    return looks >= 1024 && std::has_single_bit(looks);
}

} // namespace

void FdSocket::Impl::receive_answers(Owner &owner)
{
    Received received;
    while (owner.socket.get() >= 0) {
        const Arrival arrival =
            owner.socket.is_ours() ? receive_message(owner.socket.get(), received) : Arrival::kGone;
        if (arrival == Arrival::kNothing) {
            return;
        }
        if (arrival == Arrival::kGone) {
            owner.socket = UniqueFd();
            for (auto &[token, asked] : owner.asked) {
                asked.lost = asked.sent && !asked.answered;
            }
            return;
        }
        const Message &message = received.message;
        const auto found = owner.asked.find(message.token);
        if (found == owner.asked.end() || message.kind == Kind::kAsk) {
            continue;
        }
        Asked &answer = found->second;
        answer.answered = true;
        // Descriptors beyond our limit of open files do not arrive.
        answer.refused = message.kind == Kind::kRefuse || received.fds.size() != message.count;
        if (!answer.refused) {
            answer.bundle.fds = std::move(received.fds);
            answer.bundle.bytes.assign(message.bytes, message.bytes + message.count);
        }
    }
}

FdSocket::FdSocket(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
FdSocket::~FdSocket() = default;

Result<std::shared_ptr<FdSocket>> FdSocket::create(const Log &log)
{
    auto impl = std::make_unique<Impl>();
    impl->log = log;
    const char *failed = "getrandom";
    if (getrandom(&impl->name, sizeof impl->name, GRND_NONBLOCK) == sizeof impl->name) {
        impl->name |= 1; // never 0
        failed = impl->listen();
    }
    if (failed != nullptr) {
        return error(Errc::kUnsupported,
                     "no unix socket to pass file descriptors on (%s: %s): VMM memory is not "
                     "shared with other processes",
                     failed, std::strerror(errno));
    }
    impl->spare = UniqueFd(open("/dev/null", O_RDONLY | O_CLOEXEC));
    return std::shared_ptr<FdSocket>(new FdSocket(std::move(impl)));
}

std::uint64_t FdSocket::name() const noexcept { return impl_->name; }

void FdSocket::set_source(FdSource *source) noexcept
{
    const std::lock_guard lock(impl_->mutex);
    impl_->source = source;
}

void FdSocket::step() noexcept
{
    const std::lock_guard lock(impl_->mutex);
    try {
        impl_->answer_all();
    } catch (
        const std::bad_alloc &) { // who asks learns by the end of the connection that it failed
    }
}

Result<std::optional<FdBundle>> FdSocket::take(const FdTicket &ticket)
{
    const std::lock_guard lock(impl_->mutex);
    impl_->answer_all(); // who asks us may be whom we ask
    Impl::Owner &owner = impl_->owners[ticket.socket];
    Impl::Asked &asked = owner.asked[ticket.token];
    // The connection ends with the last of what it was made for.
    const auto forget = [&] {
        owner.asked.erase(ticket.token);
        if (owner.asked.empty()) {
            impl_->owners.erase(ticket.socket);
        }
    };
    impl_->receive_answers(owner);
    if (asked.answered) {
        const bool refused = asked.refused;
        std::optional<FdBundle> bundle(std::move(asked.bundle));
        forget();
        if (refused) {
            return error(Errc::kUnsupported,
                         "the owner of a buffer has no file descriptors for it (any more), or this "
                         "process has no room for them: see ulimit -n");
        }
        return bundle;
    }
    if (asked.sent && is_time_to_try(++asked.looks)) {
        asked.lost = is_deaf(ticket.socket);
    }
    Status problem;
    if (asked.lost) {
        problem = cannot_ask("it has closed the connection", kHasEnded);
    } else if (owner.socket.get() < 0) {
        problem = impl_->connect(owner, ticket.socket);
    }
    if (problem.ok() && !asked.sent && owner.socket.get() >= 0) {
        const Message question{
            .magic = kMagic, .kind = Kind::kAsk, .count = 0, .token = ticket.token, .bytes = {}};
        const int code = send_message(owner.socket.get(), question, {});
        asked.sent = code == 0;
        if (code != 0 && !has_to_be_tried_again(code)) {
            problem = cannot_ask(std::strerror(code), kHasEnded);
        }
    }
    if (!problem.ok()) {
        forget();
        return problem;
    }
    return std::optional<FdBundle>();
}

} // namespace hetcoll
