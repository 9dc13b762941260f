#include "engine/communicator/same_calls.h"

#include "base/counted.h"

#include <cstdio>

namespace hetcoll {

int SameCalls::fail_differing(const Meeting &meeting) noexcept
{
    const bool by_number = contains(meeting.differences(), Differences::kNumber | kRefused);
    if (by_number) {
        catches_up_ = true;
        find_step();
        newest_ = meeting.newest();
    }
    const auto calls = meeting.different_calls();
    if (calls && calls->handed_on) {
        return fail_handed_on(calls->one.call, calls->other.rank, calls->other.call);
    }
    if (calls && contains(meeting.differences(), kRefused)) {
        const bool first = calls->one.call.what == 0;
        const CallMismatch::Call &refused = first ? calls->one : calls->other;
        log(log_, 0,
            "hetcoll: %s of communicator %u, call %u, fails on all ranks with %s: rank %d %s",
            describe(first ? calls->other.call : calls->one.call).text, group_.all().comm_id,
            refused.call.number(), mpi_error_name(meeting.differences()), refused.rank,
            refused.call.root() == HETCOLL_CAPTURES
                ? "captures a graph on its stream, make the call outside of the capture"
                : "has no host memory to begin it");
    } else if (calls && by_number) {
        log(log_, 0,
            "hetcoll: the ranks of communicator %u are not in the same call: rank %d is in call "
            "%u, %s, rank %d in call %u, %s, because one of them alone has failed in a call, or "
            "made one more: MPI_ERR_OTHER on all ranks until all are in the same call again",
            group_.all().comm_id, calls->one.rank, calls->one.call.number(),
            describe(calls->one.call).text, calls->other.rank, calls->other.call.number(),
            describe(calls->other.call).text);
    } else if (calls) {
        char more[48] = "";
        if (calls->more > 0) {
            std::snprintf(more, sizeof more, " (%s of the node differ%s)",
                          counted(calls->more, "more rank").c_str(), calls->more == 1 ? "s" : "");
        }
        log(log_, 0,
            "hetcoll: the ranks of communicator %u do not call the same: rank %d calls %s, rank %d "
            "calls %s%s, in call number %u: %s on all ranks, nothing is reduced",
            group_.all().comm_id, calls->one.rank, describe(calls->one.call).text,
            calls->other.rank, describe(calls->other.call).text, more, calls->one.number,
            mpi_error_name(meeting.differences()));
    }
    return error_of(meeting.differences());
}

int SameCalls::look_at_handed_on(CallSignature call) noexcept
{
    if (hands_on_no_more_ != HETCOLL_SUCCESS) {
        return hands_on_no_more_;
    }
    const auto other = group_.handed_on().begun_instead(call);
    return other ? fail_handed_on(call, other->rank, other->call) : HETCOLL_SUCCESS;
}

// Each rank that returns the error says so: others may stay in Open MPI's part of the call.
int SameCalls::fail_handed_on(const CallSignature &own, int rank,
                              const CallSignature &other) noexcept
{
    const Differences differences = differences_of(own, other);
    log(log_, 0,
        "hetcoll: the ranks of communicator %u do not call the same: rank %d calls %s, rank %d "
        "calls %s: %s on rank %d, also in all its further calls of that communicator which Open "
        "MPI serves",
        group_.all().comm_id, group_.all().rank, describe(own).text, rank, describe(other).text,
        mpi_error_name(differences), group_.all().rank);
    hands_on_no_more_ = error_of(differences);
    group_.handed_on().tell_no_more();
    return hands_on_no_more_;
}

} // namespace hetcoll
