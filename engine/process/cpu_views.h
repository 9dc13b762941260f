// Device buffers that the processor reads and writes itself, because that takes less time than a
// copy of few bytes: which there are, and their views. A buffer gets a view after some small calls.
// Everything hangs off its BUFFER_ID, as in the pointer cache: a view outlives the memory, and is
// then of nobody's. Bounded in number and bytes; views of memory that is gone are given back.
// Thread safe.
#pragma once

#include "base/log.h"
#include "device/host_view.h"
#include "engine/types/settings.h"
#include "machine/cpu_limits.h"
#include "pointer_cache/pointer_cache.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <span>
#include <utility>

namespace hetcoll {

class CpuViews {
public:
    // A buffer gets a view in this small call.
    static constexpr unsigned kCallsBefore = 8;
    static constexpr std::size_t kMostViews = 64, kMostBytes = std::size_t{64} << 20;

    // All outlive it. `measured`: of this machine; none: defaults.
    CpuViews(const hetcoll_settings &settings, const Log &log,
             const DriverLibrary &driver) noexcept;
    void take_measured(const CpuLimits &measured) noexcept;

    // False: nobody need ask. The user does not want it, or it was found not to work.
    [[nodiscard]] bool is_on() const noexcept { return on_.load(std::memory_order_relaxed); }
    // Whether buffers of a device may get views: there is a way to map its memory. May open
    // GDRCopy.
    [[nodiscard]] bool can_view(int ordinal);
    // The counts of a view, or of all.
    [[nodiscard]] CpuLimits limits(bool coherent) const noexcept;
    [[nodiscard]] CpuLimits largest_limits() const noexcept;
    // One driver call: whether the allocation is there.
    [[nodiscard]] bool is_there(std::uint64_t buffer_id, std::uintptr_t address) const noexcept;

    // Whether the application's work is done that hetcoll's comes after: that on the legacy stream
    // of the allocation's context, which is there; or none (coll_hetcoll_streams).
    [[nodiscard]] Result<bool> work_is_done(const PointerInfo &info) const;

    struct Found {
        std::shared_ptr<const HostView> view; // null: none
        bool due = false;                     // make() one in this call
    };
    // Counts a small call on this vector. The driver has said in this call that the allocation is
    // there.
    [[nodiscard]] Found find(const PointerInfo &info, std::uintptr_t first,
                             std::size_t bytes) noexcept;
    // Null: not now. May take milliseconds. The caller has find()'s word that it is due, tries
    // whether it works, and then calls keep() or give_up().
    [[nodiscard]] std::shared_ptr<const HostView> make(const PointerInfo &info,
                                                       std::uintptr_t first, std::size_t bytes);
    void keep(std::shared_ptr<const HostView> view) noexcept;
    // It shows other memory than the GPU's: no buffer gets a view any more.
    void give_up(const char *why) noexcept;
    // A view has refused to read or write.
    void drop(const std::shared_ptr<const HostView> &view) noexcept;
    // Gives back all views of memory that is gone.
    void drop_gone() noexcept;

    [[nodiscard]] std::size_t held_bytes() const noexcept
    {
        return held_bytes_.load(std::memory_order_relaxed);
    }
    // One was tried and shows what the GPU has, both methods.
    [[nodiscard]] bool has_proof() const noexcept
    {
        return proven_.load(std::memory_order_relaxed);
    }
    void note_proof() noexcept { proven_.store(true, std::memory_order_relaxed); }

private:
    static constexpr std::size_t kEntries = 2 * kMostViews;
    static constexpr std::uint64_t kIdleUses = 4096; // then a view makes room for another one
    static constexpr std::uint64_t kUsesPerLook = 1024;
    static constexpr unsigned kNever = std::numeric_limits<unsigned>::max();

    struct Entry { // of a vector; free: buffer_id 0
        std::uint64_t buffer_id = 0;
        std::uintptr_t first = 0;
        std::size_t bytes = 0;
        unsigned calls = 0, wanted_at = kCallsBefore;
        std::uint64_t used = 0; // uses_ then
        std::shared_ptr<const HostView> view{};
    };
    struct Views {
        std::array<std::shared_ptr<const HostView>, kMostViews> views;
        std::size_t count = 0;

        void add(std::shared_ptr<const HostView> view) noexcept
        {
            views[count++] = std::move(view);
        }
    };

    // These require the lock. Views taken out are destroyed without it.
    [[nodiscard]] Entry *entry_of(std::uint64_t buffer_id, std::uintptr_t first,
                                  std::size_t bytes) noexcept;
    [[nodiscard]] Entry &new_entry() noexcept;
    [[nodiscard]] std::shared_ptr<const HostView> take_out(Entry &entry) noexcept;
    void take_gone(Views &gone) noexcept;
    [[nodiscard]] bool has_room(Views &gone) noexcept;
    [[nodiscard]] std::shared_ptr<const HostView> look_at_one() noexcept;
    [[nodiscard]] std::span<Entry> entries() noexcept { return {entries_.data(), known_}; }
    [[nodiscard]] HostView::Methods methods(const Driver &driver, int ordinal);

    const hetcoll_settings &settings_;
    const Log &log_;
    const DriverLibrary &library_;
    static constexpr std::size_t kUnmeasured = std::numeric_limits<std::size_t>::max();
    std::atomic<std::size_t> measured_read_{kUnmeasured}, measured_write_{kUnmeasured};
    std::atomic<bool> on_;
    std::atomic<bool> proven_{false};
    std::atomic<std::size_t> held_bytes_{0};

    std::mutex mutex_; // of all below
    std::unique_ptr<GdrLibrary> gdr_;
    bool tried_gdr_ = false, said_why_ = false;
    std::array<Entry, kEntries> entries_; // after gdr_, by which their views are made
    std::size_t known_ = 0;               // of them have ever been used
    std::uint64_t uses_ = 0;
    std::size_t looked_at_ = 0, views_ = 0;
};

} // namespace hetcoll
