#include "transport/fd_channel.h"

#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <span>
#include <string>

namespace hetcoll {
namespace {

enum class Kind : std::uint32_t { kAsk, kGive, kRefuse };

// One datagram. A kGive brings `count` descriptors along.
struct Message {
    std::uint64_t magic;
    Kind kind;
    std::uint32_t count;
    FdTicket ticket;         // what is asked for
    std::uint64_t answer_to; // kAsk: the socket of who asks
    std::uint64_t bytes[kMaxFds];
};
constexpr std::uint64_t kMagic = 0x6865746c6c666431u;
constexpr std::size_t kShortMessage = offsetof(Message, bytes);

struct Control {
    alignas(cmsghdr) char bytes[CMSG_SPACE(sizeof(ucred)) + CMSG_SPACE(sizeof(int) * kMaxFds)];
};

socklen_t set_address(sockaddr_un &address, std::uint64_t name)
{
    address = {};
    address.sun_family = AF_UNIX; // sun_path[0] stays 0: the abstract namespace
    const int length = std::snprintf(address.sun_path + 1, sizeof address.sun_path - 1,
                                     "hetcoll.%016llx", static_cast<unsigned long long>(name));
    return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 +
                                  static_cast<std::size_t>(length));
}

// 0, or the error of sendmsg.
int send_message(int socket, std::uint64_t to, const Message &message,
                 std::span<const UniqueFd> fds)
{
    sockaddr_un address;
    iovec data{const_cast<Message *>(&message),
               message.kind == Kind::kGive ? sizeof message : kShortMessage};
    msghdr header{};
    header.msg_namelen = set_address(address, to);
    header.msg_name = &address;
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

struct Received {
    Message message{};
    std::vector<UniqueFd> fds;
    bool trusted = false; // whole, of our kind, and from our user
};

// False if there is none.
bool receive_message(int socket, Received &received)
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
        return false;
    }
    bool same_user = false;
    for (cmsghdr *part = CMSG_FIRSTHDR(&header); part != nullptr;
         part = CMSG_NXTHDR(&header, part)) {
        if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_CREDENTIALS) {
            ucred sender;
            std::memcpy(&sender, CMSG_DATA(part), sizeof sender);
            same_user = sender.uid == geteuid();
        } else if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_RIGHTS) {
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
    received.trusted = same_user && message.magic == kMagic &&
                       static_cast<std::size_t>(got) == whole && message.count <= kMaxFds;
    return true;
}

const char *remedy(int code)
{
    switch (code) {
    case ECONNREFUSED:
        return ": it has ended, or runs in another network namespace, let the containers share "
               "one (docker run --network)";
    case EPERM: return ": run both as the same user";
    default: return "";
    }
}

} // namespace

UniqueFd::~UniqueFd()
{
    if (fd_ >= 0) {
        close(fd_);
    }
}

struct FdChannel::Impl {
    // What we have asked for.
    struct Asked {
        bool sent = false;
        bool answered = false;
        bool refused = false;
        FdBundle bundle;
    };
    using Key = std::pair<std::uint64_t, std::uint64_t>; // socket, token

    Log log;
    UniqueFd socket;
    std::uint64_t name = 0;
    std::mutex mutex; // of the rest, and of reading from the socket
    FdSource *source = nullptr;
    std::map<Key, Asked> asked;
    std::deque<Message> unanswered; // the asker's queue was full

    void receive_all();
    void note_answer(Received &received);
    bool answer(const Message &question);
};

void FdChannel::Impl::receive_all()
{
    for (Received received; receive_message(socket.get(), received);) {
        if (!received.trusted) {
            continue; // another user's, or no message of ours
        }
        if (received.message.kind == Kind::kAsk) {
            if (!answer(received.message)) {
                unanswered.push_back(received.message);
            }
        } else {
            note_answer(received);
        }
    }
}

