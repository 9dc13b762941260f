#include "aggregator/socket.h"

#include "aggregator/wire.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string>
#include <unistd.h>

namespace hetcoll {
namespace {

void set_option(int socket, int level, int name, int value)
{
    (void)setsockopt(socket, level, name, &value, sizeof value); // the system's value holds then
}

} // namespace

Descriptor::~Descriptor() { mark_.close(fd_); }

std::uint16_t Address::port() const noexcept
{
    sockaddr_in in{};
    sockaddr_in6 in6{};
    std::memcpy(&in, &storage, sizeof in);
    std::memcpy(&in6, &storage, sizeof in6);
    return ntohs(family == AF_INET6 ? in6.sin6_port : in.sin_port);
}

Result<std::vector<Address>> look_up(const Endpoint &endpoint, HostKind kind)
{
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICSERV | (kind == HostKind::kNumeric ? AI_NUMERICHOST : 0);
    addrinfo *found = nullptr;
    const int code =
        getaddrinfo(endpoint.host.c_str(), std::to_string(endpoint.port).c_str(), &hints, &found);
    if (code != 0) {
        const char *const why = code == EAI_SYSTEM ? std::strerror(errno) : gai_strerror(code);
        const bool unknown = code == EAI_NONAME || code == EAI_NODATA || code == EAI_ADDRFAMILY;
        return error(unknown ? Errc::kInvalid : Errc::kUnsupported, "%s: %s",
                     unknown ? kUnknownHost : "its host cannot be looked up now", why);
    }
    std::vector<Address> all;
    for (const addrinfo *one = found; one != nullptr; one = one->ai_next) {
        Address address;
        address.family = one->ai_family;
        address.length = one->ai_addrlen;
        std::memcpy(&address.storage, one->ai_addr, one->ai_addrlen);
        all.push_back(address);
    }
    freeaddrinfo(found);
    return all;
}

Descriptor open_socket(int family)
{
    return Descriptor(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

void set_up_connection(int socket, int silence_seconds)
{
    set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
    if (silence_seconds > 0) {
        // A second more than a wire waits, which can tell why: one that answers, and has no room.
        set_option(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, (silence_seconds + 1) * 1000);
        set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1); // where nothing is on its way
        set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, silence_seconds);
        set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, std::max(silence_seconds / 3, 1));
    }
}

bool has_answered(int socket, int seconds)
{
    tcp_info info{};
    socklen_t length = sizeof info;
    return getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &length) == 0 &&
           info.tcpi_last_ack_recv < static_cast<unsigned>(seconds) * 1000;
}

Result<Listener> listen_at(const Endpoint &endpoint)
{
    Result<std::vector<Address>> addresses = look_up(endpoint);
    if (!addresses.ok()) {
        return error(addresses.status().code(), "cannot listen at %s: %s", endpoint.text().c_str(),
                     addresses.status().message().c_str());
    }
    Address &address = addresses->front();
    Descriptor socket = open_socket(address.family);
    if (socket.get() >= 0) {
        // One that starts again need not wait until TCP has forgotten the old one's connections.
        set_option(socket.get(), SOL_SOCKET, SO_REUSEADDR, 1);
    }
    if (socket.get() < 0 || bind(socket.get(), address.get(), address.length) != 0 ||
        ::listen(socket.get(), SOMAXCONN) != 0 ||
        getsockname(socket.get(), reinterpret_cast<sockaddr *>(&address.storage),
                    &address.length) != 0) {
        return error(Errc::kInvalid,
                     "cannot listen at %s: %s: choose an address of this machine and a free port",
                     endpoint.text().c_str(), std::strerror(errno));
    }
    return Listener{.socket = std::move(socket), .port = address.port()};
}

} // namespace hetcoll
