#include "measure/command_line.h"

#include "measure/sizes.h"
#include "measure/version.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <memory>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

namespace hetcoll {
namespace {

template <class Number> std::string range_text(Number least, Number most)
{
    std::ostringstream text;
    text << least << " to " << most;
    return text.str();
}

// The word as a number, and nothing behind it.
template <class Number> bool read_number(const std::string &word, Number *value)
{
    const char *const end = word.data() + word.size();
    const auto [stop, code] = std::from_chars(word.data(), end, *value);
    return code == std::errc() && stop == end && !word.empty();
}

std::string lowercase_first(std::string text)
{
    if (text.size() > 1 && text[0] >= 'A' && text[0] <= 'Z' && (text[1] < 'A' || text[1] > 'Z')) {
        text[0] = static_cast<char>(text[0] - 'A' + 'a');
    }
    return text;
}

// "hetcoll_info", also of "hetcoll_info explain".
std::string program_of(const CLI::App &app)
{
    return app.get_name().substr(0, app.get_name().find(' '));
}

// "bcast reduce", the words that one_of() lets an option take.
std::string words_for(const CLI::Option &option)
{
    const std::string type = option.get_type_name();
    const std::size_t begin = type.find('{'), end = type.rfind('}');
    if (begin == type.npos || end == type.npos) {
        return {};
    }
    std::string words = type.substr(begin + 1, end - begin - 1);
    std::replace(words.begin(), words.end(), ',', ' ');
    return words;
}

// "SIZE", or the list of words of an option without a type_name().
std::string value_name(const CLI::Option &option)
{
    const std::string type = option.get_type_name();
    const std::string name = type.substr(0, type.find(":{"));
    const bool is_text = name == "TEXT";
    if (!is_text && name != "INT" && name != "UINT" && name != "FLOAT") {
        return name;
    }
    return type.size() > name.size() ? type.substr(name.size() + 1) : is_text ? "WORD" : "N";
}

// Leaves out what CLI11 adds by itself (needs, excludes, ranges): the descriptions say in words
// what a reader has to know, and whoever breaks a rule is told it.
class HelpFormatter : public CLI::Formatter {
public:
    // Options of the group in a few lines, each with the parameter that says what it does.
    static constexpr const char *kParameters = "Parameters";
    [[nodiscard]] std::string make_group(std::string group, bool is_positional,
                                         std::vector<const CLI::Option *> options) const override
    {
        if (group != kParameters) {
            return Formatter::make_group(group, is_positional, options);
        }
        constexpr char kKept = '\x1f'; // a blank at which no line ends
        std::string words;
        for (const CLI::Option *option : options) {
            const std::string text = option->get_description();
            std::string item = option->get_name() + make_option_opts(option) +
                               (text.empty() ? text : " (" + text + ")");
            std::replace(item.begin(), item.end(), ' ', kKept);
            words += (words.empty() ? "As the parameter coll_hetcoll_NAME: " : "; ") + item;
        }
        std::string lines = in_lines(words, 0) + "\n";
        std::replace(lines.begin(), lines.end(), kKept, ' ');
        return lines;
    }

    [[nodiscard]] std::string make_option_opts(const CLI::Option *option) const override
    {
        if (option->get_type_size() == 0) { // a flag
            return {};
        }
        const std::string value = value_name(*option);
        std::string text = value.empty() ? value : " " + value;
        if (!option->get_default_str().empty()) {
            text += "=" + option->get_default_str();
        }
        return option->get_required() ? text + " (required)" : text;
    }

    [[nodiscard]] std::string make_description(const CLI::App *app) const override
    {
        return in_lines(app->get_description(), 0) + "\n";
    }

    // Subcommands first.
    [[nodiscard]] std::string make_help(const CLI::App *app, std::string name,
                                        CLI::AppFormatMode mode) const override
    {
        const std::string footer = make_footer(app);
        return make_description(app) + make_usage(app, std::move(name)) + make_positionals(app) +
               make_subcommands(app, mode) + make_groups(app, mode) +
               (footer.empty() ? "" : "\n" + footer);
    }

    [[nodiscard]] std::string make_subcommand(const CLI::App *subcommand) const override
    {
        return in_columns(subcommand->get_name(), subcommand->get_description());
    }

    [[nodiscard]] std::string make_option(const CLI::Option *option,
                                          bool is_positional) const override
    {
        return in_columns(make_option_name(option, is_positional) + make_option_opts(option),
                          option->get_description());
    }

private:
    static constexpr std::size_t kColumn = 26, kWidth = 100;

