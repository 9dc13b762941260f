// One MPI_Allreduce from the first look at its buffers to the complete result, as a resumable state
// machine. The order of meetings of the ranks follows from rank-invariant facts and from what the
// ranks told each other, never from this rank's buffers alone; docs/architecture.md has the
// protocol.
#pragma once

#include "engine/call_record.h"
#include "engine/engine.h"
#include "engine/hetcoll.h"
#include "engine/meeting.h"

#include <atomic>
#include <cstddef>
#include <memory>

namespace hetcoll {

class Operation {
public:
    // Both outlive the operation. A persistent one is run again after rewind(), and keeps what it
    // has found out about its buffers.
    Operation(Engine &engine, const hetcoll_call &call, bool persistent = false) noexcept;
    ~Operation();
    Operation(const Operation &) = delete;
    Operation &operator=(const Operation &) = delete;

    // True when complete; else call again after the progress function.
    [[nodiscard]] bool step();
    // Changes whenever step() came further.
    [[nodiscard]] std::uint64_t moves() const noexcept;
    // As hetcoll_allreduce() returns it. Requires step() to have returned true.
    [[nodiscard]] int result() const noexcept { return result_; }
    // Requires that step() has thrown: then this takes the place of its returning true.
    void fail_without_memory() noexcept;
    // Requires step() to have returned true.
    void rewind() noexcept;

    [[nodiscard]] const char *mpi_name() const noexcept; // "MPI_Allreduce"

    // For whoever waits while a queue steps the operation, maybe in another thread.
    [[nodiscard]] bool is_complete() const noexcept
    {
        return complete_.load(std::memory_order_acquire);
    }
    void set_complete() noexcept { complete_.store(true, std::memory_order_release); }

private:
    enum class State : std::uint8_t {
        kMakeReady,    // the communicator's first call: control pages
        kSenderReady,  // the application's work in the send buffer's own context
        kForeignInput, // the same, of floats that are converted elsewhere
        kToFixed,      // floats are being converted to fixed point
        kOwnShare,     // this rank's share of an allgather is being copied to its place
        kSmallRead,    // the small call's input is being copied to the host
        kSmallMeeting, // and reduced
        kShare,        // the buffers that peers will read and write are being made ready
        kJoin,         // the ranks join their aggregators
        kAgree,        // what memory do the ranks have, can all run our schedules?
        kAgreeMixed,   // the same, after the host ranks of a mix have made ready
        kFindPeers,    // whose GPUs reach each other? Then kAgree once more
        kStop,         // what was begun without the late rank comes to nothing: it ends
        kMap,          // peers' buffers are being mapped
        kMapped,       // could all ranks map what they need?
        kInput,        // the input is being copied to where the schedule needs it
        kRun,          // the schedule runs
        kPieceCopy,    // the input of a part of the vector is being kept
        kPiece,        // aggregators reduce the part
        kPieceClose,   // did all ranks get it?
        kPieceBack,    // its input is being brought back
        kKernel,       // this rank's one kernel runs
        kClose,        // did it succeed on all ranks?
        kStageRead,    // device memory is being copied to the host
        kStageAgree,   // did it succeed on all ranks? Then Open MPI reduces
        kCopyOut,      // the result is being copied back
        kFromFixed,    // and converted to floats
        kDone,
    };

    [[nodiscard]] bool advance();
    void settle() noexcept;
    // No other module can be called now: what runs on the host does so by our schedules.
    [[nodiscard]] bool is_nonblocking() const noexcept { return call_.host_allreduce == nullptr; }
    // Nor is another module's order of summation ours.
    [[nodiscard]] bool runs_on_host() const noexcept
    {
        return is_nonblocking() || (in_order_ && !unknown_op_);
    }
    void leave_context() noexcept;
    [[nodiscard]] bool meeting_done();
    void network_failed(int code);
    // The schedule that serves the call.
    [[nodiscard]] const Engine::Linked &linked();

