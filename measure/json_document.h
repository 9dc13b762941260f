// How the JSON of all tools begins: the file that describes it, which is installed, the number of
// its shape, and who wrote it. A shape that readers of the old one would misread gets a new number.
#pragma once

#include "hetcoll_config.h"

#include <nlohmann/json.hpp>

#include <string>

namespace hetcoll {

inline constexpr int kJsonSchema = 1;

[[nodiscard]] inline nlohmann::ordered_json json_document(const std::string &tool)
{
    return {{"$schema", tool + ".schema.json"},
            {"schema", kJsonSchema},
            {"tool", tool},
            {"version", HETCOLL_VERSION}};
}

// Names of machines and hosts may be no UTF-8.
[[nodiscard]] inline std::string json_text(const nlohmann::ordered_json &json)
{
    return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

} // namespace hetcoll
