// One communicator's state: who its ranks are, the settings that they agreed on, and what a
// repeated call would otherwise make again.
#pragma once

#include "engine/aggregation.h"
#include "engine/executor.h"
#include "engine/mapped_call.h"
#include "engine/meeting.h"
#include "engine/node_group.h"
#include "engine/operation_queue.h"
#include "engine/peers.h"
#include "engine/process.h"
#include "schedule/schedule.h"
#include "schedule/weighted.h"
#include "tuning/arrivals.h"
#include "tuning/choice.h"
#include "tuning/chunk_tuner.h"
#include "tuning/collective_shape.h"
#include "tuning/rank_shares.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace hetcoll {

class Engine {
public:
    // facts[r] are those of rank r.
    Engine(Process &process, const hetcoll_p2p &p2p, const hetcoll_facts &agreed,
           std::span<const hetcoll_facts> facts);
    ~Engine();
    Engine(const Engine &) = delete;
    Engine &operator=(const Engine &) = delete;

    [[nodiscard]] Process &process() noexcept { return process_; }
    [[nodiscard]] const hetcoll_p2p &p2p() const noexcept { return p2p_; }
    [[nodiscard]] std::size_t small_limit() const noexcept { return agreed_.small_limit; }
    [[nodiscard]] OperationQueue &queue() noexcept { return queue_; }
    [[nodiscard]] NodeGroup &group() noexcept { return group_; }
    [[nodiscard]] Peers &peers() noexcept { return peers_; }
    [[nodiscard]] MappedCall &mapped() noexcept { return mapped_; }
    [[nodiscard]] Aggregation &aggregation() noexcept { return aggregation_; }

    // The first operation makes the control pages before all else: resumable.
    [[nodiscard]] bool is_ready() const noexcept { return ready_; }
    [[nodiscard]] Progress make_ready(int tag);

    // A small call whose buffers are surely host memory on this rank, served without looking any
    // further: programs make thousands of these a second and must not feel hetcoll. The other ranks
    // may have device memory. Nothing if the call is not of this kind.
    [[nodiscard]] std::optional<int> try_host(const hetcoll_call &call) noexcept;

    // Whether the call's elements have to be summed in the order of the ranks:
    // coll_hetcoll_reproducible, where the order matters. Of a user-defined op it does, so that
    // ranks agree that do not know it.
    [[nodiscard]] bool keeps_order(const hetcoll_call &call) const noexcept;
    // Whether the call sums floats as integers: coll_hetcoll_fixed_point, in so many bits.
    [[nodiscard]] bool uses_fixed_point(const hetcoll_call &call) const noexcept;
    [[nodiscard]] int fixed_point_bits() const noexcept
    {
        return static_cast<int>(agreed_.fixed_point);
    }
    // A meeting sums in that order.
    [[nodiscard]] bool meets_in_order() const noexcept
    {
        return (group_.nodes() == 1 && group_.uses_pages()) || p2p_.size <= 2;
    }
    // coll_hetcoll_algorithm names one of kernels that serve small calls too.
    [[nodiscard]] bool forces_small_kernel() const noexcept;
    // The same on every rank, because everything that goes in is. `mapped`: peers' memory may be
    // used, if the ranks have found out that it can.
    // `in_network`: so may aggregators, if the ranks have joined them.
    [[nodiscard]] Choice choice(const hetcoll_call &call, std::size_t bytes, bool mapped,
                                bool in_network = false);
    // Looks which rank comes last: coll_hetcoll_skew. Null: nobody does.
    [[nodiscard]] Arrivals *arrivals() noexcept;
    // What the ranks have told each other of their waits. Same on every rank.
    void take_arrivals(std::span<const std::uint64_t> of_all);
    // What finds the chunk of calls like this one; null: it is given. Fed with the time of the
    // slowest rank, so all ranks stay together.
    [[nodiscard]] ChunkTuner *tuner(const Choice &choice, std::size_t bytes);
    // Whether calls of this choice read the memory of other ranks where they can.
    [[nodiscard]] bool uses_mapping(const Choice &choice) const noexcept;
    // After a peer's memory could not be mapped on some rank, which has said so: that is also why a
    // forced algorithm cannot run.
    void give_up_mapping() noexcept
    {
        peers_.give_up_mapping();
        unavailable_reported_ = true;
    }
    // A small call's flags said that all ranks have device memory: the next one looks whether its
    // GPUs reach each other. The same on every rank.
    void note_small_device_call() noexcept { small_device_call_ = true; }
    [[nodiscard]] bool should_find_peers() const noexcept
    {
        return small_device_call_ && !peers_.known() && group_.uses_pages();
    }

