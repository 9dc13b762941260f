// One call on one rank, and the steps that all protocols share: copies, meetings,
// ends. The protocols are coroutines (engine/call/protocols.h), each with a state of its own.
#pragma once

#include "base/padding.h"
#include "engine/call/cpu_path.h"
#include "engine/call/report.h"
#include "engine/call/task.h"
#include "engine/communicator/communicator.h"
#include "engine/meeting/flags.h"
#include "engine/meeting/meeting.h"
#include "engine/process/frame_memory.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

namespace hetcoll {

// Some rank's driver failed, or has a number that has no fixed point, or ranks call differently: so
// all ranks fail.
inline constexpr Flags kErrors = kFailed | kOutOfRange | kCallsDiffer;

[[nodiscard]] inline bool on_device(const PointerInfo &info) noexcept
{
    return info.kind != MemoryKind::kHost;
}

// Where the vectors of a call lie.
struct Buffers {
    const void *in = nullptr; // what the schedule reads and writes
    void *out = nullptr;
    PointerInfo send, recv;    // of these two
    bool input_copied = false; // to `out`, which the schedule then reads

    [[nodiscard]] bool in_place() const noexcept { return in == out; }
    // The schedule writes where it reads.
    [[nodiscard]] bool overwrites_input() const noexcept { return in_place() || input_copied; }
    [[nodiscard]] bool any_device() const noexcept { return on_device(send) || on_device(recv); }
    // The one that this rank works with.
    [[nodiscard]] const PointerInfo &device() const noexcept
    {
        return on_device(recv) ? recv : send;
    }
    // A send buffer in another context than the one in which this rank works: nothing there is
    // ordered after the work that wrote it.
    [[nodiscard]] bool two_contexts() const noexcept;
    // Input and result are not in one kind of memory and context.
    [[nodiscard]] bool is_foreign() const noexcept;
};

// The work that a call's stream was given when it was queued: engine/call/prepared.h.
class GivenWork {
public:
    virtual ~GivenWork() = default;
    // The kernel is to do nothing, if it was not told to run before.
    virtual void skip() noexcept = 0;
    // It was told to, and is over. An error: why it could not be given.
    [[nodiscard]] virtual Result<bool> kernel_done() = 0;
};

// The means of a call on this rank, borrowed but for the carrier, and which of them are at work.
struct CallWork {
    [[nodiscard]] Bounce &bounce() const noexcept
    {
        return host != nullptr ? static_cast<Bounce &>(*host) : *device;
    }
    // Others run next: they find the context that they left.
    void leave_context() noexcept;
    void rewind() noexcept;

    FrameMemory::Loan frame_memory; // of the call's coroutines
    std::unique_ptr<DeviceBounce> device;
    std::unique_ptr<DeviceBounce> marker; // in another context than `device`: poll_work()
    std::unique_ptr<HostBounce> host;
    bool uses_reserved = false;    // `device` is the one of queued calls
    GivenWork *prepared = nullptr; // what its stream has been given, if that is all of it
    // Null, or the carrier of messages next to Open MPI's. It stays to the end of the call, in
    // which peers may still wait for this rank.
    Carrier *carrier = nullptr;
    bool copying = false;
    bool kernel_runs = false;
    bool executor_runs = false;
};

struct Call {
    // Both outlive it. A persistent call keeps what it has found out about its buffers.
    Call(Communicator &its_comm, const hetcoll_call &given, bool is_persistent) noexcept
        : comm(its_comm), planner(its_comm.planner()), gpus(its_comm.gpus()), args(&given),
          persistent(is_persistent), meeting(its_comm.meeting()), report(its_comm)
    {
    }

    // Before a persistent call runs again.
    void rewind() noexcept;

    [[nodiscard]] ReduceOp op() const noexcept { return comm.agreed().op_of(*args); }
    [[nodiscard]] ElementKind kind() const noexcept { return static_cast<ElementKind>(args->kind); }
    [[nodiscard]] bool is_queued() const noexcept { return args->queued != HETCOLL_NOT_QUEUED; }
    // A stream of the application was waited for, by its name, so ours need no other order.
    [[nodiscard]] bool is_independent() const noexcept;
    // The communicator has streams with queued calls, on all ranks alike. Its other calls go as
    // those do, because queued ones may be pending behind them.
    [[nodiscard]] bool is_attached() const noexcept { return comm.has_streams(); }
    // A driver call that may wait for the device has to wait until no queued call is pending.
    [[nodiscard]] bool must_not_wait() const noexcept;
    [[nodiscard]] bool is_collective() const noexcept
    {
        return args->collective != HETCOLL_ALLREDUCE;
    }
    // "MPI_Iallreduce"; of what is queued on a stream the blocking call's.
    [[nodiscard]] const char *mpi_name() const noexcept;
    // Reduced, and of a kind of pair with padding.
    [[nodiscard]] bool has_padding() const noexcept
    {
        return args->dense == 0 && args->kind >= 0 && hetcoll::has_padding(kind());
    }
    // Bytes of the vector that may be read.
    [[nodiscard]] std::size_t bytes_in() const noexcept
    {
        return has_padding() ? data_span(kind(), args->count) : bytes;
    }
    // Reduced in a meeting. The same on ranks that know a user-defined op and on others.
    [[nodiscard]] bool is_small() const noexcept;

