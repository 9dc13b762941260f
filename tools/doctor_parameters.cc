#include "tools/doctor.h"

#include "engine/hetcoll.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <set>
#include <string_view>
#include <utility>

namespace hetcoll {
namespace {

constexpr std::string_view kEnvironment = "OMPI_MCA_", kOwn = "coll_hetcoll_";

bool is_parameter(std::string_view name)
{
#define HETCOLL_PARAMETER(kind, parameter, ...) \
    if (name == #parameter) {                   \
        return true;                            \
    }
    HETCOLL_PARAMETERS
#undef HETCOLL_PARAMETER
    return false;
}

struct Setting {
    std::string name, value;
    std::string by, where; // "environment", "it is OMPI_MCA_... of the environment"
};
using Settings = std::vector<Setting>;

// Others are not for hetcoll to look at. One that only looks like its own is.
void add_setting(Setting setting, Settings &settings)
{
    if (setting.name.find("hetcoll") != std::string::npos) {
        settings.push_back(std::move(setting));
    }
}

void add_environment(Settings &settings)
{
    for (char **entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
        const std::string_view variable = *entry;
        const std::size_t equals = variable.find('=');
        if (variable.starts_with(kEnvironment) && equals != variable.npos) {
            const std::string name(variable.substr(0, equals));
            add_setting({name.substr(kEnvironment.size()), std::string(variable.substr(equals + 1)),
                         "environment", "it is " + name + " of the environment"},
                        settings);
        }
    }
}

std::string_view trimmed(std::string_view text)
{
    constexpr const char *kBlanks = " \t\r";
    const std::size_t begin = text.find_first_not_of(kBlanks);
    return begin == text.npos ? std::string_view()
                              : text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

// Lines "name = value" and comments. A file that is not there, as is usual, sets nothing; of a
// parameter that it sets twice the last line counts.
void add_file(const std::string &path, Settings &settings)
{
    std::ifstream file(path);
    std::string text;
    Settings found;
    for (int number = 1; std::getline(file, text); ++number) {
        const std::string_view line = trimmed(text);
        const std::size_t equals = line.find('=');
        if (line.starts_with('#') || equals == line.npos) {
            continue;
        }
        std::string_view value = trimmed(line.substr(equals + 1));
        if (value.size() >= 2 && value.front() == '"' && value.back() == '"') {
            value = value.substr(1, value.size() - 2);
        }
        const std::string by = path + ":" + std::to_string(number);
        add_setting({std::string(trimmed(line.substr(0, equals))), std::string(value), by,
                     "it is set in " + by},
                    found);
    }
    std::move(found.rbegin(), found.rend(), std::back_inserter(settings));
}

// All that jobs read, in the order of who counts.
Settings read_settings(const std::vector<std::string> &files)
{
    Settings settings;
    if (!files.empty()) {
        add_file(files.front(), settings); // overrides the environment
    }
    add_environment(settings);
    for (std::size_t i = 1; i < files.size(); ++i) {
        add_file(files[i], settings);
    }
    return settings;
}

Finding wrong_name(const Setting &setting)
{
    return {"parameters", Mark::kWrong, "there is no " + setting.name,
            setting.where +
                "; jobs run without it and say nothing: ompi_info --param coll hetcoll --level 9 "
                "has all names"};
}

} // namespace

std::vector<Finding> check_parameters(const std::vector<std::string> &files)
{
    std::vector<Finding> findings;
    std::set<std::string> seen, good;
    for (const Setting &setting : read_settings(files)) {
        const std::string_view name = setting.name;
        const bool own = name.starts_with(kOwn);
        const std::string parameter(own ? name.substr(kOwn.size()) : "");
        if (!is_parameter(parameter)) {
            findings.push_back(wrong_name(setting));
            continue;
        }
        if (!seen.insert(setting.name).second) {
            continue; // somebody counts more
        }
        hetcoll_settings settings = hetcoll_default_settings();
        std::array<char, 512> message{};
        if (hetcoll_set_parameter(&settings, parameter.c_str(), setting.value.c_str(),
                                  message.data(), message.size()) == 1) {
            good.insert(setting.name + " (by " + setting.by + ")");
        } else {
            findings.push_back({"parameters", Mark::kWrong, message.data(), setting.where});
        }
    }
    std::sort(findings.begin(), findings.end(),
              [](const Finding &a, const Finding &b) { return a.found < b.found; });
    if (findings.empty()) {
        std::string set;
        for (const std::string &each : good) {
            set += (set.empty() ? "" : ", ") + each;
        }
        findings.push_back(
            {"parameters", Mark::kOk,
             set.empty() ? "neither the environment nor a parameter file sets one" : set});
    }
    return findings;
}

} // namespace hetcoll
