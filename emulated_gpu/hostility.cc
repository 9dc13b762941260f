#include "emulated_gpu/hostility.h"

#include "emulated_gpu/report.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <string_view>

namespace hetcoll::emulated_gpu {
namespace {

constexpr std::string_view kGroups[] = {"waits",  "holds",  "handles", "contexts",
                                        "errors", "limits", "late"};
static_assert(std::size(kGroups) == static_cast<unsigned>(Hostility::kCount));

// A bit for each group: "1" has all, "handles,late" these two.
unsigned read_groups()
{
    const char *text = std::getenv("EMU_HOSTILE");
    std::string_view rest = text != nullptr ? text : "";
    if (rest.empty() || rest == "0") {
        return 0;
    }
    if (rest == "1") {
        return ~0u;
    }
    unsigned groups = 0;
    while (!rest.empty()) {
        const std::string_view word = rest.substr(0, rest.find(','));
        const auto *const found = std::find(std::begin(kGroups), std::end(kGroups), word);
        if (found == std::end(kGroups)) {
            say("EMU_HOSTILE='%s' is not 0, 1 or a list of waits, holds, handles, contexts, "
                "errors, limits, late; 0 is taken",
                text);
            return 0;
        }
        groups |= 1u << (found - std::begin(kGroups));
        rest.remove_prefix(std::min(word.size() + 1, rest.size()));
    }
    constexpr unsigned kWaitsBit = 1u << static_cast<unsigned>(Hostility::kWaits);
    constexpr unsigned kHoldsBit = 1u << static_cast<unsigned>(Hostility::kHolds);
    return (groups & kWaitsBit) != 0 ? groups | kHoldsBit : groups;
}

} // namespace

bool is_hostile(Hostility in)
{
    static const unsigned groups = read_groups();
    return (groups >> static_cast<unsigned>(in) & 1u) != 0;
}

} // namespace hetcoll::emulated_gpu