    static std::string in_columns(const std::string &name, const std::string &description)
    {
        const std::string new_line = "\n" + std::string(kColumn, ' ');
        std::string text = at_commas("  " + name, new_line);
        if (text.size() + 2 > kColumn) {
            text += new_line;
        } else {
            text.resize(kColumn, ' ');
        }
        return text + in_lines(description, kColumn) + "\n";
    }

    // Words in lines that begin in the column, the first one too.
    static std::string in_lines(const std::string &description, std::size_t first_column)
    {
        std::string text;
        std::size_t column = first_column;
        std::istringstream words(description);
        for (std::string word; words >> word;) {
            if (column > first_column && column + 1 + word.size() > kWidth) {
                text += "\n" + std::string(first_column, ' ');
                column = first_column;
            } else if (column > first_column) {
                text += ' ';
                ++column;
            }
            text += word;
            column += word.size();
        }
        return text;
    }

    // A list of words that is longer than a line, in several.
    static std::string at_commas(std::string text, const std::string &new_line)
    {
        std::size_t begin = 0;
        while (text.size() - begin > kWidth) {
            const std::size_t comma = text.rfind(',', begin + kWidth - 1);
            if (comma == text.npos || comma <= begin) {
                break;
            }
            text.insert(comma + 1, new_line);
            begin = comma + 2; // behind the end of the line
        }
        return text;
    }
};

// "--bytes: '4M,'", a list with nothing at a comma, which CLI11 would pass over; empty: none.
std::string list_with_gap(const CLI::App &app, const std::vector<std::string> &words)
{
    const auto has_gap = [](std::string_view list) {
        return list.starts_with(',') || list.ends_with(',') || list.find(",,") != list.npos;
    };
    const auto is_list = [](const CLI::Option *option) { return option->get_delimiter() == ','; };
    for (const CLI::Option *option : app.get_options(is_list)) {
        std::string_view before;
        for (const std::string &word : words) {
            for (const std::string &name : option->get_lnames()) {
                const bool is_its = before == "--" + name || word.starts_with("--" + name + "=");
                if (is_its && has_gap(word)) {
                    return "--" + name + ": '" + word + "'";
                }
            }
            before = word;
        }
    }
    return {};
}

} // namespace

const Option &Option::check(const Check &check) const
{
    option_->transform(CLI::Validator(check.apply, check.words));
    return *this;
}

const Option &Option::type_name(const std::string &name) const
{
    option_->type_name(name);
    return *this;
}

const Option &Option::as_parameter() const
{
    option_->group(HelpFormatter::kParameters);
    return *this;
}

const Option &Option::list() const
{
    option_->delimiter(',');
    return *this;
}

const Option &Option::one_each() const
{
    option_->allow_extra_args(false);
    return *this;
}

const Option &Option::value_optional() const
{
    option_->expected(0, 1);
    return *this;
}

const Option &Option::required() const
{
    option_->required();
    return *this;
}

const Option &Option::show_default() const
{
    option_->capture_default_str();
    return *this;
}

const Option &Option::needs(const std::string &other) const
{
    option_->needs(other);
    return *this;
}

const Option &Option::excludes(const std::string &other) const
{
    option_->excludes(other);
    return *this;
}

CommandLine::CommandLine(const std::string &program, const std::string &text)
    : app_(std::make_unique<CLI::App>(text, program))
{
    app_->formatter(std::make_shared<HelpFormatter>());
    if (program == program_of(*app_)) {
        app_->set_version_flag("--version", program + " (hetcoll) " + version(),
                               "print the version and exit");
    }
    app_->get_help_ptr()->description("print this help and exit");
}

CommandLine::~CommandLine() = default;

template <class Value>
Option CommandLine::add_option(const std::string &names, Value &value, const std::string &text)
{
    return Option(app_->add_option(names, value, text));
}
template Option CommandLine::add_option(const std::string &, int &, const std::string &);
template Option CommandLine::add_option(const std::string &, unsigned &, const std::string &);
template Option CommandLine::add_option(const std::string &, std::uint64_t &, const std::string &);
template Option CommandLine::add_option(const std::string &, double &, const std::string &);
template Option CommandLine::add_option(const std::string &, std::string &, const std::string &);
template Option CommandLine::add_option(const std::string &, std::vector<int> &,
                                        const std::string &);
template Option CommandLine::add_option(const std::string &, std::vector<std::uint64_t> &,
                                        const std::string &);
template Option CommandLine::add_option(const std::string &, std::vector<std::string> &,
                                        const std::string &);

Option CommandLine::add_flag(const std::string &names, bool &value, const std::string &text)
{
    return Option(app_->add_flag(names, value, text));
}

void CommandLine::add_subcommand(const std::string &name, const std::string &text)
{
    app_->add_subcommand(name, text);
}

void CommandLine::set_footer(const std::string &text) { app_->footer(text); }

std::string CommandLine::help() const { return app_->help(); }

std::string CommandLine::completion() const
{
    std::string text;
    for (const CLI::App *subcommand : app_->get_subcommands({})) {
        text += "subcommand " + subcommand->get_name() + "\n";
    }
    for (const CLI::Option *option : app_->get_options()) {
        for (const std::string &name : option->get_snames()) {
            text += "-" + name + " " + words_for(*option) + "\n";
        }
        for (const std::string &name : option->get_lnames()) {
            text += "--" + name + " " + words_for(*option) + "\n";
        }
    }
    return text;
}

bool CommandLine::has(const std::string &option) const
{
    return app_->get_option_no_throw(option) != nullptr;
}

bool CommandLine::is_given(const std::string &option) const
{
    return has(option) && app_->count(option) > 0;
}

std::vector<std::string> CommandLine::words_of(const std::string &option) const
{
    return has(option) ? app_->get_option(option)->results() : std::vector<std::string>();
}

int CommandLine::usage_error(const std::string &problem) const
{
    std::fprintf(stderr, "%s: %s; %s --help lists the options\n", program_of(*app_).c_str(),
                 problem.c_str(), app_->get_name().c_str());
    return kUsageError;
}

bool CommandLine::parse(const std::vector<std::string> &words, int &exit_code, bool speaks)
{
    if (!words.empty() && words.front() == kCompletion) {
        std::fputs(completion().c_str(), stdout);
        exit_code = end_output(program_of(*app_).c_str(), 0);
        return false;
    }
    try {
        app_->parse(
            std::vector<std::string>(words.rbegin(), words.rend())); // takes them from the end
        if (const std::string list = list_with_gap(*app_, words); !list.empty()) {
            throw CLI::ValidationError(list + " has nothing at a comma");
        }
        return true;
    } catch (const CLI::ParseError &problem) {
        std::ostringstream wanted, ignored;
        const bool failed = app_->exit(problem, wanted, ignored) != 0;
        exit_code = failed ? kUsageError : 0;
        if (speaks && failed) {
            usage_error(lowercase_first(problem.what()));
        } else if (speaks) {
            std::fputs(wanted.str().c_str(), stdout);
            exit_code = end_output(program_of(*app_).c_str(), 0);
        }
        return false;
    }
}

int end_output(const char *program, int exit_code)
{
    errno = 0;
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) {
        return exit_code;
    }
    std::fprintf(stderr, "%s: what it printed is not all on stdout%s%s%s\n", program,
                 errno != 0 ? " (" : "", errno != 0 ? std::strerror(errno) : "",
                 errno != 0 ? ")" : "");
    return exit_code == 0 ? 1 : exit_code;
}

