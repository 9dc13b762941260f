#include "tuning/json_walk.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace hetcoll {
namespace {

constexpr std::size_t kMaxText = 200; // of a string in the file

} // namespace

std::string JsonWalk::quoted(const std::string &text)
{
    return "'" + (text.size() > kMaxText ? text.substr(0, kMaxText) + "..." : text) + "'";
}

std::string JsonWalk::list_of(Names names)
{
    std::string list;
    for (const char *name : names) {
        list += list.empty() ? "" : ", ";
        list += name;
    }
    return list;
}

bool JsonWalk::fail(int line, std::string cause)
{
    line_ = line;
    cause_ = std::move(cause);
    return false;
}

bool JsonWalk::is(Kind kind, const JsonNode &node, const std::string &what)
{
    return node.kind == kind ||
           fail(node.line, what + " is " + kind_name(node.kind) + ", not " + kind_name(kind));
}

bool JsonWalk::is_object_of(Names known, const JsonNode &node, const std::string &what)
{
    if (!is(Kind::kObject, node, what)) {
        return false;
    }
    for (std::size_t i = 0; i < node.keys.size(); ++i) {
        if (std::find(known.begin(), known.end(), node.keys[i]) == known.end()) {
            return fail(node.items[i].line, "unknown key " + quoted(node.keys[i]) + " in " + what +
                                                ", known are " + list_of(known));
        }
    }
    return true;
}

} // namespace hetcoll
