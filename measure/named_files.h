// The files that a command line names: what a program would overwrite, or read twice.
#pragma once

#include <string>
#include <vector>

namespace hetcoll {

class CommandLine;

// Describes a fault of the files that the options `writes` name: one of them is a file that an
// option of `reads` names, too, by whatever path, and would be lost, or two of them are one file.
// Empty: nothing.
[[nodiscard]] std::string find_overwritten(const CommandLine &line,
                                           const std::vector<std::string> &writes,
                                           const std::vector<std::string> &reads);

// The file that an option names twice, by whatever path; empty: none.
[[nodiscard]] std::string find_twice(const CommandLine &line, const std::string &option);

} // namespace hetcoll