    // Keeps the first failure of this rank.
    void note(Status status) noexcept;
    // Copies in the bounce's context, or blocking where there is no bounce. co_await copied().
    void start_copy(void *to, const void *from, std::size_t bytes, const PointerInfo &info);
    // The vector to where the program has it, but for its padding.
    void start_copy_out(void *to, const void *from, const PointerInfo &info);
    [[nodiscard]] bool poll_copy();
    // Whoever waits for a blocking call has nothing else to do while its copy runs.
    [[nodiscard]] Linger linger() const noexcept;
    [[nodiscard]] bool poll_kernel();
    [[nodiscard]] bool may_copy_blocking();
    [[nodiscard]] auto copied() noexcept
    {
        return until([this] { return poll_copy(); });
    }
    [[nodiscard]] auto kernel_done() noexcept
    {
        return until([this] { return poll_kernel(); });
    }

    // Finds out whether this process has freed memory that peers map: surely where this rank
    // `waits` for a GPU meanwhile, else now and then. Once a call.
    void look_for_freed(bool waits) noexcept;
    // This rank's flags in the meeting that it starts next.
    [[nodiscard]] Flags to_tell() noexcept;
    void start_agreement() noexcept;
    // With numbers of which all learn the least or the largest, and other flags.
    void start_agreement(std::span<const std::uint64_t> numbers, ReduceOp op, Flags told) noexcept;
    // False, too, when the network has failed: then the call has ended.
    [[nodiscard]] bool step_meeting() noexcept;
    // co_await: what any rank has said in the meeting that was started.
    [[nodiscard]] auto all_met() noexcept
    {
        return until([this] { return step_meeting(); }, [this] { return meeting.flags(); });
    }
    [[nodiscard]] auto agree() noexcept
    {
        start_agreement();
        return all_met();
    }

    // The result of a protocol that has done all it can: success, or this rank's own failure,
    // unless another meeting follows in which all hear of that.
    [[nodiscard]] int result();
    [[nodiscard]] int fail();
    // Some rank has said in a meeting that it failed: so all ranks do.
    [[nodiscard]] int fail_together(Flags all);
    // After a driver error that all ranks have been told of. Destroys the carrier, too.
    void forget_peers() noexcept
    {
        work.carrier = nullptr;
        planner.forget_peers();
    }
    // The call ends where it waits, without the rest of its way, and so do all further ones.
    void end(int code) noexcept
    {
        ended = code;
        comm.membership().break_off(code);
    }
    // In a meeting: a message may still arrive in memory of ours.
    void lose_network(int code) noexcept;
    // A message may still arrive in its slots. But what this rank's GPU does with the application's
    // memory is over then.
    void lose_device() noexcept;
    // Memory for its frames. False: there is none.
    [[nodiscard]] bool borrow_frames() noexcept;
    // At its end: the bounces, but for what a persistent call will need again.
    void give_back(int result) noexcept;

    Communicator &comm;
    Planner &planner; // the communicator's
    Gpus &gpus;
    const hetcoll_call *args; // for fixed point another one than was given
    const bool persistent;
    Frames frames; // in memory of `work`

    Buffers buffers;
    std::size_t bytes = 0; // of the vector, if hetcoll reduces it or may do so on other ranks
    bool in_order = false; // elements are summed in the order of the ranks
    Flags flags{};         // what this rank knows of itself, but for failures
    Status failure;        // the first
    std::optional<Flags> classified; // a persistent call's flags, once its buffers are known
    std::optional<int> ended;

    CallWork work;
    CpuPath cpu;
    bool mapped = false;       // peers' memory is read or written in this call
    bool looked = false;       // for memory that was freed
    bool closes_later = false; // the ranks meet once more after the way that the call goes
    Meeting &meeting;          // the communicator's
    CallReport report;
};

// Buffers that peers may read and write, from a call's agreement to its end.
struct Published {
    explicit Published(Planner &its_planner) noexcept : planner(its_planner) {}
    ~Published();
    Published(const Published &) = delete;
    Published &operator=(const Published &) = delete;

    Planner &planner;
    bool planned = false;   // memory stands for the vectors
    bool announced = false; // and peers can see it
};

} // namespace hetcoll
