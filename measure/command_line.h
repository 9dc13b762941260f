// What the command lines of all installed programs have in common, thin over CLI11: --version, how
// errors look and end, and checks of values. CLI11's own checks take NaN for a number in any range
// and -1 for a huge size.
#pragma once

#include <CLI/CLI.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace hetcoll {

// Exit codes: 0, 1 for work that failed, and this for a command line that nobody can follow.
inline constexpr int kUsageError = 2;

// Gives `app` the name of its program, --version, and a help that fits a terminal and, by help2man,
// a page of the manual. To be called before options are added.
void introduce(CLI::App &app, const char *program);

// True: go on. False: exit with `exit_code`: 0 after --help and --version, else kUsageError. Says
// why if it `speaks`: of the ranks of a job one does.
[[nodiscard]] bool parse_command_line(CLI::App &app, int argc, char **argv, int &exit_code,
                                      bool speaks = true);

// Says on stderr what is wrong with the command line. Returns kUsageError.
int usage_error(const CLI::App &app, const std::string &problem);

// At the end of a program: what it printed is where stdout goes, or it says that it is not, as on a
// full disk. Returns the exit code, which is not 0 then.
[[nodiscard]] int end_output(const char *program, int exit_code);

// For CLI::Option::transform(): decimal, without sign or with -, in the range.
[[nodiscard]] CLI::Validator whole_number(std::int64_t least, std::int64_t most);
// Finite, in the range.
[[nodiscard]] CLI::Validator number(double least, double most);
// "4096", "64K", "1M", as parse_size() takes it.
[[nodiscard]] CLI::Validator size(std::size_t least, std::size_t most);
// For check(): a word that may be part of a file's name and of a line of words.
[[nodiscard]] CLI::Validator word();
// For check(): one of these.
[[nodiscard]] CLI::Validator one_of(std::vector<std::string> words);

} // namespace hetcoll
