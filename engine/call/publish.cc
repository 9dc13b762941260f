// Whose memory is read: buffers are announced to peers, and theirs are mapped.
#include "engine/call/protocols.h"

namespace hetcoll {
namespace {

// A small call in the order of the ranks takes kernels too.
void prepare_ordered(Call &call)
{
    Status loaded = call.work.device->enter();
    if (loaded.ok()) {
        loaded = call.work.device->kernels().prepare(call.op(), call.kind());
    }
    if (!loaded.ok()) {
        must_stage(call, loaded);
    }
}

bool can_publish(Call &call)
{
    const bool mapped = !call.work.uses_reserved || reserved_is_mapped(call) ||
                        call.args->queued == HETCOLL_ATTACHES;
    return call.failure.ok() && call.work.device != nullptr && on_device(call.buffers.recv) &&
           mapped && !any(call.flags, kMustStage) && call.work.device->enter().ok() &&
           is_known_device(call);
}

// Which memory stands for the vectors, and what has to be copied to it.
Result<MappedCall::Copy> plan(Call &call, const Choice &choice)
{
    Status ready = call.work.device->kernels().prepare(call.op(), call.kind());
    if (!ready.ok()) {
        return ready;
    }
    const Buffers &buffers = call.buffers;
    return call.planner.mapped().plan(choice.algorithm,
                                      {.send = buffers.in,
                                       .recv = buffers.out,
                                       .send_info = buffers.send,
                                       .recv_info = buffers.recv,
                                       .foreign = buffers.is_foreign(),
                                       .bytes = call.bytes,
                                       .keep_input = LateRanks::begins_early(call, choice),
                                       .late = choice.late,
                                       .stands_in = reserved_memory(call)},
                                      *call.work.device);
}

void start_copy(Call &call, const MappedCall::Copy &copy)
{
    if (copy.to != nullptr) {
        call.buffers.input_copied = copy.to == call.buffers.out;
        call.start_copy(copy.to, copy.from, call.bytes, call.buffers.recv);
        return;
    }
    // Peers are not ordered after the application's work, so it must be done before they are told.
    Result<bool> done = call.work.device->start_marker();
    call.work.copying = done.ok() && !*done;
    call.note(done.take_status());
}

void start_publishing(Call &call, const Choice &choice, Published &published)
{
    call.flags &= ~(kNoMapping | kNeverMap | kNewDevice | kNewBuffers);
    tell_new_device(call);
    if (has(choice.algorithm, Trait::kInChain) && call.work.device != nullptr &&
        !any(call.flags, kMustStage)) {
        prepare_ordered(call);
    }
    if (!uses_mapping(call, choice)) {
        return;
    }
    if (!can_publish(call)) {
        call.flags |= kNoMapping;
        return;
    }
    published.planned = true;
    const Result<MappedCall::Copy> planned = plan(call, choice);
    if (!planned.ok()) {
        log(call.report.log(), 1, "hetcoll: a rank cannot share its buffers: %s",
            planned.status().message().c_str());
        call.flags |= kNoMapping;
        return;
    }
    start_copy(call, *planned);
}

void announce(Call &call, Published &published)
{
    if (!published.planned || any(call.flags, kNoMapping)) {
        return;
    }
    if (call.failure.ok() && call.planner.mapped().publish()) {
        call.flags |= kNewBuffers;
    }
    published.announced = true;
}

// True, too, with a problem.
bool poll_map(Call &call, const Choice &choice, Status &problem)
{
    const Schedule *const needs =
        row_of(choice.algorithm).is_one_kernel() ? nullptr : &schedule_of(call, choice).schedule;
    Result<bool> done = call.work.device->enter().ok()
                            ? call.planner.mapped().map(choice.algorithm, needs)
                            : Result<bool>(error(Errc::kDriver, "the context of a buffer is gone"));
    if (done.ok()) {
        return *done;
    }
    problem = done.take_status();
    return true;
}

} // namespace

Task<> publish(Call &call, const Choice &choice, Published &published)
{
    start_publishing(call, choice, published);
    co_await call.copied();
    announce(call, published);
}

Task<Status> map(Call &call, const Choice &choice)
{
    call.mapped = true;
    Status problem;
    co_await until([&] { return poll_map(call, choice, problem); });
    co_return problem;
}

Task<> agree_on_mapping(Call &call, const Status &problem, LateRanks *late)
{
    MappedCall &mapped = call.planner.mapped();
    call.flags |= kNewBuffers;
    if (!problem.ok()) {
        note_unmapped(call, problem);
    }
    mapped.tell_unmapped();
    const Flags told = co_await call.agree();
    if (late != nullptr && late->stop(told)) {
        co_await until([late] { return late->stopped(); });
    }
    if (any(told, kNoMapping)) {
        mapped.hear_unmapped();
        call.mapped = false;
    }
    if (any(told, kNeverMap)) {
        call.planner.give_up_mapping();
    }
}

void note_mapped(Call &call, Status problem)
{
    if (!call.mapped) {
        return;
    }
    call.note(std::move(problem));
    if (call.failure.ok()) {
        call.planner.mapped().remember();
    }
}

} // namespace hetcoll