    // After a driver error that all ranks have been told of.
    void forget_peers() noexcept;

    // This rank's schedule, built at first use and kept: it serves every size.
    struct ScheduleKey {
        Algorithm algorithm, between_nodes;
        // Of a hierarchy or of shares; of trees the parts through host memory; or messages.
        int segments;
        bool node_by_node = false, over_trees = false; // Choice's
        int late = kNoRank;        // of weighted shares: the rank that comes last
        int collective = HETCOLL_ALLREDUCE, root = 0;
        CollectiveShape shape = CollectiveShape::kPipeline; // of what is no allreduce
        friend bool operator==(const ScheduleKey &, const ScheduleKey &) = default;
    };
    struct Linked {
        ScheduleKey key;
        Schedule schedule;
        std::vector<LocalStep> steps; // empty: peers' memory is not read
    };
    [[nodiscard]] const Linked &schedule(const Choice &choice, std::size_t bytes);
    // This rank's part of a vector of so many messages that aggregators reduce.
    [[nodiscard]] const Schedule &in_network_schedule(int messages);
    // The same of a call that is no allreduce, and how it moves its vector.
    [[nodiscard]] const Linked &collective_schedule(int collective, int root);
    [[nodiscard]] Choice collective_choice(std::size_t bytes) const noexcept;

    // A communicator runs one blocking call at a time, so these are the current call's.
    [[nodiscard]] Executor &executor() noexcept { return executor_; }
    [[nodiscard]] Messages &messages() noexcept { return *messages_; }
    // After a network failure: a message may still arrive in them, so they are left to it.
    void abandon_messages() noexcept;
    // Lets the GPU copy to and from the control page at full speed. The device's context is
    // current.
    void pin_page(Device &device);

private:
    [[nodiscard]] const Linked &find_or_build(const ScheduleKey &key);
    [[nodiscard]] Schedule build(const ScheduleKey &key, int rank) const;
    [[nodiscard]] std::vector<int> node_runs() const;
    void find_shares();
    [[nodiscard]] int late_rank(bool mapped) const noexcept;
    [[nodiscard]] std::vector<int> shares_for(int late) const;
    void link(Linked &linked) const;
    void observe_host(const hetcoll_call &call, std::uint64_t start_ns) noexcept;
    void say_split_machine(std::span<const hetcoll_facts> facts);

    Process &process_;
    hetcoll_p2p p2p_;
    hetcoll_facts agreed_;
    NodeGroup group_;
    Peers peers_;
    MappedCall mapped_;
    Aggregation aggregation_;
    OperationQueue queue_;
    bool ready_ = false;
    bool small_device_call_ = false;
    bool unavailable_reported_ = false;
    Arrivals arrivals_;
    std::optional<RankShares> shares_; // found at the first choice that knows the links
    struct Memo {                      // of choice(): programs repeat themselves
        std::size_t bytes = 0;
        int kind = -1, op = -1;
        AlgorithmSet available = 0;
        Choice choice;
    };
    std::array<Memo, 8> memos_;
    struct Tuned { // calls whose sizes have one highest bit
        Algorithm algorithm;
        int size_class;
        ChunkTuner tuner;
    };
    std::deque<Tuned> tuned_;
    std::vector<std::unique_ptr<Linked>> schedules_;
    Executor executor_;
    Meeting meeting_; // of try_host()
    std::unique_ptr<Messages> messages_ = std::make_unique<Messages>();
    const Device *pinned_by_ = nullptr;
    PinnedMemory pin_;
    // Calls served by try_host(). Only this engine writes it, so that it costs no locked
    // instruction.
    std::atomic<std::uint64_t> host_calls_{0};
};

} // namespace hetcoll
