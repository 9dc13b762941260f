// One communicator's aggregators (coll_hetcoll_aggregators): all its ranks join them together, at
// the first call that could use them, or none does. Whether they are in use is the same on every
// rank.
#pragma once

#include "engine/communicator/aggregator_messages.h"
#include "engine/meeting/meeting.h"
#include "engine/meeting/node_group.h"
#include "engine/process/process.h"
#include "plan/way.h"
#include "schedule/in_network.h"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace hetcoll {

class AggregatorClient; // aggregator/client.h

// Which of `count` aggregators serves each rank: consecutive ranks share one, whole nodes where
// there are as many and their ranks have consecutive numbers. No more are used than there are
// ranks.
[[nodiscard]] std::vector<int> aggregator_of_ranks(std::span<const int> node_of, int count);

// Who sends what to which of `count` aggregators. Where several nodes have equally many ranks, with
// consecutive numbers, a rank sends the slice of its node's sum that is its own; else each rank is
// taken to be a node and sends its whole vector.
[[nodiscard]] SwitchTree aggregator_tree(std::span<const int> node_of, int count);

class Aggregation {
public:
    // `wanted`: all ranks name the same aggregators.
    Aggregation(Process &process, NodeGroup &group, bool wanted);
    ~Aggregation();
    Aggregation(const Aggregation &) = delete;
    Aggregation &operator=(const Aggregation &) = delete;

    [[nodiscard]] bool is_untried() const noexcept { return state_ == State::kUntried; }
    [[nodiscard]] bool joins() const noexcept { return is_untried() && part_ != Part::kMeet; }
    [[nodiscard]] bool joined() const noexcept { return state_ == State::kJoined; }
    // How many are in use; 0: not joined.
    [[nodiscard]] int count() const noexcept { return joined() ? tree_.leaf_count : 0; }
    // How many ranks of a node, all of them or one, share a vector's way to the aggregators.
    [[nodiscard]] int slices() const noexcept { return tree_.ranks_per_node; }

    // Joins, with all other ranks, which begin at the same time because they meet first. Call
    // step() until it returns something else than kPending. `messages` live as long.
    void start(Messages &messages, int tag);
    [[nodiscard]] Progress step();
    // The ranks' last flags. kCallsDiffer: they do not all join, and this one may do so later.
    [[nodiscard]] const Meeting &meeting() const noexcept { return join_->meeting; }
    [[nodiscard]] Flags heard() const noexcept { return join_->meeting.flags(); }
    [[nodiscard]] int code() const noexcept { return join_->meeting.code(); } // requires kFailed

    // Requires joined(), as all below. Most bytes in one message, and of a vector whose input can
    // be kept.
    [[nodiscard]] std::size_t message_bytes() const noexcept { return kInNetworkMessageBytes; }
    [[nodiscard]] std::size_t piece_bytes() const noexcept;
    // This rank's part of the schedule for a vector of `messages` messages.
    [[nodiscard]] Schedule schedule(int messages) const;
    // The table for the next vector of `messages` messages, which the aggregators are told of.
    // Where the connection is lost the rank serves the other ranks, and its result is wrong.
    [[nodiscard]] const hetcoll_p2p &begin(ReduceOp op, ElementKind kind, std::size_t count,
                                           int messages);
    // Lets the connection advance.
    void progress();
    [[nodiscard]] bool is_lost() const noexcept { return !join_->table.connected(); }
    // This rank's connection is of no use any more, and nothing is sent or received by it from now
    // on. The others learn of it in a meeting; then all abandon().
    void disconnect();
    // None of the ranks uses aggregators again. One of them, the first that has lost its own, says
    // so.
    void abandon(int first_lost_rank);
    // This rank uses none again, because the communicator is broken. At any time.
    void leave() noexcept;

private:
    enum class State : std::uint8_t { kUntried, kJoined, kGone };
    enum class Part : std::uint8_t { kMeet, kJoin, kAgree };

    void meet(std::uint64_t mine, ReduceOp op, bool failed);
    void connect(std::uint64_t job);

    struct Join {
        Meeting meeting;
        AggregatorMessages table;
    };

    Process &process_;
    Aggregators &aggregators_;
    NodeGroup &group_;
    State state_;
    Part part_ = Part::kMeet;
    Messages *messages_ = nullptr;
    int tag_ = 0;
    SwitchTree tree_;            // of one message
    std::unique_ptr<Join> join_; // null: no rank joins ever
    std::unique_ptr<AggregatorClient> client_;
    Status problem_;
};

} // namespace hetcoll
