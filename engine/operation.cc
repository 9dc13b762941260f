#include "engine/operation.h"

#include <cstring>

namespace hetcoll {
namespace {

// What ranks tell each other. Combined by OR, so a bit means "some rank".
constexpr Flags kDeviceMemory = 1;
constexpr Flags kHostMemory = 2;
constexpr Flags kMustStage = 4; // cannot run our schedules now
constexpr Flags kFailed = 8;    // a driver call failed, the result is lost

constexpr std::size_t kAlignment = 256; // of the driver's allocations

constexpr int index_of(Algorithm algorithm) { return static_cast<int>(algorithm); }

} // namespace

Operation::Operation(Engine &engine, const hetcoll_call &call) noexcept
    : engine_(engine), process_(engine.process()), call_(call), mine_(engine.messages().mine)
{
}

Operation::~Operation()
{
    if (failure_.ok()) {
        process_.give_back(std::move(device_));
    } else {
        process_.discard(std::move(device_)); // the store takes nothing back of this device
    }
    process_.give_back(std::move(host_));
    process_.give_back(std::move(staged_send_));
    process_.give_back(std::move(staged_recv_));
}

bool Operation::step()
{
    if (!begun_) {
        begun_ = true;
        classify();
        if (failure_.ok() && two_contexts()) {
            state_ = State::kSenderReady;
        } else {
            begin();
        }
    }
    while (state_ != State::kDone && advance()) {
    }
    leave_context();
    return state_ == State::kDone;
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
    case State::kSenderReady: {
        Result<bool> done = process_.legacy_work_done(send_);
        if (done.ok() && !*done) {
            return false;
        }
        if (!done.ok()) {
            note(done.take_status());
        }
        begin();
        return true;
    }
    case State::kSmallRead:
        if (!copy_done()) {
            return false;
        }
        exchange_small();
        return true;
    case State::kSmallExchange:
        if (!exchange_done()) {
            return false;
        }
        write_small();
        return true;
    case State::kAgree:
    case State::kAgreeMixed:
        if (!exchange_done()) {
            return false;
        }
        decide();
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
        process_.count(device_ != nullptr && device_->direct() ? HETCOLL_BYTES_DIRECT
                                                               : HETCOLL_BYTES_BOUNCE,
                       executor.bytes_sent());
        note(executor.take_failure());
        begin_agreement(State::kClose);
        return true;
    }
    case State::kClose:
        if (!exchange_done()) {
            return false;
        }
        if ((exchange_.flags() & kFailed) != 0) {
            finish_failed();
        } else {
            finish(HETCOLL_SUCCESS);
        }
        return true;
    case State::kStageRead:
        if (!copy_done()) {
            return false;
        }
        begin_agreement(State::kStageAgree);
        return true;
    case State::kStageAgree:
        if (!exchange_done()) {
            return false;
        }
        reduce_staged();
        return true;
    case State::kCopyOut:
        if (!copy_done()) {
            return false;
        }
        if (failure_.ok()) {
            finish(HETCOLL_SUCCESS);
        } else {
            finish_failed();
        }
        return true;
    case State::kDone: break;
    }
    return true;
}

void Operation::begin()
{
    if (engine_.p2p().size == 1 && call_.dense != 0) {
        begin_alone();
    } else if (call_.user_op != 0) {
        flags_ |= call_.kind < 0 ? kMustStage : 0;
        begin_agreement(State::kAgree);
    } else if (call_.kind < 0) {
        begin_staging();
    } else if (bytes_ <= engine_.small_limit()) {
        begin_small();
    } else {
        begin_agreement(State::kAgree);
    }
}

// Finds out where the buffers are, and borrows a bounce if one is on a device.
void Operation::classify()
{
    const auto find = [this](const void *buffer, PointerInfo &info) {
        const auto *first = static_cast<const std::byte *>(buffer) + call_.gap;
        Result<PointerInfo> found = process_.pointers().find(first);
        if (!found.ok()) {
            found = process_.pointers().find(first); // once more: all depends on it
        }
        if (found.ok()) {
            info = *found;
        } else {
            note(found.take_status());
        }
    };
    if (call_.kind >= 0) {
        bytes_ = call_.count * element_bytes(static_cast<ElementKind>(call_.kind));
    }
    find(call_.recv, recv_);
    if (in_place()) {
        send_ = recv_;
    } else {
        find(call_.send, send_);
    }
    if (!failure_.ok()) {
        flags_ = kFailed;
        return;
    }
    flags_ = on_device(recv_) ? kDeviceMemory : kHostMemory;
    if (!any_device()) {
        return;
    }
    flags_ |= kDeviceMemory;
    if (process_.settings().sync_context != 0) {
        note(process_.synchronize(on_device(recv_) ? recv_ : send_));
        if (two_contexts()) {
            note(process_.synchronize(send_));
        }
    }
    // Open MPI 5.0 aborts on memory of pools and of virtual memory management.
    const auto is_ordinary = [](const PointerInfo &info) {
        return info.kind == MemoryKind::kHost || info.legacy_ipc;
    };
    auto bounce = process_.borrow_device(on_device(recv_) ? recv_ : send_,
                                         is_ordinary(send_) && is_ordinary(recv_));
    Status problem;
    if (bounce.ok()) {
        device_ = std::move(*bounce);
        problem = device_->enter();
        if (problem.ok() && call_.kind >= 0 && bytes_ > engine_.small_limit()) {
            problem = device_->device()->prepare(static_cast<ReduceOp>(call_.op),
                                                 static_cast<ElementKind>(call_.kind));
        }
    } else {
        problem = bounce.take_status();
    }
    if (!problem.ok()) {
        flags_ |= kMustStage;
        log(process_.log(), process_.first_time_staged() ? 1 : 2,
            "hetcoll: a rank cannot use its GPU now, so calls above the small limit are staged: %s",
            problem.message().c_str());
    }
}

