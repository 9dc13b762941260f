// In place of engine/communicator/communicator.h where the explorer looks at a call: engine/call is
// compiled against this. What ranks tell each other is hetcoll's: the group with its control page,
// the meetings, the messages, the executor. All else is as small as it can be: every rank has
// device memory that its peers have mapped, the choice is given, and a GPU runs what it was given
// at once or when it is asked for the end. Nothing here allocates.
#pragma once

#include "gpu.h"

#include "base/log.h"
#include "choice/arrivals.h"
#include "choice/choose.h"
#include "choice/chunk_tuner.h"
#include "cuda_kernels/reduction.h"
#include "engine/communicator/executor.h"
#include "engine/communicator/membership.h"
#include "engine/meeting/flags.h"
#include "engine/meeting/meeting.h"
#include "engine/meeting/node_group.h"
#include "engine/process/call_record.h"
#include "engine/process/notices.h"
#include "engine/types/call.h"
#include "engine/types/counters.h"
#include "pointer_cache/pointer_cache.h"
#include "schedule/match.h"
#include "schedule/schedule.h"
#include "schedule/weighted.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace hetcoll {

// ---- A process and its GPU ----

class MemoryReserve {
public:
    [[nodiscard]] static bool fill() noexcept { return true; }
};
class UsesReserve {
public:
    UsesReserve() noexcept {}
};

enum class Sends : std::uint8_t { kBounced, kDirectIfPossible };
struct Scratch {};

class Gpu {
public:
    Status prepare(ReduceOp, ElementKind) noexcept { return {}; }
};

// Of QueuedCalls.
class NoneQueued {
public:
    [[nodiscard]] bool any() const noexcept { return false; }
};

class Kernel {
public:
    void start(const ReduceInputs &inputs, const ReduceOutputs &outputs, std::size_t count,
               model::Streams when)
    {
        inputs_ = inputs;
        outputs_ = outputs;
        count_ = count;
        runs_ = true;
        asked_ = 0;
        if (when == model::Streams::kEarly) {
            run();
        }
    }
    // True when it has ended. A late one is not over when it is asked for the first times, of which
    // a call that is given up in between makes one.
    [[nodiscard]] bool is_done()
    {
        if (runs_ && asked_++ < 2) {
            model::go_on();
            return false;
        }
        if (runs_) {
            run();
        }
        return true;
    }
    [[nodiscard]] bool is_running() const noexcept { return runs_; }

private:
    void run()
    {
        runs_ = false;
        model::sum(inputs_, outputs_, count_);
    }

    ReduceInputs inputs_{};
    ReduceOutputs outputs_{};
    std::size_t count_ = 0;
    bool runs_ = false;
    int asked_ = 0;
};

class DeviceBounce final : public model::PullsOnly {
public:
    explicit DeviceBounce(model::Streams streams) noexcept : PullsOnly(streams) {}

    [[nodiscard]] Gpu *device() noexcept { return &device_; }
    [[nodiscard]] bool direct() const noexcept { return false; }
    [[nodiscard]] std::byte *staging() noexcept { return nullptr; }
    Status enter() noexcept { return {}; }
    void leave() noexcept {}
    void finish() noexcept {}
    Status start_copy_elements(void *, const void *, std::size_t, ElementKind)
    {
        model::require(false, "no vector has padding");
        return {};
    }
    Status start_copy(void *to, const void *from, std::size_t bytes)
    {
        model::copy(to, from, bytes);
        return {};
    }
    [[nodiscard]] Result<bool> copy_done() { return true; }
    [[nodiscard]] Result<bool> start_marker() { return true; }
    Status start_kernel(const ReduceInputs &inputs, const ReduceOutputs &outputs, std::size_t count)
    {
        kernel_.start(inputs, outputs, count, streams());
        return {};
    }
    [[nodiscard]] Result<bool> kernel_done() { return kernel_.is_done(); }
    [[nodiscard]] bool kernel_runs() const noexcept { return kernel_.is_running(); }

private:
    Gpu device_;
    Kernel kernel_;
};
using HostBounce = DeviceBounce; // which no call here needs

