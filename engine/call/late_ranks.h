// Work of ranks that wait for one that is known to come late: they add up among themselves
// (coll_hetcoll_skew, docs/internals/shares.md).
//
// The opening agreement is not over, and the late rank may still say that it goes another way: so
// nothing that the call would need then is overwritten, and what was begun can be dropped. A rank
// begins when it sees that all others but the late one have come, with device memory that is mapped
// already; whether the others have begun as well does not matter to it, because reading mapped
// memory binds nobody.
#pragma once

#include "choice/arrivals.h"
#include "choice/choose.h"
#include "engine/call/call.h"

#include <cstdint>

namespace hetcoll {

// Who looks at the arrivals of this call's ranks; null: nobody.
[[nodiscard]] Arrivals *arrivals_of(Call &call) noexcept;

class LateRanks {
public:
    // For a call whose opening agreement begins now. Call and choice outlive it.
    LateRanks(Call &call, const Choice &choice, const Published &published) noexcept;

    // Whether this rank may begin calls of this choice without the rank that comes last.
    [[nodiscard]] static bool begins_early(const Call &call, const Choice &choice) noexcept;

    // co_await: as Call::all_met(), for the opening agreement; meanwhile it begins.
    [[nodiscard]] auto all_met() noexcept
    {
        return until([this] { return step_meeting(); }, [this] { return call_.meeting.flags(); });
    }
    // Whether the call goes another way than the one that was begun, as `all` say. Then what was
    // begun is stopped: co_await until stopped().
    [[nodiscard]] bool stop(Flags all) noexcept;
    [[nodiscard]] bool stopped();
    // Whether some rank may have begun, by what all ranks know: then a call that ends here has to
    // wait for all of them, whose kernels may still read this rank's memory.
    [[nodiscard]] bool may_have_begun(Flags all) const noexcept;
    // Whether the executor runs already; then it goes on with all channels.
    [[nodiscard]] bool go_on() noexcept;

private:
    [[nodiscard]] bool step_meeting();
    void begin();

    Call &call_;
    const Choice &choice_;
    std::uint64_t arrived_ns_; // 0: nobody looks
    bool allowed_ = false;     // once all others have come
    bool begun_ = false;       // the schedule runs as far as it needs no late rank
};

} // namespace hetcoll
