// Allreduce in three nested levels: ranks that share a GPU, GPUs of a node, nodes. For any number
// of ranks on a GPU, GPUs on a node and ranks on a node, and any placement of the ranks. Between
// nodes as in Blink (Wang et al. 2020), whose partitions with local roots are the slices here, and
// one more level below.
//
// 0 On a GPU: the leader reduces the parts of all its ranks.
// 1 On a node, among the GPUs' leaders: reduce-scatter. The vector is cut into as many slices as
//   there are GPUs on the node that has most. Every node deals out all slices to its leaders, in
//   order and as evenly as whole slices allow. By flow there are as many as Groups::slices or
//   Groups::near_slices has, which deal them out: a leader may own none.
// 2 Between nodes: the owners of a slice, one on each node, reduce it among themselves. Slices by
//   flow that have the same owners, one after the other, go in the same messages.
// 3 On a node: allgather, the owners send their slices to the other leaders.
// 4 On a GPU: the leader sends the result to the others.
//
// Phases 1 and 3 are exchanges of everybody with everybody. If some GPUs of a node have no fast
// link to each other, they may go `over_trees`: slice by slice up a tree that hangs at the slice's
// owner, and down the same tree (Blink's trees with one root a partition). A channel takes one of
// its node's trees, in turn and as often as they weigh. Nodes without trees do as the others.
//
// All this for each of `segments` parts of the vector, so that one segment is between nodes while
// another one is on the node. A segment has `lanes` channels, each with some of its slices: in a
// channel a slice whose data are not there holds up those behind it.
//
// Cost for H nodes, and for a leader with w of the m slices, on a node with g leaders, on a GPU
// with q ranks; messages are per segment, with the ring between nodes:
//
//           messages sent   vectors sent     vectors reduced
//   0       -               -                q-1
//   1       g-1             (m-w)/m          (g-1) w/m
//   2       w 2(H-1)        w/m 2(H-1)/H     w/m (H-1)/H
//   3       g-1             (g-1) w/m        -
//   4       q-1             q-1              -
//
// Over trees a leader sends and receives a vector in all for each of its links, in both phases
// together.
//
// So each node sends 2(H-1)/H of the vector to other nodes, however many ranks it has, and as much
// with radix k (Rabenseifner's is k = 2). Recursive doubling sends log2(H) vectors, recursive
// multiplying up to 7 in each of ceil(log_8 H) rounds.
//
// A channel is a lane of a segment: at most 256. By racks, ScheduleParts::rack_nodes are in each.
#include "plan/algorithm.h"
#include "plan/candidates.h"
#include "plan/parts.h"
#include "schedule/direct.h"
#include "schedule/rounds.h"
#include "schedule/tree_steps.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <utility>

namespace hetcoll {
namespace {

// Null: equal ones.
const DealtSlices *dealt_slices(const Groups &groups, const Way &way)
{
    const DealtSlices &dealt = way.near_only ? groups.near_slices : groups.slices;
    return !way.by_links || dealt.empty() ? nullptr : &dealt;
}

int count_slices(const Groups &groups, const DealtSlices *dealt)
{
    if (dealt != nullptr) {
        return std::accumulate(dealt->front().begin(), dealt->front().end(), 0);
    }
    std::size_t most = 1;
    for (const NodeGroups &node : groups.nodes) {
        most = std::max(most, node.size());
    }
    return static_cast<int>(most);
}

// Where a rank is.
struct Place {
    int node = 0, gpu = 0;
    bool leads = false;
};

Place find_place(int rank, const Groups &groups)
{
    for (int node = 0; node < static_cast<int>(groups.nodes.size()); ++node) {
        for (int gpu = 0; gpu < static_cast<int>(groups.nodes[node].size()); ++gpu) {
            const GpuGroup &group = groups.nodes[node][gpu];
            if (std::find(group.begin(), group.end(), rank) != group.end()) {
                return {node, gpu, group.front() == rank};
            }
        }
    }
    return {};
}

// Segments that are between nodes at the same time: enough to hide each other's latency. More would
// only wait, in memory of their own.
constexpr int kSegmentsBetweenNodes = 8;

// A channel is a segment, or some slices of it: a lane. Its rounds are what happens on the node
// before, those between nodes, and what happens on the node after.
class Hierarchy : public Program {
public:
    Hierarchy(int rank, const Groups &groups, const Way &way, int rack_nodes)
        : groups_(groups), algorithm_(*team_of(way.between_nodes)),
          rack_nodes_(way.by_racks ? rack_nodes : 0), leaving_(way.leaving),
          dealt_(dealt_slices(groups, way)), self_(find_place(rank, groups)),
          segments_(std::max(way.segments, 1)), slices_(count_slices(groups, dealt_)),
          lanes_(std::min(way.lanes, slices_)), slice_blocks_(cost_far().parts),
          counts_(dealt_ == nullptr ? equal_slices(leader_count(), slices_)
                                    : (*dealt_)[static_cast<std::size_t>(self_.node)])
    {
        for (const int other : group()) {
            if (other != group().front()) {
                others_.push_back(other);
            }
        }
        if (self_.leads) {
            find_owners();
        }
        const auto number = static_cast<std::size_t>(self_.node);
        if (self_.leads && way.over_trees && number < groups.trees.size()) {
            find_places(groups.trees[number]);
        }
    }

