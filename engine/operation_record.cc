// What a call tells those who look on: counters, the trace, a profiler.
#include "engine/flags.h"
#include "engine/operation.h"

namespace hetcoll {

const char *Operation::name() const noexcept
{
    switch (call_.collective) {
    case HETCOLL_BCAST: return "bcast";
    case HETCOLL_REDUCE: return "reduce";
    case HETCOLL_ALLGATHER: return "allgather";
    case HETCOLL_REDUCE_SCATTER: return "reduce_scatter";
    default: return "allreduce";
    }
}

const char *Operation::mpi_name() const noexcept
{
    switch (call_.collective) {
    case HETCOLL_BCAST: return "MPI_Bcast";
    case HETCOLL_REDUCE: return "MPI_Reduce";
    case HETCOLL_ALLGATHER: return "MPI_Allgather";
    case HETCOLL_REDUCE_SCATTER: return "MPI_Reduce_scatter";
    default: return "MPI_Allreduce";
    }
}

void Operation::begin_record() noexcept
{
    const hetcoll_p2p &p2p = engine_.p2p();
    record_ = {};
    record_.call = name();
    record_.comm_id = p2p.comm_id;
    record_.rank = p2p.rank;
    record_.comm_size = p2p.size;
    record_.bytes = call_.kind >= 0 ? call_.count * element_bytes(kind()) : call_.span;
    record_.kind = call_.kind;
    record_.op = call_.kind >= 0 ? call_.op : -1;
    record_.start_ns = now_ns();
}

// From here on it is known who reduces, and how.
void Operation::serve(hetcoll_counter counter) noexcept
{
    process_.count(counter);
    record_.served = counter;
    if (counter == HETCOLL_CALLS_STAGED) {
        const bool here = (flags_ & kMustStage) != 0;
        record_.staged_reason = call_.kind < 0 && call_.reason != HETCOLL_REASON_NONE ? call_.reason
                                : here ? HETCOLL_REASON_GPU
                                       : HETCOLL_REASON_OTHER_RANK;
        process_.count(static_cast<hetcoll_counter>(HETCOLL_STAGED_USER_OP + record_.staged_reason -
                                                    HETCOLL_REASON_USER_OP));
    }
    process_.nvtx().end(range_);
    range_ = process_.nvtx().start(record_.call, algorithm_of(record_), record_.bytes);
}

void Operation::end_record(int result) noexcept
{
    record_.ns = now_ns() - record_.start_ns;
    record_.memory |= flags_;
    record_.failed = result != HETCOLL_SUCCESS;
    process_.nvtx().end(range_);
    range_ = 0;
    if (result != HETCOLL_DECLINED) { // else whoever serves it does
        process_.observe(record_);
    }
}

} // namespace hetcoll
