// TCP sockets that never wait, and the addresses of endpoints.
#pragma once

#include "aggregator/endpoint.h"
#include "base/file_mark.h"
#include "base/status.h"

#include <cstdint>
#include <sys/socket.h>
#include <utility>
#include <vector>

namespace hetcoll {

// A file descriptor. It is closed with its owner.
class Descriptor {
public:
    Descriptor() = default;
    explicit Descriptor(int fd) noexcept : fd_(fd), mark_(fd) {}
    Descriptor(Descriptor &&other) noexcept : fd_(std::exchange(other.fd_, -1)), mark_(other.mark_)
    {
    }
    Descriptor &operator=(Descriptor &&other) noexcept
    {
        std::swap(fd_, other.fd_);
        std::swap(mark_, other.mark_);
        return *this;
    }
    ~Descriptor();
    [[nodiscard]] int get() const noexcept { return fd_; } // negative: none
    // The program has not closed it, and opened something else.
    [[nodiscard]] bool is_ours() const noexcept { return mark_.fits(fd_); }

private:
    int fd_ = -1;
    FileMark mark_;
};

struct Address {
    int family = AF_UNSPEC;
    sockaddr_storage storage{};
    socklen_t length = 0;
    [[nodiscard]] const sockaddr *get() const noexcept
    {
        return reinterpret_cast<const sockaddr *>(&storage);
    }
    [[nodiscard]] std::uint16_t port() const noexcept;
};

// kNumeric: an address, which no name service is asked for.
enum class HostKind : std::uint8_t { kAny, kNumeric };
// All addresses of the endpoint's host, the preferred one first. An error begins with kUnknownHost
// (wire.h) only if there is no such host. May wait for the name service unless `kind` is kNumeric.
[[nodiscard]] Result<std::vector<Address>> look_up(const Endpoint &endpoint,
                                                   HostKind kind = HostKind::kAny);

// None, and errno, if the system has none.
[[nodiscard]] Descriptor open_socket(int family);

// A small message goes immediately. The connection is lost if the other machine does not answer for
// `silence_seconds`; 0: the system's limits hold.
void set_up_connection(int socket, int silence_seconds);

// The other machine has answered in the last `seconds`, even if only that it has no room.
[[nodiscard]] bool has_answered(int socket, int seconds);

struct Listener {
    Descriptor socket;
    std::uint16_t port = 0; // the system's choice, if the endpoint's is 0
};
[[nodiscard]] Result<Listener> listen_at(const Endpoint &endpoint);

} // namespace hetcoll