// ---- one rank: the input is the result ----

void Operation::begin_alone()
{
    state_ = State::kCopyOut;
    process_.count(any_device() ? HETCOLL_CALLS_SMALL : HETCOLL_CALLS_PREVIOUS);
    if (!any_device() && failure_.ok()) {
        finish(call_.host_allreduce(call_.context, call_.send, call_.recv));
    } else if (!in_place() && failure_.ok()) {
        start_copy(static_cast<std::byte *>(call_.recv) + call_.gap,
                   static_cast<const std::byte *>(call_.send) + call_.gap, call_.span,
                   on_device(recv_) ? recv_ : send_);
    }
}

// ---- up to the small limit: one exchange, whatever the memory ----

void Operation::begin_small()
{
    state_ = State::kSmallRead;
    process_.count(HETCOLL_CALLS_SMALL);
    if (device_ != nullptr) {
        mine_ = device_->staging();
    }
    if (!failure_.ok()) {
        std::memset(mine_, 0, bytes_);
    } else if (on_device(send_)) {
        start_copy(mine_, call_.send, bytes_, send_);
    } else {
        std::memcpy(mine_, call_.send, bytes_);
    }
}

void Operation::exchange_small()
{
    state_ = State::kSmallExchange;
    const auto reduce =
        host_reduce(static_cast<ReduceOp>(call_.op), static_cast<ElementKind>(call_.kind));
    exchange_.start(engine_.p2p(), call_.tag, mine_, engine_.messages().theirs, bytes_, call_.count,
                    reduce, failure_.ok() ? 0 : kFailed);
}

void Operation::write_small()
{
    if (state_ == State::kDone) {
        return;
    }
    if ((exchange_.flags() & kFailed) != 0) {
        finish_failed();
        return;
    }
    if (on_device(recv_)) {
        state_ = State::kCopyOut;
        start_copy(call_.recv, mine_, bytes_, recv_);
    } else {
        std::memcpy(call_.recv, mine_, bytes_);
        finish(HETCOLL_SUCCESS);
    }
}

// ---- larger calls: agree, run a schedule, agree that it succeeded ----

void Operation::begin_agreement(State state)
{
    state_ = state;
    process_.count(HETCOLL_AGREEMENTS);
    exchange_.start(engine_.p2p(), call_.tag, engine_.messages().mine, engine_.messages().theirs, 0,
                    0, nullptr, flags_ | (failure_.ok() ? 0 : kFailed));
}