class Store {
public:
    explicit Store(DeviceBounce &bounce) noexcept : bounce_(bounce) {}
    // The same one each time, which nobody owns.
    Result<std::unique_ptr<DeviceBounce>> borrow_device(const PointerInfo &, Sends,
                                                        std::optional<StreamOrder>) noexcept
    {
        return std::unique_ptr<DeviceBounce>(&bounce_);
    }
    [[nodiscard]] bool may_borrow_device(const PointerInfo &, Sends,
                                         std::optional<StreamOrder>) noexcept
    {
        return true;
    }
    [[nodiscard]] Result<Gpu *> device_of(const PointerInfo &) noexcept { return bounce_.device(); }
    [[nodiscard]] NoneQueued &queued() noexcept { return queued_; }
    Result<std::unique_ptr<HostBounce>> borrow_host() noexcept
    {
        return std::unique_ptr<HostBounce>(&bounce_);
    }
    void give_back(std::unique_ptr<DeviceBounce> bounce) noexcept
    {
        model::require(!bounce || !bounce->kernel_runs(), "a kernel has ended before its call");
        static_cast<void>(bounce.release());
    }
    void discard(std::unique_ptr<DeviceBounce> bounce) noexcept
    {
        static_cast<void>(bounce.release());
    }
    [[nodiscard]] bool has_tried_direct(const PointerInfo &) noexcept { return true; }
    Result<bool> legacy_work_done(const PointerInfo &) noexcept { return true; }
    // Nothing here reduces pairs with padding.
    Status copy_elements_blocking(void *, const void *, std::size_t, ElementKind,
                                  const PointerInfo &) noexcept
    {
        model::require(false, "no vector has padding");
        return {};
    }
    Status copy_blocking(void *, const void *, std::size_t, const PointerInfo &) noexcept
    {
        model::require(false, "there is a bounce for every copy");
        return {};
    }

private:
    DeviceBounce &bounce_;
    NoneQueued queued_;
};

// No communicator names one here.
struct NamedStream {
    [[nodiscard]] bool exists() const noexcept { return false; }
    [[nodiscard]] bool is_named() const noexcept { return false; }
};

struct Reserved {
    [[nodiscard]] bool exists() const noexcept { return false; }
    [[nodiscard]] const Gpu *device() const noexcept { return nullptr; }
    std::unique_ptr<DeviceBounce> bounce;
    std::unique_ptr<Scratch> scratch;
    bool maps = false;
};

class Counters {
public:
    void count(hetcoll_counter, std::uint64_t = 1) noexcept {}
};

// One call at a time.
class FrameMemory {
public:
    struct Block {
        [[nodiscard]] std::span<std::byte> bytes() noexcept { return memory; }
        alignas(std::max_align_t) std::array<std::byte, 4096> memory{};
    };
    struct GiveBack {
        void operator()(Block *) const noexcept {}
    };
    using Loan = std::unique_ptr<Block, GiveBack>;
    [[nodiscard]] Loan borrow() noexcept { return Loan(&block_); }

private:
    Block block_;
};

class Process {
public:
    explicit Process(DeviceBounce &bounce) noexcept : store_(bounce) {}
    [[nodiscard]] const Log &log() const noexcept { return log_; }
    [[nodiscard]] Notices &notices() noexcept { return notices_; }
    [[nodiscard]] Counters &counters() noexcept { return counters_; }
    [[nodiscard]] Store &store() noexcept { return store_; }
    [[nodiscard]] FrameMemory &frame_memory() noexcept { return frame_memory_; }

private:
    FrameMemory frame_memory_;
    Log log_; // to nobody
    Notices notices_;
    Counters counters_;
    Store store_;
};

// ---- What a communicator knows ----

struct Means {
    bool mapped = false, aggregators = false, adapters = false, mixed = false;
};
class Chooser {
public:
    explicit Chooser(Algorithm algorithm) noexcept { choice_.algorithm = algorithm; }
    [[nodiscard]] Choice choose(const hetcoll_call &, std::size_t, Means) const noexcept
    {
        return choice_;
    }
    [[nodiscard]] bool meets_in_order() const noexcept { return true; }
    [[nodiscard]] bool forces_small_kernel() const noexcept { return false; }
    [[nodiscard]] bool uses_mapping(const Choice &) const noexcept { return true; }
    [[nodiscard]] ChunkTuner *tuner(const Choice &, std::size_t) noexcept { return tuner_; }
    [[nodiscard]] Arrivals *arrivals() noexcept { return arrivals_; }
    void take_arrivals(std::span<const std::uint64_t>) noexcept {}

private:
    Choice choice_;
    ChunkTuner *tuner_ = nullptr;
    Arrivals *arrivals_ = nullptr;
};

