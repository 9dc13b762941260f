// How much memory hetcoll holds: page-locked host memory and device memory, in bytes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace hetcoll {

struct MemoryUse {
    std::atomic<std::uint64_t> pinned_bytes{0}, device_bytes{0};
};

// Counts `bytes` while it lives. Move-only; the count outlives it.
class HeldBytes {
public:
    HeldBytes() noexcept = default;
    HeldBytes(std::atomic<std::uint64_t> *count, std::size_t bytes) noexcept
        : count_(count), bytes_(bytes)
    {
        if (count_ != nullptr) {
            count_->fetch_add(bytes_, std::memory_order_relaxed);
        }
    }
    HeldBytes(HeldBytes &&other) noexcept { swap(other); }
    HeldBytes &operator=(HeldBytes &&other) noexcept
    {
        HeldBytes(std::move(other)).swap(*this);
        return *this;
    }
    ~HeldBytes()
    {
        if (count_ != nullptr) {
            count_->fetch_sub(bytes_, std::memory_order_relaxed);
        }
    }
    void swap(HeldBytes &other) noexcept
    {
        std::swap(count_, other.count_);
        std::swap(bytes_, other.bytes_);
    }

private:
    std::atomic<std::uint64_t> *count_ = nullptr;
    std::size_t bytes_ = 0;
};

} // namespace hetcoll
