// The one stream that a communicator's calls wait for before they begin, while our own streams are
// ordered with none: what info key hetcoll_stream names; or, where the communicator has queued
// calls, the legacy stream as it is when a call starts, because it may wait for a queued call that
// comes behind. Thread safe, for one thread at a time that names streams and starts calls.
#pragma once

#include "device/device.h"
#include "engine/process/contexts.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace hetcoll {

class NamedStream {
public:
    explicit NamedStream(Contexts &contexts) noexcept : contexts_(contexts) {}

    // Nothing: none is named.
    void set(std::optional<CUstream> stream) noexcept;
    // From now on, where none is named. The context is current.
    Status follow_legacy(const std::shared_ptr<Device> &device);
    void follow_none() noexcept;
    [[nodiscard]] bool is_named() const noexcept { return named_.load(std::memory_order_relaxed); }
    [[nodiscard]] bool exists() const noexcept
    {
        return is_named() || follows_.load(std::memory_order_relaxed);
    }

    // Behind what the stream had to do when it was made.
    struct Mark {
        std::shared_ptr<Device> device; // outlives the event
        EventHandle event;

        [[nodiscard]] Result<bool> is_done() const;
    };
    // To be given back. Requires exists().
    [[nodiscard]] Result<Mark> mark();
    void give_back(Mark mark);

private:
    static constexpr int kEvents = 8; // more are made where more calls wait

    void forget_device() noexcept;
    [[nodiscard]] Status look_up();
    [[nodiscard]] Result<EventHandle> take_event();

    struct Marked {
        std::shared_ptr<Device> legacy_device;
        StreamHandle after_legacy;      // ours, ordered after the legacy stream alone
        std::mutex mutex;               // of the rest
        std::shared_ptr<Device> device; // of what is marked; null: not looked up
        std::vector<EventHandle> idle;  // in its context
    };
    [[nodiscard]] Marked &marked();

    Contexts &contexts_;
    std::atomic<bool> named_{false}, follows_{false};
    std::optional<CUstream> stream_;
    std::unique_ptr<Marked> marked_; // null: nothing has been marked or followed yet
};

} // namespace hetcoll
