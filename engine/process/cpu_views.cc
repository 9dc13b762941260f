#include "engine/process/cpu_views.h"

#include <algorithm>
#include <utility>

namespace hetcoll {
namespace {

static_assert(kCoherentCpuLimits.write_bytes == HETCOLL_MAX_SMALL_LIMIT);

std::size_t limit_of(int set, std::size_t otherwise) noexcept
{
    return set < 0 ? otherwise : static_cast<std::size_t>(set);
}

} // namespace

CpuViews::CpuViews(const hetcoll_settings &settings, const Log &log,
                   const DriverLibrary &driver) noexcept
    : settings_(settings), log_(log), library_(driver),
      on_(settings.cpu_read_limit != 0 || settings.cpu_write_limit != 0)
{
}

void CpuViews::take_measured(const CpuLimits &measured) noexcept
{
    measured_read_.store(measured.read_bytes, std::memory_order_relaxed);
    measured_write_.store(measured.write_bytes, std::memory_order_relaxed);
}

CpuLimits CpuViews::limits(bool coherent) const noexcept
{
    const CpuLimits &otherwise = coherent ? kCoherentCpuLimits : kUsualCpuLimits;
    const std::size_t read = measured_read_.load(std::memory_order_relaxed),
                      write = measured_write_.load(std::memory_order_relaxed);
    return {.read_bytes = limit_of(settings_.cpu_read_limit,
                                   read == kUnmeasured ? otherwise.read_bytes : read),
            .write_bytes = limit_of(settings_.cpu_write_limit,
                                    write == kUnmeasured ? otherwise.write_bytes : write)};
}

CpuLimits CpuViews::largest_limits() const noexcept
{
    const CpuLimits one = limits(false), other = limits(true);
    return {.read_bytes = std::max(one.read_bytes, other.read_bytes),
            .write_bytes = std::max(one.write_bytes, other.write_bytes)};
}

bool CpuViews::is_there(std::uint64_t buffer_id, std::uintptr_t address) const noexcept
{
    const Driver *const driver = library_.get();
    unsigned long long now = 0;
    return driver != nullptr &&
           driver->cuPointerGetAttribute(&now, CU_POINTER_ATTRIBUTE_BUFFER_ID, address) ==
               CUDA_SUCCESS &&
           now == buffer_id;
}

// That of a view around the vector, else what counts its calls.
CpuViews::Entry *CpuViews::entry_of(std::uint64_t buffer_id, std::uintptr_t first,
                                    std::size_t bytes) noexcept
{
    Entry *counting = nullptr;
    for (Entry &entry : entries()) {
        if (entry.view != nullptr && entry.view->shows(buffer_id, first, bytes)) {
            return &entry;
        }
        if (entry.view == nullptr && entry.buffer_id == buffer_id && entry.first == first &&
            entry.bytes >= bytes) {
            counting = &entry;
        }
    }
    return counting;
}

// A free one, or that of the vector without a view that was used longest ago.
CpuViews::Entry &CpuViews::new_entry() noexcept
{
    Entry *oldest = nullptr;
    for (Entry &entry : entries()) {
        if (entry.buffer_id == 0) {
            return entry;
        }
        if (entry.view == nullptr && (oldest == nullptr || entry.used < oldest->used)) {
            oldest = &entry;
        }
    }
    if (known_ < kEntries) {
        return entries_[known_++];
    }
    *oldest = {}; // at most half of them have views
    return *oldest;
}

CpuViews::Found CpuViews::find(const PointerInfo &info, std::uintptr_t first,
                               std::size_t bytes) noexcept
{
    std::shared_ptr<const HostView> gone; // before the lock
    const std::lock_guard lock(mutex_);
    if (++uses_ % kUsesPerLook == 0) {
        gone = look_at_one();
    }
    Entry *entry = entry_of(info.buffer_id, first, bytes);
    if (entry == nullptr) {
        entry = &new_entry();
        entry->buffer_id = info.buffer_id;
        entry->first = first;
        entry->bytes = bytes;
    }
    entry->used = uses_;
    if (entry->view != nullptr) {
        return {.view = entry->view};
    }
    if (entry->calls < kNever) {
        ++entry->calls;
    }
    return {.view = nullptr, .due = entry->calls == entry->wanted_at};
}

// Views keep freed memory, so one of them is looked at now and then.
std::shared_ptr<const HostView> CpuViews::look_at_one() noexcept
{
    for (std::size_t tried = 0; views_ != 0 && tried < known_; ++tried) {
        looked_at_ = (looked_at_ + 1) % known_;
        Entry &entry = entries_[looked_at_];
        if (entry.view != nullptr) {
            return is_there(entry.buffer_id, entry.first) ? nullptr : take_out(entry);
        }
    }
    return nullptr;
}

std::shared_ptr<const HostView> CpuViews::take_out(Entry &entry) noexcept
{
    held_bytes_.fetch_sub(entry.view->bytes(), std::memory_order_relaxed);
    --views_;
    std::shared_ptr<const HostView> view = std::move(entry.view);
    entry = {};
    return view;
}

void CpuViews::take_gone(Views &gone) noexcept
{
    for (Entry &entry : entries()) {
        if (entry.view != nullptr && !is_there(entry.buffer_id, entry.first)) {
            gone.add(take_out(entry));
        }
    }
}

// Closes views of memory that is gone, and one that is no longer used if there must be room.
bool CpuViews::has_room(Views &gone) noexcept
{
    take_gone(gone);
    while (views_ == kMostViews || held_bytes() >= kMostBytes) {
        Entry *oldest = nullptr;
        for (Entry &entry : entries()) {
            if (entry.view != nullptr && (oldest == nullptr || entry.used < oldest->used)) {
                oldest = &entry;
            }
        }
        if (oldest == nullptr || uses_ - oldest->used < kIdleUses) {
            return false;
        }
        gone.add(take_out(*oldest));
    }
    return true;
}

// None switches the views off: not on this machine.
HostView::Methods CpuViews::methods(const Driver &driver, int ordinal)
{
    if (!tried_gdr_) {
        tried_gdr_ = true;
        auto opened = GdrLibrary::open();
        if (opened.ok()) {
            gdr_ = std::move(*opened);
        } else {
            hetcoll::log(log_, 2, "hetcoll: does without GDRCopy: %s",
                         opened.status().message().c_str());
        }
    }
    const HostView::Methods found{.gdr = gdr_.get(),
                                  .dma_buf = HostView::maps_dma_bufs(driver, ordinal)};
    if (found.gdr == nullptr && !found.dma_buf) {
        on_.store(false, std::memory_order_relaxed);
    }
    return found;
}

bool CpuViews::can_view(int ordinal)
{
    const Driver *const driver = library_.get();
    if (driver == nullptr || !is_on()) {
        return false;
    }
    const std::lock_guard lock(mutex_);
    (void)methods(*driver, ordinal);
    return is_on();
}

std::shared_ptr<const HostView> CpuViews::make(const PointerInfo &info, std::uintptr_t first,
                                               std::size_t bytes)
{
    const Driver *const driver = library_.get();
    Views gone; // before the lock
    HostView::Methods by;
    {
        const std::lock_guard lock(mutex_);
        Entry *const entry = entry_of(info.buffer_id, first, bytes);
        if (driver == nullptr || entry == nullptr || entry->view != nullptr) {
            return nullptr;
        }
        by = methods(*driver, info.device);
        if (!is_on()) {
            return nullptr;
        }
        // Once more after many further calls, if nothing comes of it.
        entry->wanted_at = entry->wanted_at > kNever / 8 ? kNever : entry->wanted_at * 8;
        if (!has_room(gone)) {
            return nullptr;
        }
    }
    auto made = HostView::map(
        *driver, by,
        {.ordinal = info.device, .buffer_id = info.buffer_id, .first = first, .bytes = bytes});
    if (!made.ok()) {
        const std::lock_guard lock(mutex_);
        hetcoll::log(log_, std::exchange(said_why_, true) ? 2 : 1,
                     "hetcoll: a buffer is copied, which the processor could not map: %s",
                     made.status().message().c_str());
        return nullptr;
    }
    if (!is_there(info.buffer_id, first)) { // it may be a view of what came after it
        return nullptr;
    }
    return std::move(*made);
}

void CpuViews::keep(std::shared_ptr<const HostView> view) noexcept
{
    std::shared_ptr<const HostView> replaced;
    const std::lock_guard lock(mutex_);
    for (Entry &entry : entries()) {
        if (entry.view == nullptr && views_ < kMostViews &&
            view->shows(entry.buffer_id, entry.first, entry.bytes)) {
            held_bytes_.fetch_add(view->bytes(), std::memory_order_relaxed);
            ++views_;
            entry.view = std::move(view);
            return;
        }
    }
    replaced = std::move(view); // unmapped after the lock
}

void CpuViews::give_up(const char *why) noexcept
{
    if (on_.exchange(false, std::memory_order_relaxed)) {
        hetcoll::log(log_, 0,
                     "hetcoll: the processor's mapping of device memory does not show what the GPU "
                     "has (%s), so small vectors are copied: is GDRCopy of the same version as its "
                     "kernel module?",
                     why);
    }
    Views gone; // before the lock
    const std::lock_guard lock(mutex_);
    for (Entry &entry : entries()) {
        if (entry.view != nullptr) {
            gone.add(take_out(entry));
        }
    }
}

void CpuViews::drop(const std::shared_ptr<const HostView> &view) noexcept
{
    std::shared_ptr<const HostView> gone; // before the lock
    const std::lock_guard lock(mutex_);
    for (Entry &entry : entries()) {
        if (view != nullptr && entry.view == view) {
            Entry without{.buffer_id = entry.buffer_id,
                          .first = entry.first,
                          .bytes = entry.bytes,
                          .calls = kNever,
                          .wanted_at = 0};
            gone = take_out(entry);
            entry = std::move(without);
        }
    }
}

void CpuViews::drop_gone() noexcept
{
    Views gone; // before the lock
    const std::lock_guard lock(mutex_);
    if (views_ != 0) {
        take_gone(gone);
    }
}

Result<bool> CpuViews::work_is_done(const PointerInfo &info) const
{
    const Driver *const driver = library_.get();
    if (settings_.streams == HETCOLL_STREAMS_INDEPENDENT) {
        return true;
    }
    return driver != nullptr ? is_legacy_stream_idle(*driver, info.context)
                             : Result<bool>(library_.load_error());
}

} // namespace hetcoll