class Aggregation {
public:
    [[nodiscard]] bool is_untried() const noexcept { return false; }
    [[nodiscard]] bool joins() const noexcept { return false; }
    void start(Messages &, int) noexcept {}
    [[nodiscard]] Progress step() noexcept { return Progress::kDone; }
    [[nodiscard]] int code() const noexcept { return 0; }
    [[nodiscard]] Flags heard() const noexcept { return {}; }
    [[nodiscard]] const Meeting &meeting() const noexcept { return meeting_; }

private:
    Meeting meeting_;
};

// All know that they reach each other.
class Peers {
public:
    struct Found {
        const Gpu *device = nullptr;
    };
    [[nodiscard]] bool known() const noexcept { return true; }
    [[nodiscard]] bool searches() const noexcept { return false; }
    void start(const PointerInfo &, const DeviceBounce &, Messages &, int) noexcept {}
    [[nodiscard]] Progress step() noexcept { return Progress::kDone; }
    [[nodiscard]] int code() const noexcept { return 0; }
    [[nodiscard]] bool may_move() const noexcept { return false; }
    [[nodiscard]] const Found &found() const noexcept { return found_; }
    [[nodiscard]] Carrier *carrier_of(const Choice &) const noexcept { return nullptr; }
    [[nodiscard]] bool is_known_device(const Gpu &) const noexcept { return true; }

private:
    Found found_;
};

class Schedules {
public:
    struct Built {
        Schedule schedule;
        std::vector<LocalStep> local_steps;
    };
    Built built; // by the test
    [[nodiscard]] const Built &of(const Choice &, std::size_t) const noexcept { return built; }
    [[nodiscard]] const Built &of_collective(int, int) const noexcept { return built; }
};

class Watch {
public:
    [[nodiscard]] bool is_due(std::uint64_t) const noexcept { return false; }
    void say_meeting(const Meeting &) noexcept {}
    void say_first_call() noexcept {}
    void say_schedule(const Executor &) noexcept {}
    void say_own_gpu(const char *) noexcept {}
};

// The vectors are announced where they are, and mapped there.
class MappedCall {
public:
    MappedCall(NodeGroup &group, bool is_new)
        : group_(group), new_(is_new), peers_(static_cast<std::size_t>(group.all().size))
    {
    }

    struct Buffers {
        const void *send;
        void *recv;
        PointerInfo send_info, recv_info;
        bool foreign;
        std::size_t bytes;
        bool keep_input = false;
        int late = -1;
        const Scratch *stands_in = nullptr;
    };
    struct Copy {
        void *to = nullptr;
        const void *from = nullptr;
    };
    struct Unmapped {
        int rank = -1;
        const SharedBuffer *buffer = nullptr;
    };

    Result<Copy> plan(Algorithm, const Buffers &buffers, DeviceBounce &bounce)
    {
        input_ = static_cast<const std::byte *>(buffers.send);
        output_ = static_cast<std::byte *>(buffers.recv);
        bounce_ = &bounce;
        ++call_;
        return Copy{};
    }
    [[nodiscard]] bool publish()
    {
        group_.announce(model::announced(input_, call_), model::announced(output_, call_));
        return new_;
    }
    [[nodiscard]] Copy copy_out() const noexcept { return {}; }
    [[nodiscard]] bool keeps_input() const noexcept { return output_ != input_; }
    [[nodiscard]] Result<bool> map(Algorithm, const Schedule *, int = -1)
    {
        for (int peer = 0; peer < group_.local_size(); ++peer) {
            peers_[static_cast<std::size_t>(peer)] = model::map(group_.slot(peer), call_);
        }
        return true;
    }
    [[nodiscard]] Unmapped unmapped() const noexcept { return {}; }
    void tell_unmapped() noexcept {}
    void hear_unmapped() noexcept {}
    void serve() const noexcept {}
    void remember() noexcept {}
    [[nodiscard]] const std::byte *input() const noexcept { return input_; }
    [[nodiscard]] std::byte *output() const noexcept { return output_; }
    [[nodiscard]] MappedPeers peers(std::span<const LocalStep> steps) noexcept
    {
        return {peers_, steps, group_.take_progress(word_count(steps))};
    }
    // Each rank's kernel sums its share of all inputs and writes it to all outputs, as two-shot.
    Result<bool> start_kernel(Algorithm, ReduceOp, ElementKind, std::size_t count)
    {
        const std::size_t size = peers_.size(), share = count / size;
        const std::size_t first = share * static_cast<std::size_t>(group_.local_rank());
        ReduceInputs in{};
        ReduceOutputs out{};
        for (const MappedPeer &peer : peers_) {
            in.input[in.count++] = peer.input + first * sizeof(std::int64_t);
            out.output[out.count++] =
                const_cast<std::byte *>(peer.output) + first * sizeof(std::int64_t);
        }
        static_cast<void>(bounce_->start_kernel(in, out, share));
        return true;
    }
    [[nodiscard]] std::size_t bytes_mapped() const noexcept { return 0; }
    void release() noexcept {}

private:
    NodeGroup &group_;
    bool new_; // peers agree on having mapped
    const std::byte *input_ = nullptr;
    std::byte *output_ = nullptr;
    DeviceBounce *bounce_ = nullptr;
    std::uint64_t call_ = 0;
    std::vector<MappedPeer> peers_; // by rank
};

