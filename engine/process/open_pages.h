// How many control pages of a process keep their descriptor, for hetcoll_info --live: a process has
// few descriptors, and most of them are the program's.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

namespace hetcoll {

// Thread safe.
class OpenPages {
public:
    static constexpr int kMost = 32; // of the 1024 descriptors that a process usually has

    struct Close {
        void operator()(OpenPages *pages) const noexcept
        {
            pages->open_.fetch_sub(1, std::memory_order_relaxed);
        }
    };
    // One page's place among them, until its end; null: there is none.
    using Place = std::unique_ptr<OpenPages, Close>;
    // The budget outlives the place.
    [[nodiscard]] Place take() noexcept
    {
        Place place(this);
        return open_.fetch_add(1, std::memory_order_relaxed) < kMost ? std::move(place) : nullptr;
    }

private:
    std::atomic<int> open_{0};
};

} // namespace hetcoll
