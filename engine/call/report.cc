#include "engine/call/report.h"

namespace hetcoll {

CallReport::CallReport(Communicator &comm) noexcept : comm_(comm), process_(comm.process()) {}

void CallReport::begin(const hetcoll_call &call) noexcept
{
    const hetcoll_p2p &p2p = comm_.p2p();
    record = {};
    record.call = collective_name(call.collective);
    record.comm_id = p2p.comm_id;
    record.tag = comm_.tag();
    record.rank = p2p.rank;
    record.comm_size = p2p.size;
    record.bytes = call.kind >= 0 ? call.count * element_bytes(static_cast<ElementKind>(call.kind))
                                  : call.span;
    record.kind = call.kind;
    record.op = call.kind >= 0 ? call.op : -1;
    record.start_ns = now_ns();
}

void CallReport::count(hetcoll_counter counter, std::uint64_t by) noexcept
{
    process_.counters().count(counter, by);
}

const Log &CallReport::log() const noexcept { return process_.log(); }

bool CallReport::first_time(Notice notice) noexcept
{
    return process_.notices().first_time(notice);
}

void CallReport::serve(hetcoll_counter counter) noexcept
{
    process_.counters().count(counter);
    record.served = counter;
    process_.nvtx().end(range_);
    range_ = process_.nvtx().start(record.call, algorithm_of(record), record.bytes);
}

void CallReport::serve(Algorithm algorithm) noexcept { serve(HETCOLL_CALLS_OF(algorithm)); }

void CallReport::serve_staged(hetcoll_staged_reason reason) noexcept
{
    record.staged_reason = reason;
    process_.counters().count(
        static_cast<hetcoll_counter>(HETCOLL_STAGED_USER_OP + (reason - HETCOLL_REASON_USER_OP)));
    serve(HETCOLL_CALLS_STAGED);
}

void CallReport::tell_gpu(const PointerInfo &device) noexcept
{
    if (process_.log().enabled(1)) {
        hetcoll::tell_gpu(process_, device);
    }
}

void CallReport::end(int result, Flags said) noexcept
{
    record.ns = now_ns() - record.start_ns;
    record.memory |= said;
    record.failed = result != HETCOLL_SUCCESS;
    process_.nvtx().end(range_);
    range_ = 0;
    if (result == HETCOLL_DECLINED || result == HETCOLL_DECLINED_TO_STAGE) {
        return; // whoever serves it reports it
    }
    if (result != HETCOLL_SUCCESS) {
        process_.counters().count(HETCOLL_CALLS_FAILED);
    }
    process_.counters().observe(record);
    if (process_.log().enabled(1) && !record.failed) {
        comm_.story().tell(process_.log(), record, comm_.agreed().small_limit());
    }
}

} // namespace hetcoll
