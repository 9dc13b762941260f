// The allocations of virtual memory management that a buffer lies in.
#pragma once

#include "device/driver.h"
#include "transport/exporter.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace hetcoll {

// CUDA_ERROR_NOT_PERMITTED stands for too many pieces.
inline constexpr CUresult kTooMany = CUDA_ERROR_NOT_PERMITTED;

// In the order of their addresses. Retained.
class VmmPieces {
public:
    explicit VmmPieces(const Driver &driver) noexcept : driver_(driver) {}
    ~VmmPieces()
    {
        for (const CUmemGenericAllocationHandle handle : handles()) {
            driver_.cuMemRelease(handle);
        }
    }
    VmmPieces(const VmmPieces &) = delete;
    VmmPieces &operator=(const VmmPieces &) = delete;

    // Finds and retains them.
    CUresult find(std::uintptr_t at, std::uintptr_t end);
    // Whether all of them can be passed on as file descriptors.
    [[nodiscard]] NotShared why_not_shared() const;

    [[nodiscard]] std::span<const CUmemGenericAllocationHandle> handles() const noexcept
    {
        return {handle_.data(), static_cast<std::size_t>(count_)};
    }
    [[nodiscard]] std::span<const std::uint64_t> bytes() const noexcept
    {
        return {bytes_.data(), static_cast<std::size_t>(count_)};
    }
    [[nodiscard]] int count() const noexcept { return count_; }
    [[nodiscard]] std::uintptr_t base() const noexcept { return base_; } // of the first
    void leave_retained() noexcept { count_ = 0; }                       // another releases them

private:
    const Driver &driver_;
    int count_ = 0;
    std::uintptr_t base_ = 0;
    std::array<CUmemGenericAllocationHandle, kMaxSharedPieces> handle_;
    std::array<std::uint64_t, kMaxSharedPieces> bytes_;
};

// Whether allocations that are retained are mapped one behind the other, from `at` on, as they
// were.
[[nodiscard]] bool are_mapped(const Driver &driver, std::uint64_t at,
                              std::span<const CUmemGenericAllocationHandle> handles,
                              std::span<const std::uint64_t> bytes);

} // namespace hetcoll
