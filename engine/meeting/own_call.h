// This rank's current call, and the part of it that ranks compare when they meet.
#pragma once

#include "engine/meeting/call_signature.h"

#include <cstdint>

namespace hetcoll {

class OwnCall {
public:
    // This rank's current call: on every rank the same, or a mistake of the program's.
    void begin(const CallSignature &call) noexcept
    {
        ++count_;
        call_ = call;
    }
    // It cannot.
    void refuse(hetcoll_why_refused why) noexcept { call_ = refused(call_, why); }
    [[nodiscard]] const CallSignature &call() const noexcept { return call_; }
    // Calls that it has begun.
    [[nodiscard]] std::uint32_t count() const noexcept { return count_; }

    // All arguments, from the next meeting on, and on all ranks.
    void compare_all() noexcept { compared_ = kAllCompared; }
    [[nodiscard]] bool compares_all() const noexcept { return compared_ == kAllCompared; }
    [[nodiscard]] Differences differences(const CallSignature &a,
                                          const CallSignature &b) const noexcept
    {
        return differences_of(a, b) & compared_;
    }

private:
    std::uint32_t count_ = 0;
    CallSignature call_;
    Differences compared_ = kAlwaysCompared;
};

} // namespace hetcoll
