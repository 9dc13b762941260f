// Those who connect: guests, until they have shown a key.
#include "aggregator/tcp_connections.h"

#if HETCOLL_WITH_OPENSSL

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <sys/epoll.h>
#include <sys/socket.h>

namespace hetcoll {

namespace {

constexpr int kAcceptsAtOnce = 16;

} // namespace

// Off: whoever connects waits in the system's queue.
void TcpDoor::listen(bool on)
{
    if (listening_ != on) {
        epoll_event event{};
        event.events = EPOLLIN;
        event.data.u64 = kKnock;
        (void)epoll_ctl(epoll_.get(), on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, listener_.socket.get(),
                        &event);
        listening_ = on;
    }
}

void TcpDoor::pause(Clock::time_point now)
{
    listen(false);
    again_ = now + std::chrono::seconds(1);
}

void TcpDoor::look_at_clock(Clock::time_point now)
{
    if (listener_.socket.get() >= 0 && now >= again_) {
        listen(true);
    }
}

void TcpConnections::accept_some(WireEvents &events)
{
    for (int i = 0; i < kAcceptsAtOnce; ++i) {
        Descriptor socket(accept4(door_.socket(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (socket.get() >= 0) {
            ++guests_.accepted;
            add_guest(std::move(socket), events);
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            return;
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            ++guests_.no_descriptors;
            if (!show_out_one()) {
                door_.pause(options_.clock());
                return;
            }
        } else if (errno == EPERM || errno == EACCES || errno == ENOSYS || errno == EBADF ||
                   errno == EINVAL || errno == ENOTSOCK || errno == EOPNOTSUPP) {
            note_ = std::string("nobody can be let in: accept4 fails: ") + std::strerror(errno);
            door_.pause(options_.clock());
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
    door_.look_at_clock(now);
    while (!waiting_room_.empty() && now > connections_.at(waiting_room_.front())->deadline) {
        ++guests_.late;
        close(waiting_room_.front());
    }
}

void TcpConnections::note_guest_gone(const TcpConnection &tcp)
{
    ++(tcp.tls != nullptr && !tcp.tls->key().empty() ? guests_.wrong_key : guests_.no_key);
}

} // namespace hetcoll

#endif
