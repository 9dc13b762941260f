// The one stream that a communicator's calls wait for in place of the legacy one: info key
// hetcoll_stream. One thread starts calls of a communicator at a time.
#pragma once

#include "device/device.h"
#include "engine/process/store.h"

#include <memory>
#include <optional>
#include <vector>

namespace hetcoll {

class NamedStream {
public:
    explicit NamedStream(Store &store) noexcept : store_(store) {}

    // Nothing: calls are ordered as those of other communicators.
    void set(std::optional<CUstream> stream) noexcept;
    [[nodiscard]] bool exists() const noexcept { return stream_.has_value(); }

    // An event behind what the stream has to do now, to be given back. Requires exists().
    [[nodiscard]] Result<EventHandle> mark();
    [[nodiscard]] Result<bool> is_done(const EventHandle &event) const;
    void give_back(EventHandle event);

private:
    Store &store_;
    std::optional<CUstream> stream_;
    std::shared_ptr<Device> device_; // its context's; null: not looked up
    std::vector<EventHandle> idle_;
};

} // namespace hetcoll
