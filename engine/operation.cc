// The way to a decision: what memory do the ranks have, and who may read whose.
#include "engine/operation.h"

#include "engine/flags.h"

namespace hetcoll {

Operation::Operation(Engine &engine, const hetcoll_call &call, bool persistent) noexcept
    : engine_(engine), process_(engine.process()), fixed_(engine.uses_fixed_point(call)),
      given_(call), integer_call_(fixed_ ? integer_call(call) : hetcoll_call{}),
      call_(fixed_ ? integer_call_ : call), persistent_(persistent)
{
}

Operation::~Operation()
{
    classified_ = false;
    settle();
}

// What the call has borrowed goes back, but for what a persistent one will need again.
void Operation::settle() noexcept
{
    if (shares_) {
        engine_.mapped().release();
        shares_ = false;
    }
    process_.give_back(std::move(scratch_));
    process_.give_back(std::move(host_));
    process_.give_back(std::move(staged_send_));
    process_.give_back(std::move(staged_recv_));
    classified_ = classified_ && failure_.ok() && result_ == HETCOLL_SUCCESS;
    if (classified_) {
        return;
    }
    if (failure_.ok()) {
        process_.give_back(std::move(device_));
    } else {
        process_.discard(std::move(device_)); // the store takes nothing back of this device
    }
}

void Operation::rewind() noexcept
{
    complete_.store(false, std::memory_order_relaxed);
    begun_ = false;
    result_ = HETCOLL_SUCCESS;
    failure_ = {};
    flags_ = 0;
    copying_ = copied_input_ = mapping_ = unknown_op_ = false;
    needs_ = nullptr;
    tuner_ = nullptr;
    may_begin_ = early_ = arrivals_due_ = false;
    placed_ = false;
}

bool Operation::step()
{
    if (!begun_) {
        begun_ = true;
        mine_ = engine_.messages().mine;
        begin_record();
        classify();
        if (fixed_) {
            classify_fixed();
        }
        state_ = State::kMakeReady;
    }
    while (state_ != State::kDone && advance()) {
        ++advances_;
    }
    if (mapping_ && state_ != State::kDone) {
        engine_.mapped().serve();
    }
    leave_context();
    if (state_ == State::kDone) {
        settle();
        return true;
    }
    return false;
}

void Operation::fail_without_memory() noexcept
{
    log(process_.log(), 0, "hetcoll: %s failed: out of host memory", mpi_name());
    finish(HETCOLL_ERROR_NO_MEMORY);
    leave_context();
    settle();
}

std::uint64_t Operation::moves() const noexcept
{
    const bool runs = state_ == State::kRun || state_ == State::kPiece || early_;
    return advances_ + (runs ? engine_.executor().moves() : 0);
}

// Others run next: they find the context that they left.
void Operation::leave_context() noexcept
{
    if (device_ != nullptr) {
        device_->leave();
    }
}

// Does what the state waits for, and moves on. False if it is not there yet.
bool Operation::advance()
{
    switch (state_) {
    case State::kMakeReady:
        if (!engine_.is_ready() && engine_.p2p().size > 1) {
            const Progress progress = engine_.make_ready(call_.tag);
            if (progress == Progress::kPending) {
                return false;
            }
            if (progress == Progress::kFailed) {
                finish(engine_.group().code());
                return true;
            }
        }
        state_ = State::kSenderReady;
        return true;
    case State::kSenderReady:
        if (failure_.ok() && two_contexts()) {
            Result<bool> done = process_.legacy_work_done(send_);
            if (done.ok() && !*done) {
                return false;
            }
            if (!done.ok()) {
                note(done.take_status());
            }
        }
        if (fixed_) {
            begin_to_fixed();
        } else {
            begin();
        }
        return true;
    case State::kJoin:
        switch (engine_.aggregation().step()) {
        case Progress::kPending: return false;
        case Progress::kFailed: network_failed(engine_.aggregation().code()); return true;
        case Progress::kDone: begin(); return true;
        }
        return true;
    case State::kForeignInput:
    case State::kToFixed: return to_fixed_point();
    case State::kAgree:
    case State::kAgreeMixed:
        if (!meeting_done()) {
            run_early();
            return false;
        }
        note_arrival();
        if (!stop_early(meeting_.flags())) {
            decide();
        }
        return true;
    case State::kStop:
        if (engine_.executor().step() == Progress::kPending) {
            return false;
        }
        early_ = false;
        note(engine_.executor().take_failure());
        state_ = stopped_in_;
        if (state_ == State::kMapped) {
            mapped(true);
        } else {
            decide();
        }
        return true;
    case State::kShare:
        if (!copy_done()) {
            return false;
        }
        if (failure_.ok() && engine_.mapped().publish()) {
            flags_ |= kNewBuffers;
        }
        may_begin_ = is_early() && failure_.ok() && !copied_input_ && engine_.mapped().keeps_input();
        begin_agreement(State::kAgree);
        return true;
    case State::kFindPeers: {
        const Progress progress = engine_.peers().step();
        if (progress == Progress::kPending) {
            return false;
        }
        if (progress == Progress::kFailed) {
            finish(engine_.peers().code());
        } else {
            begin();
        }
        return true;
    }
    case State::kMap: map(); return state_ != State::kMap;
    case State::kMapped:
        if (!meeting_done()) {
            return false;
        }
        if (!stop_early(meeting_.flags())) {
            mapped((meeting_.flags() & kNotShared) != 0);
        }
        return true;
    case State::kOwnShare:
        if (!copy_done()) {
            return false;
        }
        placed_ = true;
        begin_collective();
        return true;
    default: return running();
    case State::kDone: break;
    }
    return true;
}

void Operation::begin()
{
    if (is_collective()) {
        begin_collective();
        return;
    }
    if (should_join()) {
        state_ = State::kJoin;
        engine_.aggregation().start(engine_.messages(), call_.tag);
        return;
    }
    if (engine_.p2p().size == 1 && call_.dense != 0) {
        begin_alone();
        return;
    }
    if (call_.kind < 0 && call_.user_op == 0) {
        begin_staging();
        return;
    }
    // What a rank that does not know a user-defined op does in its first meeting, all ranks do.
    if (call_.user_op != 0 && is_small() && !engine_.should_find_peers() &&
        !engine_.forces_small_kernel()) {
        begin_small();
        return;
    }
    if (call_.kind < 0) {
        begin_agreement(State::kAgree);
        return;
    }
    choice_ = engine_.choice(call_, bytes_, true, true);
    if (choice_.algorithm == Algorithm::kHost && !engine_.should_find_peers()) {
        begin_small();
        return;
    }
    share();
}

// ---- agree, with what peers will need on the table ----

// Makes the buffers ready for peers to read and write, if the choice may need that.
void Operation::share()
{
    flags_ &= static_cast<Flags>(~(kNotShared | kNewBuffers));
    if (choice_.algorithm == Algorithm::kOrdered && device_ != nullptr &&
        (flags_ & kMustStage) == 0) { // a small call too takes kernels
        Status loaded = device_->enter();
        if (loaded.ok()) {
            loaded = device_->device()->prepare(op(), kind());
        }
        if (!loaded.ok()) {
            must_stage(loaded);
        }
    }
    if (!engine_.uses_mapping(choice_)) {
        begin_agreement(State::kAgree);
        return;
    }
    const bool can_share = failure_.ok() && device_ != nullptr && on_device(recv_) &&
                           (flags_ & kMustStage) == 0 && device_->enter().ok() &&
                           engine_.peers().is_known_device(*device_->device());
    MappedCall::Copy copy;
    Status problem;
    if (can_share) {
        shares_ = true;
        problem = device_->device()->prepare(op(), kind(), KernelShape::kManyInput);
        if (problem.ok()) {
            auto planned = engine_.mapped().plan(choice_.algorithm,
                                                 {.send = in_,
                                                  .recv = out_,
                                                  .send_info = send_,
                                                  .recv_info = recv_,
                                                  .foreign = is_foreign(),
                                                  .bytes = bytes_,
                                                  .keep_input = is_early(),
                                                  .late = choice_.late},
                                                 *device_);
            if (planned.ok()) {
                copy = *planned;
            } else {
                problem = planned.take_status();
            }
        }
        if (!problem.ok()) {
            log(process_.log(), 1, "hetcoll: a rank cannot share its buffers: %s",
                problem.message().c_str());
        }
    }
    if (!can_share || !problem.ok()) {
        flags_ |= kNotShared;
        begin_agreement(State::kAgree);
        return;
    }
    state_ = State::kShare;
    if (copy.to != nullptr) {
        copied_input_ = copy.to == out_;
        start_copy(copy.to, copy.from, bytes_, recv_);
        return;
    }
    // Peers are not ordered after the application's work, so it must be done before they are told.
    Status marked = device_->start_marker();
    copying_ = marked.ok();
    note(std::move(marked));
}

void Operation::begin_agreement(State state)
{
    state_ = state;
    arrived_ns_ = state == State::kAgree && arrivals() != nullptr ? now_ns() : 0;
    process_.count(HETCOLL_AGREEMENTS);
    meeting_.start(engine_.group(), engine_.messages(), call_.tag, flags_to_tell());
}

void Operation::decide()
{
    if (state_ == State::kDone) {
        return;
    }
    const Flags all = meeting_.flags();
    record_.memory |= all;
    const bool on_host = (all & kDeviceMemory) == 0;
    unknown_op_ = (all & kUnknownOp) != 0;
    if ((all & kFailed) != 0) {
        fail_together();
    } else if ((all & kOutOfRange) != 0) {
        fail_out_of_range();
    } else if (is_collective() && (all & (kHostMemory | kMustStage)) != 0) {
        finish(HETCOLL_DECLINED);
    } else if (is_collective()) {
        decide_on_devices(all);
    } else if (on_host && is_small() && !unknown_op_) {
        begin_small();
    } else if (on_host && !runs_on_host()) {
        serve(HETCOLL_CALLS_PREVIOUS);
        finish(call_.host_allreduce(call_.context, call_.send, call_.recv));
    } else if (on_host || unknown_op_ || (all & kMustStage) != 0) {
        begin_staging();
    } else if ((all & kHostMemory) != 0) {
        choice_ = engine_.choice(call_, bytes_, false, true);
        if (choice_.algorithm == Algorithm::kHost) {
            begin_small();
        } else if (state_ == State::kAgree) {
            prepare_mixed();
            begin_agreement(State::kAgreeMixed);
        } else {
            begin_run();
        }
    } else {
        decide_on_devices(all);
    }
}

// All ranks have device memory.
void Operation::decide_on_devices(Flags all)
{
    if (!engine_.peers().known()) {
        find_peers();
        return;
    }
    if (engine_.uses_mapping(choice_) && (all & kNotShared) != 0) {
        choice_ = is_collective() ? choice_ : engine_.choice(call_, bytes_, false);
    } else if (engine_.uses_mapping(choice_)) {
        mapping_ = true;
        flags_ = static_cast<Flags>((flags_ & ~kNewBuffers) | (all & kNewBuffers));
        needs_ = is_one_kernel(choice_.algorithm) ? nullptr : &linked().schedule;
        state_ = State::kMap;
        return;
    }
    if (choice_.algorithm == Algorithm::kHost) {
        begin_small();
    } else {
        begin_run();
    }
}

// A rank whose result goes to host memory takes part with host kernels.
void Operation::prepare_mixed()
{
    if (on_device(recv_)) {
        return;
    }
    auto bounce = process_.borrow_host();
    if (bounce.ok()) {
        host_ = std::move(*bounce);
    } else {
        flags_ |= kMustStage;
    }
}

// The first call with device memory everywhere. Afterwards it begins anew, with a choice that
// knows.
void Operation::find_peers()
{
    state_ = State::kFindPeers;
    engine_.peers().start(on_device(recv_) ? recv_ : send_, *device_, engine_.messages(),
                          call_.tag);
}

void Operation::map()
{
    Result<bool> done = device_->enter().ok()
                            ? engine_.mapped().map(choice_.algorithm, needs_)
                            : Result<bool>(error(Errc::kDriver, "the context of a buffer is gone"));
    if (done.ok() && !*done) {
        return;
    }
    const bool agree = (flags_ & kNewBuffers) != 0;
    if (!done.ok() && agree) {
        flags_ |= kNotShared;
        log(process_.log(), 0,
            "hetcoll: memory of another GPU cannot be mapped, so this communicator's data goes "
            "through host memory, which is slower: %s",
            done.status().message().c_str());
    } else if (!done.ok()) {
        note(done.take_status());
    }
    if (agree) {
        begin_agreement(State::kMapped);
    } else {
        mapped(false);
    }
}

void Operation::mapped(bool failed)
{
    if (state_ == State::kDone) {
        return;
    }
    if (failed) {
        engine_.give_up_mapping();
        mapping_ = false;
        choice_ = engine_.choice(call_, bytes_, true);
        if (choice_.algorithm == Algorithm::kHost) {
            begin_small();
            return;
        }
    } else if (failure_.ok()) {
        engine_.mapped().remember();
    }
    begin_run();
}

} // namespace hetcoll
