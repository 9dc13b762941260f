// What is sent is sealed at once as long as little waits for the socket; the rest waits in its
// owner's memory. If both sides have RDMA, they tell each other where before the first message, and
// all messages with a payload go that by: one that waits for the answer waits with them.
#include "aggregator/tcp_wire.h"

#include "hetcoll_config.h"

#if HETCOLL_WITH_OPENSSL

#include "aggregator/frame.h"
#include "aggregator/names.h"
#include "aggregator/rdma_queue_pairs.h"
#include "aggregator/socket.h"
#include "aggregator/standstill.h"
#include "aggregator/tls.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <deque>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unordered_map>
#include <utility>

namespace hetcoll {
namespace {

using Clock = Standstill::Clock;

constexpr std::size_t kMostUnsentBytes = 128u << 10; // sealed, of one connection
constexpr std::size_t kMostWaiting = 4096;           // messages without a payload
constexpr std::size_t kReadBytesAtOnce = 1u << 20;   // before others have their turn
constexpr int kAcceptsAtOnce = 16;
constexpr int kMostDeviceWaitMs = 50;           // what a device tells of itself has no descriptor
constexpr int kMostNameWaitMs = 20;             // nor has a name's look-up
constexpr auto kAway = std::chrono::seconds(1); // without progress()
constexpr std::uint64_t kListener = 0;          // in place of a connection, to epoll

constexpr const char *kClosedByOthers = "this process has closed a descriptor that was not its own";

Outgoing no_rdma() { return Outgoing(encode(RdmaOffer{}), {}, nullptr, Outgoing::What::kOffer); }

class TcpConnections final : public TcpWire, private Payload::Owner {
public:
    explicit TcpConnections(const TcpOptions &options) : options_(options)
    {
        if (options_.names == nullptr) {
            options_.names = std::make_shared<Names>();
        }
    }
    ~TcpConnections() override
    {
        while (!connections_.empty()) {
            close(connections_.begin()->first);
        }
    }
    Status open();

    Result<Connection> connect(const Endpoint &to, const std::string &key) override;
    void allow_payload(Connection connection, std::size_t most_bytes) override;
    void send(Connection to, const HeaderBytes &header, std::span<const std::byte> payload,
              SendBuffer *buffer) override;
    std::size_t waiting(Connection connection) const override
    {
        const auto found = connections_.find(connection);
        return found == connections_.end()
                   ? 0
                   : found->second->out.size() +
                         (queue_pairs_ ? queue_pairs_->waiting(connection) : 0);
    }
    void close(Connection connection) override;
    bool progress(WireEvents &events) override;
    void wait(int milliseconds, int fd) override;
    const GuestCounters &guests() const noexcept override { return guests_; }
    std::uint16_t port() const noexcept override { return listener_.port; }
    std::uint64_t by_rdma() const noexcept override
    {
        return queue_pairs_ ? queue_pairs_->messages() : 0;
    }
    std::string take_note() override { return std::exchange(note_, {}); }

private:
    struct TcpConnection {
        Connection id = kNoConnection;
        Descriptor socket;
        std::unique_ptr<TlsStream> tls; // none until TCP is connected
        std::string key;
        Endpoint to; // of one that connects
        std::shared_ptr<const Names::LookUp> look_up;
        std::vector<Address> addresses; // to try yet
        bool is_guest = false;
        bool may_ask = false; // for RDMA: who has connected, once, before all else
        enum class PayloadPath : std::uint8_t {
            kTls,
            kAsked,
            kRdma
        } by = PayloadPath::kTls;   // of payloads
        Clock::time_point deadline; // of a guest
        std::size_t most_payload = 0;
        Incoming in;
        std::deque<Outgoing> out;
        std::size_t out_done = 0; // of the first one
        Standstill unread;        // the other side takes nothing
        std::uint32_t polled = 0; // what epoll looks for
        bool lost = false, told = false;
        std::string why;
        [[nodiscard]] bool is_open() const noexcept
        {
            return tls != nullptr && tls->state() == TlsStream::State::kOpen;
        }
    };

