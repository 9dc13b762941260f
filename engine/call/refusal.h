// A call that this rank cannot begin, mostly because it has no memory. The others wait for it in
// the call's first meeting, so it comes there and says so; then all ranks end the call with an
// error. Needs no memory but this, and none for frames.
#pragma once

#include "engine/communicator/communicator.h"

#include <optional>

namespace hetcoll {

class Refusal {
public:
    // Refuses the call that the communicator has begun, and in which this rank has met nobody yet.
    Refusal(Communicator &comm, hetcoll_why_refused why, int tag) noexcept
        : comm_(comm), why_(why), tag_(tag)
    {
    }

    // The call's result, once all ranks know. Nothing: call again after the progress function. As
    // Operation::step(), throws std::bad_alloc only, where this is the communicator's first call.
    [[nodiscard]] std::optional<int> step();

private:
    void end_job() const noexcept;

    Communicator &comm_;
    hetcoll_why_refused why_;
    int tag_;
    bool meets_ = false;
};

} // namespace hetcoll
