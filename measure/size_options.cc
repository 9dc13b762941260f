#include "measure/size_options.h"

#include "measure/command_line.h"
#include "measure/sizes.h"

namespace hetcoll {
namespace {

Result<std::vector<std::size_t>> sizes_between(const SizeWords &words)
{
    const std::string first = words.least.empty() ? "8" : words.least;
    Result<std::size_t> least = parse_size(first);
    Result<std::size_t> most = parse_size(words.most.empty() ? first : words.most);
    for (Result<std::size_t> *size : {&least, &most}) {
        if (!size->ok()) {
            return size->take_status();
        }
    }
    if (*least == 0 || *least > *most) {
        return error(Errc::kInvalid,
                     "'%s' is 0 or above '%s': write at least 1, and no more than -e",
                     first.c_str(), words.most.c_str());
    }
    const auto factor = static_cast<std::size_t>(words.factor);
    std::vector<std::size_t> sizes{*least};
    while (sizes.back() <= *most / factor) {
        sizes.push_back(sizes.back() * factor);
    }
    return sizes;
}

} // namespace

void add_size_options(CommandLine &line, const std::string &list, SizeWords &words)
{
    line.add_option("-b,--minbytes", words.least, "the first size; each is -f times the one before")
        .excludes(list)
        .type_name("SIZE");
    line.add_option("-e,--maxbytes", words.most, "the last size").excludes(list).type_name("SIZE");
    line.add_option("-f,--stepfactor", words.factor, "see -b")
        .check(whole_number(2, 1 << 20))
        .needs("-b")
        .show_default();
}

Result<std::vector<std::size_t>> read_sizes(const SizeWords &words, const char *list,
                                            std::size_t least, std::size_t most)
{
    const bool is_range = !words.least.empty() || !words.most.empty();
    const char *option = is_range ? "-b, -e" : list;
    if (!is_range && words.list.empty()) {
        return std::vector<std::size_t>();
    }
    Result<std::vector<std::size_t>> sizes =
        is_range ? sizes_between(words) : parse_sizes(words.list);
    if (!sizes.ok()) {
        return error(Errc::kInvalid, "%s: %s", option, sizes.status().message().c_str());
    }
    for (const std::size_t bytes : *sizes) {
        if (bytes < least || bytes > most) {
            return error(Errc::kInvalid, "%s: '%zu' is not a size from %zu to %zu bytes", option,
                         bytes, least, most);
        }
    }
    return sizes;
}

} // namespace hetcoll
