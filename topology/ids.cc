#include "topology/ids.h"

#include <charconv>
#include <cstdio>

namespace hetcoll {
namespace {

// Exactly `text`, as hexadecimal digits.
std::optional<std::uint32_t> hex(std::string_view text)
{
    std::uint32_t value = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
    if (text.empty() || code != std::errc{} || end != text.data() + text.size()) {
        return std::nullopt;
    }
    return value;
}

} // namespace

std::string print_bus_id(const BusId &bus)
{
    if (bus.known == 0) {
        return "-";
    }
    char text[32];
    std::snprintf(text, sizeof text, "%04x:%02x:%02x.%x", bus.domain, bus.bus, bus.device,
                  bus.function);
    return text;
}

std::optional<BusId> parse_bus_id(std::string_view text)
{
    if (text == "-") {
        return BusId{};
    }
    const std::size_t dot = text.rfind('.');
    const std::size_t last = text.rfind(':');
    if (dot == text.npos || last == text.npos || last > dot || last == 0) {
        return std::nullopt;
    }
    const std::size_t first = text.rfind(':', last - 1);
    const std::size_t bus_at = first == text.npos ? 0 : first + 1;
    const auto domain =
        first == text.npos ? std::optional<std::uint32_t>(0) : hex(text.substr(0, first));
    const auto bus = hex(text.substr(bus_at, last - bus_at));
    const auto device = hex(text.substr(last + 1, dot - last - 1));
    const auto function = hex(text.substr(dot + 1));
    if (!domain || !bus || !device || !function || *bus > 0xff || *device > 0x1f || *function > 7) {
        return std::nullopt;
    }
    return BusId{*domain, static_cast<std::uint8_t>(*bus), static_cast<std::uint8_t>(*device),
                 static_cast<std::uint8_t>(*function), 1};
}

std::string print_uuid(const Uuid &uuid)
{
    std::string text = "GPU";
    for (std::size_t i = 0; i < uuid.bytes.size(); ++i) {
        char digits[4];
        std::snprintf(digits, sizeof digits, "%02x", uuid.bytes[i]);
        text += (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) ? "-" : "";
        text += digits;
    }
    return text;
}

std::optional<Uuid> parse_uuid(std::string_view text)
{
    if (!text.starts_with("GPU-") && !text.starts_with("MIG-")) {
        return std::nullopt;
    }
    Uuid uuid;
    std::size_t at = 4;
    for (std::size_t i = 0; i < uuid.bytes.size(); ++i) {
        if (i == 4 || i == 6 || i == 8 || i == 10) {
            if (at >= text.size() || text[at] != '-') {
                return std::nullopt;
            }
            ++at;
        }
        const auto byte = at + 2 <= text.size() ? hex(text.substr(at, 2)) : std::nullopt;
        if (!byte) {
            return std::nullopt;
        }
        uuid.bytes[i] = static_cast<std::uint8_t>(*byte);
        at += 2;
    }
    return at == text.size() ? std::optional<Uuid>(uuid) : std::nullopt;
}

} // namespace hetcoll
