// Where an aggregator listens, and the key that its workers must know.
#pragma once

#include "base/status.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hetcoll {

struct Endpoint {
    std::string host; // a name, an IPv4 address or an IPv6 address without brackets
    std::uint16_t port = 0;

    [[nodiscard]] std::string text() const; // host:port, [address]:port
};

// "host:port" or "[IPv6 address]:port". Port 0, of somebody who listens: the system chooses one.
[[nodiscard]] Result<Endpoint> parse_endpoint(std::string_view text, std::uint16_t least_port = 1);
// The same, with commas between them; at least one.
[[nodiscard]] Result<std::vector<Endpoint>> parse_endpoints(std::string_view text);

// The content of a key file, without white space at its end. The file must be a regular one that
// belongs to the user or to root, is closed to group and others (mode 0600), and holds 16 to 4096
// bytes.
[[nodiscard]] Result<std::string> read_key_file(const std::string &path);

// A key has a name: those who have different keys do not meet, whatever they call their jobs.
struct AggregatorKey {
    std::string name; // 1 to 64 of A-Z a-z 0-9 . _ -; it goes over the network in the clear
    std::string secret;
};

inline constexpr const char *kDefaultKeyName = "default";

// "FILE", whose key has the default name, or "NAME:FILE".
[[nodiscard]] Result<AggregatorKey> read_key(const std::string &text);

} // namespace hetcoll
