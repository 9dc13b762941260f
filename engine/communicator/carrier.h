// A carrier of a schedule's messages: functions that send and receive, and a bounce whose slots
// messages leave from and land in.
#pragma once

#include "base/p2p.h"
#include "transport/bounce.h"

#include <string>

namespace hetcoll {

// As it is, of Open MPI's messages, which move on by themselves and say themselves what fails.
class Carrier {
public:
    Carrier() noexcept = default; // of no messages
    Carrier(const hetcoll_p2p &table, Bounce &its_bounce) noexcept : p2p(table), bounce(&its_bounce)
    {
    }
    virtual ~Carrier() = default;
    Carrier(const Carrier &) = delete;
    Carrier &operator=(const Carrier &) = delete;

    // While a call of the communicator is under way on any rank, which may wait for this one.
    virtual void progress() noexcept {}
    // No rank is waited for any more: no message and no copy of this rank's touches any memory.
    virtual void abandon() noexcept {}
    // Why the first message failed; empty: none has.
    [[nodiscard]] virtual std::string problem() const { return {}; }

    hetcoll_p2p p2p{};
    Bounce *bounce = nullptr;
};

} // namespace hetcoll
