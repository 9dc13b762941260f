// A message is sealed immediately as long as little waits for the socket; the rest waits in its
// owner's memory. If both sides have RDMA, they tell each other where before the first message, and
// all messages with a payload go that way: one that waits for the answer waits with them.
#include "aggregator/tcp_wire.h"

#include "hetcoll_config.h"

#if HETCOLL_WITH_OPENSSL

#include "aggregator/tcp_connections.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <utility>

namespace hetcoll {
namespace {

constexpr std::size_t kMostUnsentBytes = 128u << 10; // sealed, of one connection
constexpr std::size_t kMostWaiting = 4096;           // messages without a payload
constexpr std::size_t kReadBytesAtOnce = 1u << 20;   // before others have their turn
constexpr int kMostDeviceWaitMs = 50;           // what a device tells of itself has no descriptor
constexpr int kMostNameWaitMs = 20;             // nor has a name's look-up
constexpr auto kAway = std::chrono::seconds(1); // without progress()

constexpr const char *kClosedByOthers = "this process has closed a descriptor that was not its own";

} // namespace

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
    door_.open(std::move(*listener));
    return {};
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

// ---- connections ----

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
            if (!tcp.write_some(record_)) {
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

// TCP itself gives up a machine that does not answer, but waits for the process of one that does.
void TcpConnections::look_at_readers(Clock::time_point now)
{
    for (const auto &[connection, tcp] : connections_) {
        if (tcp->is_unread(now, options_.silence_seconds)) {
            write_out(*tcp); // epoll does not tell of a little room
            if (tcp->is_unread(now, options_.silence_seconds) &&
                has_answered(tcp->socket.get(), options_.silence_seconds)) {
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
        knock = knock || connection == TcpDoor::kKnock;
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
