#include "measure/sizes.h"

#include <cctype>
#include <charconv>
#include <string_view>

namespace hetcoll {

Result<std::size_t> parse_size(const std::string &word)
{
    std::size_t value = 0;
    const char *end = word.data() + word.size();
    const auto parsed = std::from_chars(word.data(), end, value);
    const std::string unit(parsed.ptr, end);
    const std::size_t power = std::string_view("KMGT").find(
        unit.empty() ? 'K' : static_cast<char>(std::toupper(static_cast<unsigned char>(unit[0]))));
    const std::size_t shift = unit.empty() ? 0 : 10 * (power + 1);
    if (parsed.ec != std::errc{} || unit.size() > 1 || power == std::string_view::npos ||
        value > (kLargestSize >> shift)) {
        return error(Errc::kInvalid, "'%s' is not a size up to 1T, write 4096, 64K or 1M",
                     word.c_str());
    }
    return value << shift;
}

Result<std::vector<std::size_t>> parse_sizes(const std::string &text)
{
    std::vector<std::size_t> sizes;
    if (const auto colon = text.find(':'); colon != std::string::npos) {
        Result<std::size_t> first = parse_size(text.substr(0, colon));
        Result<std::size_t> last = parse_size(text.substr(colon + 1));
        if (!first.ok() || !last.ok()) {
            return first.ok() ? last.take_status() : first.take_status();
        }
        if (*first == 0 || *first > *last) {
            return error(Errc::kInvalid,
                         "'%s' has no sizes: write FIRST:LAST, from above 0 upwards", text.c_str());
        }
        for (std::size_t size = *first; size <= *last; size *= 2) {
            sizes.push_back(size);
        }
        return sizes;
    }
    if (text.empty()) {
        return error(Errc::kInvalid, "no size given, write 4096, 8:64M or 64K,1M");
    }
    for (std::size_t first = 0, end = 0; end != std::string::npos; first = end + 1) {
        end = text.find(',', first);
        Result<std::size_t> size = parse_size(text.substr(first, end - first));
        if (!size.ok()) {
            return size.take_status();
        }
        sizes.push_back(*size);
    }
    return sizes;
}

} // namespace hetcoll
