// A parameter from the text that a user has written. Open MPI's own parser makes a number of any
// text (abc is 0, 8x is 8), so hetcoll reads the texts again.
#pragma once

#include "base/status.h"
#include "engine/types/settings.h"

#include <optional>
#include <string>
#include <string_view>

namespace hetcoll {

struct WrongParameter {
    bool changes_results;
    std::string message; // parameter, value, what is wrong, and what becomes of it
};

// Sets the parameter `name`, without "coll_hetcoll_", to `text`, or to its default if that is
// wrong; of user_ops the right entries count. A setting that is text then points to `text` or to a
// constant.
[[nodiscard]] std::optional<WrongParameter> set_parameter(hetcoll_settings &settings,
                                                          std::string_view name, const char *text);

struct NumberRange {
    long long least, most;
    const char *zero; // what 0 means below the least; null: it is not allowed
};
// `shown` is the value in the message.
[[nodiscard]] Status check_number(const char *name, long long value, const std::string &shown,
                                  const NumberRange &range);

} // namespace hetcoll
