#include "tuning/price_table.h"

#include <algorithm>

namespace hetcoll {

int PriceTable::size_below(std::size_t bytes) noexcept
{
    const auto above = std::upper_bound(kBytes.begin(), kBytes.end(), bytes);
    return std::clamp(static_cast<int>(above - kBytes.begin()) - 1, 0, kSizes - 2);
}

double PriceTable::us(Algorithm algorithm, std::size_t bytes) const noexcept
{
    constexpr double kNever = std::numeric_limits<double>::infinity();
    const int below = size_below(bytes);
    const auto index = static_cast<std::size_t>(algorithm);
    const double low = static_cast<double>(column(below)[index].us);
    const double high = static_cast<double>(column(below + 1)[index].us);
    if (!(low > 0 && high > 0)) {
        return 0;
    }
    if (!(low < kNever && high < kNever)) {
        return kNever;
    }
    const auto first = static_cast<double>(bytes_of(below));
    const double part =
        (static_cast<double>(bytes) - first) / (static_cast<double>(bytes_of(below + 1)) - first);
    return std::max(low + (high - low) * part, 0.0);
}

const PricedCell *PriceTable::find(Algorithm algorithm, std::size_t bytes) const noexcept
{
    const int below = size_below(bytes);
    const int size = bytes > bytes_of(below) ? below + 1 : below;
    const PricedCell &cell = column(size)[static_cast<std::size_t>(algorithm)];
    return cell.us > 0 ? &cell : nullptr;
}

} // namespace hetcoll
