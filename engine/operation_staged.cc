// What hetcoll does not reduce, and what it cannot reduce now: copied to the host, where the
// previous module reduces it.
#include "engine/flags.h"
#include "engine/operation.h"

namespace hetcoll {
namespace {

constexpr std::size_t kAlignment = 256; // of the driver's allocations

} // namespace

void Operation::begin_staging()
{
    state_ = State::kStageRead;
    serve(any_device()      ? HETCOLL_CALLS_STAGED
          : !runs_on_host() ? HETCOLL_CALLS_PREVIOUS
          : in_order_       ? HETCOLL_CALLS_ORDERED
                            : HETCOLL_CALLS_SMALL);
    if (runs_on_host()) {
        prepare_host();
    }
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

// A nonblocking call is reduced by our own schedule on the host: the previous module takes its tags
// when it is called, and ranks that have got here would call it at different times. So is a sum in
// the order of the ranks: the previous module has its own order.
void Operation::prepare_host()
{
    if (call_.dense == 0) { // with a user-defined op; all ranks hear of it
        note(
            error(Errc::kUnsupported,
                  "a nonblocking or persistent Allreduce with a user-defined op on two bytes takes "
                  "no datatype with holes: use MPI_Allreduce, or a contiguous type"));
    }
    if (host_ != nullptr) {
        return;
    }
    auto bounce = process_.borrow_host();
    if (bounce.ok()) {
        host_ = std::move(*bounce);
    } else {
        note(bounce.take_status());
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
    if ((meeting_.flags() & kFailed) != 0) {
        fail_together();
        return;
    }
    if (runs_on_host()) {
        run_on_host();
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
    copy_staged_out();
}

void Operation::copy_staged_out()
{
    if (staged_recv_ == nullptr) {
        finish(HETCOLL_SUCCESS);
        return;
    }
    state_ = State::kCopyOut;
    start_copy(static_cast<std::byte *>(call_.recv) + call_.gap, first_byte(*staged_recv_),
               call_.span, recv_);
}

// Of a call that runs by messages though the first choice was something else.
Choice Operation::message_choice()
{
    Choice choice = engine_.choice(call_, bytes_, false);
    if (in_order_) {
        choice.algorithm = Algorithm::kOrdered;
    } else if (!contains(kMessageAlgorithms, choice.algorithm)) { // a small call's
        choice = {};
    }
    return choice;
}

void Operation::run_on_host()
{
    state_ = State::kRun;
    const auto data = [this](const std::unique_ptr<StagingMemory> &memory, const void *buffer) {
        return memory ? first_byte(*memory) : static_cast<const std::byte *>(buffer) + call_.gap;
    };
    auto *recv = const_cast<std::byte *>(data(staged_recv_, call_.recv));
    Vectors vectors{
        .send = in_place() ? recv : data(staged_send_, call_.send),
        .recv = recv,
        .count = call_.count,
        .op = op(),
        .kind = kind(),
        .user = {},
    };
    if (!unknown_op_) {
        choice_ = message_choice();
    } else { // the kind says no more than the element's size: not all ranks know the op
        vectors.op = ReduceOp::kSum;
        vectors.kind = ElementKind::kUint16;
        vectors.user = {call_.reduce, call_.context};
        choice_ = {};
    }
    engine_.executor().start(engine_.schedule(choice_, call_.span).schedule, engine_.p2p(),
                             call_.tag, *host_, vectors, choice_.chunk_bytes, !failure_.ok());
}

} // namespace hetcoll
