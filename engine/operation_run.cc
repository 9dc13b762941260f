// What has been decided is done: small calls on the host, schedules, and kernels that read and
// write the memory of all ranks of a node.
#include "engine/flags.h"
#include "engine/operation.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace hetcoll {
namespace {

// What a closing agreement carries: the time of the call, and the waits of all ranks.
using CloseNumbers =
    std::array<std::uint64_t, 1 + Arrivals::kNumbersOfARank * Arrivals::kMostRanks>;
static_assert(sizeof(CloseNumbers) <= ControlPage::kPayloadBytes);

} // namespace

// The states after the decision. As Operation::advance().
bool Operation::running()
{
    switch (state_) {
    case State::kSmallRead:
        if (!copy_done()) {
            return false;
        }
        meet_small();
        return true;
    case State::kSmallMeeting:
        if (!meeting_done()) {
            return false;
        }
        write_small();
        return true;
    case State::kInput:
        if (!copy_done()) {
            return false;
        }
        run();
        return true;
    case State::kRun: {
        Executor &executor = engine_.executor();
        const Progress progress = executor.step();
        if (progress == Progress::kPending) {
            return false;
        }
        if (progress == Progress::kFailed) {
            // Messages may still arrive in the slots: they are lost, not freed.
            leave_context();
            static_cast<void>(device_.release());
            static_cast<void>(host_.release());
            finish(executor.code());
            return true;
        }
        const bool direct = device_ != nullptr && device_->direct();
        process_.count(direct ? HETCOLL_BYTES_DIRECT : HETCOLL_BYTES_BOUNCE, executor.bytes_sent());
        process_.count(HETCOLL_BYTES_MAPPED, executor.bytes_pulled());
        record_.direct = direct && executor.bytes_sent() != 0;
        record_.bounced = !direct && executor.bytes_sent() != 0;
        // A root that peers read from moves nothing itself.
        record_.mapped = executor.bytes_pulled() != 0 || (mapping_ && executor.bytes_sent() == 0);
        note(executor.take_failure());
        begin_close();
        return true;
    }
    case State::kKernel:
        if (!kernel_done()) {
            return false;
        }
        begin_close();
        return true;
    case State::kClose:
        if (!meeting_done()) {
            return false;
        }
        close();
        return true;
    case State::kStageRead:
        if (!copy_done()) {
            return false;
        }
        begin_agreement(State::kStageAgree);
        return true;
    case State::kStageAgree:
        if (!meeting_done()) {
            return false;
        }
        reduce_staged();
        return true;
    case State::kCopyOut:
    case State::kFromFixed:
        if (state_ == State::kCopyOut ? !copy_done() : !kernel_done()) {
            return false;
        }
        if (failure_.ok()) {
            finish(HETCOLL_SUCCESS);
        } else {
            finish_failed();
        }
        return true;
    default: return running_piece();
    }
}

// ---- one rank: the input is the result ----

void Operation::begin_alone()
{
    state_ = State::kCopyOut;
    if ((flags_ & kOutOfRange) != 0) {
        fail_out_of_range();
        return;
    }
    serve(any_device() ? HETCOLL_CALLS_SMALL : HETCOLL_CALLS_PREVIOUS);
    if (!any_device() && failure_.ok()) {
        if (is_nonblocking()) {
            std::memmove(static_cast<std::byte *>(call_.recv) + call_.gap,
                         static_cast<const std::byte *>(call_.send) + call_.gap, call_.span);
            finish(HETCOLL_SUCCESS);
            return;
        }
        finish(call_.host_allreduce(call_.context, call_.send, call_.recv));
    } else if (!in_place() && failure_.ok()) {
        start_copy(static_cast<std::byte *>(call_.recv) + call_.gap,
                   static_cast<const std::byte *>(call_.send) + call_.gap, call_.span,
                   on_device(recv_) ? recv_ : send_);
    }
}

// ---- up to the small limit: one meeting, whatever the memory ----

void Operation::begin_small()
{
    state_ = State::kSmallRead;
    if (call_.user_op == 0) {
        serve(HETCOLL_CALLS_SMALL);
    }
    mine_ = Meeting::payload(engine_.group(),
                             device_ != nullptr ? device_->staging() : engine_.messages().mine);
    if (!failure_.ok() || call_.kind < 0) {
        std::memset(mine_, 0, bytes_);
        return;
    }
    if (device_ != nullptr && device_->enter().ok()) {
        engine_.pin_page(*device_->device());
    }
    const void *from = copied_input_ ? call_.recv : call_.send;
    if (on_device(copied_input_ ? recv_ : send_)) {
        start_copy(mine_, from, bytes_, send_);
    } else {
        std::memcpy(mine_, from, bytes_);
    }
}

void Operation::meet_small()
{
    state_ = State::kSmallMeeting;
    // Whatever a rank that does not know the op makes of the others' numbers is thrown away by all.
    const HostReduce reduce = call_.kind < 0 ? host_reduce(ReduceOp::kBor, ElementKind::kUint16)
                                             : host_reduce(op(), kind());
    meeting_.start(engine_.group(), engine_.messages(), mine_, call_.tag, bytes_, call_.count,
                   reduce, flags_to_tell());
}

