// Loans of a call from its process.
#include "engine/call/protocols.h"

namespace hetcoll {
namespace {

// Open MPI 5.0 aborts on memory of pools and of virtual memory management.
Sends sends_of(const Buffers &buffers) noexcept
{
    const auto is_ordinary = [](const PointerInfo &info) {
        return !on_device(info) || info.legacy_ipc;
    };
    return is_ordinary(buffers.send) && is_ordinary(buffers.recv) ? Sends::kDirectIfPossible
                                                                  : Sends::kBounced;
}

std::optional<StreamOrder> order_of(const Call &call) noexcept
{
    return call.is_independent() ? std::optional(StreamOrder::kIndependent) : std::nullopt;
}

// The means of queued calls, if the buffers are where their streams are.
bool take_reserved(Call &call)
{
    Reserved &reserved = call.comm.reserved();
    if (reserved.bounce == nullptr) {
        return false;
    }
    const auto device = call.gpus.contexts().device_of(call.buffers.device());
    if (!device.ok() || &**device != reserved.device()) {
        return false;
    }
    call.work.device = std::move(reserved.bounce);
    call.work.uses_reserved = true;
    return true;
}

// With the kernels of the call if it reduces by them.
Status borrow_bounce(Call &call, Sends sends)
{
    if (call.is_attached() && take_reserved(call)) {
        return call.work.device->enter();
    }
    if (call.is_queued()) {
        return error(Errc::kInvalid, "a buffer of a queued call is in another context than its "
                                     "stream, or the driver has failed there before");
    }
    auto bounce = call.gpus.pool().borrow_device(call.buffers.device(), sends, order_of(call));
    if (!bounce.ok()) {
        return bounce.take_status();
    }
    call.work.device = std::move(*bounce);
    Status entered = call.work.device->enter();
    const bool by_kernels = call.is_collective() ||
                            (call.args->kind >= 0 && call.bytes > call.comm.agreed().small_limit());
    if (!entered.ok() || !by_kernels) {
        return entered;
    }
    return call.work.device->kernels().prepare(call.op(), call.kind());
}

// Whether the work on the legacy stream of the buffer's context is done, or call.work.marker will
// tell. The legacy stream is not idle while any blocking stream has work, another library's kernel,
// too, that may wait for what a peer does after this call. A stream of ours waits for the legacy
// stream's own work alone.
Result<bool> mark(Call &call, const PointerInfo &info)
{
    Pool &pool = call.gpus.pool();
    Result<bool> done = call.gpus.contexts().legacy_work_done(info);
    if (!done.ok() || *done ||
        (call.must_not_wait() && !pool.may_borrow_device(info, Sends::kBounced, order_of(call)))) {
        return done;
    }
    auto borrowed = pool.borrow_device(info, Sends::kBounced, order_of(call));
    if (!borrowed.ok()) { // for lack of memory: the legacy stream is asked again
        return done;
    }
    call.work.marker = std::move(*borrowed);
    return call.work.marker->start_marker();
}

} // namespace

bool try_borrow_bounce(Call &call)
{
    if (call.work.device != nullptr || !call.buffers.any_device() ||
        any(call.flags, kFailed | kMustStage)) {
        return true;
    }
    const Sends sends = call.is_attached() ? Sends::kBounced : sends_of(call.buffers);
    if (!call.is_attached() && call.must_not_wait() &&
        !call.gpus.pool().may_borrow_device(call.buffers.device(), sends, order_of(call))) {
        return false;
    }
    if (sends == Sends::kDirectIfPossible &&
        !call.gpus.direct_messages().has_tried(call.buffers.device())) {
        return false;
    }
    Status problem = borrow_bounce(call, sends);
    if (!problem.ok() && call.is_queued()) { // staging would make memory
        call.note(std::move(problem));
    } else if (!problem.ok()) {
        must_stage(call, problem);
    }
    return true;
}

bool poll_work(Call &call, const PointerInfo &info)
{
    if (!call.failure.ok() || call.is_queued() ||
        call.comm.named_stream().is_named()) { // a stream has got here
        return true;
    }
    Pool &pool = call.gpus.pool();
    Result<bool> done =
        call.work.marker != nullptr ? call.work.marker->copy_done() : mark(call, info);
    if (call.work.marker != nullptr) {
        call.work.marker->leave();
    }
    if (done.ok() && !*done) {
        return false;
    }
    if (!done.ok()) {
        pool.discard(std::move(call.work.marker));
        call.note(done.take_status());
    }
    pool.give_back(std::move(call.work.marker));
    return true;
}

const Scratch *reserved_memory(const Call &call) noexcept
{
    return call.work.uses_reserved ? call.comm.reserved().scratch.get() : nullptr;
}

bool reserved_is_mapped(const Call &call) noexcept { return call.comm.reserved().maps; }

void borrow_for_mixed(Call &call)
{
    if (on_device(call.buffers.recv)) {
        return;
    }
    auto bounce = call.gpus.pool().borrow_host();
    if (bounce.ok()) {
        call.work.host = std::move(*bounce);
    } else {
        call.flags |= kMustStage;
    }
}

bool Call::borrow_frames() noexcept
{
    work.frame_memory = comm.process().frame_memory().borrow();
    if (work.frame_memory == nullptr) {
        return false;
    }
    frames.use(work.frame_memory->bytes());
    return true;
}

// The bounces go back, but for what a persistent call will need again.
void Call::give_back(int result) noexcept
{
    Pool &pool = gpus.pool();
    if (work.host != nullptr) {
        pool.give_back(std::move(work.host));
    }
    if (work.marker != nullptr) {
        pool.give_back(std::move(work.marker));
    }
    if (!failure.ok()) {
        classified.reset();
        pool.discard(std::move(work.device)); // the pool takes nothing back of this device
        return;
    }
    if (result != HETCOLL_SUCCESS) {
        classified.reset();
    }
    if (work.uses_reserved) {
        if (work.device != nullptr) {
            comm.reserved().bounce = std::move(work.device);
        }
        work.uses_reserved = false;
    } else if (!classified) {
        pool.give_back(std::move(work.device));
    }
}

bool Call::is_independent() const noexcept { return comm.named_stream().exists(); }

bool Call::must_not_wait() const noexcept
{
    return !work.uses_reserved && gpus.contexts().queued().any();
}

} // namespace hetcoll
