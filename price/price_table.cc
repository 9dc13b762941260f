#include "price/price_table.h"

#include <algorithm>

namespace hetcoll {
namespace {

double line(double first, double low, double last, double high, double size)
{
    return std::max(low + (high - low) * (size - first) / (last - first), 0.0);
}

bool is_priced(const PricedCell &cell)
{
    return cell.us > 0 && cell.us < std::numeric_limits<float>::infinity();
}

} // namespace

int PriceTable::size_below(std::size_t bytes) noexcept
{
    const auto above = std::upper_bound(kBytes.begin(), kBytes.end(), bytes);
    return std::clamp(static_cast<int>(above - kBytes.begin()) - 1, 0, kSizes - 2);
}

// Where it was given up at one of the two sizes, only the other one says something: a longer vector
// takes at least as long, and at most as long a byte.
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
    const auto first = static_cast<double>(bytes_of(below));
    const auto last = static_cast<double>(bytes_of(below + 1));
    const auto size = static_cast<double>(bytes);
    if (size <= first) { // the line goes on below the first size of all
        return low < kNever && high < kNever ? line(first, low, last, high, size) : low;
    }
    if (!(high < kNever)) {
        return size < last ? low * size / first : kNever;
    }
    if (!(low < kNever)) {
        return high * std::max(size / last, 1.0);
    }
    const double on_line = line(first, low, last, high, size);
    return size <= last ? on_line
                        : std::max(on_line, high + kLeastRise * high * (size - last) / last);
}

const PricedCell *PriceTable::find(Algorithm algorithm, std::size_t bytes) const noexcept
{
    const auto index = static_cast<std::size_t>(algorithm);
    const int below = size_below(bytes);
    const PricedCell &low = column(below)[index], &high = column(below + 1)[index];
    const bool from_below = bytes <= bytes_of(below) ||
                            (bytes < bytes_of(below + 1) && is_priced(low) && !is_priced(high));
    const PricedCell &cell = from_below ? low : high;
    return cell.us > 0 ? &cell : nullptr;
}

} // namespace hetcoll