    [[nodiscard]] int block_count() const override { return segments_ * slices_ * slice_blocks_; }
    [[nodiscard]] int channel_count() const override { return segments_ * lanes_; }
    [[nodiscard]] int channels_at_once() const override { return kSegmentsBetweenNodes; }
    [[nodiscard]] int round_count() const override { return far_rounds() + 2; }
    // If all segments ran together, all would leave the node together, after its cards have waited
    // long.
    [[nodiscard]] std::optional<RoundPlace> waits_for(int channel, int round) const override
    {
        const int segments =
            leaving_ > 0 ? leaving_ : std::max(2, static_cast<int>(places_.size()));
        const int at_once = segments * lanes_;
        if (round > 0 || channel < at_once || !self_.leads) {
            return {};
        }
        return RoundPlace{channel - at_once, 0};
    }
    void add_round(ScheduleBuilder &to, int channel, int round) const override
    {
        const Lane lane = lane_of(channel);
        if (round == 0) {
            add_near_before(to, lane);
        } else if (round > far_rounds()) {
            add_near_after(to, lane);
        } else {
            add_far(to, lane, round - 1);
        }
    }

private:
    struct Slices {
        int first, count;
    };
    struct Lane {
        int channel;
        Slices slices; // of its segment
    };
    struct Owned {
        Slices slices;
        std::vector<int> owners; // one on each node
    };

    [[nodiscard]] const NodeGroups &node() const { return groups_.nodes[self_.node]; }
    [[nodiscard]] const GpuGroup &group() const { return node()[self_.gpu]; }
    [[nodiscard]] int leader_count() const { return static_cast<int>(node().size()); }
    [[nodiscard]] int leader_of(int gpu) const { return node()[gpu].front(); }
    [[nodiscard]] int far_rounds() const { return cost_far().rounds; }
    [[nodiscard]] TeamCost cost_far() const
    {
        return algorithm_.cost(static_cast<int>(groups_.nodes.size()), rack_nodes_);
    }

    [[nodiscard]] Slices slices_of(int gpu) const
    {
        const auto first = counts_.begin(), own = first + gpu;
        return {std::accumulate(first, own, 0), *own};
    }
    [[nodiscard]] Lane lane_of(int channel) const
    {
        const int number = channel % lanes_;
        const int first = number * slices_ / lanes_, end = (number + 1) * slices_ / lanes_;
        return {channel, {first, end - first}};
    }
    // The slices among these that are in the lane.
    [[nodiscard]] BlockRange blocks_of(const Lane &lane, Slices slices) const
    {
        const int first = std::max(slices.first, lane.slices.first);
        const int end =
            std::min(slices.first + slices.count, lane.slices.first + lane.slices.count);
        return {(lane.channel / lanes_ * slices_ + first) * slice_blocks_,
                std::max(0, end - first) * slice_blocks_};
    }
    [[nodiscard]] BlockRange whole(const Lane &lane) const { return blocks_of(lane, lane.slices); }

