#include "engine/process/settings.h"

#include "cuda_kernels/fixed_point.h"
#include "engine/process/parameters.h"
#include "schedule/algorithm_rows.h"

#include <algorithm>
#include <string>
#include <utility>

namespace hetcoll {
namespace {

static_assert(HETCOLL_POINTER_CACHE_HOOKED == static_cast<int>(PointerCacheMode::kHooked));
static_assert(HETCOLL_POINTER_CACHE_OFF == static_cast<int>(PointerCacheMode::kOff));
static_assert(kMostFixedPointBits == 60, "HETCOLL_PARAMETERS says so");

Result<std::vector<Endpoint>> aggregators_of(const hetcoll_settings &settings)
{
    return parse_aggregators(settings.aggregators != nullptr ? settings.aggregators : "");
}

} // namespace

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
    auto aggregators = aggregators_of(settings);
    if (!aggregators.ok()) {
        return aggregators.take_status();
    }
    return ParsedSettings{static_cast<PointerCacheMode>(settings.pointer_cache), *algorithm,
                          std::move(*shares), settings.adapters != nullptr ? settings.adapters : "",
                          std::move(*aggregators)};
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

Result<std::vector<Endpoint>> parse_aggregators(const char *text)
{
    if (*text == '\0') {
        return std::vector<Endpoint>();
    }
    auto endpoints = parse_endpoints(text);
    if (!endpoints.ok()) {
        return error(Errc::kInvalid, "coll_hetcoll_aggregators: %s",
                     endpoints.status().message().c_str());
    }
    return endpoints;
}

Status check_numbers(const hetcoll_settings &settings)
{
#define HETCOLL_CHECK_BOOL(name, ...)
#define HETCOLL_CHECK_TEXT(name, ...)
#define HETCOLL_CHECK_WORD(name, ...)
#define HETCOLL_CHECK_INT(name, ...) \
    check_number(#name, settings.name, std::to_string(settings.name), NumberRange __VA_ARGS__),
#define HETCOLL_CHECK_BYTES(name, ...)                                                             \
    check_number(#name,                                                                            \
                 static_cast<long long>(std::min<unsigned long>(settings.name, HETCOLL_NO_LIMIT)), \
                 std::to_string(settings.name), NumberRange __VA_ARGS__),
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
