#include "transport/reach_probe.h"

#include <sys/random.h>

#include <cstring>
#include <new>
#include <span>
#include <utility>

namespace hetcoll {
namespace {

constexpr int kWords = 64;
constexpr std::size_t kBytes = kWords * sizeof(std::uint64_t);
// Behind the content are places for peers to write to. Each takes one by chance, and another one if
// what it wrote is not there: two peers may have had the same place at the same time.
constexpr std::uint64_t kPlaces = 64;
constexpr std::size_t kAll = (1 + kPlaces) * kBytes; // of what is offered
constexpr int kWriteTrials = 4;

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

// `otherwise` if the system has no random number yet.
std::uint64_t random_number(std::uint64_t otherwise)
{
    std::uint64_t number = 0;
    return getrandom(&number, sizeof number, GRND_NONBLOCK) == sizeof number ? number : otherwise;
}

enum class By { kCopy, kKernel };
struct Move {
    void *to;
    const void *from;
    By by;
};

// A few small moves at a time between device memory and pinned memory, one after the other. Not
// waited for but at the end.
class SmallMoves {
public:
    static Result<SmallMoves> create(std::shared_ptr<Device> device);
    SmallMoves(SmallMoves &&) noexcept = default;
    SmallMoves &operator=(SmallMoves &&) = delete;
    ~SmallMoves();

