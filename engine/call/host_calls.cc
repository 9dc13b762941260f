#include "engine/call/host_calls.h"

#include "base/padding.h"
#include "engine/meeting/flags.h"
#include "engine/process/memory_reserve.h"

#include <cstring>
#include <new>

namespace hetcoll {
namespace {

// The vector of a call between host buffers: pairs but for their padding, of which the last one's
// may lie beyond the buffer.
void take_in(std::byte *mine, const hetcoll_call &call) noexcept
{
    std::memcpy(mine, call.send,
                call.dense != 0 ? call.span
                                : data_span(static_cast<ElementKind>(call.kind), call.count));
}
void put_out(const hetcoll_call &call, const std::byte *sum) noexcept
{
    if (call.dense != 0) [[likely]] {
        std::memcpy(call.recv, sum, call.span);
    } else {
        copy_elements(call.recv, sum, call.count, static_cast<ElementKind>(call.kind));
    }
}

// False, too, where there is no memory to know: whoever goes on then chooses again.
bool chooses_host(Chooser &chooser, const hetcoll_call &call) noexcept
{
    const UsesReserve uses_reserve;
    try {
        return is(chooser.choose(call, call.span, {.mapped = true}).algorithm, Form::kHost);
    } catch (const std::bad_alloc &) {
        return false;
    }
}

bool serves(Communicator &comm, PointerCache &pointers, const hetcoll_call &call) noexcept
{
    const AgreedSettings &agreed = comm.agreed();
    Planner &planner = comm.planner();
    Chooser &chooser = planner.chooser();
    if (call.kind < 0 || call.user_op != 0 || call.span > agreed.small_limit() ||
        !comm.same_calls().in_step() || comm.membership().is_left() ||
        agreed.uses_fixed_point(call) || planner.should_find_peers() ||
        (chooser.keeps_order(call) && !chooser.meets_in_order())) {
        return false;
    }
    if (!pointers.is_surely_host(call.recv) ||
        (call.send != call.recv && !pointers.is_surely_host(call.send))) {
        return false;
    }
    return !planner.peers().known() || chooses_host(chooser, call); // else the ranks meet first
}

} // namespace

HostCalls::HostCalls(Communicator &comm)
    : comm_(comm), pointers_(comm.gpus().pointers()), counters_(comm.process().counters())
{
    counters_.add_small_calls(served_);
}

HostCalls::~HostCalls() { counters_.remove_small_calls(served_); }

std::optional<int> HostCalls::try_serve(const hetcoll_call &call) noexcept
{
    Communicator &comm = comm_;
    if (!serves(comm, pointers_, call)) {
        return std::nullopt;
    }
    const std::uint64_t start_ns = counters_.times_small() ? now_ns() : 0;
    served_.store(served_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    comm.begin_call(call);
    Freed &freed = comm.freed();
    freed.look_sometimes();
    NodeGroup &group = comm.group();
    std::byte *const mine = Meeting::payload(group, call.span, comm.messages().mine);
    take_in(mine, call);
    if (call.op != sum_.op || call.kind != sum_.kind) {
        sum_ = {
            call.op, call.kind, {comm.agreed().op_of(call), static_cast<ElementKind>(call.kind)}};
    }
    Meeting &meeting = comm.meeting();
    meeting.start(group, comm.messages(), mine, call.tag, call.span, call.count, sum_.reduction,
                  kHostMemory | freed.tell());
    Progress progress;
    while ((progress = meeting.step()) == Progress::kPending) {
        if (const int code = comm.membership().lost(); code != 0) {
            return leave(code);
        }
        if (comm.watch().is_due(0)) {
            comm.watch().say_meeting(meeting);
        }
        comm.p2p().progress(comm.p2p().context);
    }
    if (start_ns != 0) {
        observe(call, start_ns);
    }
    if (progress == Progress::kFailed) {
        counters_.count(HETCOLL_CALLS_FAILED);
        comm.abandon_messages();
        comm.membership().break_off(meeting.code());
        return meeting.code();
    }
    if (any(meeting.flags(), kCallsDiffer | kFailed | kMemoryFreed)) [[unlikely]] {
        if (const int code = hear(); code != HETCOLL_SUCCESS) {
            return code;
        }
    }
    put_out(call, meeting.sum());
    if (call.span > ControlPage::kSlotPayloadBytes) {
        comm.say_page_problem();
    }
    return HETCOLL_SUCCESS;
}

// Some rank has said more than where its buffers are: the error of the call, if it is one.
int HostCalls::hear() noexcept
{
    const Meeting &meeting = comm_.meeting();
    if (any(meeting.flags(), kMemoryFreed)) {
        comm_.freed().hear();
        comm_.freed().close();
    }
    if (any(meeting.flags(), kCallsDiffer)) {
        counters_.count(HETCOLL_CALLS_FAILED);
        return comm_.same_calls().fail_differing(meeting);
    }
    if (any(meeting.flags(), kFailed)) {
        comm_.planner().forget_peers();
        counters_.count(HETCOLL_CALLS_FAILED);
        log(comm_.log(), 0,
            "hetcoll: MPI_Allreduce failed, the receive buffer is undefined: another rank has "
            "failed, and says why");
        return HETCOLL_ERROR_DEVICE;
    }
    return HETCOLL_SUCCESS;
}

int HostCalls::leave(int code) noexcept
{
    while (!comm_.departure().leave(code)) {
        comm_.p2p().progress(comm_.p2p().context);
    }
    counters_.count(HETCOLL_CALLS_FAILED);
    return code;
}

void HostCalls::observe(const hetcoll_call &call, std::uint64_t start_ns) noexcept
{
    const Flags said = comm_.meeting().flags();
    CallRecord record;
    record.comm_id = comm_.p2p().comm_id;
    record.tag = comm_.tag();
    record.rank = comm_.p2p().rank;
    record.comm_size = comm_.p2p().size;
    record.bytes = call.span;
    record.kind = call.kind;
    record.op = call.op;
    record.memory = said | kHostMemory;
    record.served = HETCOLL_CALLS_HOST;
    record.start_ns = start_ns;
    record.ns = now_ns() - start_ns;
    record.failed = any(said, kFailed);
    counters_.observe(record);
}

} // namespace hetcoll
