#include "price/recorded.h"

#include <algorithm>

namespace hetcoll {

RecordedSchedules::Of &RecordedSchedules::find(const Way &way, int ranks)
{
    const auto known =
        std::find_if(all_.begin(), all_.end(), [&](const Of &of) { return of.way == way; });
    if (known != all_.end()) {
        return *known;
    }
    Of &made = all_.emplace_back();
    made.way = way;
    made.ranks.resize(static_cast<std::size_t>(ranks));
    return made;
}

} // namespace hetcoll
