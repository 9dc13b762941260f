#include "engine/communicator/aggregation.h"

#include "aggregator/client.h"
#include "base/counted.h"
#include "engine/meeting/flags.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>

namespace hetcoll {
namespace {

constexpr std::uint64_t kNobody = ~std::uint64_t{0};

std::uint64_t random_number()
{
    std::random_device source;
    return std::uint64_t{source()} << 32 | source();
}

// How many ranks each of several nodes has, or 1 where they differ or their ranks are not in order.
int ranks_of_each_node(std::span<const int> node_of)
{
    const auto size = static_cast<int>(node_of.size());
    const auto first = static_cast<int>(std::count(node_of.begin(), node_of.end(), node_of[0]));
    if (first == size) {
        return 1;
    }
    for (int rank = 0; rank < size; ++rank) {
        if (node_of[rank] != node_of[0] + rank / first) {
            return 1;
        }
    }
    return size % first == 0 ? first : 1;
}

} // namespace

std::vector<int> aggregator_of_ranks(std::span<const int> node_of, int count)
{
    const auto size = static_cast<int>(node_of.size());
    count = std::min(count, size);
    const int nodes = size == 0 ? 0 : *std::max_element(node_of.begin(), node_of.end()) + 1;
    const bool whole_nodes = nodes >= count && std::is_sorted(node_of.begin(), node_of.end());
    std::vector<int> aggregator(node_of.size());
    for (int rank = 0; rank < size; ++rank) {
        const std::int64_t place = whole_nodes ? node_of[rank] : rank;
        aggregator[rank] = static_cast<int>(place * count / (whole_nodes ? nodes : size));
    }
    return aggregator;
}

SwitchTree aggregator_tree(std::span<const int> node_of, int count)
{
    SwitchTree tree;
    tree.ranks_per_node = ranks_of_each_node(node_of);
    std::vector<int> nodes(node_of.begin(), node_of.end());
    if (tree.ranks_per_node > 1) {
        nodes.resize(nodes.size() / static_cast<std::size_t>(tree.ranks_per_node));
        std::iota(nodes.begin(), nodes.end(), 0);
    }
    tree.leaf_of = aggregator_of_ranks(nodes, count);
    tree.leaf_count = tree.leaf_of.back() + 1;
    return tree;
}

Aggregation::Aggregation(Process &process, NodeGroup &group, bool wanted)
    : process_(process), aggregators_(process.aggregators()), group_(group),
      state_(wanted && aggregators_.list() != nullptr && group.all().size > 1 ? State::kUntried
                                                                              : State::kGone),
      join_(is_untried() ? new Join{{}, AggregatorMessages(group.all())} : nullptr)
{
}

Aggregation::~Aggregation() = default;

std::size_t Aggregation::piece_bytes() const noexcept { return aggregators_.list()->copy_bytes; }

// ---- joining ----

void Aggregation::start(Messages &messages, int tag)
{
    messages_ = &messages;
    tag_ = tag;
    part_ = Part::kMeet;
    // Rank 0 names the job. Who has waited for aggregators in vain does not wait again.
    meet(group_.all().rank == 0 ? random_number() : 0, ReduceOp::kBor, aggregators_.have_failed());
}

void Aggregation::meet(std::uint64_t mine, ReduceOp op, bool failed)
{
    process_.counters().count(HETCOLL_AGREEMENTS);
    join_->meeting.start(group_, *messages_, tag_, std::span(&mine, 1), op,
                         flags_if(failed, kNoAggregator));
}

Progress Aggregation::step()
{
    if (part_ == Part::kJoin) {
        const AggregatorState state = problem_.ok() ? client_->step() : AggregatorState::kFailed;
        if (state == AggregatorState::kJoining) {
            return Progress::kPending;
        }
        if (state == AggregatorState::kFailed && problem_.ok()) {
            disconnect();
        }
        part_ = Part::kAgree;
        meet(problem_.ok() ? kNobody : static_cast<std::uint64_t>(group_.all().rank),
             ReduceOp::kMin, !problem_.ok());
    }
    if (const Progress progress = join_->meeting.step(); progress != Progress::kDone) {
        return progress;
    }
    if (any(join_->meeting.flags(), kCallsDiffer)) {
        return Progress::kDone; // in the first one, so it is untried
    }
    std::uint64_t answer = 0;
    join_->meeting.sum(std::span(&answer, 1));
    const bool failed = any(join_->meeting.flags(), kNoAggregator);
    if (part_ == Part::kMeet && !failed) {
        connect(answer);
        part_ = Part::kJoin;
        return step();
    }
    if (part_ == Part::kMeet) {
        state_ = State::kGone; // told of when it was new
    } else if (failed) {
        aggregators_.note_failed();
        abandon(static_cast<int>(answer));
    } else {
        state_ = State::kJoined;
        tree_.window = client_->window();
        if (const std::string note = client_->take_note(); !note.empty()) {
            const bool first = process_.notices().first_time(Notice::kWithoutRdma);
            log(process_.log(), first && group_.is_leader() ? 0 : 1, "hetcoll: aggregators: %s",
                note.c_str());
        }
        if (group_.all().rank == 0) {
            log(process_.log(), 1,
                "hetcoll: communicator of %s: connected to %s, with a window of %d messages%s",
                counted(group_.all().size, "rank").c_str(),
                counted(tree_.leaf_count, "aggregator").c_str(), tree_.window,
                slices() == 1 ? "" : ", each rank for its slice of its node's sum");
        }
    }
    return Progress::kDone;
}

void Aggregation::connect(std::uint64_t job)
{
    const AggregatorList &list = *aggregators_.list();
    const int rank = group_.all().rank;
    std::vector<int> node_of;
    for (int r = 0; r < group_.all().size; ++r) {
        node_of.push_back(group_.node_of(r));
    }
    tree_ = aggregator_tree(node_of, static_cast<int>(list.endpoints.size()));
    const int node = rank / tree_.ranks_per_node;
    const int own = tree_.leaf_of[node];
    const auto [first, end] = std::equal_range(tree_.leaf_of.begin(), tree_.leaf_of.end(), own);
    auto client = list.clients->start({
        .endpoint = list.endpoints[own],
        .key = list.key,
        // To the aggregator the ranks of one slice are a job of their own.
        .job = job + static_cast<std::uint64_t>(rank % tree_.ranks_per_node),
        .comm = group_.all().comm_id,
        .rank = node,
        .ranks = tree_.nodes(),
        .index = own,
        .first = static_cast<int>(first - tree_.leaf_of.begin()),
        .count = static_cast<int>(end - first),
        .window = list.window,
        .message_bytes = kInNetworkMessageBytes,
        .rdma = list.rdma,
    });
    if (client.ok()) {
        client_ = std::move(*client);
        join_->table.connect(client_->table(), tree_.nodes() + own);
    } else {
        problem_ = client.take_status();
    }
}

// ---- in use ----

Schedule Aggregation::schedule(int messages) const
{
    SwitchTree tree = tree_;
    tree.messages = messages;
    return build_in_network(tree, group_.all().rank);
}

const hetcoll_p2p &Aggregation::begin(ReduceOp op, ElementKind kind, std::size_t count,
                                      int messages)
{
    progress(); // it may have been lost since the last vector
    const int slice = group_.all().rank % tree_.ranks_per_node;
    const ElementSpan own =
        range_span(count, messages * tree_.ranks_per_node, {slice * messages, messages});
    if (!is_lost() && own.count > 0) {
        client_->begin(op, kind, own.count);
    }
    return join_->table.table();
}

void Aggregation::progress()
{
    if (client_ != nullptr && client_->step() == AggregatorState::kFailed) {
        join_->table.disconnect();
    }
}

void Aggregation::disconnect()
{
    join_->table.disconnect();
    if (client_ == nullptr) {
        return;
    }
    if (problem_.ok() && client_->step() == AggregatorState::kFailed) {
        problem_ = error(client_->status().code(), "%s", client_->status().message().c_str());
    } else if (problem_.ok()) {
        problem_ = error(Errc::kNoMemory, "a rank has no memory for messages to its aggregator");
    }
    client_.reset();
}

void Aggregation::abandon(int first_lost_rank)
{
    if (first_lost_rank == group_.all().rank) {
        log(process_.log(), 0,
            "hetcoll: no aggregators on this communicator of %s from now on, other algorithms "
            "serve it: %s",
            counted(group_.all().size, "rank").c_str(), problem_.message().c_str());
    }
    client_.reset();
    state_ = State::kGone;
}

void Aggregation::leave() noexcept
{
    if (join_ == nullptr) {
        return;
    }
    join_->table.disconnect();
    client_.reset();
    state_ = State::kGone;
}

} // namespace hetcoll
