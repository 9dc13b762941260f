// hetcoll_bench compare: two of the files that hetcoll_bench writes with --json, call by call.
#pragma once

#include <string>
#include <vector>

namespace hetcoll {

// `words`: what follows "compare" on the command line, two files and options. Prints the calls that
// both files measured, with the ratio of their medians (first over second: above 1 the second is
// faster), the geometric mean of the ratios, and the facts that differ. Returns the exit code.
[[nodiscard]] int compare_results(const std::vector<std::string> &words);

} // namespace hetcoll
