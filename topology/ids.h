// How devices are told apart: by PCI bus id and UUID, never by ordinal, because the environment of
// each process may change ordinals.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hetcoll {

// Plain data, eight bytes: it travels between nodes as it is.
struct BusId {
    std::uint32_t domain = 0;
    std::uint8_t bus = 0, device = 0, function = 0;
    std::uint8_t known = 0; // 0: there is none

    friend auto operator<=>(const BusId &, const BusId &) = default;
};

// "0000:06:00.0", or "-" if there is none.
[[nodiscard]] std::string print_bus_id(const BusId &bus);
// Reads DOMAIN:BUS:DEVICE.FUNCTION or BUS:DEVICE.FUNCTION in hexadecimal (a domain of 4 or 8
// digits, as different drivers write it), or "-".
[[nodiscard]] std::optional<BusId> parse_bus_id(std::string_view text);

// The sixteen bytes of cuDeviceGetUuid_v2; all zero: none. An instance of a divided GPU (MIG) has
// its own.
struct Uuid {
    std::array<std::uint8_t, 16> bytes{};

    [[nodiscard]] bool known() const noexcept { return bytes != std::array<std::uint8_t, 16>{}; }
    friend auto operator<=>(const Uuid &, const Uuid &) = default;
};

// "GPU-6a5d1f40-9a0c-...".
[[nodiscard]] std::string print_uuid(const Uuid &uuid);
// Reads what print_uuid() writes; "MIG-..." too.
[[nodiscard]] std::optional<Uuid> parse_uuid(std::string_view text);

} // namespace hetcoll
