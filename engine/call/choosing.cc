// Which protocol serves a call, and by which schedule. The same on every rank.
#include "engine/call/protocols.h"

namespace hetcoll {

Task<int> protocol_of(Call &call, const hetcoll_call &given)
{
    if (call.work.prepared != nullptr) {
        return prepared(call);
    }
    if (given.queued == HETCOLL_ATTACHES) {
        return attach(call);
    }
    if (given.copies != HETCOLL_COPIES_UNTOLD) {
        return copies(call);
    }
    if (call.comm.agreed().uses_fixed_point(given)) {
        return fixed_point(call, given);
    }
    if (call.is_collective()) {
        return collective(call);
    }
    look_at_buffers(call);
    return allreduce(call);
}

bool Call::is_small() const noexcept
{
    // 8-bit floats are not added two at a time; ranks that do not know the op decide alike.
    const bool at_once = in_order || args->user_op == 1;
    return bytes <= comm.agreed().small_limit() && (!at_once || planner.chooser().meets_in_order());
}

bool is_small_user_op(const Call &call)
{
    return call.args->user_op != 0 && call.is_small() && !call.planner.should_find_peers() &&
           !call.planner.chooser().forces_small_kernel();
}

Choice choose_way(Call &call, Means means)
{
    return call.planner.chooser().choose(*call.args, call.bytes, means);
}

bool is_surely_small(Call &call)
{
    return call.args->kind >= 0 && call.comm.p2p().size > 1 && !should_join(call) &&
           !call.planner.should_find_peers() &&
           (is_small_user_op(call) || is(choose_way(call, any_means(call)).algorithm, Form::kHost));
}

bool uses_mapping(const Call &call, const Choice &choice) noexcept
{
    return call.planner.chooser().uses_mapping(choice);
}

// The time is taken only while the chunk of calls like this one is still being looked for.
Timed find_chunk(Call &call, Choice &choice)
{
    ChunkTuner *tuner = call.is_collective() || choice.late != kNoRank
                            ? nullptr
                            : call.planner.chooser().tuner(choice, call.bytes);
    if (tuner == nullptr) {
        return {};
    }
    choice.chunk_bytes = tuner->chunk_bytes();
    return tuner->frozen() ? Timed{} : Timed{.tuner = tuner, .started_ns = now_ns()};
}

const BuiltSchedule &schedule_of(const Call &call, const Choice &choice)
{
    return call.is_collective()
               ? call.planner.schedules().of_collective(call.args->collective, call.args->root)
               : call.planner.schedules().of(choice, call.bytes);
}

// A small call right after a large one finds everybody present.
Arrivals *arrivals_of(Call &call) noexcept
{
    return call.is_collective() || call.is_small() ? nullptr : call.planner.chooser().arrivals();
}

void take_arrivals(Call &call, std::span<const std::uint64_t> of_all)
{
    call.planner.chooser().take_arrivals(of_all);
}

} // namespace hetcoll