    // operation_classify.cc
    void classify();
    void find(const void *first, PointerInfo &info);
    [[nodiscard]] Status borrow_bounce(const PointerInfo &pointer, bool ordinary, bool reduces);
    void keep_classification() noexcept;
    void wait_for_contexts();
    void must_stage(const Status &problem);
    [[nodiscard]] bool is_small() const noexcept;
    // operation.cc
    void begin();
    void begin_agreement(State state);
    void share();
    void decide();
    void decide_on_devices(Flags all);
    void prepare_mixed();
    void find_peers();
    void map();
    void mapped(bool failed);
    // operation_late.cc
    [[nodiscard]] bool is_early() const noexcept;
    void run_early();
    void begin_early();
    [[nodiscard]] bool stop_early(Flags all);
    [[nodiscard]] Arrivals *arrivals() noexcept; // null: nobody looks at those of this call
    void note_arrival() noexcept;
    // operation_run.cc
    void begin_alone();
    void begin_small();
    void meet_small();
    void write_small();
    void begin_run();
    void run();
    [[nodiscard]] bool running();
    void run_kernel();
    void begin_close();
    [[nodiscard]] std::size_t numbers_of_waits() const noexcept; // in the closing agreement
    void close();
    // operation_staged.cc
    void begin_staging();
    void stage(const std::byte *from, std::unique_ptr<StagingMemory> &memory, bool copy);
    [[nodiscard]] std::byte *first_byte(const StagingMemory &memory) const noexcept;
    void reduce_staged();
    void copy_staged_out();
    void prepare_host();
    [[nodiscard]] Choice message_choice();
    void run_on_host();
    // operation_collective.cc
    [[nodiscard]] bool is_collective() const noexcept
    {
        return call_.collective != HETCOLL_ALLREDUCE;
    }
    [[nodiscard]] const char *name() const noexcept; // "allreduce"
    void classify_collective();
    [[nodiscard]] Status place_vectors();
    void begin_collective();
    [[nodiscard]] std::size_t share_bytes() const noexcept;
    void copy_share_out(const void *result);

    // operation_in_network.cc
    [[nodiscard]] bool should_join() const noexcept;
    void begin_pieces();
    void begin_piece();
    [[nodiscard]] std::byte *result_piece() const noexcept;
    [[nodiscard]] Vectors piece_vectors(std::size_t count) const noexcept;
    void run_piece();
    [[nodiscard]] bool running_piece();
    void lose_aggregator();
    void end_piece();
    void piece_ended();
    void bring_back();
    void run_rest();

    // operation_fixed.cc
    [[nodiscard]] static hetcoll_call integer_call(const hetcoll_call &given) noexcept;
    [[nodiscard]] ElementKind real_kind() const noexcept
    {
        return static_cast<ElementKind>(given_.kind);
    }
    void classify_fixed();
    [[nodiscard]] bool is_foreign_input() const noexcept;
    void begin_to_fixed();
    [[nodiscard]] bool to_fixed_point();
    void start_to_fixed();
    void begin_from_fixed() noexcept;
    [[nodiscard]] Status convert_on_host(bool there) noexcept;
    void fail_out_of_range() noexcept;

    // operation_record.cc
    void begin_record() noexcept;
    void serve(hetcoll_counter counter) noexcept;
    void serve(Algorithm algorithm) noexcept
    {
        serve(static_cast<hetcoll_counter>(HETCOLL_CALLS_RECURSIVE_DOUBLING +
                                           static_cast<int>(algorithm)));
    }
    void end_record(int result) noexcept;

    // operation_parts.cc
    void finish(int result) noexcept;
    void fail_together() noexcept; // all ranks do, in the same meeting
    void finish_failed();
    // Copies in the bounce's context, or blocking where there is no bounce.
    void start_copy(void *to, const void *from, std::size_t bytes, const PointerInfo &device);
    [[nodiscard]] bool is_over(bool &runs, Result<bool> (DeviceBounce::*done)());
    [[nodiscard]] bool copy_done();
    [[nodiscard]] bool kernel_done();
    [[nodiscard]] Flags flags_to_tell() const noexcept; // in a meeting
    void note(Status status) noexcept;

