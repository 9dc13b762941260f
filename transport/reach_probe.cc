#include "transport/reach_probe.h"

#include <sys/random.h>

#include <cstring>
#include <utility>

namespace hetcoll {
namespace {

constexpr int kWords = 64;
constexpr std::size_t kBytes = kWords * sizeof(std::uint64_t);

// The content that belongs to a seed (splitmix64).
void fill(std::uint64_t *words, std::uint64_t seed)
{
    for (int i = 0; i < kWords; ++i) {
        seed += 0x9e3779b97f4a7c15u;
        std::uint64_t bits = (seed ^ seed >> 30) * 0xbf58476d1ce4e5b9u;
        bits = (bits ^ bits >> 27) * 0x94d049bb133111ebu;
        words[i] = bits ^ bits >> 31;
    }
}

// One small copy at a time between device memory and pinned memory. Not waited for but at the end.
class SmallCopy {
public:
    static Result<SmallCopy> create(std::shared_ptr<Device> device);
    SmallCopy(SmallCopy &&) noexcept = default;
    SmallCopy &operator=(SmallCopy &&) = delete;
    ~SmallCopy();

    [[nodiscard]] std::uint64_t *words() const noexcept
    {
        return static_cast<std::uint64_t *>(pinned_.get());
    }
    Status start(void *to, const void *from);
    [[nodiscard]] Result<bool> is_done();
    [[nodiscard]] Device &device() const noexcept { return *device_; }

private:
    explicit SmallCopy(std::shared_ptr<Device> device) : device_(std::move(device)) {}

