// coll_hetcoll_fixed_point: the floats of a sum become integers in the receive buffer, an allreduce
// sums these in place, by whatever way any integers take, and at its end they become floats again.
// So the result has the same bits whatever the algorithm, and no way need know. Each rank converts
// its own numbers; whether one of them is out of range all learn in the first meeting. Converting
// back can fail too, so the ranks meet once more after that.
#include "base/counted.h"
#include "base/spare_memory.h"
#include "engine/call/protocols.h"

#include <algorithm>
#include <memory>

namespace hetcoll {
namespace {

// The call that is made: an in-place sum of integers. Open MPI cannot make it, so it is never asked
// to.
hetcoll_call integer_call(const hetcoll_call &given) noexcept
{
    hetcoll_call call = given;
    call.send = given.recv;
    call.kind = static_cast<int>(integer_of(static_cast<ElementKind>(given.kind)));
    call.previous_allreduce = nullptr;
    return call;
}

struct Conversion {
    ElementKind real;
    FixedPoint how;
    const void *send;
    PointerInfo send_info;
    bool on_gpu = false;
};

enum class Direction : std::uint8_t { kToFixed, kFromFixed };

// Where the numbers come from, and whether this rank's GPU can convert them.
Conversion look_at_numbers(Call &call, const hetcoll_call &given)
{
    Communicator &comm = call.comm;
    const auto real = static_cast<ElementKind>(given.kind);
    Conversion numbers{.real = real,
                       .how = fixed_point(real, comm.agreed().fixed_point_bits(), comm.p2p().size),
                       .send = given.send,
                       .send_info = call.buffers.recv};
    if (given.send != given.recv) {
        find(call, given.send, numbers.send_info);
    }
    if (call.failure.ok() && on_device(numbers.send_info) &&
        call.gpus.contexts().are_waited_for()) {
        call.note(call.gpus.contexts().synchronize(numbers.send_info));
    }
    if (call.failure.ok() && call.work.device != nullptr && on_device(call.buffers.recv) &&
        call.work.device->enter().ok()) {
        const Status loaded = call.work.device->kernels().load();
        numbers.on_gpu = loaded.ok();
        if (!loaded.ok()) {
            log(call.report.log(), 1,
                "hetcoll: a rank converts to fixed point on the host, which is slower: %s",
                loaded.message().c_str());
        }
    }
    if (!call.failure.ok()) {
        call.flags = kFailed;
    }
    return numbers;
}

// Not in the memory and context in which the result is: copied there before it is converted.
bool is_foreign(const Call &call, const Conversion &numbers) noexcept
{
    const PointerInfo &from = numbers.send_info, &to = call.buffers.recv;
    return numbers.send != call.args->recv &&
           (on_device(from) != on_device(to) ||
            (on_device(to) &&
             (!numbers.on_gpu || from.device != to.device || from.context != to.context)));
}

// Device memory without our kernels, piece by piece. Blocks.
Status convert_on_host(Call &call, const Conversion &numbers, Direction direction)
{
    constexpr std::size_t kPieceBytes = 1u << 20;
    const std::size_t element = element_bytes(numbers.real);
    const std::unique_ptr<std::byte[]> piece = try_allocate(std::min(call.bytes, kPieceBytes));
    if (piece == nullptr) {
        return error(Errc::kNoMemory, "out of host memory to convert numbers to fixed point");
    }
    for (std::size_t at = 0; at < call.bytes; at += kPieceBytes) {
        const std::size_t bytes = std::min(call.bytes - at, kPieceBytes);
        std::byte *const buffer = static_cast<std::byte *>(call.args->recv) + at;
        Status copied =
            call.gpus.contexts().copy_blocking(piece.get(), buffer, bytes, call.buffers.recv);
        if (!copied.ok()) {
            return copied;
        }
        if (direction == Direction::kFromFixed) {
            from_fixed(numbers.real, piece.get(), piece.get(), bytes / element, numbers.how);
        } else if (!to_fixed(numbers.real, piece.get(), piece.get(), bytes / element,
                             numbers.how)) {
            call.flags |= kOutOfRange;
        }
        copied = call.gpus.contexts().copy_blocking(buffer, piece.get(), bytes, call.buffers.recv);
        if (!copied.ok()) {
            return copied;
        }
    }
    return {};
}

void start_to_fixed(Call &call, const Conversion &numbers, const void *from)
{
    if (!call.failure.ok()) {
        return;
    }
    const hetcoll_call &args = *call.args;
    if (numbers.on_gpu) {
        Status started = call.work.device->start_to_fixed(numbers.real, args.recv, from, args.count,
                                                          numbers.how);
        call.work.kernel_runs = started.ok();
        call.note(std::move(started));
    } else if (on_device(call.buffers.recv)) {
        call.note(convert_on_host(call, numbers, Direction::kToFixed));
    } else if (!to_fixed(numbers.real, args.recv, from, args.count, numbers.how)) {
        call.flags |= kOutOfRange;
    }
}

void start_from_fixed(Call &call, const Conversion &numbers)
{
    const hetcoll_call &args = *call.args;
    if (!call.failure.ok()) {
        return;
    }
    if (!on_device(call.buffers.recv)) {
        from_fixed(numbers.real, args.recv, args.recv, args.count, numbers.how);
    } else if (numbers.on_gpu) {
        Status started =
            call.work.device->start_from_fixed(numbers.real, args.recv, args.count, numbers.how);
        call.work.kernel_runs = started.ok();
        call.note(std::move(started));
    } else {
        call.note(convert_on_host(call, numbers, Direction::kFromFixed));
    }
}

// All ranks fail so, after the same meeting.
void say_out_of_range(const Call &call, const FixedPoint &how)
{
    const hetcoll_p2p &p2p = call.comm.p2p();
    if (p2p.rank == 0) {
        log(call.report.log(), 0,
            "hetcoll: %s failed, the receive buffer is undefined: an element of some rank is no "
            "number or beyond +-%g, the largest that %s can add with "
            "coll_hetcoll_fixed_point %d: scale the values down, or set fewer bits",
            call.mpi_name(), how.limit / how.scale, counted(p2p.size, "rank").c_str(),
            call.comm.agreed().fixed_point_bits());
    }
    if (any(call.flags, kOutOfRange)) {
        log(call.report.log(), 1, "hetcoll: rank %d of the communicator has such an element",
            p2p.rank);
    }
}

} // namespace

Task<int> fixed_point(Call &call, const hetcoll_call &given)
{
    const hetcoll_call integers = integer_call(given);
    call.args = &integers;
    look_at_buffers(call);
    co_await until([&call] { return try_borrow_bounce(call); });
    const Conversion numbers = look_at_numbers(call, given);

    const bool foreign = is_foreign(call, numbers);
    if (foreign) {
        co_await until(
            [&] { return !on_device(numbers.send_info) || poll_work(call, numbers.send_info); });
        if (call.failure.ok()) {
            const PointerInfo &device =
                on_device(call.buffers.recv) ? call.buffers.recv : numbers.send_info;
            call.start_copy(integers.recv, numbers.send, call.bytes, device);
        }
        co_await call.copied();
    }
    start_to_fixed(call, numbers, foreign ? integers.recv : numbers.send);
    co_await call.kernel_done();
    if (numbers.on_gpu && call.failure.ok() && call.work.device->out_of_range()) {
        call.flags |= kOutOfRange;
    }

    call.closes_later = true;
    const int summed = co_await allreduce(call);
    call.closes_later = false;
    if (summed == HETCOLL_ERROR_RANGE) {
        say_out_of_range(call, numbers.how);
    }
    if (summed != HETCOLL_SUCCESS) {
        co_return summed;
    }
    start_from_fixed(call, numbers);
    co_await call.kernel_done();
    if (call.comm.p2p().size == 1 || !any(call.report.record.memory, kDeviceMemory)) {
        co_return call.result(); // nobody's can fail
    }
    const Flags closed = co_await call.agree();
    co_return any(closed, kFailed) ? call.fail_together(closed) : HETCOLL_SUCCESS;
}

} // namespace hetcoll
