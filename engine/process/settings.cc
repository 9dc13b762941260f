#include "engine/process/settings.h"

#include "cuda_kernels/fixed_point.h"
#include "tuning/algorithms.h"

#include <algorithm>
#include <string>
#include <utility>

namespace hetcoll {
namespace {

static_assert(HETCOLL_POINTER_CACHE_HOOKED == static_cast<int>(PointerCacheMode::kHooked));
static_assert(HETCOLL_POINTER_CACHE_OFF == static_cast<int>(PointerCacheMode::kOff));
static_assert(kMostFixedPointBits == 60, "HETCOLL_PARAMETERS says so");

struct Range {
    long long least, most;
    const char *zero; // what 0 means below the least; null: it is not allowed
};

Status check(const char *name, long long value, const Range &range)
{
    if (value > range.most) {
        return error(Errc::kInvalid, "coll_hetcoll_%s %lld is too large, write at most %lld", name,
                     value, range.most);
    }
    if (value >= range.least || (value == 0 && range.zero != nullptr)) {
        return {};
    }
    const std::string or_zero = range.zero != nullptr ? std::string(", or 0 ") + range.zero : "";
    return error(Errc::kInvalid, "coll_hetcoll_%s %lld is too small, write at least %lld%s", name,
                 value, range.least, or_zero.c_str());
}

Status check(const char *name, unsigned long value, const Range &range)
{
    constexpr unsigned long kMost = HETCOLL_NO_LIMIT;
    return check(name, static_cast<long long>(std::min(value, kMost)), range);
}

Result<std::vector<Endpoint>> parse_aggregators(const hetcoll_settings &settings)
{
    if (settings.aggregators == nullptr || *settings.aggregators == '\0') {
        return std::vector<Endpoint>();
    }
    auto endpoints = parse_endpoints(settings.aggregators);
    if (!endpoints.ok()) {
        return error(Errc::kInvalid, "coll_hetcoll_aggregators: %s",
                     endpoints.status().message().c_str());
    }
    return endpoints;
}

} // namespace

std::vector<std::string> take_defaults(hetcoll_settings &settings)
{
    const hetcoll_settings defaults = hetcoll_default_settings();
    std::vector<std::string> lines;
    const auto look = [&](const char *name, const Status &status, auto member) {
        if (!status.ok() && hetcoll_changes_results(name) == 0) {
            settings.*member = defaults.*member;
            lines.push_back(status.message());
        }
    };
    const auto look_at_text = [&](const char *name, auto parsed, auto member) {
        look(name, parsed.ok() ? Status() : parsed.take_status(), member);
    };
#define HETCOLL_LOOK_BOOL(name, ...)
#define HETCOLL_LOOK_TEXT(name, ...)
#define HETCOLL_LOOK_WORD(name, ...)
#define HETCOLL_LOOK_INT(name, ...)                                                     \
    look(#name, check(#name, static_cast<long long>(settings.name), Range __VA_ARGS__), \
         &hetcoll_settings::name);
#define HETCOLL_LOOK_BYTES(name, ...) \
    look(#name, check(#name, settings.name, Range __VA_ARGS__), &hetcoll_settings::name);
#define HETCOLL_PARAMETER(kind, name, value, allowed, ...) HETCOLL_LOOK_##kind(name, allowed)
    HETCOLL_PARAMETERS
#undef HETCOLL_PARAMETER
    look_at_text("algorithm", parse_algorithm(settings.algorithm), &hetcoll_settings::algorithm);
    if (settings.shares != nullptr) {
        look_at_text("shares", parse_shares(settings.shares), &hetcoll_settings::shares);
    }
    look_at_text("aggregators", parse_aggregators(settings), &hetcoll_settings::aggregators);
    return lines;
}

Result<ParsedSettings> parse_settings(const hetcoll_settings &settings)
{
    if (Status numbers = check_numbers(settings); !numbers.ok()) {
        return numbers;
    }
    auto algorithm = parse_algorithm(settings.algorithm);
    if (!algorithm.ok()) {
        return algorithm.take_status();
    }
    auto shares = settings.shares != nullptr ? parse_shares(settings.shares)
                                             : Result<ShareSetting>(ShareSetting());
    if (!shares.ok()) {
        return shares.take_status();
    }
    auto aggregators = parse_aggregators(settings);
    if (!aggregators.ok()) {
        return aggregators.take_status();
    }
    return ParsedSettings{static_cast<PointerCacheMode>(settings.pointer_cache), *algorithm,
                          std::move(*shares), std::move(*aggregators)};
}

Result<std::uint32_t> parse_algorithm(std::string_view name)
{
    if (name == "auto") {
        return std::uint32_t{0};
    }
    if (const auto algorithm = find_algorithm(name)) {
        return 1 + static_cast<std::uint32_t>(*algorithm);
    }
    return error(Errc::kInvalid, "coll_hetcoll_algorithm '%s' is unknown, write auto, %s",
                 std::string(name.substr(0, 40)).c_str(), names_of(kAllAlgorithms, " or ").c_str());
}

Status check_numbers(const hetcoll_settings &settings)
{
#define HETCOLL_CHECK_BOOL(name, ...)
#define HETCOLL_CHECK_TEXT(name, ...)
#define HETCOLL_CHECK_WORD(name, ...)
#define HETCOLL_CHECK_INT(name, ...) \
    check(#name, static_cast<long long>(settings.name), Range __VA_ARGS__),
#define HETCOLL_CHECK_BYTES(name, ...) check(#name, settings.name, Range __VA_ARGS__),
#define HETCOLL_PARAMETER(kind, name, value, allowed, ...) HETCOLL_CHECK_##kind(name, allowed)
    Status checks[] = {HETCOLL_PARAMETERS};
#undef HETCOLL_PARAMETER
    for (Status &check : checks) {
        if (!check.ok()) {
            return std::move(check);
        }
    }
    return {};
}

} // namespace hetcoll
