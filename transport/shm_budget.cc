#include "transport/shm_budget.h"

#include "transport/shared_page.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <limits>

namespace hetcoll {
namespace {

// Half of what is free. A folder that is not there, or has no limit, is no reason to refuse a page:
// whoever makes one finds out.
std::size_t half_of(const char *folder) noexcept
{
    struct statvfs space {};
    if (statvfs(folder, &space) != 0 || space.f_blocks == 0) {
        return std::numeric_limits<std::size_t>::max() / 4;
    }
    return static_cast<std::size_t>(space.f_bavail) * space.f_frsize / 2;
}

} // namespace

std::size_t ShmBudget::limit() noexcept
{
    std::size_t known = limit_.load(std::memory_order_relaxed);
    if (known == kUnknown) {
        const std::size_t mine =
            half_of(folder_.c_str()) / static_cast<std::size_t>(std::max(processes_, 1));
        known = limit_.compare_exchange_strong(known, mine) ? mine : known;
    }
    return known;
}

std::size_t ShmBudget::part(std::size_t bytes, int ranks) noexcept
{
    const auto parts = static_cast<std::size_t>(std::max(ranks, 1));
    return (SharedPage::taken(bytes) + parts - 1) / parts;
}

bool ShmBudget::take(std::size_t bytes, Loan &loan) noexcept
{
    const std::size_t most = limit();
    std::size_t taken = taken_.load(std::memory_order_relaxed);
    do {
        if (bytes > most - std::min(taken, most)) {
            return false;
        }
    } while (!taken_.compare_exchange_weak(taken, taken + bytes));
    Loan made;
    made.budget_ = this;
    made.bytes_ = bytes;
    loan = std::move(made);
    return true;
}

ShmBudget::Loan::~Loan()
{
    if (budget_ != nullptr) {
        budget_->taken_.fetch_sub(bytes_);
    }
}

} // namespace hetcoll