    // The shares of this node's leaders.
    [[nodiscard]] std::vector<Share> shares(const Lane &lane) const
    {
        std::vector<Share> shares;
        for (int gpu = 0; gpu < leader_count(); ++gpu) {
            shares.push_back({leader_of(gpu), blocks_of(lane, slices_of(gpu))});
        }
        return shares;
    }

    // Where slices are equal, slice j belongs to GPU floor(j * gpus / slices).
    [[nodiscard]] std::size_t owner_on(std::size_t node, int slice) const
    {
        if (dealt_ == nullptr) {
            return static_cast<std::size_t>(slice) * groups_.nodes[node].size() /
                   static_cast<std::size_t>(slices_);
        }
        const std::vector<int> &counts = (*dealt_)[node];
        std::size_t gpu = 0;
        for (int end = counts[0]; end <= slice; end += counts[gpu]) {
            ++gpu;
        }
        return gpu;
    }

    // The owners of a slice of the vector, one on each node.
    [[nodiscard]] std::vector<int> owners_of(int slice) const
    {
        std::vector<int> owners;
        for (std::size_t node = 0; node < groups_.nodes.size(); ++node) {
            owners.push_back(groups_.nodes[node][owner_on(node, slice)].front());
        }
        std::sort(owners.begin(), owners.end());
        return owners;
    }

    // Equal slices have a message each: they leave a node one after the other.
    void find_owners()
    {
        const Slices mine = slices_of(self_.gpu);
        for (int slice = mine.first; slice < mine.first + mine.count; ++slice) {
            std::vector<int> owners = owners_of(slice);
            if (dealt_ != nullptr && !owned_.empty() && owned_.back().owners == owners) {
                ++owned_.back().slices.count;
            } else {
                owned_.push_back({{slice, 1}, std::move(owners)});
            }
        }
    }

    void add_near_before(ScheduleBuilder &to, const Lane &lane) const
    {
        if (!self_.leads) {
            to.send(group().front(), whole(lane));
            to.recv(group().front(), whole(lane));
            return;
        }
        to.recv_reduce_all(others_, whole(lane));
        if (places_.empty()) {
            add_direct_reduce_scatter(to, shares(lane), self_.gpu);
        } else {
            add_tree(to, lane, add_steps_up);
        }
    }

    void add_near_after(ScheduleBuilder &to, const Lane &lane) const
    {
        if (!self_.leads) {
            return;
        }
        if (places_.empty()) {
            add_direct_allgather(to, shares(lane), self_.gpu);
        } else {
            add_tree(to, lane, add_steps_down);
        }
        for (const int other : others_) {
            to.send(other, whole(lane));
        }
    }

    // This GPU's place in each tree of the node, for every root; a heavy tree counts several times.
    void find_places(const std::vector<TreeShape> &trees)
    {
        std::vector<int> leaders;
        for (int gpu = 0; gpu < leader_count(); ++gpu) {
            leaders.push_back(leader_of(gpu));
        }
        for (const TreeShape &tree : trees) {
            std::vector<TreePlace> places;
            for (int root = 0; root < leader_count(); ++root) {
                places.push_back(place_of(leader_of(self_.gpu), leaders, rooted_at(tree, root)));
            }
            places_.insert(places_.end(), static_cast<std::size_t>(tree.weight), places);
        }
    }

    // All ranks take the slices of a lane in the same order, so nobody waits in a circle. Other
    // lanes need not wait for one whose data are not there.
    void add_tree(ScheduleBuilder &to, const Lane &lane,
                  void (*add_steps)(ScheduleBuilder &, const TreePlace &, BlockRange)) const
    {
        const std::vector<TreePlace> &places =
            places_[static_cast<std::size_t>(lane.channel) % places_.size()];
        for (int root = 0; root < leader_count(); ++root) {
            const BlockRange blocks = blocks_of(lane, slices_of(root));
            if (blocks.count > 0) {
                add_steps(to, places[static_cast<std::size_t>(root)], blocks);
            }
        }
    }

