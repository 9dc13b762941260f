#include "engine/process/parameters.h"

#include "engine/process/settings.h"
#include "engine/process/user_ops.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <limits>
#include <system_error>

namespace hetcoll {
namespace {

// For this parameter, valid entries are kept and the rest are ignored.
constexpr std::string_view kOfEntries = "user_ops";
constexpr long long kMost = std::numeric_limits<long long>::max();

struct Number {
    bool ok = false;
    long long value = 0; // the largest or least one where the text has an even larger one
    bool too_large = false;
};

// "-1", "4096", "64K".
Number parse_number(std::string_view text)
{
    Number number;
    const bool minus = text.starts_with('-');
    text.remove_prefix(minus || text.starts_with('+') ? 1 : 0);
    unsigned long long value = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
    const std::string_view unit = text.substr(static_cast<std::size_t>(read.ptr - text.data()));
    if (read.ptr == text.data() || unit.size() > 1) {
        return number;
    }
    constexpr std::string_view kUnits = "KMGT";
    unsigned shift = 0;
    if (!unit.empty()) {
        const char upper = static_cast<char>(std::toupper(static_cast<unsigned char>(unit[0])));
        const std::size_t power = kUnits.find(upper);
        if (power == std::string_view::npos) {
            return number;
        }
        shift = 10 * (static_cast<unsigned>(power) + 1);
    }
    number.ok = true;
    number.too_large =
        read.ec != std::errc() || value > static_cast<unsigned long long>(kMost) >> shift;
    number.value = number.too_large ? kMost : static_cast<long long>(value << shift);
    number.value = minus ? -number.value : number.value;
    return number;
}

Status no_number(const char *name, const char *text)
{
    return error(Errc::kInvalid, "coll_hetcoll_%s '%.40s' is no whole number", name, text);
}

Status check_text(const char *name, const char *text, const NumberRange &range, Number &number)
{
    number = parse_number(text);
    if (!number.ok) {
        return no_number(name, text);
    }
    if (number.too_large && number.value > 0) {
        return error(Errc::kInvalid, "coll_hetcoll_%s %.40s is too large, write at most %lld", name,
                     text, range.most);
    }
    return check_number(name, number.value, text, range);
}

Status read(int &to, const char *name, const char *text, const NumberRange &range)
{
    Number number;
    Status status = check_text(name, text, range, number);
    to = status.ok() ? static_cast<int>(number.value) : to;
    return status;
}

Status read(unsigned long &to, const char *name, const char *text, const NumberRange &range)
{
    Number number;
    Status status = check_text(name, text, range, number);
    to = status.ok() ? static_cast<unsigned long>(number.value) : to;
    return status;
}

// The words that Open MPI takes.
Status read(bool &to, const char *name, const char *text)
{
    constexpr std::array<std::string_view, 6> kTrue = {"true", "1", "yes", "t", "y", "enabled"};
    constexpr std::array<std::string_view, 6> kFalse = {"false", "0", "no", "f", "n", "disabled"};
    const bool yes = std::find(kTrue.begin(), kTrue.end(), text) != kTrue.end();
    if (!yes && std::find(kFalse.begin(), kFalse.end(), text) == kFalse.end()) {
        return error(Errc::kInvalid, "coll_hetcoll_%s '%.40s' is unknown, write true or false",
                     name, text);
    }
    to = yes;
    return {};
}

// `allowed`: "a, b or c".
Status read_word(int &to, const char *name, const std::string &text, std::string_view allowed)
{
    int number = 0;
    for (std::string_view rest = allowed; !rest.empty(); ++number) {
        const std::string_view word = rest.substr(0, rest.find_first_of(", "));
        if (word == text) {
            to = number;
            return {};
        }
        rest.remove_prefix(word.size());
        rest.remove_prefix(std::min(rest.find_first_not_of(", "), rest.size()));
        rest.remove_prefix(rest.starts_with("or ") ? 3 : 0);
    }
    return error(Errc::kInvalid, "coll_hetcoll_%s '%.40s' is unknown, write %s", name, text.c_str(),
                 std::string(allowed).c_str());
}

template <class T> Status status_of(Result<T> result)
{
    return result.ok() ? Status() : result.take_status();
}

// The texts that hetcoll can judge without looking at files.
Status read_text(const char *&to, std::string_view name, const char *text)
{
    Status status = name == "algorithm"     ? status_of(parse_algorithm(text))
                    : name == "shares"      ? status_of(parse_shares(text))
                    : name == "aggregators" ? status_of(parse_aggregators(text))
                    : name == kOfEntries    ? check_user_ops(text)
                                            : Status();
    to = status.ok() || name == kOfEntries ? text : to;
    return status;
}

std::string default_text(bool value) { return value ? "true" : "false"; }
std::string default_text(int value) { return std::to_string(value); }
std::string default_text(const char *value) { return *value == '\0' ? "none" : value; }
std::string default_text(unsigned long value)
{
    std::size_t unit = 0;
    for (; value != 0 && value % 1024 == 0 && unit < 4; ++unit) {
        value /= 1024;
    }
    return std::to_string(value) + std::string("KMGT").substr(unit - (unit > 0), unit > 0);
}

std::optional<WrongParameter> judge(const Status &status, std::string_view name,
                                    bool changes_results, const std::string &otherwise)
{
    if (status.ok()) {
        return std::nullopt;
    }
    std::string message = status.message();
    std::replace_if(
        message.begin(), message.end(), [](unsigned char c) { return std::iscntrl(c) != 0; }, '?');
    return WrongParameter{changes_results,
                          message +
                              (changes_results ? ": MPI_Init fails, because results depend on it"
                               : name == kOfEntries ? ": such entries are left out"
                                                    : ": its default, " + otherwise + ", is used")};
}

} // namespace

std::optional<WrongParameter> set_parameter(hetcoll_settings &settings, std::string_view name,
                                            const char *text)
{
    const hetcoll_settings defaults = hetcoll_default_settings();
#define HETCOLL_RESULTS true
#define HETCOLL_SPEED false
#define HETCOLL_SET_BOOL(parameter, ...) read(settings.parameter, #parameter, text)
#define HETCOLL_SET_INT(parameter, ...) \
    read(settings.parameter, #parameter, text, NumberRange __VA_ARGS__)
#define HETCOLL_SET_BYTES(parameter, ...) \
    read(settings.parameter, #parameter, text, NumberRange __VA_ARGS__)
#define HETCOLL_SET_WORD(parameter, allowed) \
    read_word(settings.parameter, #parameter, text, allowed)
#define HETCOLL_SET_TEXT(parameter, ...) read_text(settings.parameter, #parameter, text)
#define HETCOLL_AS_BOOL(value) value
#define HETCOLL_AS_INT(value) value
#define HETCOLL_AS_BYTES(value) static_cast<unsigned long>(value)
#define HETCOLL_AS_WORD(value) value
#define HETCOLL_AS_TEXT(value) value
#define HETCOLL_PARAMETER(kind, parameter, value, allowed, agree, when, changes, ...) \
    if (name == #parameter) {                                                         \
        settings.parameter = defaults.parameter;                                      \
        return judge(HETCOLL_SET_##kind(parameter, allowed), name, HETCOLL_##changes, \
                     default_text(HETCOLL_AS_##kind(value)));                         \
    }
    HETCOLL_PARAMETERS
#undef HETCOLL_PARAMETER
    return std::nullopt;
}

Status check_number(const char *name, long long value, const std::string &shown,
                    const NumberRange &range)
{
    if (value > range.most) {
        return error(Errc::kInvalid, "coll_hetcoll_%s %.40s is too large, write at most %lld", name,
                     shown.c_str(), range.most);
    }
    if (value >= range.least || (value == 0 && range.zero != nullptr)) {
        return {};
    }
    const std::string or_zero = range.zero != nullptr ? std::string(", or 0 ") + range.zero : "";
    return error(Errc::kInvalid, "coll_hetcoll_%s %.40s is too small, write at least %lld%s", name,
                 shown.c_str(), range.least, or_zero.c_str());
}

} // namespace hetcoll
