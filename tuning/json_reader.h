// JSON with line numbers: every value knows the line that it begins on, so that an error can name
// it.
#pragma once

#include "base/status.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hetcoll {

struct JsonNode {
    enum class Kind : std::uint8_t { kNull, kBool, kInteger, kReal, kString, kArray, kObject };

    Kind kind = Kind::kNull;
    int line = 1;
    std::int64_t integer = 0;      // kInteger; a larger whole number is kReal
    double real = 0;               // kReal and kInteger
    std::string string;            // kString
    std::vector<JsonNode> items;   // kArray: elements; kObject: values
    std::vector<std::string> keys; // kObject: of the values, in the file's order, none twice
};

// The value of an object's key; null if it has none.
[[nodiscard]] const JsonNode *find_member(const JsonNode &object, std::string_view key) noexcept;

// "a string", "a list": for messages.
[[nodiscard]] const char *kind_name(JsonNode::Kind kind) noexcept;

struct JsonError {
    int line;
    std::string cause;
};

// True and *root, or false and *error. Throws std::bad_alloc only. Nesting and the number of values
// are limited: no text makes it run out of stack.
[[nodiscard]] bool read_json(std::string_view text, JsonNode *root, JsonError *error);

} // namespace hetcoll