    // Pinned memory of kBytes.
    static constexpr int kAreas = 3;
    [[nodiscard]] std::uint64_t *area(int number) const noexcept
    {
        return static_cast<std::uint64_t *>(pinned_.get()) + number * kWords;
    }
    Status start(std::span<const Move> moves);
    [[nodiscard]] Result<bool> is_done();
    [[nodiscard]] Device &device() const noexcept { return *device_; }

private:
    explicit SmallMoves(std::shared_ptr<Device> device) : device_(std::move(device)) {}
    Status start_one(const Move &move);

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

Result<SmallMoves> SmallMoves::create(std::shared_ptr<Device> device)
{
    SmallMoves made(std::move(device));
    const Device &on = *made.device_;
    const ContextScope scope(on.driver(), on.context());
    if (Status status = enter(scope, on); !status.ok()) {
        return status;
    }
    auto pinned = on.make_pinned(kAreas * kBytes);
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
    made.pinned_ = std::move(*pinned);
    made.stream_ = std::move(*stream);
    made.done_ = std::move(*event);
    return made;
}

SmallMoves::~SmallMoves()
{
    if (device_ == nullptr || !running_ || !device_->is_alive()) {
        return;
    }
    const ContextScope scope(device_->driver(), device_->context());
    if (scope.result() == CUDA_SUCCESS) {
        device_->driver().cuStreamSynchronize(stream_.get());
    }
}

// Without kernels there are only copies, in calls too.
Status SmallMoves::start_one(const Move &move)
{
    if (move.by == By::kKernel &&
        device_->kernels().copy_async(move.to, move.from, kBytes, Signal{}, stream_.get()).ok()) {
        return {};
    }
    return device_->copy_async(move.to, move.from, kBytes, stream_.get());
}

Status SmallMoves::start(std::span<const Move> moves)
{
    const ContextScope scope(device_->driver(), device_->context());
    if (Status status = enter(scope, *device_); !status.ok()) {
        return status;
    }
    for (const Move &move : moves) {
        if (Status status = start_one(move); !status.ok()) {
            return status;
        }
        running_ = true;
    }
    return device_->record(done_, stream_.get());
}

Result<bool> SmallMoves::is_done()
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
    DeviceMemory memory; // before the moves: freed after they are done
    SmallMoves moves;
    ReachOffer offer{};
    bool ready = false;
};

ReachTarget::ReachTarget(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ReachTarget::~ReachTarget() = default;

Result<std::unique_ptr<ReachTarget>> ReachTarget::create(const std::shared_ptr<Device> &device,
                                                         Exporter &exporter)
{
    auto moves = SmallMoves::create(device);
    if (!moves.ok()) {
        return moves.take_status();
    }
    const ContextScope scope(device->driver(), device->context());
    if (Status status = enter(scope, *device); !status.ok()) {
        return status;
    }
    auto memory = device->make_memory(kAll);
    if (!memory.ok()) {
        return memory.take_status();
    }
    void *const at = reinterpret_cast<void *>(static_cast<std::uintptr_t>(memory->get()));
    auto allocation = query_allocation(device->driver(), at);
    if (!allocation.ok()) {
        return allocation.take_status();
    }
    auto impl =
        std::make_unique<Impl>(Impl{.memory = std::move(*memory), .moves = std::move(*moves)});
    impl->offer.buffer = exporter.describe(*allocation, at, kAll);
    if (impl->offer.buffer.kind == SharedKind::kNone) {
        return error(Errc::kUnsupported, "device memory cannot be shared with other processes: %s",
                     reason(impl->offer.buffer.why));
    }
    impl->offer.seed = random_number(impl->offer.buffer.buffer_id); // not the previous one's
    fill(impl->moves.area(0), impl->offer.seed);
    const Move out[] = {{.to = at, .from = impl->moves.area(0), .by = By::kCopy}};
    if (Status status = impl->moves.start(out); !status.ok()) {
        return status;
    }
    return std::unique_ptr<ReachTarget>(new ReachTarget(std::move(impl)));
}

Result<bool> ReachTarget::step()
{
    if (!impl_->ready) {
        auto done = impl_->moves.is_done();
        if (!done.ok()) {
            return done;
        }
        impl_->ready = *done;
    }
    return impl_->ready;
}

const ReachOffer &ReachTarget::offer() const noexcept { return impl_->offer; }

struct ReachProbe::Impl {
    Impl(PeerMemory &peers, SmallMoves made) : memory(peers), moves(std::move(made)) {}

    PeerMemory &memory;
    SmallMoves moves; // areas: what was read, what is written, what was written and read back
    PeerLease lease;
    ProcessIdentity owner{};
    ReachOffer offer{};
    std::byte *at = nullptr; // the owner's memory; null: not mapped yet
    int write_trials = 0;
    Reach verdict = Reach::kPending;
    Status why;

    Status step();
    Status start_moves();
    Status judge();
};

ReachProbe::ReachProbe(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ReachProbe::~ReachProbe() = default;

Result<std::unique_ptr<ReachProbe>> ReachProbe::create(std::shared_ptr<Device> device,
                                                       PeerMemory &memory)
{
    auto moves = SmallMoves::create(std::move(device));
    if (!moves.ok()) {
        return moves.take_status();
    }
    return std::unique_ptr<ReachProbe>(
        new ReachProbe(std::make_unique<Impl>(memory, std::move(*moves))));
}

void ReachProbe::start(const ProcessIdentity &owner, const ReachOffer &offer)
{
    impl_->lease.release();
    impl_->owner = owner;
    impl_->offer = offer;
    impl_->at = nullptr;
    impl_->write_trials = 0;
    impl_->verdict = Reach::kPending;
    impl_->why = Status();
}

// Sets verdict to kYes, leaves it, or fails.
Status ReachProbe::Impl::step()
{
    if (at == nullptr) {
        auto mapped = memory.map(owner, offer.buffer, kAll, moves.device(), lease);
        if (!mapped.ok()) {
            return mapped.take_status();
        }
        at = static_cast<std::byte *>(*mapped);
        return at != nullptr ? start_moves() : Status();
    }
    auto done = moves.is_done();
    if (!done.ok()) {
        return done.take_status();
    }
    return *done ? judge() : Status();
}

// All that calls do: a kernel reads and writes the owner's memory, and a copy reads it.
Status ReachProbe::Impl::start_moves()
{
    ++write_trials;
    const std::uint64_t number =
        random_number(offer.seed + reinterpret_cast<std::uintptr_t>(this) + write_trials);
    std::byte *const place = at + (1 + number % kPlaces) * kBytes;
    std::memset(moves.area(0), 0, SmallMoves::kAreas * kBytes);
    fill(moves.area(1), number);
    const Move all[] = {{.to = moves.area(0), .from = at, .by = By::kKernel},
                        {.to = place, .from = moves.area(1), .by = By::kKernel},
                        {.to = moves.area(2), .from = place, .by = By::kCopy}};
    return moves.start(all);
}

Status ReachProbe::Impl::judge()
{
    std::uint64_t expected[kWords];
    fill(expected, offer.seed);
    const bool read = std::memcmp(moves.area(0), expected, kBytes) == 0;
    const bool wrote = std::memcmp(moves.area(2), moves.area(1), kBytes) == 0;
    if (read && wrote) {
        verdict = Reach::kYes;
        return {};
    }
    if (read && write_trials < kWriteTrials) {
        return start_moves();
    }
    return error(Errc::kUnsupported,
                 "mapped memory of process %d %s: the GPUs do not reach each other's memory, see "
                 "the IOMMU and ACS settings of the machine",
                 owner.pid,
                 read ? "does not hold what was written to it"
                      : "reads back other bytes than it holds");
}

Reach ReachProbe::step() noexcept
{
    if (impl_->verdict == Reach::kPending) {
        try {
            impl_->why = impl_->step();
        } catch (const std::bad_alloc &) {
            impl_->why = Status::out_of_memory();
        }
        if (!impl_->why.ok()) {
            impl_->verdict = Reach::kNo;
        }
        if (impl_->verdict != Reach::kPending) { // nobody asks for it again
            impl_->lease.release();
            impl_->memory.close_buffer(impl_->owner, impl_->offer.buffer.buffer_id);
        }
    }
    return impl_->verdict;
}

const Status &ReachProbe::why() const noexcept { return impl_->why; }

} // namespace hetcoll