void Operation::decide()
{
    if (state_ == State::kDone) {
        return;
    }
    const Flags all = exchange_.flags();
    if ((all & kFailed) != 0) {
        finish_failed();
    } else if ((all & kDeviceMemory) == 0) {
        process_.count(HETCOLL_CALLS_PREVIOUS);
        finish(call_.host_allreduce(call_.context, call_.send, call_.recv));
    } else if ((all & kMustStage) != 0) {
        begin_staging();
    } else if (bytes_ <= engine_.small_limit()) { // only a user-defined op agrees on a small call
        begin_small();
    } else if ((all & kHostMemory) != 0 && state_ == State::kAgree) {
        prepare_mixed();
        begin_agreement(State::kAgreeMixed);
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

// The schedule's buffers are of one kind and context: a foreign input is copied to the result
// first.
void Operation::begin_run()
{
    state_ = State::kInput;
    const bool foreign =
        !in_place() && (send_.kind == MemoryKind::kHost) != (recv_.kind == MemoryKind::kHost);
    if (foreign || two_contexts()) {
        start_copy(call_.recv, call_.send, bytes_, on_device(recv_) ? recv_ : send_);
        copied_input_ = true;
    }
}

void Operation::run()
{
    state_ = State::kRun;
    const Choice choice = engine_.choice(bytes_);
    process_.count(static_cast<hetcoll_counter>(HETCOLL_CALLS_RECURSIVE_DOUBLING +
                                                index_of(choice.algorithm)));
    auto *recv = static_cast<std::byte *>(call_.recv);
    const Vectors vectors{
        .send = copied_input_ ? recv : static_cast<const std::byte *>(call_.send),
        .recv = recv,
        .count = call_.count,
        .op = static_cast<ReduceOp>(call_.op),
        .kind = static_cast<ElementKind>(call_.kind),
    };
    Bounce &bounce = host_ != nullptr ? static_cast<Bounce &>(*host_) : *device_;
    engine_.executor().start(engine_.schedule(choice.algorithm), engine_.p2p(), call_.tag, bounce,
                             vectors, choice.chunk_bytes, !failure_.ok());
}

// ---- staged: what hetcoll does not reduce, and what it cannot reduce now ----

void Operation::begin_staging()
{
    state_ = State::kStageRead;
    process_.count(any_device() ? HETCOLL_CALLS_STAGED : HETCOLL_CALLS_PREVIOUS);
    if (!failure_.ok()) {
        return;
    }
    if (on_device(recv_)) { // its old content matters in place, or where the data has gaps
        stage(static_cast<std::byte *>(call_.recv), staged_recv_, in_place() || call_.dense == 0);
    }
    if (on_device(send_) && !in_place()) {
        stage(static_cast<const std::byte *>(call_.send), staged_send_, true);
    }
}

// Where the data begins in staging memory: at the alignment that it has in a buffer of that kind.
std::byte *Operation::first_byte(const StagingMemory &memory) const noexcept
{
    constexpr auto kModulus = static_cast<std::ptrdiff_t>(kAlignment);
    return memory.data() + (call_.gap % kModulus + kModulus) % kModulus;
}

void Operation::stage(const std::byte *from, std::unique_ptr<StagingMemory> &memory, bool copy)
{
    const bool pinned = device_ != nullptr && device_->enter().ok();
    auto borrowed =
        process_.borrow_staging(pinned ? device_->device() : nullptr, call_.span + kAlignment);
    if (!borrowed.ok()) {
        note(borrowed.take_status());
        return;
    }
    memory = std::move(*borrowed);
    if (copy) {
        start_copy(first_byte(*memory), from + call_.gap, call_.span,
                   from == call_.recv ? recv_ : send_);
    }
}

void Operation::reduce_staged()
{
    if (state_ == State::kDone) {
        return;
    }
    if ((exchange_.flags() & kFailed) != 0) {
        finish_failed();
        return;
    }
    const auto host = [this](const std::unique_ptr<StagingMemory> &memory, const void *buffer) {
        return memory ? first_byte(*memory) - call_.gap : static_cast<const std::byte *>(buffer);
    };
    auto *recv = const_cast<std::byte *>(host(staged_recv_, call_.recv));
    const std::byte *send = in_place() ? recv : host(staged_send_, call_.send);
    leave_context();
    if (const int code = call_.host_allreduce(call_.context, send, recv); code != 0) {
        finish(code);
        return;
    }
    if (staged_recv_ == nullptr) {
        finish(HETCOLL_SUCCESS);
        return;
    }
    state_ = State::kCopyOut;
    start_copy(static_cast<std::byte *>(call_.recv) + call_.gap, first_byte(*staged_recv_),
               call_.span, recv_);
}

// ---- shared pieces ----

void Operation::start_copy(void *to, const void *from, std::size_t bytes, const PointerInfo &device)
{
    if (device_ == nullptr) {
        note(process_.copy_blocking(to, from, bytes, device));
        return;
    }
    Status started = device_->start_copy(to, from, bytes);
    if (started.ok()) {
        copying_ = true;
    } else {
        note(process_.copy_blocking(to, from, bytes, device));
    }
}

bool Operation::copy_done()
{
    if (!copying_) {
        return true;
    }
    Result<bool> done = device_->copy_done();
    if (done.ok() && !*done) {
        return false;
    }
    if (!done.ok()) {
        note(done.take_status());
    }
    copying_ = false;
    return true;
}

// True if the exchange is over; with a network failure the operation is over as well.
bool Operation::exchange_done()
{
    switch (exchange_.step()) {
    case Progress::kPending: return false;
    case Progress::kFailed:
        leave_context();
        static_cast<void>(device_.release()); // a message may still arrive in its memory
        engine_.abandon_messages();
        finish(exchange_.code());
        return true;
    case Progress::kDone: break;
    }
    return true;
}

void Operation::note(Status status) noexcept
{
    if (!status.ok() && failure_.ok()) {
        failure_ = std::move(status);
    }
}

void Operation::finish(int result) noexcept
{
    state_ = State::kDone;
    result_ = result;
    if (result != HETCOLL_SUCCESS) {
        process_.count(HETCOLL_CALLS_FAILED);
    }
}

void Operation::finish_failed()
{
    log(process_.log(), 0, "hetcoll: MPI_Allreduce failed, the receive buffer is undefined: %s",
        failure_.ok() ? "a driver call failed on another rank, which says more"
                      : failure_.message().c_str());
    const bool memory = !failure_.ok() && failure_.code() == Errc::kNoMemory;
    finish(memory ? HETCOLL_ERROR_NO_MEMORY : HETCOLL_ERROR_DEVICE);
}

} // namespace hetcoll