    std::shared_ptr<Device> device_; // first: outlives what was made in it
    PinnedMemory pinned_;            // before the stream: freed after it
    StreamHandle stream_;
    EventHandle done_;
    bool running_ = false;
};

Status enter(const ContextScope &scope, const Device &device)
{
    return driver_status(device.driver(), scope.result(), "cuCtxPushCurrent",
                         "trying whether GPUs reach each other");
}

Result<SmallCopy> SmallCopy::create(std::shared_ptr<Device> device)
{
    SmallCopy copy(std::move(device));
    const Device &on = *copy.device_;
    const ContextScope scope(on.driver(), on.context());
    if (Status status = enter(scope, on); !status.ok()) {
        return status;
    }
    auto pinned = on.make_pinned(kBytes);
    if (!pinned.ok()) {
        return pinned.take_status();
    }
    auto stream = on.make_stream();
    if (!stream.ok()) {
        return stream.take_status();
    }
    auto event = on.make_event();
    if (!event.ok()) {
        return event.take_status();
    }
    copy.pinned_ = std::move(*pinned);
    copy.stream_ = std::move(*stream);
    copy.done_ = std::move(*event);
    return copy;
}

SmallCopy::~SmallCopy()
{
    if (device_ == nullptr || !running_ || !device_->is_alive()) {
        return;
    }
    const ContextScope scope(device_->driver(), device_->context());
    if (scope.result() == CUDA_SUCCESS) {
        device_->driver().cuStreamSynchronize(stream_.get());
    }
}

Status SmallCopy::start(void *to, const void *from)
{
    const ContextScope scope(device_->driver(), device_->context());
    if (Status status = enter(scope, *device_); !status.ok()) {
        return status;
    }
    if (Status status = device_->copy_async(to, from, kBytes, stream_.get()); !status.ok()) {
        return status;
    }
    running_ = true;
    return device_->record(done_, stream_.get());
}

Result<bool> SmallCopy::is_done()
{
    const ContextScope scope(device_->driver(), device_->context());
    if (Status status = enter(scope, *device_); !status.ok()) {
        return status;
    }
    auto done = device_->is_done(done_);
    running_ = running_ && !(done.ok() && *done);
    return done;
}

} // namespace

struct ReachTarget::Impl {
    DeviceMemory memory; // before the copy: freed after it is done
    SmallCopy copy;
    ReachOffer offer{};
    bool ready = false;
};

ReachTarget::ReachTarget(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ReachTarget::~ReachTarget() = default;

Result<std::unique_ptr<ReachTarget>> ReachTarget::create(std::shared_ptr<Device> device,
                                                         Exporter &exporter)
{
    auto copy = SmallCopy::create(device);
    if (!copy.ok()) {
        return copy.take_status();
    }
    const ContextScope scope(device->driver(), device->context());
    if (Status status = enter(scope, *device); !status.ok()) {
        return status;
    }
    auto memory = device->make_memory(kBytes);
    if (!memory.ok()) {
        return memory.take_status();
    }
    void *const at = reinterpret_cast<void *>(static_cast<std::uintptr_t>(memory->get()));
    auto allocation = query_allocation(device->driver(), at);
    if (!allocation.ok()) {
        return allocation.take_status();
    }
    auto impl =
        std::make_unique<Impl>(Impl{.memory = std::move(*memory), .copy = std::move(*copy)});
    impl->offer.buffer = exporter.describe(*allocation, at, kBytes);
    if (impl->offer.buffer.kind == SharedKind::kNone) {
        return error(Errc::kUnsupported, "device memory cannot be shared with other processes: %s",
                     reason(impl->offer.buffer.why));
    }
    if (getrandom(&impl->offer.seed, sizeof impl->offer.seed, GRND_NONBLOCK) !=
        sizeof impl->offer.seed) {
        impl->offer.seed = impl->offer.buffer.buffer_id; // not the previous one's at least
    }
    fill(impl->copy.words(), impl->offer.seed);
    if (Status status = impl->copy.start(at, impl->copy.words()); !status.ok()) {
        return status;
    }
    return std::unique_ptr<ReachTarget>(new ReachTarget(std::move(impl)));
}

Result<bool> ReachTarget::step()
{
    if (!impl_->ready) {
        auto done = impl_->copy.is_done();
        if (!done.ok()) {
            return done;
        }
        impl_->ready = *done;
    }
    return impl_->ready;
}

const ReachOffer &ReachTarget::offer() const noexcept { return impl_->offer; }

struct ReachProbe::Impl {
    Impl(PeerMemory &peers, SmallCopy made) : memory(peers), copy(std::move(made)) {}

    PeerMemory &memory;
    SmallCopy copy;
    PeerLease lease;
    ProcessIdentity owner{};
    ReachOffer offer{};
    bool copying = false;
    Reach verdict = Reach::kPending;
    Status why;

    Status step();
    [[nodiscard]] Status compare() const;
};

ReachProbe::ReachProbe(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ReachProbe::~ReachProbe() = default;

Result<std::unique_ptr<ReachProbe>> ReachProbe::create(std::shared_ptr<Device> device,
                                                       PeerMemory &memory)
{
    auto copy = SmallCopy::create(std::move(device));
    if (!copy.ok()) {
        return copy.take_status();
    }
    return std::unique_ptr<ReachProbe>(
        new ReachProbe(std::make_unique<Impl>(memory, std::move(*copy))));
}

void ReachProbe::start(const ProcessIdentity &owner, const ReachOffer &offer)
{
    impl_->lease.release();
    impl_->owner = owner;
    impl_->offer = offer;
    impl_->copying = false;
    impl_->verdict = Reach::kPending;
    impl_->why = Status();
}

// Sets verdict to kYes, leaves it, or fails.
Status ReachProbe::Impl::step()
{
    if (copying) {
        auto done = copy.is_done();
        if (!done.ok()) {
            return done.take_status();
        }
        if (!*done) {
            return {};
        }
        verdict = Reach::kYes;
        return compare();
    }
    auto at = memory.map(owner, offer.buffer, copy.device(), lease);
    if (!at.ok()) {
        return at.take_status();
    }
    if (*at == nullptr) {
        return {};
    }
    std::memset(copy.words(), 0, kBytes);
    copying = true;
    return copy.start(copy.words(), *at);
}

Status ReachProbe::Impl::compare() const
{
    std::uint64_t expected[kWords];
    fill(expected, offer.seed);
    if (std::memcmp(copy.words(), expected, kBytes) == 0) {
        return {};
    }
    return error(Errc::kUnsupported,
                 "memory of process %d that was mapped reads as something else: the GPUs do not "
                 "reach each other's memory, see the IOMMU and ACS settings of the machine",
                 owner.pid);
}

Reach ReachProbe::step() noexcept
{
    if (impl_->verdict == Reach::kPending) {
        impl_->why = impl_->step();
        if (!impl_->why.ok()) {
            impl_->verdict = Reach::kNo;
        }
        if (impl_->verdict != Reach::kPending) { // its owner is about to free it
            impl_->lease.release();
            impl_->memory.close_buffer(impl_->owner, impl_->offer.buffer.buffer_id);
        }
    }
    return impl_->verdict;
}

const Status &ReachProbe::why() const noexcept { return impl_->why; }

} // namespace hetcoll
