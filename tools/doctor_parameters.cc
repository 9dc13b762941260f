#include "tools/doctor.h"

#include "engine/hetcoll.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace hetcoll {
namespace {

constexpr std::string_view kPrefix = "OMPI_MCA_coll_hetcoll_";

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

Finding wrong_name(const std::string &name)
{
    return {"parameters", Mark::kWrong, "there is no coll_hetcoll_" + name,
            "jobs run without it and say nothing: ompi_info --param coll hetcoll --level 9 has all "
            "names"};
}

} // namespace

std::vector<Finding> check_parameters()
{
    std::vector<Finding> findings;
    std::string set;
    for (char **entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
        std::string_view variable = *entry;
        const std::size_t equals = variable.find('=');
        if (!variable.starts_with(kPrefix) || equals == std::string_view::npos) {
            continue;
        }
        const char *const text = *entry + equals + 1;
        const std::string name(variable.substr(kPrefix.size(), equals - kPrefix.size()));
        hetcoll_settings settings = hetcoll_default_settings();
        std::array<char, 512> message{};
        if (!is_parameter(name)) {
            findings.push_back(wrong_name(name));
        } else if (hetcoll_set_parameter(&settings, name.c_str(), text, message.data(),
                                         message.size()) != 1) {
            findings.push_back({"parameters", Mark::kWrong, message.data(),
                                "it is OMPI_MCA_coll_hetcoll_" + name + " of the environment"});
        } else {
            set += (set.empty() ? "coll_hetcoll_" : ", coll_hetcoll_") + name;
        }
    }
    std::sort(findings.begin(), findings.end(),
              [](const Finding &a, const Finding &b) { return a.found < b.found; });
    if (findings.empty()) {
        findings.push_back({"parameters", Mark::kOk,
                            set.empty() ? "the environment sets none" : set + " (by environment)"});
    }
    return findings;
}

} // namespace hetcoll