    TcpConnection *find(Connection connection)
    {
        const auto found = connections_.find(connection);
        return found == connections_.end() ? nullptr : found->second.get();
    }
    void poll_for(TcpConnection &tcp, std::uint32_t events);
    bool take_addresses(TcpConnection &tcp);
    void follow_look_ups();
    void try_next_address(TcpConnection &tcp, const char *why);
    void start_tls(TcpConnection &tcp, TlsStream::Side side);

    void accept_some(WireEvents &events);
    void add_guest(Descriptor socket, WireEvents &events);
    bool show_out_one();
    void listen(bool on);
    void pause_listening();
    void look_at_guests(Clock::time_point now);
    void note_guest_gone(const TcpConnection &tcp);

    void serve(TcpConnection &tcp, WireEvents &events);
    void shake_hands(TcpConnection &tcp, WireEvents &events);
    void receive(TcpConnection &tcp, WireEvents &events);
    void write_out(TcpConnection &tcp);
    bool write_some(TcpConnection &tcp);
    bool is_unread(TcpConnection &tcp, Clock::time_point now) const;
    void look_at_readers(Clock::time_point now);
    void look_at_clock();
    void ask_for_rdma(TcpConnection &tcp);
    void on_offer(TcpConnection &tcp, std::span<const std::byte> header);
    void answer(TcpConnection &tcp, const RdmaOffer &offer);
    void go_by_tls(TcpConnection &tcp, const std::string &why);
    bool progress_queue_pairs(WireEvents &events);
    void push(TcpConnection &tcp, const Outgoing &message);

    void lose(TcpConnection &tcp, std::string why);
    void release(TcpConnection &tcp);
    void take_back(std::byte *data) noexcept override { delete[] data; }

