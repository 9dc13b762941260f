#include "engine/aggregation.h"

#include "aggregator/client.h"
#include "engine/flags.h"

#include <algorithm>
#include <cstring>
#include <random>

namespace hetcoll {
namespace {

constexpr std::uint64_t kNobody = ~std::uint64_t{0};

std::uint64_t random_number()
{
    std::random_device source;
    return std::uint64_t{source()} << 32 | source();
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

Aggregation::Aggregation(Process &process, NodeGroup &group, bool wanted)
    : process_(process), group_(group),
      state_(wanted && process.aggregators() != nullptr && group.all().size > 1 ? State::kUntried
                                                                                : State::kGone)
{
}

Aggregation::~Aggregation() = default;

std::size_t Aggregation::piece_bytes() const noexcept { return process_.aggregators()->copy_bytes; }

// ---- joining ----

void Aggregation::start(Messages &messages, int tag)
{
    messages_ = &messages;
    tag_ = tag;
    part_ = Part::kMeet;
    // Rank 0 names the job. Who has waited for aggregators in vain does not wait again.
    meet(group_.all().rank == 0 ? random_number() : 0, ReduceOp::kBor,
         process_.aggregators_failed());
}

void Aggregation::meet(std::uint64_t mine, ReduceOp op, bool failed)
{
    process_.count(HETCOLL_AGREEMENTS);
    meeting_.start(group_, *messages_, tag_, std::span(&mine, 1), op,
                   failed ? kNotShared : Flags{0});
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
    if (const Progress progress = meeting_.step(); progress != Progress::kDone) {
        return progress;
    }
    std::uint64_t answer = 0;
    meeting_.sum(std::span(&answer, 1));
    const bool failed = (meeting_.flags() & kNotShared) != 0;
    if (part_ == Part::kMeet && !failed) {
        connect(answer);
        part_ = Part::kJoin;
        return step();
    }
    if (part_ == Part::kMeet) {
        state_ = State::kGone; // told of when it was new
    } else if (failed) {
        process_.note_aggregators_failed();
        abandon(static_cast<int>(answer));
    } else {
        state_ = State::kJoined;
        if (group_.all().rank == 0) {
            log(process_.log(), 1,
                "hetcoll: communicator of %d ranks: connected to %d aggregator%s, with a window of "
                "%d messages",
                group_.all().size, tree_.leaf_count, tree_.leaf_count == 1 ? "" : "s",
                client_->window());
        }
    }
    return Progress::kDone;
}

void Aggregation::connect(std::uint64_t job)
{
    const AggregatorList &list = *process_.aggregators();
    const int size = group_.all().size, rank = group_.all().rank;
    std::vector<int> node_of;
    for (int r = 0; r < size; ++r) {
        node_of.push_back(group_.node_of(r));
    }
    const auto named = static_cast<int>(list.endpoints.size());
    tree_.leaf_of = aggregator_of_ranks(node_of, named);
    tree_.leaf_count = tree_.leaf_of.back() + 1;
    own_ = tree_.leaf_of[rank];
    const auto [first, end] = std::equal_range(tree_.leaf_of.begin(), tree_.leaf_of.end(), own_);
    auto client = AggregatorClient::start({
        .endpoint = list.endpoints[own_],
        .key = list.key,
        .job = job,
        .comm = group_.all().comm_id,
        .rank = rank,
        .ranks = size,
        .index = own_,
        .first = static_cast<int>(first - tree_.leaf_of.begin()),
        .count = static_cast<int>(end - first),
        .window = list.window,
        .message_bytes = kInNetworkMessageBytes,
    });
    if (client.ok()) {
        client_ = std::move(*client);
    } else {
        problem_ = client.take_status();
    }
}

// ---- in use ----

Schedule Aggregation::schedule(int messages) const
{
    SwitchTree tree = tree_;
    tree.messages = messages;
    tree.window = client_->window();
    return build_in_network(tree, group_.all().rank);
}

const hetcoll_p2p &Aggregation::begin(ReduceOp op, ElementKind kind, std::size_t count)
{
    client_->begin(op, kind, count);
    return client_->table();
}

bool Aggregation::poll()
{
    return client_ != nullptr && client_->step() == AggregatorState::kJoined;
}

void Aggregation::disconnect()
{
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
            "hetcoll: no aggregators on this communicator of %d ranks from now on, other "
            "algorithms serve it: %s",
            group_.all().size, problem_.message().c_str());
    }
    client_.reset();
    state_ = State::kGone;
}

} // namespace hetcoll
