// Connecting to others: one address of the host after the other, then TLS.
#include "aggregator/tcp_connections.h"

#if HETCOLL_WITH_OPENSSL

#include <cerrno>
#include <cstring>
#include <sys/epoll.h>
#include <sys/socket.h>

namespace hetcoll {

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

} // namespace hetcoll

#endif
