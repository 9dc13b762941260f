// In place of engine/communicator/communicator.h where the explorer looks at a call: engine/call is
// compiled against this. What ranks tell each other is hetcoll's: the group with its control page,
// the meetings, the messages, the executor. All else is as small as it can be: every rank has
// device memory that its peers have mapped, and a GPU runs what it was given at once or when it is
// asked for the end. Nothing here allocates.
#pragma once

#include "gpu.h"

#include "base/log.h"
#include "choice/arrivals.h"
#include "choice/chunk_tuner.h"
#include "engine/communicator/executor.h"
#include "engine/communicator/means.h"
#include "engine/communicator/membership.h"
#include "engine/meeting/flags.h"
#include "engine/meeting/meeting.h"
#include "engine/meeting/node_group.h"
#include "engine/process/call_record.h"
#include "engine/process/memory_reserve.h"
#include "engine/types/call.h"
#include "engine/types/counters.h"
#include "plan/choice.h"
#include "pointer_cache/pointer_cache.h"
#include "schedule/match.h"
#include "schedule/schedule.h"

#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace hetcoll {

class DeviceBounce final : public model::PullsOnly {
public:
    using PullsOnly::PullsOnly;
    [[nodiscard]] DeviceBounce *device() noexcept { return this; }
    Status prepare(ReduceOp, ElementKind) noexcept { return {}; }
    [[nodiscard]] bool direct() const noexcept { return false; }
    void finish() noexcept {}
    [[nodiscard]] Result<bool> copy_done() { return true; }
    [[nodiscard]] Result<bool> start_marker() { return true; }
    [[nodiscard]] Result<bool> kernel_done() { return kernel.is_done(); }
    model::Kernel kernel;
};
using HostBounce = DeviceBounce; // which no call here needs

struct Scratch {};
struct Reserved {
    [[nodiscard]] bool exists() const noexcept { return false; }
    std::unique_ptr<Scratch> scratch;
    bool maps = false;
};

// Of one call at a time.
class FrameMemory {
public:
    struct Block {
        [[nodiscard]] std::span<std::byte> bytes() noexcept { return memory; }
        alignas(std::max_align_t) std::array<std::byte, 4096> memory{};
    };
    struct Keep {
        void operator()(Block *) const noexcept {}
    };
    using Loan = std::unique_ptr<Block, Keep>;
    [[nodiscard]] Loan borrow() noexcept { return Loan(&block_); }

private:
    Block block_;
};

struct Counters {
    void count(hetcoll_counter, std::uint64_t = 1) noexcept {}
};

class Process {
public:
    [[nodiscard]] const Log &log() const noexcept { return log_; }
    [[nodiscard]] Counters counters() noexcept { return {}; }
    [[nodiscard]] FrameMemory &frame_memory() noexcept { return frame_memory_; }

private:
    FrameMemory frame_memory_;
    Log log_; // to nobody
};

// All know that they reach each other.
struct Peers {
    [[nodiscard]] bool known() const noexcept { return true; }
    [[nodiscard]] Carrier *carrier_of(const Choice &) const noexcept { return nullptr; }
    [[nodiscard]] bool is_known_device(const DeviceBounce &) const noexcept { return true; }
};
struct Aggregation {
    [[nodiscard]] bool joins() const noexcept { return false; }
};
struct Schedules {
    struct Built {
        Schedule schedule;
        std::vector<LocalStep> local_steps;
    };
};
struct Watch {
    [[nodiscard]] bool is_due(std::uint64_t) const noexcept { return false; }
};
// No rank frees memory.
struct Freed {
    void look() noexcept {}
    void look_sometimes() noexcept {}
    [[nodiscard]] Flags tell() noexcept { return Flags{}; }
    void hear() noexcept {}
    void close() noexcept {}
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
    Result<bool> start_kernel(Algorithm, ReduceOp, ElementKind, std::size_t count)
    {
        bounce_->kernel.start_share(peers_, group_.local_rank(), count, bounce_->streams());
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

class Communicator {
public:
    Communicator(NodeGroup &node_group, Messages &ranks_messages, const hetcoll_p2p &p2p,
                 model::Streams streams, bool new_buffers)
        : bounce(streams), group_(node_group), messages_(ranks_messages), p2p_(p2p),
          mapped_(node_group, new_buffers)
    {
    }

    [[nodiscard]] Process &process() noexcept { return process_; }
    [[nodiscard]] const hetcoll_p2p &p2p() const noexcept { return p2p_; }
    [[nodiscard]] NodeGroup &group() noexcept { return group_; }
    [[nodiscard]] Membership &membership() noexcept { return membership_; }
    [[nodiscard]] Peers peers() noexcept { return {}; }
    [[nodiscard]] MappedCall &mapped() noexcept { return mapped_; }
    [[nodiscard]] Aggregation aggregation() noexcept { return {}; }
    [[nodiscard]] Freed freed() noexcept { return {}; }
    [[nodiscard]] Watch watch() noexcept { return {}; }
    [[nodiscard]] Executor &executor() noexcept { return executor_; }
    [[nodiscard]] Reserved &reserved() noexcept { return reserved_; }
    [[nodiscard]] Messages &messages() noexcept { return messages_; }
    [[nodiscard]] Meeting &meeting() noexcept { return meeting_; }

    [[nodiscard]] bool is_ready() const noexcept { return true; }
    void begin_call(const hetcoll_call &call, const char * /*mpi_name*/ = nullptr) noexcept
    {
        group_.begin_call(signature_of(call));
    }
    [[nodiscard]] ReduceOp op_of(const hetcoll_call &call) const noexcept
    {
        return static_cast<ReduceOp>(call.op);
    }
    void give_up_mapping() noexcept {}
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
    [[nodiscard]] bool step_leave() noexcept { return group_.leave(); } // without messages
    void close_dead() noexcept {}

    DeviceBounce bounce; // of its calls

private:
    NodeGroup &group_;
    Messages &messages_;
    Meeting meeting_;
    hetcoll_p2p p2p_;
    Membership membership_{p2p_, group_};
    Process process_;
    MappedCall mapped_;
    Executor executor_;
    Reserved reserved_;
};

} // namespace hetcoll