// ---- The communicator ----

// No rank frees memory.
class Freed {
public:
    void look() noexcept {}
    void look_sometimes() noexcept {}
    [[nodiscard]] Flags tell() noexcept { return Flags{}; }
    void hear() noexcept {}
    void close() noexcept {}
};

class Communicator {
public:
    Communicator(NodeGroup &node_group, Messages &ranks_messages, const hetcoll_p2p &p2p,
                 DeviceBounce &bounce, Algorithm algorithm, bool new_buffers)
        : group_(node_group), messages_(ranks_messages), p2p_(p2p), process_(bounce),
          chooser_(algorithm), mapped_(node_group, new_buffers)
    {
    }

    [[nodiscard]] Process &process() noexcept { return process_; }
    [[nodiscard]] const hetcoll_p2p &p2p() const noexcept { return p2p_; }
    [[nodiscard]] std::size_t small_limit() const noexcept { return 0; }
    [[nodiscard]] NodeGroup &group() noexcept { return group_; }
    [[nodiscard]] Membership &membership() noexcept { return membership_; }
    [[nodiscard]] Peers &peers() noexcept { return peers_; }
    [[nodiscard]] MappedCall &mapped() noexcept { return mapped_; }
    [[nodiscard]] Aggregation &aggregation() noexcept { return aggregation_; }
    [[nodiscard]] Freed freed() noexcept { return {}; }
    [[nodiscard]] Watch &watch() noexcept { return watch_; }
    [[nodiscard]] Chooser &chooser() noexcept { return chooser_; }
    [[nodiscard]] Schedules &schedules() noexcept { return schedules_; }
    [[nodiscard]] Executor &executor() noexcept { return executor_; }
    [[nodiscard]] Reserved &reserved() noexcept { return reserved_; }
    [[nodiscard]] NamedStream named_stream() noexcept { return {}; }
    [[nodiscard]] Messages &messages() noexcept { return messages_; }
    [[nodiscard]] Meeting &meeting() noexcept { return meeting_; }

    [[nodiscard]] bool is_ready() const noexcept { return true; }
    [[nodiscard]] Progress make_ready(int) noexcept { return Progress::kDone; }
    void begin_call(const hetcoll_call &call, const char * /*mpi_name*/ = nullptr) noexcept
    {
        group_.begin_call(signature_of(call));
    }
    [[nodiscard]] ReduceOp op_of(const hetcoll_call &call) const noexcept
    {
        return static_cast<ReduceOp>(call.op);
    }
    [[nodiscard]] bool uses_fixed_point(const hetcoll_call &) const noexcept { return false; }
    void give_up_mapping() noexcept {}
    void note_small_device_call() noexcept {}
    [[nodiscard]] bool should_find_peers() const noexcept { return false; }
    [[nodiscard]] bool has_missed(const hetcoll_call &) const noexcept { return false; }
    [[nodiscard]] int fail_differing(const Meeting &) const noexcept
    {
        model::require(false, "the ranks call the same");
        return HETCOLL_ERROR_COLLECTIVE;
    }
    void forget_peers() noexcept {}
    void find_peers_anew() noexcept {}
    void abandon_messages() noexcept {}
    void pin_page(Gpu &) noexcept {}
    void say_page_problem() noexcept {}

    [[nodiscard]] bool step_leave() noexcept { return group_.leave(); } // without messages
    void close_dead() noexcept {}

private:
    NodeGroup &group_;
    Messages &messages_;
    Meeting meeting_;
    hetcoll_p2p p2p_;
    Membership membership_{p2p_, group_};
    Process process_;
    Chooser chooser_;
    MappedCall mapped_;
    Peers peers_;
    Aggregation aggregation_;
    Watch watch_;
    Schedules schedules_;
    Executor executor_;
    Reserved reserved_;
};

} // namespace hetcoll