void FdChannel::Impl::note_answer(Received &received)
{
    const Message &message = received.message;
    const auto found = asked.find({message.ticket.socket, message.ticket.token});
    if (found == asked.end()) {
        return; // asked twice, taken already
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

// False if it has to be tried again.
bool FdChannel::Impl::answer(const Message &question)
{
    Message message{};
    message.magic = kMagic;
    message.kind = Kind::kRefuse;
    message.ticket = question.ticket;
    FdBundle bundle;
    if (source != nullptr && question.ticket.socket == name) {
        auto found = source->fds_of(question.ticket.token);
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
    const int code = send_message(socket.get(), question.answer_to, message, bundle.fds);
    if (code == EAGAIN || code == ENOBUFS || code == ETOOMANYREFS) {
        return false;
    }
    if (code != 0) {
        hetcoll::log(log, 1, "a file descriptor cannot be passed to a peer: %s",
                     std::strerror(code));
    }
    return true;
}

FdChannel::FdChannel(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
FdChannel::~FdChannel() = default;

Result<std::shared_ptr<FdChannel>> FdChannel::create(const Log &log)
{
    auto impl = std::make_unique<Impl>();
    impl->log = log;
    impl->socket = UniqueFd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const char *failed = "socket";
    bool made = impl->socket.get() >= 0;
    if (made) {
        const int on = 1;
        failed = "setsockopt";
        made = setsockopt(impl->socket.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on) == 0;
    }
    if (made) {
        failed = "getrandom";
        made = getrandom(&impl->name, sizeof impl->name, GRND_NONBLOCK) == sizeof impl->name;
        impl->name |= 1; // never 0
    }
    if (made) {
        failed = "bind";
        sockaddr_un address;
        const socklen_t length = set_address(address, impl->name);
        made = bind(impl->socket.get(), reinterpret_cast<const sockaddr *>(&address), length) == 0;
    }
    if (!made) {
        return error(Errc::kUnsupported,
                     "no unix socket to pass file descriptors on (%s: %s): VMM memory is not "
                     "shared with other processes",
                     failed, std::strerror(errno));
    }
    return std::shared_ptr<FdChannel>(new FdChannel(std::move(impl)));
}

std::uint64_t FdChannel::name() const noexcept { return impl_->name; }

void FdChannel::set_source(FdSource *source) noexcept
{
    const std::lock_guard lock(impl_->mutex);
    impl_->source = source;
}

void FdChannel::step() noexcept
{
    const std::lock_guard lock(impl_->mutex);
    while (!impl_->unanswered.empty() && impl_->answer(impl_->unanswered.front())) {
        impl_->unanswered.pop_front();
    }
    impl_->receive_all();
}

Result<std::optional<FdBundle>> FdChannel::take(const FdTicket &ticket)
{
    const std::lock_guard lock(impl_->mutex);
    const Impl::Key key{ticket.socket, ticket.token};
    Impl::Asked &asked = impl_->asked[key];
    if (!asked.sent) {
        Message question{};
        question.magic = kMagic;
        question.kind = Kind::kAsk;
        question.ticket = ticket;
        question.answer_to = impl_->name;
        const int code = send_message(impl_->socket.get(), ticket.socket, question, {});
        if (code != 0 && code != EAGAIN && code != ENOBUFS) {
            impl_->asked.erase(key);
            return error(Errc::kUnsupported,
                         "the owner of a buffer cannot be asked for its file descriptors (%s)%s",
                         std::strerror(code), remedy(code));
        }
        asked.sent = code == 0;
    }
    impl_->receive_all();
    if (!asked.answered) {
        return std::optional<FdBundle>();
    }
    const bool refused = asked.refused;
    std::optional<FdBundle> bundle(std::move(asked.bundle));
    impl_->asked.erase(key);
    if (refused) {
        return error(Errc::kUnsupported,
                     "the owner of a buffer has no file descriptors for it (any more), or this "
                     "process has no room for them: see ulimit -n");
    }
    return bundle;
}

} // namespace hetcoll
