#include "measure/size_options.h"

#include "measure/command_line.h"
#include "measure/sizes.h"

namespace hetcoll {
namespace {

constexpr std::size_t kMostSizes = 100'000; // of -i

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
    std::vector<std::size_t> sizes{*least};
    if (!words.step.empty()) {
        Result<std::size_t> step = parse_size(words.step);
        if (!step.ok() || *step == 0 || (*most - *least) / *step >= kMostSizes) {
            return error(Errc::kInvalid,
                         "-i %s is not a step from %s to %s in fewer than %zu sizes",
                         words.step.c_str(), first.c_str(), words.most.c_str(), kMostSizes);
        }
        while (sizes.back() + *step <= *most) {
            sizes.push_back(sizes.back() + *step);
        }
        return sizes;
    }
    const auto factor = static_cast<std::size_t>(words.factor);
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
    line.add_option("-i,--stepbytes", words.step,
                    "add this many bytes instead of multiplying by -f")
        .needs("-e")
        .excludes("-f")
        .type_name("SIZE");
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