    TcpOptions options_;
    std::shared_ptr<const TlsContext> tls_;
    Descriptor epoll_;
    Listener listener_;
    bool listening_ = false;
    Clock::time_point listen_again_{}, looked_{};
    Connection next_ = 1;
    std::unordered_map<Connection, std::unique_ptr<TcpConnection>> connections_;
    std::vector<Connection> looking_up_;                 // wait for the addresses of their hosts
    std::deque<Connection> waiting_room_;                // guests, the oldest first
    std::vector<Connection> unread_;                     // have more than they could say at once
    std::vector<Connection> lost_;                       // to be told
    std::vector<std::unique_ptr<TcpConnection>> closed_; // until progress() returns
    std::array<std::byte, kTlsRecordBytes> record_;      // too large for the stack of some threads
    GuestCounters guests_;
    std::unique_ptr<RdmaQueuePairs> queue_pairs_; // none: no RDMA
    std::string note_;                            // for the user
};

Status TcpConnections::open()
{
    Result<std::shared_ptr<const TlsContext>> tls = TlsContext::create(options_.keys);
    if (!tls.ok()) {
        return tls.take_status();
    }
    tls_ = std::move(*tls);
    epoll_ = Descriptor(epoll_create1(EPOLL_CLOEXEC));
    if (epoll_.get() < 0) {
        return error(Errc::kUnsupported, "epoll_create1 failed: %s: see ulimit -n",
                     std::strerror(errno));
    }
    // Guests leave most descriptors to those that are let in.
    rlimit files{};
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        options_.most_guests = std::clamp<std::size_t>(files.rlim_cur / 4, 1, options_.most_guests);
    }
    if (!options_.rdma.empty()) {
        Result<std::unique_ptr<RdmaQueuePairs>> queue_pairs = RdmaQueuePairs::open(options_.rdma);
        if (queue_pairs.ok()) {
            queue_pairs_ = std::move(*queue_pairs);
        } else {
            note_ = "no RDMA, vectors go over TLS: " + queue_pairs.status().message();
        }
    }
    if (!options_.listen) {
        return {};
    }
    Result<Listener> listener = listen_at(*options_.listen);
    if (!listener.ok()) {
        return listener.take_status();
    }
    listener_ = std::move(*listener);
    listen(true);
    return {};
}

// Off: whoever connects waits in the system's queue.
void TcpConnections::listen(bool on)
{
    if (listening_ != on) {
        epoll_event event{};
        event.events = EPOLLIN;
        event.data.u64 = kListener;
        (void)epoll_ctl(epoll_.get(), on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, listener_.socket.get(),
                        &event);
        listening_ = on;
    }
}

// Else epoll would tell at once of whoever waits.
void TcpConnections::pause_listening()
{
    listen(false);
    listen_again_ = options_.clock() + std::chrono::seconds(1);
}

void TcpConnections::poll_for(TcpConnection &tcp, std::uint32_t events)
{
    if (tcp.polled == events) {
        return;
    }
    epoll_event event{};
    event.events = events;
    event.data.u64 = tcp.id;
    const int what = tcp.polled == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
    if (epoll_ctl(epoll_.get(), what, tcp.socket.get(), &event) != 0) {
        lose(tcp, std::strerror(errno));
    }
    tcp.polled = events;
}

// ---- those who connect ----

void TcpConnections::accept_some(WireEvents &events)
{
    for (int i = 0; i < kAcceptsAtOnce; ++i) {
        Descriptor socket(
            accept4(listener_.socket.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (socket.get() >= 0) {
            ++guests_.accepted;
            add_guest(std::move(socket), events);
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            return;
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            ++guests_.no_descriptors;
            if (!show_out_one()) {
                pause_listening();
                return;
            }
        } else if (errno == EPERM || errno == EACCES || errno == ENOSYS || errno == EBADF ||
                   errno == EINVAL || errno == ENOTSOCK || errno == EOPNOTSUPP) {
            note_ = std::string("nobody can be let in: accept4 fails: ") + std::strerror(errno);
            pause_listening();
            return;
        }
    }
}

void TcpConnections::add_guest(Descriptor socket, WireEvents &events)
{
    while (waiting_room_.size() >= options_.most_guests && show_out_one()) {
        ++guests_.crowded_out;
    }
    set_up_connection(socket.get(), options_.silence_seconds);
    auto tcp = std::make_unique<TcpConnection>();
    tcp->id = next_++;
    tcp->socket = std::move(socket);
    tcp->is_guest = tcp->may_ask = true;
    tcp->deadline = options_.clock() + std::chrono::duration_cast<Clock::duration>(
                                           std::chrono::duration<double>(options_.guest_seconds));
    TcpConnection &guest = *tcp;
    waiting_room_.push_back(guest.id);
    connections_[guest.id] = std::move(tcp);
    start_tls(guest, TlsStream::Side::kAccepts);
    serve(guest, events); // its hello is there, most likely
}

// The oldest of those that have not begun to show a key, if there are such: in a crowd of silent
// ones a rank has its turn. False if there is nobody.
bool TcpConnections::show_out_one()
{
    if (waiting_room_.empty()) {
        return false;
    }
    const auto silent =
        std::find_if(waiting_room_.begin(), waiting_room_.end(), [this](Connection guest) {
            const TcpConnection &tcp = *connections_.at(guest);
            return tcp.tls == nullptr || tcp.tls->key().empty();
        });
    close(silent != waiting_room_.end() ? *silent : waiting_room_.front());
    return true;
}

void TcpConnections::look_at_guests(Clock::time_point now)
{
    if (listener_.socket.get() >= 0 && now >= listen_again_) {
        listen(true);
    }
    while (!waiting_room_.empty() && now > connections_.at(waiting_room_.front())->deadline) {
        ++guests_.late;
        close(waiting_room_.front());
    }
}

void TcpConnections::note_guest_gone(const TcpConnection &tcp)
{
    ++(tcp.tls != nullptr && !tcp.tls->key().empty() ? guests_.wrong_key : guests_.no_key);
}

// ---- connections ----

Result<Connection> TcpConnections::connect(const Endpoint &to, const std::string &key)
{
    auto made = std::make_unique<TcpConnection>();
    made->id = next_++;
    made->key = key;
    made->to = to;
    made->look_up = options_.names->ask(to);
    TcpConnection &tcp = *made;
    connections_[tcp.id] = std::move(made);
    ask_for_rdma(tcp);
    if (!take_addresses(tcp)) {
        looking_up_.push_back(tcp.id);
    }
    return tcp.id;
}

// False while its host is looked up.
bool TcpConnections::take_addresses(TcpConnection &tcp)
{
    if (!tcp.look_up->is_over()) {
        return false;
    }
    const Result<std::vector<Address>> &answer = tcp.look_up->answer();
    if (answer.ok()) {
        tcp.addresses.assign(answer->rbegin(), answer->rend());
        try_next_address(tcp, "no address");
    } else {
        lose(tcp, answer.status().message());
    }
    return true;
}

void TcpConnections::follow_look_ups()
{
    std::erase_if(looking_up_, [this](Connection connection) {
        TcpConnection *const tcp = find(connection);
        return tcp == nullptr || tcp->lost || take_addresses(*tcp);
    });
}

void TcpConnections::try_next_address(TcpConnection &tcp, const char *why)
{
    std::string reason = why;
    while (!tcp.addresses.empty()) {
        const Address address = tcp.addresses.back();
        tcp.addresses.pop_back();
        tcp.socket = open_socket(address.family);
        tcp.polled = 0;
        if (tcp.socket.get() >= 0) {
            set_up_connection(tcp.socket.get(), options_.silence_seconds);
            if (::connect(tcp.socket.get(), address.get(), address.length) == 0 ||
                errno == EINPROGRESS) {
                poll_for(tcp, EPOLLOUT);
                return;
            }
        }
        reason = std::strerror(errno);
    }
    lose(tcp, reason);
}

void TcpConnections::start_tls(TcpConnection &tcp, TlsStream::Side side)
{
    Result<std::unique_ptr<TlsStream>> tls =
        TlsStream::create(tls_, tcp.socket.get(), side, tcp.key);
    if (!tls.ok()) {
        lose(tcp, tls.status().message());
        return;
    }
    tcp.tls = std::move(*tls);
    poll_for(tcp, EPOLLIN);
}

void TcpConnections::allow_payload(Connection connection, std::size_t most_bytes)
{
    if (TcpConnection *const tcp = find(connection); tcp != nullptr) {
        tcp->most_payload = most_bytes;
        if (queue_pairs_ != nullptr) {
            queue_pairs_->allow_payload(connection, most_bytes);
        }
    }
}

void TcpConnections::release(TcpConnection &tcp)
{
    std::deque<Outgoing> unsent = std::exchange(tcp.out, {});
    if (queue_pairs_ != nullptr) {
        std::ranges::copy(queue_pairs_->remove(tcp.id), std::back_inserter(unsent));
    }
    for (const Outgoing &message : unsent) {
        if (message.buffer != nullptr) {
            message.buffer->on_sent();
        }
    }
}

// It is told by progress(), if nobody closes it before.
void TcpConnections::lose(TcpConnection &tcp, std::string why)
{
    if (!tcp.lost) {
        if (tcp.look_up != nullptr && !tcp.is_open()) {
            options_.names->forget(tcp.to);
        }
        tcp.lost = true;
        tcp.why = std::move(why);
        lost_.push_back(tcp.id);
    }
}

void TcpConnections::close(Connection connection)
{
    const auto found = connections_.find(connection);
    if (found == connections_.end()) {
        return;
    }
    std::unique_ptr<TcpConnection> tcp = std::move(found->second);
    connections_.erase(found);
    if (tcp->is_guest) {
        std::erase(waiting_room_, connection);
    }
    tcp->lost = true; // nothing more is done with it
    tcp->socket = Descriptor();
    release(*tcp);
    closed_.push_back(std::move(tcp)); // somebody may be at work with it
}

// ---- sending ----

void TcpConnections::send(Connection to, const HeaderBytes &header,
                          std::span<const std::byte> payload, SendBuffer *buffer)
{
    TcpConnection *const tcp = find(to);
    if (tcp == nullptr || tcp->lost) {
        if (buffer != nullptr) {
            buffer->on_sent();
        }
        return;
    }
    const Outgoing message(header, payload, buffer);
    if (!payload.empty() && tcp->by != TcpConnection::PayloadPath::kTls) {
        queue_pairs_->send(to, message);
    } else {
        push(*tcp, message);
    }
}

void TcpConnections::push(TcpConnection &tcp, const Outgoing &message)
{
    tcp.out.push_back(message);
    if (tcp.out.size() > kMostWaiting) {
        lose(tcp, kDoesNotRead);
        release(tcp);
    } else if (tcp.is_open()) {
        write_out(tcp);
    }
}

void TcpConnections::write_out(TcpConnection &tcp)
{
    if (!tcp.socket.is_ours()) {
        lose(tcp, kClosedByOthers);
    }
    while (!tcp.lost) {
        while (!tcp.out.empty() && tcp.tls->unsent() < kMostUnsentBytes) {
            if (!write_some(tcp)) {
                lose(tcp, tcp.tls->why());
                return;
            }
        }
        if (!tcp.tls->flush()) {
            lose(tcp, tcp.tls->why());
            return;
        }
        const bool waits = tcp.tls->unsent() > 0;
        if (waits || tcp.out.empty()) {
            poll_for(tcp, waits ? EPOLLIN | EPOLLOUT : EPOLLIN);
            return;
        }
    }
}

// One record of the first message; the head goes with the beginning of the payload.
bool TcpConnections::write_some(TcpConnection &tcp)
{
    Outgoing &message = tcp.out.front();
    const std::size_t all = message.size();
    std::size_t bytes = std::min(all - tcp.out_done, kTlsRecordBytes);
    if (tcp.out_done == 0) {
        std::memcpy(record_.data(), message.head.data(), message.head_bytes);
        if (bytes > message.head_bytes) {
            std::memcpy(&record_[message.head_bytes], message.payload.data(),
                        bytes - message.head_bytes);
        }
        if (!tcp.tls->write({record_.data(), bytes})) {
            return false;
        }
    } else if (!tcp.tls->write(message.payload.subspan(tcp.out_done - message.head_bytes, bytes))) {
        return false;
    }
    tcp.out_done += bytes;
    if (tcp.out_done == all) {
        SendBuffer *const buffer = message.buffer;
        tcp.out.pop_front();
        tcp.out_done = 0;
        if (buffer != nullptr) {
            buffer->on_sent();
        }
    }
    return true;
}

bool TcpConnections::is_unread(TcpConnection &tcp, Clock::time_point now) const
{
    return tcp.is_open() && !tcp.lost &&
           tcp.unread.lasts(tcp.tls->unsent() > 0, tcp.tls->sent(), now,
                            std::chrono::seconds(options_.silence_seconds));
}

// TCP itself gives up a machine that does not answer. Of one that answers it waits for the process.
void TcpConnections::look_at_readers(Clock::time_point now)
{
    for (const auto &[connection, tcp] : connections_) {
        if (is_unread(*tcp, now)) {
            write_out(*tcp); // epoll does not tell of a little room
            if (is_unread(*tcp, now) && has_answered(tcp->socket.get(), options_.silence_seconds)) {
                lose(*tcp, kDoesNotRead);
            }
        }
    }
}

// ---- receiving ----

void TcpConnections::serve(TcpConnection &tcp, WireEvents &events)
{
    if (!tcp.socket.is_ours()) {
        lose(tcp, kClosedByOthers);
    }
    if (tcp.lost) {
        return;
    }
    if (tcp.tls == nullptr) {
        int problem = 0;
        socklen_t length = sizeof problem;
        if (getsockopt(tcp.socket.get(), SOL_SOCKET, SO_ERROR, &problem, &length) != 0 ||
            problem != 0) {
            try_next_address(tcp, std::strerror(problem));
            return;
        }
        start_tls(tcp, TlsStream::Side::kConnects);
        if (tcp.lost) {
            return;
        }
    }
    if (!tcp.is_open()) {
        shake_hands(tcp, events);
    }
    if (tcp.is_open() && !tcp.lost) {
        write_out(tcp);
        receive(tcp, events);
    }
}

void TcpConnections::shake_hands(TcpConnection &tcp, WireEvents &events)
{
    const TlsStream::State state = tcp.tls->advance();
    if (state == TlsStream::State::kLost) {
        if (tcp.is_guest) {
            note_guest_gone(tcp);
            close(tcp.id);
        } else {
            lose(tcp, tcp.tls->why());
        }
        return;
    }
    if (state == TlsStream::State::kHandshake) {
        poll_for(tcp, tcp.tls->unsent() > 0 ? EPOLLIN | EPOLLOUT : EPOLLIN);
    } else if (tcp.is_guest) {
        tcp.is_guest = false;
        std::erase(waiting_room_, tcp.id);
        ++guests_.let_in;
        events.on_accepted(tcp.id, tcp.tls->key());
    }
}

void TcpConnections::receive(TcpConnection &tcp, WireEvents &events)
{
    for (std::size_t received = 0; !tcp.lost;) {
        const std::size_t got = tcp.tls->read(tcp.in.wanted());
        if (got == 0) {
            if (tcp.tls->state() == TlsStream::State::kLost) {
                lose(tcp, tcp.tls->why());
            }
            return;
        }
        received += got;
        if (!tcp.in.add(got, tcp.most_payload)) {
            lose(tcp, "it has sent a message that is too large, or none of hetcoll's");
            return;
        }
        if (tcp.in.is_whole()) {
            Incoming whole = std::exchange(tcp.in, {});
            if (whole.is_offer()) {
                on_offer(tcp, whole.header());
            } else {
                tcp.may_ask = false;
                events.on_message(tcp.id, whole.header(), whole.take_payload(*this));
            }
        }
        if (received >= kReadBytesAtOnce && tcp.tls->has_unread()) {
            unread_.push_back(tcp.id);
            return;
        }
        if (received >= kReadBytesAtOnce) {
            return; // epoll tells if there is more
        }
    }
}

// ---- vectors by RDMA ----

void TcpConnections::ask_for_rdma(TcpConnection &tcp)
{
    if (queue_pairs_ == nullptr) {
        return;
    }
    const Result<RdmaOffer> offer = queue_pairs_->add(tcp.id);
    if (!offer.ok()) {
        note_ = "no RDMA, vectors go over TLS: " + offer.status().message();
        return;
    }
    tcp.by = TcpConnection::PayloadPath::kAsked;
    push(tcp, Outgoing(encode(*offer), {}, nullptr, Outgoing::What::kOffer));
}

void TcpConnections::on_offer(TcpConnection &tcp, std::span<const std::byte> header)
{
    const std::optional<RdmaOffer> offer = decode_offer(header);
    const bool refuses = offer && offer->address.kind.empty();
    if (offer && !refuses && tcp.may_ask) {
        tcp.may_ask = false;
        answer(tcp, *offer);
    } else if (refuses && tcp.by != TcpConnection::PayloadPath::kTls) {
        go_by_tls(tcp, tcp.by == TcpConnection::PayloadPath::kAsked
                           ? "the aggregator offers none that fits: start it with --rdma"
                           : "a rank cannot reach this device");
    } else if (offer && !refuses && tcp.by == TcpConnection::PayloadPath::kAsked) {
        if (Status connected = queue_pairs_->connect(tcp.id, *offer); connected.ok()) {
            tcp.by = TcpConnection::PayloadPath::kRdma;
        } else {
            push(tcp, no_rdma());
            go_by_tls(tcp, connected.message());
        }
    } else {
        lose(tcp, "it has sent an offer of RDMA that is none, or out of turn");
    }
}

// Vectors go this by when the first one has come this by: the other side is connected then.
void TcpConnections::answer(TcpConnection &tcp, const RdmaOffer &offer)
{
    if (queue_pairs_ == nullptr) {
        push(tcp, no_rdma());
        return;
    }
    Result<RdmaOffer> own = queue_pairs_->add(tcp.id);
    Status status = own.ok() ? queue_pairs_->connect(tcp.id, offer) : own.take_status();
    if (!status.ok()) {
        push(tcp, no_rdma());
        go_by_tls(tcp, status.message());
        return;
    }
    tcp.by = TcpConnection::PayloadPath::kRdma;
    queue_pairs_->allow_payload(tcp.id, tcp.most_payload);
    push(tcp, Outgoing(encode(*own), {}, nullptr, Outgoing::What::kOffer));
}

void TcpConnections::go_by_tls(TcpConnection &tcp, const std::string &why)
{
    note_ = "no RDMA, vectors go over TLS: " + why;
    tcp.by = TcpConnection::PayloadPath::kTls;
    for (const Outgoing &message : queue_pairs_->remove(tcp.id)) {
        push(tcp, message);
    }
}

bool TcpConnections::progress_queue_pairs(WireEvents &events)
{
    std::vector<RdmaQueuePairs::Arrived> arrived;
    std::vector<RdmaQueuePairs::Lost> lost;
    const bool moved = queue_pairs_->progress(arrived, lost);
    for (RdmaQueuePairs::Arrived &one : arrived) {
        if (const TcpConnection *const tcp = find(one.connection); tcp != nullptr && !tcp->lost) {
            events.on_message(one.connection, one.message.header(),
                              one.message.take_payload(*this));
        }
    }
    for (RdmaQueuePairs::Lost &one : lost) {
        if (TcpConnection *const tcp = find(one.connection); tcp != nullptr) {
            lose(*tcp, std::move(one.why));
        }
    }
    return moved;
}

void TcpConnections::look_at_clock()
{
    const Clock::time_point now = options_.clock();
    if (now - looked_ < std::chrono::milliseconds(250)) {
        return;
    }
    const bool away = now - std::exchange(looked_, now) > kAway;
    look_at_guests(now);
    if (options_.silence_seconds > 0) {
        look_at_readers(now);
        if (queue_pairs_ != nullptr && !away) { // else the device may have more to tell
            queue_pairs_->look_at_readers(now, std::chrono::seconds(options_.silence_seconds));
        }
    }
}

bool TcpConnections::progress(WireEvents &events)
{
    constexpr int kMost = 64;
    std::array<epoll_event, kMost> ready;
    const int count = epoll_wait(epoll_.get(), ready.data(), kMost, 0);
    if (count < 0 && errno != EINTR) {
        for (const auto &[connection, tcp] : connections_) {
            lose(*tcp, kClosedByOthers);
        }
    }
    if (!looking_up_.empty()) {
        follow_look_ups();
    }
    bool moved = count > 0 || !lost_.empty() || !unread_.empty();
    for (const Connection connection : std::exchange(unread_, {})) {
        if (TcpConnection *const tcp = find(connection); tcp != nullptr) {
            serve(*tcp, events);
        }
    }
    bool knock = false;
    for (int i = 0; i < count; ++i) {
        const Connection connection = ready[static_cast<std::size_t>(i)].data.u64;
        knock = knock || connection == kListener;
        if (TcpConnection *const tcp = find(connection); tcp != nullptr) {
            serve(*tcp, events);
        }
    }
    if (knock) {
        accept_some(events);
    }
    if (queue_pairs_ != nullptr) {
        moved = progress_queue_pairs(events) || moved;
    }
    look_at_clock();
    for (const Connection connection : std::exchange(lost_, {})) {
        TcpConnection *const tcp = find(connection);
        if (tcp == nullptr) {
            continue;
        }
        const bool was_guest = tcp->is_guest;
        const std::string why = tcp->why;
        close(connection);
        if (!was_guest) {
            events.on_lost(connection, why);
        }
    }
    closed_.clear();
    return moved;
}

void TcpConnections::wait(int milliseconds, int fd)
{
    if (!lost_.empty() || !unread_.empty()) {
        return; // something is there already
    }
    if (!looking_up_.empty()) {
        milliseconds = std::min(milliseconds, kMostNameWaitMs);
    }
    int queue_pairs = -1;
    if (queue_pairs_ != nullptr) {
        queue_pairs = queue_pairs_->arm();
        if (queue_pairs < 0) {
            return;
        }
        milliseconds = std::min(milliseconds, kMostDeviceWaitMs);
    }
    pollfd polled[] = {{.fd = epoll_.get(), .events = POLLIN, .revents = 0},
                       {.fd = fd, .events = POLLIN, .revents = 0},
                       {.fd = queue_pairs, .events = POLLIN, .revents = 0}};
    ::poll(polled, 3, milliseconds);
}

} // namespace

Result<std::unique_ptr<TcpWire>> open_tcp_wire(const TcpOptions &options)
{
    auto wire = std::make_unique<TcpConnections>(options);
    if (Status status = wire->open(); !status.ok()) {
        return status;
    }
    return std::unique_ptr<TcpWire>(std::move(wire));
}

} // namespace hetcoll

#else

namespace hetcoll {

Result<std::unique_ptr<TcpWire>> open_tcp_wire(const TcpOptions & /*options*/)
{
    return error(Errc::kUnsupported, "this hetcoll was built without OpenSSL, so it has no "
                                     "aggregators: configure it --with-openssl");
}

} // namespace hetcoll

#endif
