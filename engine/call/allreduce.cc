// One MPI_Allreduce from agreement to close, in the order in which it happens.
#include "engine/call/protocols.h"

namespace hetcoll {
namespace {

// Open MPI's own allreduce, if all memory is on the host.
int previous(Call &call)
{
    call.report.serve(HETCOLL_CALLS_PREVIOUS);
    return call.args->previous_allreduce(call.args->context, call.args->send, call.args->recv);
}

// The result to where the application wants it.
void start_copy_out(Call &call)
{
    const MappedCall::Copy copy =
        call.mapped ? call.planner.mapped().copy_out() : MappedCall::Copy{};
    if (copy.to != nullptr) {
        call.start_copy(copy.to, copy.from, call.bytes, call.buffers.recv);
    }
}

// The way that was chosen, once all ranks agree on it.
Task<int> run_chosen(Call &call, const Choice &choice, LateRanks *late)
{
    if (is(choice.algorithm, Form::kHost)) {
        co_return co_await host(call);
    }
    if (goes_as_floats(call, choice)) {
        co_return co_await as_floats(call);
    }
    bring_input(call);
    co_await call.copied();
    if (is(choice.algorithm, Form::kServers)) {
        co_return co_await in_network(call, choice);
    }
    call.report.serve(choice.algorithm);
    co_await peers_stay(call);
    const Timed timed = start_run(call, choice, late);
    co_await ran(call);
    const Flags closed = co_await close(call, timed);
    if (any(closed, kFailed)) {
        co_return call.fail_together(closed);
    }
    start_copy_out(call);
    co_await call.copied();
    co_return call.result();
}

// Some ranks have device memory and some have host memory. The latter make ready, and all agree
// once more.
Task<int> mixed(Call &call)
{
    const Choice choice = choose_way(call, {.aggregators = !call.is_attached(), .mixed = true});
    if (is(choice.algorithm, Form::kHost)) {
        co_return co_await host(call);
    }
    if (is_float8_sum(call)) {
        co_return co_await as_floats(call);
    }
    borrow_for_mixed(call);
    const Flags all = co_await call.agree();
    call.report.record.memory |= all;
    if (any(all, kErrors)) {
        co_return call.fail_together(all);
    }
    if (any(all, kMustStage)) {
        co_return co_await staged(call, all);
    }
    co_return co_await run_chosen(call, choice, nullptr);
}

// All ranks have device memory and know whose GPUs reach each other.
Task<int> on_devices(Call &call, Choice choice, Flags all, LateRanks &late)
{
    const bool maps = uses_mapping(call, choice) && !goes_as_floats(call, choice);
    if (maps && any(all, kNoMapping)) {
        choice = choose_way(call, {});
    } else if (maps) {
        Status problem = co_await map(call, choice);
        if (any(all, kNewBuffers)) {
            co_await agree_on_mapping(call, problem, &late);
        }
        note_mapped(call, std::move(problem));
        choice = call.mapped ? choice : choose_way(call, {});
    }
    co_return co_await run_chosen(call, choice, &late);
}

} // namespace

Task<int> allreduce(Call &call)
{
    co_await make_ready(call);
    if (needs_own_vector(call)) {
        co_return co_await with_own_vector(call);
    }
    if (should_join(call)) {
        co_await join(call);
    }
    if (call.comm.p2p().size == 1 && (call.args->dense != 0 || call.has_padding())) {
        co_return co_await alone(call);
    }
    if (call.args->kind < 0 && call.args->user_op == 0) {
        co_return co_await staged(call, Flags{});
    }
    for (;;) { // once more when the ranks have found their peers: with a choice that knows them
        if (is_small_user_op(call)) {
            co_return co_await host(call);
        }
        const bool reduces = call.args->kind >= 0; // else this rank does not know the op
        const Choice choice = reduces ? choose_way(call, any_means(call)) : Choice{};
        if (reduces && is(choice.algorithm, Form::kHost) && !call.planner.should_find_peers()) {
            co_return co_await host(call);
        }
        co_await until(
            [&call] { return try_borrow_bounce(call); }); // the first choice was another one
        Published published(call.planner);
        if (reduces && !goes_as_floats(call, choice)) {
            co_await publish(call, choice, published);
        }

        LateRanks late(call, choice, published);
        call.start_agreement();
        const Flags all = co_await late.all_met();
        if (late.stop(all)) {
            co_await until([&late] { return late.stopped(); });
        }
        call.report.record.memory |= all;
        if (any(all, kErrors) && late.may_have_begun(all)) {
            co_await call.agree(); // once all have stopped, memory is the application's again
        }
        if (any(all, kErrors)) {
            co_return call.fail_together(all);
        }
        if (!any(all, kDeviceMemory) && call.is_small() && !any(all, kUnknownOp)) {
            co_return co_await host(call);
        }
        if (is_float8_sum(call) && !any(all, kUnknownOp) &&
            (!any(all, kDeviceMemory) || any(all, kMustStage))) {
            co_return co_await as_floats(call);
        }
        if (!any(all, kDeviceMemory) && !runs_on_host(call, all)) {
            co_return previous(call);
        }
        if (!any(all, kDeviceMemory) || any(all, kUnknownOp | kMustStage)) {
            co_return co_await staged(call, all);
        }
        if (any(all, kHostMemory)) {
            co_return co_await mixed(call);
        }
        if (any(all, kNewDevice)) {
            call.planner.find_peers_anew();
        }
        if (peers_are_known(call)) {
            co_return co_await on_devices(call, choice, all, late);
        }
        start_finding_peers(call);
        co_await until([&call] { return poll_peers(call); });
    }
}

} // namespace hetcoll
