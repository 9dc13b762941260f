// Three phases across nodes as in Blink (Wang et al. 2020), whose partitions with local roots are
// the slices here, and one more level below.
#include "schedule/hierarchical.h"

#include "schedule/direct.h"
#include "schedule/rounds.h"

#include <algorithm>
#include <utility>

namespace hetcoll {
namespace {

const TeamAlgorithm &team_algorithm(BetweenNodes algorithm)
{
    switch (algorithm) {
    case BetweenNodes::kRing: break;
    case BetweenNodes::kRabenseifner: return kRabenseifnerOfTeam;
    case BetweenNodes::kRecursiveDoubling: return kRecursiveDoublingOfTeam;
    }
    return kRingOfTeam;
}

int most_gpus(const Groups &groups)
{
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

class Hierarchy {
public:
    Hierarchy(int rank, const Groups &groups, const TeamAlgorithm &algorithm, int segments)
        : groups_(groups), algorithm_(algorithm), self_(find_place(rank, groups)),
          slices_(most_gpus(groups)),
          slice_blocks_(algorithm.part_count(static_cast<int>(groups.nodes.size()))),
          steps_(segments * slices_ * slice_blocks_, segments)
    {
        for (const int other : group()) {
            if (other != group().front()) {
                others_.push_back(other);
            }
        }
    }

    void add_segment(int segment)
    {
        segment_ = segment;
        steps_.set_channel(segment);
        if (!self_.leads) {
            steps_.send(group().front(), whole_segment());
            steps_.recv(group().front(), whole_segment());
            return;
        }
        steps_.recv_reduce_all(others_, whole_segment());
        add_direct_reduce_scatter(steps_, shares(), self_.gpu);
        exchange_between_nodes();
        add_direct_allgather(steps_, shares(), self_.gpu);
        for (const int other : others_) {
            steps_.send(other, whole_segment());
        }
    }

    [[nodiscard]] Schedule finish() && { return std::move(steps_).finish(); }

private:
    struct Slices {
        int first, count;
    };

    [[nodiscard]] const NodeGroups &node() const { return groups_.nodes[self_.node]; }
    [[nodiscard]] const GpuGroup &group() const { return node()[self_.gpu]; }
    [[nodiscard]] int leader_count() const { return static_cast<int>(node().size()); }
    [[nodiscard]] int leader_of(int gpu) const { return node()[gpu].front(); }

    // Slice j belongs to leader floor(j * leaders / slices) of each node.
    [[nodiscard]] Slices slices_of(int gpu) const
    {
        const auto first_of = [this](int leader) {
            return (leader * slices_ + leader_count() - 1) / leader_count();
        };
        return {first_of(gpu), first_of(gpu + 1) - first_of(gpu)};
    }
    [[nodiscard]] BlockRange blocks_of(Slices slices) const
    {
        return {(segment_ * slices_ + slices.first) * slice_blocks_, slices.count * slice_blocks_};
    }
    [[nodiscard]] BlockRange whole_segment() const { return blocks_of({0, slices_}); }

    // Of the leaders of this node.
    [[nodiscard]] std::vector<Share> shares() const
    {
        std::vector<Share> shares;
        for (int gpu = 0; gpu < leader_count(); ++gpu) {
            shares.push_back({leader_of(gpu), blocks_of(slices_of(gpu))});
        }
        return shares;
    }

    // The owners of a slice of the vector, one on each node.
    [[nodiscard]] std::vector<int> owners_of(int slice) const
    {
        std::vector<int> owners;
        for (const NodeGroups &other : groups_.nodes) {
            owners.push_back(other[slice * other.size() / slices_].front());
        }
        std::sort(owners.begin(), owners.end());
        return owners;
    }

    // Round by round, not slice by slice: while one slice's message is on its way, the others' are
    // sent.
    void exchange_between_nodes()
    {
        const Slices mine = slices_of(self_.gpu);
        std::vector<Rounds> slices;
        for (int slice = mine.first; slice < mine.first + mine.count; ++slice) {
            const std::vector<int> owners = owners_of(slice);
            const auto self = std::find(owners.begin(), owners.end(), leader_of(self_.gpu));
            slices.push_back(algorithm_.rounds({owners, static_cast<int>(self - owners.begin())},
                                               blocks_of({slice, 1})));
        }
        for (std::size_t round = 0; round < slices.front().size(); ++round) {
            for (const Rounds &slice : slices) {
                for (const Move &move : slice[round]) {
                    steps_.add(move);
                }
            }
        }
    }

    const Groups &groups_;
    const TeamAlgorithm &algorithm_;
    const Place self_;
    const int slices_, slice_blocks_; // of a segment, of a slice
    std::vector<int> others_;         // on this GPU, without the leader
    ScheduleBuilder steps_;
    int segment_ = 0;
};

} // namespace

Schedule build_hierarchical(int rank, const Groups &groups, BetweenNodes algorithm, int segments)
{
    Hierarchy hierarchy(rank, groups, team_algorithm(algorithm), segments);
    for (int segment = 0; segment < segments; ++segment) {
        hierarchy.add_segment(segment);
    }
    return std::move(hierarchy).finish();
}

} // namespace hetcoll
