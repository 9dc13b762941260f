// The sizes that a program goes through: a list of its own, or nccl-tests' -b, -e, -f and -i.
#pragma once

#include "base/status.h"

#include <cstddef>
#include <string>
#include <vector>

namespace hetcoll {

class CommandLine;

struct SizeWords {               // as typed
    std::string list;            // as parse_sizes() takes it; empty: none
    std::string least{}, most{}; // -b and -e; both empty: the list
    int factor = 2;              // -f
    std::string step{};          // -i; empty: by -f
};

// Adds -b, -e, -f and -i, which do not go with `list`, the program's own option, which has been
// added.
void add_size_options(CommandLine &line, const std::string &list, SizeWords &words);

// All of them are from `least` to `most`, or the error names the option: `list`, or -b and -e. None
// if nothing was typed.
[[nodiscard]] Result<std::vector<std::size_t>> read_sizes(const SizeWords &words, const char *list,
                                                          std::size_t least, std::size_t most);

} // namespace hetcoll
