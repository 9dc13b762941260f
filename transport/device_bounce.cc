#include "transport/device_bounce.h"

#include <algorithm>

namespace hetcoll {

namespace {

// Two flags, at 0 and 128, and what keeps them apart from the rest; trial() is between them, and
// the end is free for a message in the staging memory to begin there.
constexpr std::size_t kFlagBytes = 256;
static_assert(2 * DeviceBounce::kTrialBytes <= kFlagBytes / 2);
// A kernel that fails never sets its flag, so the stream is asked too, now and then.
constexpr unsigned kPollsPerQuery = 256;

} // namespace

Result<std::unique_ptr<DeviceBounce>> DeviceBounce::create(std::shared_ptr<Device> owner,
                                                           std::size_t slot_bytes,
                                                           std::size_t staging_bytes, Slots slots,
                                                           std::optional<StreamOrder> order)
{
    const Device &device = *owner;
    std::unique_ptr<DeviceBounce> bounce(
        new DeviceBounce(std::move(owner), slot_bytes, slots, order.value_or(device.order())));
    const std::size_t slots_bytes = kBounceSlots * slot_bytes;
    staging_bytes = (staging_bytes + 255) / 256 * 256; // the slots behind it are aligned

    const std::size_t pinned_slots = slots == Slots::kPinned ? 2 * slots_bytes : 0;
    auto pinned = device.make_pinned(kFlagBytes + staging_bytes + pinned_slots);
    if (!pinned.ok()) {
        return pinned.take_status();
    }
    bounce->pinned_ = std::move(*pinned);
    bounce->flag_ = static_cast<std::uint32_t *>(bounce->pinned_.get());
    *bounce->flag_ = 0;
    bounce->out_of_range_ = bounce->flag_ + kFlagBytes / 2 / sizeof(std::uint32_t);
    *bounce->out_of_range_ = 0;
    bounce->staging_ = static_cast<std::byte *>(bounce->pinned_.get()) + kFlagBytes;
    if (slots == Slots::kPinned) {
        bounce->recv_slots_ = bounce->staging_ + staging_bytes;
    } else {
        auto scratch = device.make_memory(slots == Slots::kDirect ? slots_bytes : 2 * slots_bytes);
        if (!scratch.ok()) {
            return scratch.take_status();
        }
        bounce->scratch_ = std::move(*scratch);
        bounce->recv_slots_ = reinterpret_cast<std::byte *>(bounce->scratch_.get());
    }
    bounce->send_slots_ = slots == Slots::kDirect ? nullptr : bounce->recv_slots_ + slots_bytes;

    for (StreamHandle *stream : {&bounce->out_, &bounce->in_}) {
        auto made = device.make_stream(bounce->order_);
        if (!made.ok()) {
            return made.take_status();
        }
        *stream = std::move(*made);
    }
    static_cast<void>(bounce->make_arrived()); // without memory for it now, the first kernel tries
    for (auto *events : {&bounce->read_done_, &bounce->apply_done_}) {
        if (Status status = bounce->make_events(*events, kBounceSlots); !status.ok()) {
            return status;
        }
    }
    auto copied = device.make_event();
    if (!copied.ok()) {
        return copied.take_status();
    }
    bounce->copy_done_ = std::move(*copied);
    return bounce;
}

DeviceBounce::~DeviceBounce() { finish(); }

void DeviceBounce::finish() noexcept
{
    if (!device_->is_alive()) {
        return; // the context took everything along
    }
    static_cast<void>(enter()); // the driver waits for a stream from any context
    const auto wait = [this](const StreamHandle &stream) {
        if (stream.get() != nullptr) {
            device_->driver().cuStreamSynchronize(stream.get());
        }
    };
    wait(out_);
    wait(in_);
    for (const StreamHandle &stream : pull_streams_) {
        wait(stream);
    }
}

Status DeviceBounce::divide(int slots, int channels)
{
    slot_bytes_ = slot_bytes_of(slots_bytes_, slots);
    const auto wanted = static_cast<std::size_t>(channels);
    streams_per_channel_ = wanted == 0 ? 1 : std::max<std::size_t>(kWindowSlots / wanted, 1);
    if (static_cast<std::size_t>(slots) <= read_done_.size() && wanted <= pulls_.size()) {
        return {};
    }
    Status status = enter();
    for (auto *events : {&read_done_, &apply_done_}) {
        if (status.ok()) {
            status = make_events(*events, slots);
        }
    }
    return status.ok() ? make_channels(wanted) : std::move(status);
}

Status DeviceBounce::reserve()
{
    shares_pull_streams_ = true;
    Status status = enter();
    for (auto *events : {&read_done_, &apply_done_}) {
        if (status.ok()) {
            status = make_events(*events, kMaxBounceSlots);
        }
    }
    if (status.ok()) {
        status = make_channels(kReservedChannels);
    }
    if (status.ok()) {
        status = make_arrived();
    }
    has_all_ = status.ok();
    return status;
}

Status DeviceBounce::make_channels(std::size_t channels)
{
    constexpr std::size_t kShared = 4;
    const std::size_t streams = channels == 0 ? 0
                                : shares_pull_streams_
                                    ? kShared
                                    : std::max<std::size_t>(channels, kWindowSlots);
    while (pull_streams_.size() < streams) {
        auto stream = device_->make_stream(order_);
        if (!stream.ok()) {
            return stream.take_status();
        }
        pull_streams_.push_back(std::move(*stream));
    }
    while (pulls_.size() < channels) {
        std::vector<EventHandle> events;
        if (Status status = make_events(events, kWindowSlots); !status.ok()) {
            return status;
        }
        std::move(events.begin(), events.end(), pulls_.emplace_back().begin());
    }
    return {};
}

Status DeviceBounce::make_events(std::vector<EventHandle> &events, int count) const
{
    while (events.size() < static_cast<std::size_t>(count)) {
        auto made = device_->make_event();
        if (!made.ok()) {
            return made.take_status();
        }
        events.push_back(std::move(*made));
    }
    return {};
}

Status DeviceBounce::enter()
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

// Whether what was recorded is complete. Asking needs no context, but it must not be in a capture
// that forbids it, and enter() sees to that.
Result<bool> DeviceBounce::is_done(const EventHandle &event)
{
    if (Status status = enter(); !status.ok()) {
        return status;
    }
    return device_->is_done(event);
}

Status DeviceBounce::start_copy(void *to, const void *from, std::size_t bytes)
{
    if (Status status = enter(); !status.ok()) {
        return status;
    }
    if (Status status = device_->copy_async(to, from, bytes, out_.get()); !status.ok()) {
        return status;
    }
    return device_->record(copy_done_, out_.get());
}

Status DeviceBounce::start_copy_elements(void *to, const void *from, std::size_t count,
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

Result<bool> DeviceBounce::copy_done() { return is_done(copy_done_); }

// The marker is on our stream, which waits for the legacy stream alone. The legacy stream itself
// would wait for every blocking stream of the process, on which another library's kernel may be
// waiting for what a peer starts after this call. Asking fails while a blocking stream captures.
Result<bool> DeviceBounce::start_marker()
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

Status DeviceBounce::make_arrived()
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

Result<Signal> DeviceBounce::next_signal()
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

Status DeviceBounce::start_kernel(ReduceOp op, ElementKind kind, const ReduceOutputs &outputs,
                                  const ReduceInputs &inputs, std::size_t count)
{
    Result<Signal> signal = next_signal();
    if (!signal.ok()) {
        return signal.take_status();
    }
    return device_->reduce_many_async(op, kind, outputs, inputs, count, *signal, in_.get());
}

Status DeviceBounce::start_copy_kernel(void *to, const void *from, std::size_t bytes)
{
    Result<Signal> signal = next_signal();
    if (!signal.ok()) {
        return signal.take_status();
    }
    return device_->copy_kernel_async(to, from, bytes, *signal, in_.get());
}

Status DeviceBounce::start_convert(FloatConversion conversion, ElementKind kind, void *dst,
                                   const void *src, std::size_t count)
{
    Result<Signal> signal = next_signal();
    if (!signal.ok()) {
        return signal.take_status();
    }
    return device_->convert_floats_async(conversion, kind, dst, src, count, *signal, in_.get());
}

Status DeviceBounce::start_to_fixed(ElementKind kind, void *dst, const void *src, std::size_t count,
                                    const FixedPoint &how)
{
    Result<Signal> signal = next_signal();
    if (!signal.ok()) {
        return signal.take_status();
    }
    __atomic_store_n(out_of_range_, 0u, __ATOMIC_RELAXED);
    return device_->to_fixed_async(kind, dst, src, count, how, out_of_range_, *signal, in_.get());
}

Status DeviceBounce::start_from_fixed(ElementKind kind, void *dst, std::size_t count,
                                      const FixedPoint &how)
{
    Result<Signal> signal = next_signal();
    if (!signal.ok()) {
        return signal.take_status();
    }
    return device_->from_fixed_async(kind, dst, dst, count, how, *signal, in_.get());
}

Result<bool> DeviceBounce::kernel_done()
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

Status DeviceBounce::start_read(int slot, const void *from, std::size_t bytes)
{
    source_[slot] = from;
    if (Status status = enter(); !status.ok()) {
        return status;
    }
    if (!direct()) {
        void *to = send_slots_ + slot * slot_bytes_;
        if (Status status = device_->copy_async(to, from, bytes, out_.get()); !status.ok()) {
            return status;
        }
    }
    // Our stream is ordered after the application's work on the legacy stream. Open MPI's reading
    // of the memory is not, so a direct message waits for our stream too.
    return device_->record(read_done_[slot], out_.get());
}

Result<bool> DeviceBounce::read_done(int slot) { return is_done(read_done_[slot]); }

const void *DeviceBounce::message(int slot) const noexcept
{
    return direct() ? source_[slot] : send_slots_ + slot * slot_bytes_;
}

void *DeviceBounce::landing(int slot) noexcept { return recv_slots_ + slot * slot_bytes_; }

Status DeviceBounce::start_apply(int slot, const Apply &apply)
{
    const void *received = landing(slot);
    Status status = enter();
    if (!status.ok()) {
        return status;
    }
    if (!apply.reduce) {
        status = device_->copy_async(apply.dst, received, apply.count * element_bytes(apply.kind),
                                     in_.get());
    } else if (apply.received_first) {
        status = device_->reduce_async(apply.op, apply.kind, apply.dst, received, apply.local,
                                       apply.count, in_.get());
    } else {
        status = device_->reduce_async(apply.op, apply.kind, apply.dst, apply.local, received,
                                       apply.count, in_.get());
    }
    if (!status.ok()) {
        return status;
    }
    return device_->record(apply_done_[slot], in_.get());
}

Status DeviceBounce::start_fold(int slot, const Pull &fold)
{
    Status status = enter();
    if (status.ok()) {
        status = device_->reduce_many_async(fold.op, fold.kind, {{fold.dst}, 1}, fold.inputs,
                                            fold.count, Signal{}, in_.get());
    }
    return status.ok() ? device_->record(apply_done_[slot], in_.get()) : std::move(status);
}

Result<bool> DeviceBounce::apply_done(int slot) { return is_done(apply_done_[slot]); }

Status DeviceBounce::start_pull(int channel, int slot, const Pull &pull)
{
    const ReduceInputs &in = pull.inputs;
    Status status = enter();
    if (!status.ok()) {
        return status;
    }
    const std::size_t turn = static_cast<std::size_t>(pull.step) % streams_per_channel_;
    const std::size_t number = static_cast<std::size_t>(channel) * streams_per_channel_ + turn;
    CUstream stream = pull_streams_[number % pull_streams_.size()].get();
    if (in.count == 1) {
        status = device_->copy_async(pull.dst, in.input[0], pull.count * element_bytes(pull.kind),
                                     stream);
    } else if (in.count == 2) {
        status = device_->reduce_async(pull.op, pull.kind, pull.dst, in.input[0], in.input[1],
                                       pull.count, stream);
    } else {
        status = device_->reduce_many_async(pull.op, pull.kind, {{pull.dst}, 1}, in, pull.count,
                                            Signal{}, stream);
    }
    if (!status.ok()) {
        return status;
    }
    return device_->record(pulls_[channel][slot], stream);
}

Result<bool> DeviceBounce::pull_done(int channel, int slot)
{
    return is_done(pulls_[channel][slot]);
}

} // namespace hetcoll
