// Schedules, and kernels that read and write the memory of all ranks of a node; then the closing
// agreement.
#include "base/lost.h"
#include "engine/call/protocols.h"

#include <array>
#include <span>
#include <string>

namespace hetcoll {
namespace {

// The content of a closing agreement: the time of the call, and the waits of all ranks.
using CloseNumbers =
    std::array<std::uint64_t, 1 + Arrivals::kNumbersOfARank * Arrivals::kMostRanks>;
static_assert(sizeof(CloseNumbers) <= ControlPage::kPayloadBytes);

struct Closing {
    Timed timed;
    Arrivals *arrivals = nullptr; // null: they are not told this time
};

std::size_t numbers_of_waits(const Call &call, const Closing &closing) noexcept
{
    const auto ranks = static_cast<std::size_t>(call.comm.p2p().size);
    return closing.arrivals != nullptr ? Arrivals::kNumbersOfARank * ranks : 0;
}

// A rank may have none to run.
void start_kernel(Call &call, const Choice &choice)
{
    MappedCall &mapped = call.planner.mapped();
    Result<bool> started = false;
    if (call.failure.ok()) {
        started = mapped.start_kernel(choice.algorithm, call.op(), call.kind(), call.args->count);
    }
    if (!started.ok()) {
        call.note(started.take_status());
        return;
    }
    call.report.record.mapped = call.failure.ok(); // its memory, by another rank's kernel too
    if (*started) {
        call.work.kernel_runs = true;
        call.report.count(HETCOLL_BYTES_MAPPED, mapped.bytes_mapped());
    }
}

void start_schedule(Call &call, const Choice &choice, LateRanks *late)
{
    Communicator &comm = call.comm;
    const BuiltSchedule &built = schedule_of(call, choice);
    call.report.record.chunk_bytes = choice.chunk_bytes;
    call.work.executor_runs = true;
    if (late != nullptr && late->go_on()) {
        return;
    }
    auto *const recv = static_cast<std::byte *>(call.buffers.out);
    Vectors vectors{
        .send = call.buffers.input_copied ? recv : static_cast<const std::byte *>(call.buffers.in),
        .recv = recv,
        .count = call.args->count,
        .op = call.op(),
        .kind = call.kind(),
        .user = {},
    };
    MappedPeers peers;
    if (call.mapped) {
        vectors.send = call.planner.mapped().input();
        vectors.recv = call.planner.mapped().output();
        if (!built.local_steps.empty()) {
            peers = call.planner.mapped().peers(built.local_steps);
        }
    }
    call.work.carrier = carrier_of(call, choice);
    call.planner.executor().start(built.schedule, comm.p2p(), call.args->tag, call.work.bounce(),
                                  vectors, choice.chunk_bytes, !call.failure.ok(), peers,
                                  call.work.carrier);
}

bool poll_run(Call &call)
{
    if (!call.work.executor_runs) {
        return call.poll_kernel();
    }
    Executor &executor = call.planner.executor();
    switch (executor.step()) {
    case Progress::kPending: return false;
    case Progress::kFailed:
        if (const Carrier *const carrier = call.work.carrier; carrier != nullptr) {
            if (const std::string problem = carrier->problem(); !problem.empty()) {
                log(call.report.log(), 0, "hetcoll: %s fails: %s", call.mpi_name(),
                    problem.c_str());
            }
        }
        // messages may still arrive in the slots: they are lost, not freed
        call.lose_device();
        lose(std::move(call.work.host));
        call.end(executor.code());
        return false;
    case Progress::kDone: return true;
    }
    return false;
}

void note_executed(Call &call)
{
    if (call.mapped) {
        call.comm.membership().touches_no_peers();
    }
    if (!call.work.executor_runs) {
        return; // it was a kernel
    }
    Executor &executor = call.planner.executor();
    CallRecord &record = call.report.record;
    const bool sent = executor.bytes_sent() != 0;
    const bool direct = call.work.device != nullptr && call.work.device->direct();
    call.work.executor_runs = false;
    call.report.count(direct ? HETCOLL_BYTES_DIRECT : HETCOLL_BYTES_BOUNCE, executor.bytes_sent());
    call.report.count(HETCOLL_BYTES_ADAPTER, executor.bytes_by_adapter());
    call.report.count(HETCOLL_BYTES_MAPPED, executor.bytes_pulled());
    record.direct = (direct && sent) || executor.bytes_by_adapter() != 0;
    record.bounced = !direct && sent;
    // A root that peers read from moves nothing itself.
    record.mapped = executor.bytes_pulled() != 0 || (call.mapped && !sent);
    call.note(executor.take_failure());
}

bool step_run(Call &call)
{
    if (!poll_run(call)) {
        return false;
    }
    note_executed(call);
    return true;
}

Closing start_close(Call &call, Timed timed)
{
    Arrivals *const arrivals = arrivals_of(call);
    const Closing closing{timed, arrivals != nullptr && arrivals->is_due() ? arrivals : nullptr};
    if (timed.tuner == nullptr && closing.arrivals == nullptr) {
        call.start_agreement();
        return closing;
    }
    CloseNumbers numbers{};
    numbers[0] = timed.tuner != nullptr ? now_ns() - timed.started_ns : 0;
    const auto rank = static_cast<std::size_t>(call.comm.p2p().rank);
    if (closing.arrivals != nullptr) {
        arrivals->fill(std::span(numbers).subspan(1 + Arrivals::kNumbersOfARank * rank,
                                                  Arrivals::kNumbersOfARank));
    }
    call.start_agreement(std::span(numbers).first(1 + numbers_of_waits(call, closing)),
                         ReduceOp::kMax, call.to_tell());
    return closing;
}

Flags end_close(Call &call, const Closing &closing)
{
    if (closing.timed.tuner != nullptr || closing.arrivals != nullptr) {
        const std::size_t waits = numbers_of_waits(call, closing);
        CloseNumbers numbers;
        call.meeting.sum(std::span(numbers).first(1 + waits));
        if (closing.timed.tuner != nullptr) {
            closing.timed.tuner->feed(numbers[0]);
        }
        if (closing.arrivals != nullptr) {
            take_arrivals(call, std::span(numbers).subspan(1, waits));
        }
    }
    return call.meeting.flags();
}

} // namespace

void bring_input(Call &call)
{
    Buffers &buffers = call.buffers;
    if (!call.mapped && buffers.is_foreign() && !buffers.input_copied) {
        call.start_copy(buffers.out, buffers.in, call.bytes, buffers.device());
        buffers.input_copied = true;
    }
}

Timed start_run(Call &call, Choice choice, LateRanks *late)
{
    Timed timed;
    if (row_of(choice.algorithm).is_one_kernel()) {
        start_kernel(call, choice);
    } else {
        timed = find_chunk(call, choice);
        start_schedule(call, choice, late);
    }
    call.look_for_freed(call.work.device != nullptr); // another rank's, too
    return timed;
}

Polled peers_stay(Call &call) noexcept
{
    return Polled(
        {[](Call &of) { return !of.mapped || of.comm.membership().may_touch_peers(); }, call});
}

Polled ran(Call &call) noexcept { return Polled({step_run, call}); }

Task<Flags> close(Call &call, Timed timed)
{
    const Closing closing = start_close(call, timed);
    co_await call.all_met();
    co_return end_close(call, closing);
}

} // namespace hetcoll
