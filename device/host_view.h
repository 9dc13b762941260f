// Device memory as the processor loads and stores it: a mapping of the pages around a vector, made
// by GDRCopy, or from driver 13.3 on of a dma-buf. It says nothing about whose memory that is now:
// after cuMemFree it shows what nobody owns, and whatever is allocated at the address then may be
// elsewhere. Its owner asks for the BUFFER_ID before every use, and compares.
#pragma once

#include "base/status.h"
#include "device/device.h"
#include "device/driver.h"
#include "device/gdr_library.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace hetcoll {

class HostView {
public:
    // The methods that there are.
    struct Methods {
        GdrLibrary *gdr = nullptr; // outlives the views
        bool dma_buf = false;
    };
    // The facts about a driver that decide about methods, in addition to GDRCopy.
    [[nodiscard]] static bool maps_dma_bufs(const Driver &driver, int ordinal);

    // A part of memory that cuMemAlloc made.
    struct Vector {
        int ordinal;             // of the device
        std::uint64_t buffer_id; // of the allocation
        std::uintptr_t first;
        std::size_t bytes;
    };
    [[nodiscard]] static Result<std::unique_ptr<HostView>>
    map(const Driver &driver, const Methods &methods, const Vector &vector);
    ~HostView();
    HostView(const HostView &) = delete;
    HostView &operator=(const HostView &) = delete;

    // Whether it shows that part of this allocation.
    [[nodiscard]] bool shows(std::uint64_t buffer_id, std::uintptr_t first,
                             std::size_t bytes) const noexcept
    {
        return buffer_id == buffer_id_ && first >= first_ && bytes <= bytes_ &&
               first - first_ <= bytes_ - bytes;
    }
    // An address of the address space, not of the vector.
    [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
    // Its writes have been seen to arrive; its owner says so.
    [[nodiscard]] bool is_tried() const noexcept { return tried_.load(std::memory_order_relaxed); }
    void note_tried() const noexcept { tried_.store(true, std::memory_order_relaxed); }
    // Loads cost no more than those of host memory.
    [[nodiscard]] bool coherent() const noexcept { return coherent_; }

    // Require that it shows that part. Reading requires that the GPU's work on the memory is done.
    // Work that is given to any GPU after write() has returned sees what it wrote; with
    // needs_flush() only once the context's owner has flushed. False: it could not be done, or
    // nobody knows.
    [[nodiscard]] bool read(void *to, std::uintptr_t from, std::size_t bytes) const noexcept;
    [[nodiscard]] bool write(std::uintptr_t to, const void *from, std::size_t bytes) const noexcept;
    [[nodiscard]] bool needs_flush() const noexcept { return needs_flush_; }
    // Makes the context of the memory current on this thread meanwhile.
    [[nodiscard]] bool flush(CUcontext context) const noexcept;

private:
    HostView(const Driver &driver, std::uint64_t buffer_id) noexcept
        : driver_(driver), buffer_id_(buffer_id)
    {
    }
    Status map_by_gdr(GdrLibrary &gdr, std::uintptr_t first, std::size_t bytes);
    Status map_dma_buf(std::uintptr_t first, std::size_t bytes);
    Status map_aligned(const Methods &methods, std::uintptr_t first, std::size_t bytes);

    const Driver &driver_;
    const std::uint64_t buffer_id_;
    GdrLibrary *gdr_ = nullptr; // null: a dma-buf
    GdrLibrary::Mapping mapping_;
    std::uintptr_t first_ = 0;
    std::size_t bytes_ = 0;
    bool coherent_ = false, needs_flush_ = false;
    mutable std::atomic<bool> tried_{false};
};

} // namespace hetcoll
