#include "transport/device_work.h"

#include <new>

namespace hetcoll {
namespace {

// Two flags, at 0 and 128, and what keeps them apart from the rest; trial() is between them, and
// the end is free for a message in the staging memory to begin there.
constexpr std::size_t kFlagBytes = 256;
static_assert(2 * DeviceWork::kTrialBytes <= kFlagBytes / 2);
// A kernel that fails never sets its flag, so the stream is asked too, now and then.
constexpr unsigned kPollsPerQuery = 256;

} // namespace

Result<std::byte *> DeviceWork::make(std::size_t staging_bytes, std::size_t more_bytes)
{
    staging_bytes = (staging_bytes + 255) / 256 * 256;
    auto pinned =
        device_->make_pinned(kFlagBytes + staging_bytes + more_bytes + sizeof(OperandLists));
    if (!pinned.ok()) {
        return pinned.take_status();
    }
    pinned_ = std::move(*pinned);
    flag_ = static_cast<std::uint32_t *>(pinned_.get());
    *flag_ = 0;
    out_of_range_ = flag_ + kFlagBytes / 2 / sizeof(std::uint32_t);
    *out_of_range_ = 0;
    staging_ = static_cast<std::byte *>(pinned_.get()) + kFlagBytes;
    lists_ = new (staging_ + staging_bytes) OperandLists;
    for (StreamHandle *stream : {&out_, &in_}) {
        auto made = device_->make_stream(order_);
        if (!made.ok()) {
            return made.take_status();
        }
        *stream = std::move(*made);
    }
    static_cast<void>(make_arrived()); // without memory for it now, the first kernel tries
    auto copied = device_->make_event();
    if (!copied.ok()) {
        return copied.take_status();
    }
    copy_done_ = std::move(*copied);
    return staging_ + staging_bytes + sizeof(OperandLists);
}

void DeviceWork::finish() noexcept
{
    static_cast<void>(enter()); // the driver waits for a stream from any context
    for (const StreamHandle *stream : {&out_, &in_}) {
        if (stream->get() != nullptr) {
            device_->driver().cuStreamSynchronize(stream->get());
        }
    }
}

Status DeviceWork::enter()
{
    if (!scope_) {
        scope_.emplace(device_->driver(), device_->context());
    }
    Status status = driver_status(device_->driver(), scope_->result(), "cuCtxPushCurrent",
                                  "entering the context of a buffer");
    if (!status.ok()) {
        scope_.reset();
    }
    return status;
}

Result<bool> DeviceWork::is_done(const EventHandle &event)
{
    if (Status status = enter(); !status.ok()) {
        return status;
    }
    return device_->is_done(event);
}

Status DeviceWork::start_copy(void *to, const void *from, std::size_t bytes)
{
    if (Status status = enter(); !status.ok()) {
        return status;
    }
    if (Status status = device_->copy_async(to, from, bytes, out_.get()); !status.ok()) {
        return status;
    }
    return device_->record(copy_done_, out_.get());
}

Result<bool> DeviceWork::copy_done(Linger linger)
{
    return ask_in_visit(linger, [this] { return is_done(copy_done_); });
}

Status DeviceWork::start_copy_elements(void *to, const void *from, std::size_t count,
                                       ElementKind kind)
{
    if (Status status = enter(); !status.ok()) {
        return status;
    }
    if (Status status = device_->copy_elements_async(to, from, count, kind, out_.get());
        !status.ok()) {
        return status;
    }
    return device_->record(copy_done_, out_.get());
}

// The marker is on our stream, which waits for the legacy stream alone. The legacy stream itself
// would wait for every blocking stream of the process, on which another library's kernel may be
// waiting for what a peer starts after this call. Asking fails while a blocking stream captures.
Result<bool> DeviceWork::start_marker()
{
    if (Status status = enter(); !status.ok()) {
        return status;
    }
    if (order_ == StreamOrder::kIndependent) {
        return true;
    }
    if (const auto done = device_->is_idle(CU_STREAM_LEGACY); done.ok() && *done) {
        return true;
    }
    Status recorded = device_->record(copy_done_, out_.get());
    return recorded.ok() ? Result<bool>(false) : Result<bool>(std::move(recorded));
}

Status DeviceWork::make_arrived()
{
    if (arrived_.get() != 0) {
        return {};
    }
    auto zeroed = device_->make_zeroed(sizeof(std::uint32_t), in_.get());
    if (zeroed.ok()) {
        arrived_ = std::move(*zeroed);
    }
    return zeroed.take_status();
}

Result<Signal> DeviceWork::next_signal()
{
    Status status = enter();
    if (status.ok()) {
        status = make_arrived();
    }
    if (!status.ok()) {
        return status;
    }
    polls_ = 0;
    return Signal{.flag = flag_,
                  .arrived = reinterpret_cast<std::uint32_t *>(arrived_.get()),
                  .value = ++flagged_};
}

Status DeviceWork::start_kernel(ReduceOp op, ElementKind kind, const ReduceOutputs &outputs,
                                const ReduceInputs &inputs, std::size_t count)
{
    Result<Signal> signal = next_signal();
    if (!signal.ok()) {
        return signal.take_status();
    }
    return kernels().reduce_many_async(op, kind, outputs, inputs, count, *signal, in_.get());
}

Status DeviceWork::start_convert(FloatConversion conversion, ElementKind kind, void *dst,
                                 const void *src, std::size_t count)
{
    Result<Signal> signal = next_signal();
    if (!signal.ok()) {
        return signal.take_status();
    }
    return kernels().convert_floats_async(conversion, kind, dst, src, count, *signal, in_.get());
}

Status DeviceWork::start_to_fixed(ElementKind kind, void *dst, const void *src, std::size_t count,
                                  const FixedPoint &how)
{
    Result<Signal> signal = next_signal();
    if (!signal.ok()) {
        return signal.take_status();
    }
    __atomic_store_n(out_of_range_, 0u, __ATOMIC_RELAXED);
    return kernels().to_fixed_async(kind, dst, src, count, how, out_of_range_, *signal, in_.get());
}

Status DeviceWork::start_from_fixed(ElementKind kind, void *dst, std::size_t count,
                                    const FixedPoint &how)
{
    Result<Signal> signal = next_signal();
    if (!signal.ok()) {
        return signal.take_status();
    }
    return kernels().from_fixed_async(kind, dst, dst, count, how, *signal, in_.get());
}

Result<bool> DeviceWork::kernel_done()
{
    if (read_flag(flag_) == flagged_) {
        return true;
    }
    if (++polls_ % kPollsPerQuery != 0) {
        return false;
    }
    if (Status status = enter(); !status.ok()) {
        return status;
    }
    return device_->is_idle(in_.get());
}

} // namespace hetcoll
