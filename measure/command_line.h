// How every installed program presents itself: name, --version, and a help that fits a terminal
// and, by help2man, a man page. Header only, because tools without MPI use it as well as those
// with.
#pragma once

#include "hetcoll_config.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <memory>
#include <sstream>
#include <string>

namespace hetcoll {

// Leaves out what CLI11 adds by itself (needs, excludes, ranges): the descriptions say in words
// what a reader has to know, and whoever breaks a rule is told it. Lists of words ({device,host})
// stay.
class HelpFormatter : public CLI::Formatter {
public:
    [[nodiscard]] std::string make_option_opts(const CLI::Option *option) const override
    {
        if (option->get_type_size() == 0) { // a flag
            return {};
        }
        std::string text = " " + without_tests(option->get_type_name());
        if (!option->get_default_str().empty()) {
            text += "=" + option->get_default_str();
        }
        return option->get_required() ? text + " (required)" : text;
    }

    [[nodiscard]] std::string make_option(const CLI::Option *option,
                                          bool is_positional) const override
    {
        std::string text =
            "  " + make_option_name(option, is_positional) + make_option_opts(option);
        const std::string new_line = "\n" + std::string(kColumn, ' ');
        if (text.size() + 2 > kColumn) {
            text += new_line;
        } else {
            text.resize(kColumn, ' ');
        }
        std::size_t column = kColumn;
        std::istringstream words(option->get_description());
        for (std::string word; words >> word;) {
            if (column > kColumn && column + 1 + word.size() > kWidth) {
                text += new_line;
                column = kColumn;
            } else if (column > kColumn) {
                text += ' ';
                ++column;
            }
            text += word;
            column += word.size();
        }
        return text + "\n";
    }

private:
    static constexpr std::size_t kColumn = 26, kWidth = 80;

    // CLI11 joins the name of the value and its checks by colons: N:INT in [1 - 1024], SIZE:SIZE
    // [b, kb(=1024b), ...].
    static std::string without_tests(std::string name)
    {
        for (const char *test :
             {":INT in [", ":UINT in [", ":FLOAT in [", ":SIZE [", ":POSITIVE", ":NONNEGATIVE"}) {
            name.resize(std::min(name.size(), name.find(test)));
        }
        return name;
    }
};

// To be called before options are added.
inline void introduce(CLI::App &app, const char *program)
{
    app.name(program);
    app.formatter(std::make_shared<HelpFormatter>());
    app.set_version_flag("--version", std::string(program) + " (hetcoll) " HETCOLL_VERSION,
                         "print the version and exit");
    app.get_help_ptr()->description("print this help and exit");
}

} // namespace hetcoll