    // One round of all slices: while one slice's message is on its way, the others' are sent.
    void add_far(ScheduleBuilder &to, const Lane &lane, int round) const
    {
        for (const auto &[slices, owners] : owned_) {
            const BlockRange blocks = blocks_of(lane, slices);
            if (blocks.count == 0) {
                continue;
            }
            const auto self = std::lower_bound(owners.begin(), owners.end(), leader_of(self_.gpu));
            const Team team{owners, static_cast<int>(self - owners.begin()), rack_nodes_};
            for (const Move &move : algorithm_.round(team, blocks, round)) {
                to.add(move);
            }
        }
    }

    const Groups &groups_;
    const TeamAlgorithm &algorithm_;
    const int rack_nodes_, leaving_;
    const DealtSlices *const dealt_;
    const Place self_;
    const int segments_, slices_, lanes_, slice_blocks_; // of the vector, a segment twice, a slice
    std::vector<int> others_;                            // on this GPU, without the leader
    std::vector<int> counts_;                            // of slices, of each GPU of this node
    std::vector<Owned> owned_;                           // this rank's
    // By tree, then by the GPU at its root; empty: everybody exchanges with everybody.
    std::vector<std::vector<TreePlace>> places_;
};

// The second phases, in the order in which ties are decided: these, then as rows are.
consteval auto second_phases()
{
    std::array<Algorithm, std::popcount(kBetweenNodesAlgorithms)> phases{
        Algorithm::kRing, Algorithm::kRabenseifner, Algorithm::kRecursiveDoubling};
    const auto first = phases.begin(), rest = first + 3;
    auto to = rest;
    for (int i = 0; i < kAlgorithmCount; ++i) {
        const auto phase = static_cast<Algorithm>(i);
        if (has(phase, Trait::kBetweenNodes) && std::find(first, rest, phase) == rest) {
            *to++ = phase;
        }
    }
    return phases;
}
constexpr auto kSecondPhases = second_phases();

// With equal slices, and with the others that there are.
void add_slices(Way way, const Links &links, std::vector<Way> &ways)
{
    ways.push_back(way);
    way.by_links = true;
    if (links.slices_by_flow) {
        ways.push_back(way);
    }
    way.near_only = true;
    if (links.near_slices) {
        ways.push_back(way);
    }
}

// A ring of two is radix 2.
void add_ways(Way way, const Query &query, std::vector<Way> &ways)
{
    for (const bool over_trees : {false, true}) {
        if (over_trees && !(query.links.node_tree_gbps > 0)) {
            break;
        }
        way.over_trees = over_trees;
        if (over_trees && query.chunk_bytes == 0) {
            way.chunk_bytes = first_chunk(way.algorithm, query, true);
        }
        for (const Algorithm between : kSecondPhases) {
            way.between_nodes = between;
            const Orders orders = has(between, Trait::kInRing) && query.nodes == 2
                                      ? Orders{false, false}
                                      : orders_of(between, query.nodes, query.links.racks.nodes);
            for (const bool by_racks : {false, true}) {
                if (by_racks ? orders.by_racks : orders.plain) {
                    way.by_racks = by_racks;
                    add_slices(way, query.links, ways);
                }
            }
        }
    }
}

std::unique_ptr<Program> program(const Way &way, int rank, const ScheduleParts &parts)
{
    return std::make_unique<Hierarchy>(rank, *parts.groups, way, parts.rack_nodes);
}

void resolve(Way &way, std::size_t bytes, const Links & /*links*/, int /*ranks*/)
{
    way.segments = way.segments > 0 ? way.segments : hierarchy_segments(bytes);
}

// Circulants between nodes, too: to run them in full would cost more than it is worth.
bool is_mirrored(const Way &way, const Cluster &cluster, int /*ranks_of_node*/)
{
    return is_even_among(way.between_nodes, cluster.node_count());
}

// As many slices as a node exchanges with others at the same time.
int messages(Algorithm /*algorithm*/, const Query &query)
{
    return std::max(node_shape(query).min / std::max(query.ranks_per_gpu, 1), 1);
}

} // namespace

const AlgorithmPlan kHierarchicalPlan{.program = program,
                                      .resolve = resolve,
                                      .add_ways = add_ways,
                                      .is_mirrored = is_mirrored,
                                      .messages = messages};

} // namespace hetcoll