Check whole_number(std::int64_t least, std::int64_t most)
{
    const auto check = [=](std::string &word) {
        std::int64_t value = 0;
        if (!read_number(word, &value) || value < least || value > most) {
            return "'" + word + "' is not a whole number, " + range_text(least, most);
        }
        word = std::to_string(value); // CLI11 would read 010 as eight
        return std::string();
    };
    return {check};
}

Check number(double least, double most)
{
    const auto check = [=](std::string &word) {
        double value = 0;
        if (!read_number(word, &value) || !(value >= least && value <= most)) { // NaN is neither
            return "'" + word + "' is not a number, " + range_text(least, most);
        }
        return std::string();
    };
    return {check};
}

Check size(std::size_t least, std::size_t most)
{
    const auto check = [=](std::string &word) {
        const Result<std::size_t> bytes = parse_size(word);
        if (!bytes.ok()) {
            return bytes.status().message();
        }
        if (*bytes < least || *bytes > most) {
            return "'" + word + "' is not a size from " + range_text(least, most) + " bytes";
        }
        word = std::to_string(*bytes);
        return std::string();
    };
    return {check};
}

Check word()
{
    const auto check = [](std::string &text) {
        const bool is_word = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
            return c > ' ' && c != 0x7f && std::strchr("/#\"\\", c) == nullptr;
        });
        return is_word ? std::string()
                       : "'" + text + "' is not one word without blanks, /, #, quotes and \\";
    };
    return {check};
}

Check one_of(std::vector<std::string> words)
{
    std::string list, braces;
    for (const std::string &word : words) {
        list += (list.empty() ? "" : ", ") + word;
        braces += (braces.empty() ? "{" : ",") + word;
    }
    braces += "}";
    const auto check = [words = std::move(words), list](std::string &word) {
        return std::find(words.begin(), words.end(), word) != words.end()
                   ? std::string()
                   : "'" + word + "' is none of " + list;
    };
    return {check, braces};
}

} // namespace hetcoll