void Operation::write_small()
{
    if (state_ == State::kDone) {
        return;
    }
    const Flags all = meeting_.flags();
    record_.memory |= all;
    if ((all & kFailed) != 0) {
        fail_together();
        return;
    }
    if ((all & kOutOfRange) != 0) {
        fail_out_of_range();
        return;
    }
    if (call_.user_op != 0) {
        unknown_op_ = (all & kUnknownOp) != 0;
        if (unknown_op_) {
            begin_staging();
            return;
        }
        serve(HETCOLL_CALLS_SMALL);
    }
    if ((all & (kHostMemory | kMustStage)) == 0) {
        engine_.note_small_device_call();
    }
    if (on_device(recv_)) {
        state_ = State::kCopyOut;
        start_copy(call_.recv, meeting_.sum(), bytes_, recv_);
    } else {
        std::memcpy(call_.recv, meeting_.sum(), bytes_);
        finish(HETCOLL_SUCCESS);
    }
}

// ---- larger calls, and small ones by a kernel ----

// The schedule's buffers are of one kind and context: a foreign input is copied to the result
// first.
void Operation::begin_run()
{
    state_ = State::kInput;
    if (!mapping_ && is_foreign() && !copied_input_) {
        start_copy(out_, in_, bytes_, on_device(recv_) ? recv_ : send_);
        copied_input_ = true;
    }
}

void Operation::run()
{
    if (is_collective()) {
        process_.count(HETCOLL_CALLS_COLLECTIVE);
        record_.schedule = shape_name(linked().key.shape);
    } else if (choice_.algorithm == Algorithm::kInNetwork) {
        begin_pieces();
        return;
    } else {
        serve(choice_.algorithm);
    }
    if (is_one_kernel(choice_.algorithm)) {
        run_kernel();
        return;
    }
    state_ = State::kRun;
    auto *recv = static_cast<std::byte *>(out_);
    Vectors vectors{
        .send = copied_input_ ? recv : static_cast<const std::byte *>(in_),
        .recv = recv,
        .count = call_.count,
        .op = op(),
        .kind = kind(),
        .user = {},
    };
    const Engine::Linked &linked = this->linked();
    MappedPeers peers;
    if (mapping_) {
        vectors.send = engine_.mapped().input();
        vectors.recv = engine_.mapped().output();
        if (!linked.steps.empty()) {
            peers = engine_.mapped().peers(linked.steps);
        }
    }
    std::size_t chunk_bytes = choice_.chunk_bytes;
    tuner_ = is_collective() || choice_.late != kNoRank ? nullptr : engine_.tuner(choice_, bytes_);
    if (tuner_ != nullptr) {
        chunk_bytes = tuner_->chunk_bytes();
        tuner_ = tuner_->frozen() ? nullptr : tuner_;
        started_ns_ = now_ns();
    }
    record_.chunk_bytes = chunk_bytes;
    if (early_) {
        early_ = false;
        engine_.executor().open_all(!failure_.ok());
        return;
    }
    engine_.executor().start(linked.schedule, engine_.p2p(), call_.tag, bounce(), vectors,
                             chunk_bytes, !failure_.ok(), peers);
}

void Operation::run_kernel()
{
    Result<bool> started = false;
    if (failure_.ok()) {
        started = engine_.mapped().start_kernel(choice_.algorithm, op(), kind(), call_.count);
    }
    if (started.ok() && *started) {
        state_ = State::kKernel;
        kernel_runs_ = true;
        record_.mapped = true;
        process_.count(HETCOLL_BYTES_MAPPED, engine_.mapped().bytes_mapped());
        return;
    }
    if (!started.ok()) {
        note(started.take_status());
    }
    begin_close();
}

// While a chunk is being looked for the ranks also learn how long the slowest of them took; now and
// then, how long each of them has waited for the others at the beginning.
void Operation::begin_close()
{
    Arrivals *arrivals = this->arrivals();
    arrivals_due_ = arrivals != nullptr && arrivals->is_due();
    if (tuner_ == nullptr && !arrivals_due_) {
        begin_agreement(State::kClose);
        return;
    }
    state_ = State::kClose;
    process_.count(HETCOLL_AGREEMENTS);
    CloseNumbers numbers{};
    numbers[0] = tuner_ != nullptr ? now_ns() - started_ns_ : 0;
    if (arrivals_due_) {
        arrivals->fill(std::span(numbers).subspan(
            1 + Arrivals::kNumbersOfARank * static_cast<std::size_t>(engine_.p2p().rank),
            Arrivals::kNumbersOfARank));
    }
    meeting_.start(engine_.group(), engine_.messages(), call_.tag,
                   std::span(numbers).first(1 + numbers_of_waits()), ReduceOp::kMax,
                   flags_to_tell());
}

std::size_t Operation::numbers_of_waits() const noexcept
{
    return arrivals_due_ ? Arrivals::kNumbersOfARank * static_cast<std::size_t>(engine_.p2p().size)
                         : 0;
}

void Operation::close()
{
    if (state_ == State::kDone) {
        return;
    }
    if (tuner_ != nullptr || arrivals_due_) {
        CloseNumbers numbers;
        meeting_.sum(std::span(numbers).first(1 + numbers_of_waits()));
        if (tuner_ != nullptr) {
            tuner_->feed(numbers[0]);
        }
        if (arrivals_due_) {
            engine_.take_arrivals(std::span(numbers).subspan(1, numbers_of_waits()));
        }
    }
    if ((meeting_.flags() & kFailed) != 0) {
        fail_together();
        return;
    }
    if (staged_recv_ != nullptr && !mapping_) { // reduced on the host, see run_on_host()
        copy_staged_out();
        return;
    }
    const MappedCall::Copy copy = mapping_ ? engine_.mapped().copy_out() : MappedCall::Copy{};
    if (is_collective()) {
        copy_share_out(copy.from != nullptr ? copy.from : out_);
    } else if (copy.to == nullptr) {
        finish(HETCOLL_SUCCESS);
    } else {
        state_ = State::kCopyOut;
        start_copy(copy.to, copy.from, bytes_, recv_);
    }
}

} // namespace hetcoll
