// The CUDA contexts that calls work in, and the driver calls that wait in them. Nothing is made
// before a call needs it. Thread safe.
#pragma once

#include "base/element.h"
#include "base/status.h"
#include "device/device.h"
#include "engine/types/settings.h"
#include "pointer_cache/pointer_cache.h"

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

namespace hetcoll {

// The order of streams of ours that coll_hetcoll_streams says.
[[nodiscard]] StreamOrder order_of(const hetcoll_settings &settings) noexcept;
// While a queued call is pending.
[[nodiscard]] Status refuse_while_pending();

class Contexts {
public:
    // All outlive it.
    Contexts(const hetcoll_settings &settings, const DriverLibrary &driver,
             PointerCache &pointers) noexcept
        : settings_(settings), driver_(driver), pointers_(pointers)
    {
    }
    Contexts(const Contexts &) = delete;
    Contexts &operator=(const Contexts &) = delete;

    // Keeps what was made in contexts, until it is told to forget one.
    class Keeper {
    public:
        virtual void forget(const std::shared_ptr<Device> &device) noexcept = 0;

    protected:
        ~Keeper() = default;
    };
    void set_keeper(Keeper &keeper) noexcept { keeper_ = &keeper; }

    [[nodiscard]] const MemoryUse &memory_use() const noexcept { return memory_use_; }
    [[nodiscard]] QueuedCalls &queued() const noexcept { return queued_; }

    // The context of a device or managed pointer.
    [[nodiscard]] Result<std::shared_ptr<Device>> device_of(const PointerInfo &pointer);
    // The context of a stream. Makes memory there for a moment.
    [[nodiscard]] Result<std::shared_ptr<Device>> device_of(CUstream stream);
    // After a driver error in it: nothing made in it is used again.
    void forget(const std::shared_ptr<Device> &device) noexcept;

    // Whether the work on the legacy stream of the buffer's context is complete, or need not be.
    Result<bool> legacy_work_done(const PointerInfo &device);
    // Calls begin with that: coll_hetcoll_pre_sync=context.
    [[nodiscard]] bool are_waited_for() const noexcept
    {
        return settings_.pre_sync == HETCOLL_PRE_SYNC_CONTEXT;
    }
    // Waits for all work of the buffer's context.
    Status synchronize(const PointerInfo &device);
    // For the rare call that has no bounce: a copy to or from a device buffer that is complete on
    // return.
    Status copy_blocking(void *to, const void *from, std::size_t bytes, const PointerInfo &device);
    // The same of elements, but for their padding.
    Status copy_elements_blocking(void *to, const void *from, std::size_t count, ElementKind kind,
                                  const PointerInfo &device);

    // ---- for the keeper ----

    // Also of what it keeps.
    [[nodiscard]] std::mutex &mutex() const noexcept { return mutex_; }
    // A context that was found to be gone. Without the lock, at its end, the keeper forgets it.
    class Gone {
    public:
        explicit Gone(const Contexts &contexts) noexcept : contexts_(contexts) {}
        ~Gone();
        Gone(const Gone &) = delete;
        Gone &operator=(const Gone &) = delete;

    private:
        friend class Contexts;
        const Contexts &contexts_;
        std::shared_ptr<Device> device_;
    };
    // These require the lock. The Device of the pointer's context, made at first use and again
    // after the application has destroyed or reset the context.
    [[nodiscard]] Result<std::shared_ptr<Device>> find_or_make(const PointerInfo &pointer,
                                                               Gone &gone);
    // Null: it has not been made.
    [[nodiscard]] std::shared_ptr<Device> find(const PointerInfo &pointer) const noexcept;
    [[nodiscard]] bool knows(const std::shared_ptr<Device> &device) const noexcept;

private:
    // Calls work(Device) with the context of the buffer current.
    template <class Work> Status in_context_of(const PointerInfo &pointer, const Work &work);
    void drop(const std::shared_ptr<Device> &device, Gone &gone) noexcept;

    const hetcoll_settings &settings_;
    const DriverLibrary &driver_;
    PointerCache &pointers_;
    MemoryUse memory_use_; // before all that holds memory
    QueuedCalls &queued_ = QueuedCalls::of_process();
    Keeper *keeper_ = nullptr;
    mutable std::mutex mutex_; // of the next one
    std::vector<std::shared_ptr<Device>> devices_;
};

} // namespace hetcoll
