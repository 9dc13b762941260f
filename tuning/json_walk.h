// Shared by readers of a JSON tree: the first fault ends the walk, with its line.
#pragma once

#include "tuning/json_reader.h"

#include <initializer_list>
#include <string>

namespace hetcoll {

class JsonWalk {
protected:
    using Kind = JsonNode::Kind;
    using Names = std::initializer_list<const char *>;

    // In quotation marks, shortened; a list with commas: for messages.
    [[nodiscard]] static std::string quoted(const std::string &text);
    [[nodiscard]] static std::string list_of(Names names);

    // False, which the caller returns.
    bool fail(int line, std::string cause);
    bool is(Kind kind, const JsonNode &node, const std::string &what);
    // An object, all of whose keys are among `known`.
    bool is_object_of(Names known, const JsonNode &node, const std::string &what);

    int line_ = 0; // of the fault
    std::string cause_;
};

} // namespace hetcoll
