// The command lines of all programs: options and checks of their values, --help, --version, and how
// errors look and end. command_line.cc alone includes CLI11, which takes five seconds to compile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
} // namespace CLI

namespace hetcoll {

// Prints what the shell needs to complete words, if it is the first word.
inline constexpr const char *kCompletion = "--completion";

// Exit codes: 0, 1 for work that failed, and this for a command line that nobody can follow.
inline constexpr int kUsageError = 2;

// Says what is wrong with a word, or nothing, and may write it as CLI11 reads it. CLI11's own
// checks take NaN for a number in any range and -1 for a huge size.
struct Check {
    std::function<std::string(std::string &)> apply;
    std::string words{}; // for the help and for completion: "{device,host}"
};

// Decimal, without sign or with -, in the range.
[[nodiscard]] Check whole_number(std::int64_t least, std::int64_t most);
// Finite, in the range.
[[nodiscard]] Check number(double least, double most);
// "4096", "64K", "1M", as parse_size() takes it.
[[nodiscard]] Check size(std::size_t least, std::size_t most);
// A word that may be part of a file's name and of a line of words.
[[nodiscard]] Check word();
[[nodiscard]] Check one_of(std::vector<std::string> words);

// An option of a CommandLine, as long as that lives.
class Option {
public:
    explicit Option(CLI::Option *option) : option_(option) {}
    const Option &check(const Check &check) const;
    // In the help. Without it, that is the words of one_of(), or "WORD" or "N".
    const Option &type_name(const std::string &name) const;
    // In the help, its text is empty or names the parameter of the component.
    const Option &as_parameter() const;
    const Option &list() const;           // words with commas between them
    const Option &one_each() const;       // a list, one word each time that the option is given
    const Option &value_optional() const; // the option alone is enough
    const Option &required() const;
    const Option &show_default() const;
    const Option &needs(const std::string &other) const; // which has been added before
    const Option &excludes(const std::string &other) const;

private:
    CLI::Option *option_;
};

class CommandLine {
public:
    // `program`: "hetcoll_info", or with a subcommand "hetcoll_info explain". `text`: what it does,
    // for --help, which fits a terminal and, by help2man, a page of the manual.
    CommandLine(const std::string &program, const std::string &text);
    ~CommandLine();
    CommandLine(CommandLine &&) = delete;

    // `names`: "-b,--minbytes", or without - the name of an argument that has its place. `value`
    // has the default, and is what the command line says once it is parsed. It is an int,
    // unsigned, std::uint64_t, double or std::string, or a vector of numbers or words.
    template <class Value>
    Option add_option(const std::string &names, Value &value, const std::string &text = "");
    Option add_flag(const std::string &names, bool &value, const std::string &text = "");
    // A line in the help. Its own command line is another CommandLine.
    void add_subcommand(const std::string &name, const std::string &text);
    void set_footer(const std::string &text);
    [[nodiscard]] std::string help() const;
    // For the shell: a line for each subcommand and option, and the words that one_of() allows.
    [[nodiscard]] std::string completion() const;

    // True: go on. False: exit with `exit_code`: 0 after --help and --version, else kUsageError.
    // Says why if it `speaks`: of the ranks of a job one does.
    [[nodiscard]] bool parse(int argc, char **argv, int &exit_code, bool speaks = true)
    {
        return parse({argv + 1, argv + argc}, exit_code, speaks);
    }
    [[nodiscard]] bool parse(const std::vector<std::string> &words, int &exit_code,
                             bool speaks = true);

    [[nodiscard]] bool has(const std::string &option) const;
    [[nodiscard]] bool is_given(const std::string &option) const;
    // The words typed; empty as well if there is no such option.
    [[nodiscard]] std::vector<std::string> words_of(const std::string &option) const;

    // Says on stderr what is wrong with the command line. Returns kUsageError.
    int usage_error(const std::string &problem) const;

private:
    std::unique_ptr<CLI::App> app_;
};

// At the end of a program: what it printed is where stdout goes, or it says that it is not, as on a
// full disk. Returns the exit code, which is not 0 then.
[[nodiscard]] int end_output(const char *program, int exit_code);

} // namespace hetcoll
