#include "measure/sizes.h"

#include <charconv>
#include <sstream>

namespace hetcoll {

Result<std::size_t> parse_size(const std::string &word)
{
    std::size_t value = 0;
    const char *end = word.data() + word.size();
    const auto parsed = std::from_chars(word.data(), end, value);
    const std::string unit(parsed.ptr, end);
    const int shift = unit.empty() ? 0 : unit == "K" ? 10 : unit == "M" ? 20 : 30;
    const bool known = shift != 30 || unit == "G";
    if (parsed.ec != std::errc{} || !known || value > (std::size_t{1} << 40 >> shift)) {
        return error(Errc::kInvalid, "'%s' is not a size, write 4096, 64K or 1M", word.c_str());
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
    std::stringstream words(text);
    for (std::string word; std::getline(words, word, ',');) {
        Result<std::size_t> size = parse_size(word);
        if (!size.ok()) {
            return size.take_status();
        }
        sizes.push_back(*size);
    }
    return sizes;
}

} // namespace hetcoll