    [[nodiscard]] bool in_place() const noexcept { return in_ == out_; }
    // What the schedule reads is where it writes.
    [[nodiscard]] bool overwrites_input() const noexcept { return in_place() || copied_input_; }
    // A send buffer in another context than the one in which this rank works: send_ is then ordered
    // with nothing there.
    [[nodiscard]] bool two_contexts() const noexcept
    {
        return on_device(send_) && on_device(recv_) &&
               (send_.device != recv_.device || send_.context != recv_.context);
    }
    // Input and result are not in one kind of memory and context.
    [[nodiscard]] bool is_foreign() const noexcept
    {
        return !in_place() &&
               ((send_.kind == MemoryKind::kHost) != (recv_.kind == MemoryKind::kHost) ||
                two_contexts());
    }
    [[nodiscard]] bool any_device() const noexcept { return on_device(send_) || on_device(recv_); }
    [[nodiscard]] static bool on_device(const PointerInfo &info) noexcept
    {
        return info.kind != MemoryKind::kHost;
    }
    [[nodiscard]] Bounce &bounce() const noexcept
    {
        return host_ != nullptr ? static_cast<Bounce &>(*host_) : *device_;
    }
    [[nodiscard]] ReduceOp op() const noexcept { return static_cast<ReduceOp>(call_.op); }
    [[nodiscard]] ElementKind kind() const noexcept { return static_cast<ElementKind>(call_.kind); }

    Engine &engine_;
    Process &process_;
    const bool fixed_; // the call that was given is served by one of integers
    const hetcoll_call &given_, integer_call_, &call_;
    const bool persistent_;
    bool classified_ = false; // a persistent one's buffers are known
    Flags classified_flags_ = 0;
    std::atomic<bool> complete_{false};
    State state_ = State::kDone;
    std::uint64_t advances_ = 0;
    bool begun_ = false;
    int result_ = HETCOLL_SUCCESS;
    Status failure_; // of this rank; the first
    Flags flags_ = 0;
    std::size_t bytes_ = 0;   // of the vector, if hetcoll reduces it or may do so on other ranks
    bool in_order_ = false;   // elements are summed in the order of the ranks
    bool unknown_op_ = false; // to some rank, as all know by now

    const void *in_ = nullptr; // the vectors of the schedule; send_ and recv_ say where they lie
    void *out_ = nullptr;
    PointerInfo send_, recv_;
    std::unique_ptr<Scratch> scratch_; // where the call has no memory for a whole result
    bool placed_ = false;              // the own share of an allgather is where it belongs
    std::unique_ptr<DeviceBounce> device_;
    std::unique_ptr<HostBounce> host_;
    bool kernel_runs_ = false;
    std::unique_ptr<StagingMemory> staged_send_, staged_recv_;
    bool copying_ = false;
    bool copied_input_ = false;

    Choice choice_;
    bool shares_ = false;             // this rank has published its buffers
    bool mapping_ = false;            // peers' memory is read or written in this call
    const Schedule *needs_ = nullptr; // the schedule whose peers are mapped; null: a kernel

    ChunkTuner *tuner_ = nullptr; // of this call's chunk, until it has found one
    std::uint64_t started_ns_ = 0;
    std::uint64_t arrived_ns_ = 0; // at the opening agreement
    bool arrivals_due_ = false;    // the closing agreement tells the ranks' waits
    bool may_begin_ = false;       // without the late rank, once all others have come
    bool early_ = false;           // the schedule runs already, as far as it needs no late rank
    State stopped_in_ = State::kDone;

    struct Piece {                        // that aggregators reduce
        std::size_t first = 0, count = 0; // elements
        std::byte *kept = nullptr;        // a copy of its input
        bool lost = false;                // this rank has lost its aggregator
    };
    Piece piece_;

    FixedPoint how_{}; // if fixed_, as the next ones
    PointerInfo given_send_;
    bool gpu_converts_ = false, converted_ = false;

    CallRecord record_;
    std::uint64_t range_ = 0; // of a profiler

    Meeting meeting_;
    std::byte *mine_ = nullptr; // this rank's part of a small call
};

} // namespace hetcoll
