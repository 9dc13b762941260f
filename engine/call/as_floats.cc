// Sums of 8-bit floats that no kernel, and no processor, adds in one pass: with three or two bits
// of fraction a sum that is rounded after every addition is soon lost. The numbers become floats in
// memory of ours, an allreduce sums these in place, by whatever way any floats take, and at its end
// they are rounded. All ranks know by then that all of them know the op, and have agreed to go this
// way. Each rank converts its own numbers, on its GPU or, if that cannot, on the host; as the copy
// of a result can fail, the ranks meet once more at the end.
#include "engine/call/loan.h"
#include "engine/call/protocols.h"

#include <algorithm>
#include <cstring>

namespace hetcoll {
namespace {

// Elements that are floats at the same time: 64 MiB. The same on every rank.
constexpr std::size_t kPiece = std::size_t{16} << 20;

// Where a call's numbers are, and their floats.
struct Numbers {
    ElementKind kind;
    std::size_t count;
    const std::byte *in;
    std::byte *out;
    Buffers buffers;
    Loan<Scratch> on_device;
    Loan<StagingMemory> on_host; // and behind the floats the numbers, where a buffer is a GPU's
    bool by_kernel = false;

    [[nodiscard]] std::size_t most() const noexcept { return std::min(count, kPiece); }
    [[nodiscard]] void *floats() const noexcept
    {
        return by_kernel ? on_device->data() : on_host->data();
    }
    [[nodiscard]] std::byte *staged() const noexcept
    {
        return on_host->data() + most() * sizeof(float);
    }
};

// Memory for the floats: where the result is, if this rank's GPU can convert them. While a queued
// call is pending no device memory is made, so its floats may have to be on the host.
void borrow_floats(Call &call, Numbers &numbers)
{
    Status why;
    if (call.work.device != nullptr && on_device(numbers.buffers.recv) &&
        call.work.device->enter().ok()) {
        why = call.work.device->kernels().load();
        if (why.ok()) {
            numbers.on_device =
                loan(call,
                     call.gpus.pool().borrow_scratch(call.work.device->device(),
                                                     numbers.most() * sizeof(float)),
                     why);
        }
        numbers.by_kernel = numbers.on_device != nullptr;
    }
    if (numbers.by_kernel) {
        return;
    }
    if (!why.ok()) {
        log(call.report.log(), 1,
            "hetcoll: a rank makes floats of 8-bit floats on the host, which is slower: %s",
            why.message().c_str());
        why = {};
    }
    numbers.on_host = loan(
        call, call.gpus.pool().borrow_staging(nullptr, numbers.most() * (sizeof(float) + 1)), why);
    call.note(std::move(why));
}

// The input to where a kernel, or the host, can read it: to the result, if it is not there.
void start_bringing(Call &call, Numbers &numbers)
{
    if (call.failure.ok() && numbers.buffers.is_foreign()) {
        const PointerInfo &device =
            numbers.buffers.any_device() ? numbers.buffers.device() : numbers.buffers.recv;
        call.start_copy(numbers.out, numbers.in, numbers.count, device);
        numbers.in = numbers.out;
    }
}

void start_kernel(Call &call, const Numbers &numbers, FloatConversion conversion, void *to,
                  const void *from, std::size_t count)
{
    Status started = call.work.device->start_convert(conversion, numbers.kind, to, from, count);
    call.work.kernel_runs = started.ok();
    call.note(std::move(started));
}

// A device buffer that is converted on the host is copied there first.
void start_reading(Call &call, const Numbers &numbers, std::size_t first, std::size_t count)
{
    if (call.failure.ok() && !numbers.by_kernel && on_device(numbers.buffers.recv)) {
        call.start_copy(numbers.staged(), numbers.in + first, count, numbers.buffers.recv);
    }
}

void start_widening(Call &call, const Numbers &numbers, std::size_t first, std::size_t count)
{
    if (!call.failure.ok()) {
        return;
    }
    if (numbers.by_kernel) {
        start_kernel(call, numbers, FloatConversion::kWiden, numbers.floats(), numbers.in + first,
                     count);
        return;
    }
    const std::byte *const from =
        on_device(numbers.buffers.recv) ? numbers.staged() : numbers.in + first;
    convert_floats(FloatConversion::kWiden, numbers.kind, numbers.floats(), from, count);
}

void start_narrowing(Call &call, const Numbers &numbers, std::size_t first, std::size_t count)
{
    std::byte *const to = numbers.out + first;
    if (!call.failure.ok()) {
        return;
    }
    if (numbers.by_kernel) {
        start_kernel(call, numbers, FloatConversion::kNarrow, to, numbers.floats(), count);
    } else if (!on_device(numbers.buffers.recv)) {
        convert_floats(FloatConversion::kNarrow, numbers.kind, to, numbers.floats(), count);
    } else {
        convert_floats(FloatConversion::kNarrow, numbers.kind, numbers.staged(), numbers.floats(),
                       count);
        call.start_copy(to, numbers.staged(), count, numbers.buffers.recv);
    }
}

// The call that is made: an in-place sum of floats. Open MPI cannot make it, so it is never asked
// to.
hetcoll_call float_call(const hetcoll_call &given, const Numbers &numbers,
                        std::size_t count) noexcept
{
    hetcoll_call call = given;
    call.send = call.recv = numbers.on_device || numbers.on_host ? numbers.floats() : nullptr;
    call.kind = HETCOLL_FLOAT32;
    call.user_op = 0;
    call.count = count;
    call.span = count * sizeof(float);
    call.previous_allreduce = nullptr;
    return call;
}

} // namespace

bool is_float8_sum(const Call &call) noexcept
{
    return call.args->kind >= 0 && is_float8(call.kind()) && call.op() == ReduceOp::kSumOnce;
}

Task<int> as_floats(Call &call)
{
    const hetcoll_call &given = *call.args;
    call.planner.mapped().release(); // what was made ready for a way that the call does not go
    call.mapped = false;
    Numbers numbers{.kind = call.kind(),
                    .count = given.count,
                    .in = static_cast<const std::byte *>(call.buffers.in),
                    .out = static_cast<std::byte *>(call.buffers.out),
                    .buffers = call.buffers,
                    .on_device = {},
                    .on_host = {}};
    borrow_floats(call, numbers);
    start_bringing(call, numbers);
    co_await call.copied();

    hetcoll_call floats{};
    for (std::size_t first = 0; first < numbers.count; first += kPiece) {
        const std::size_t count = std::min(numbers.count - first, kPiece);
        start_reading(call, numbers, first, count);
        co_await call.copied();
        start_widening(call, numbers, first, count);
        co_await call.kernel_done();

        floats = float_call(given, numbers, count);
        call.args = &floats;
        call.classified.reset();
        call.buffers.input_copied = false;
        look_at_buffers(call);
        call.closes_later = true;
        const int summed = co_await allreduce(call);
        call.closes_later = false;
        if (summed != HETCOLL_SUCCESS) {
            co_return summed;
        }
        start_narrowing(call, numbers, first, count);
        co_await call.kernel_done();
        co_await call.copied();
    }
    call.classified.reset(); // they are the floats'
    if (!any(call.report.record.memory, kDeviceMemory)) {
        co_return call.result(); // nobody's can fail
    }
    const Flags closed = co_await call.agree();
    co_return any(closed, kFailed) ? call.fail_together(closed) : HETCOLL_SUCCESS;
}

} // namespace hetcoll
