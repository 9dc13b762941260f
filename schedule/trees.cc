// Allreduce over packed spanning trees (Wang et al., Blink, 2020): a tree reduces its share of the
// vector up to its root and broadcasts the sum down again, chunk by chunk, so that both directions
// of its links carry something all the time. Where the trees fill the links, nothing is faster for
// large vectors (topology/strength.h).
#include "schedule/algorithms.h"
#include "schedule/builder.h"
#include "schedule/halves.h"
#include "schedule/rounds.h"
#include "schedule/tree_steps.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace hetcoll {
namespace {

struct Weights {
    int divisor = 0; // what one block weighs
    int blocks = 0;  // of all trees
};

Weights weigh(std::span<const TreeShape> trees)
{
    int divisor = 0, weight = 0;
    for (const TreeShape &tree : trees) {
        divisor = std::gcd(divisor, tree.weight);
        weight += tree.weight;
    }
    return {divisor, weight / divisor};
}

using AddSteps = void (*)(ScheduleBuilder &, const TreePlace &, BlockRange);

Schedule build_one_direction(AddSteps add_steps, int rank, int root, std::span<const int> ranks,
                             std::span<const TreeShape> trees)
{
    const Weights weights = weigh(trees);
    const auto top = std::find(ranks.begin(), ranks.end(), root) - ranks.begin();
    ScheduleBuilder steps(weights.blocks, static_cast<int>(trees.size()));
    BlockRange blocks{.first = 0, .count = 0};
    int channel = 0;
    for (const TreeShape &tree : trees) {
        blocks = {.first = blocks.first + blocks.count, .count = tree.weight / weights.divisor};
        steps.set_channel(channel++);
        add_steps(steps, place_of(rank, ranks, rooted_at(tree, static_cast<int>(top))), blocks);
    }
    return std::move(steps).finish();
}

// Ranks around the ring in ascending order, whatever their vertices.
void add_side_ring(ScheduleBuilder &steps, int rank, std::span<const int> ranks, BlockRange blocks,
                   bool by_adapter)
{
    std::vector<int> ring(ranks.begin(), ranks.end());
    std::sort(ring.begin(), ring.end());
    const int place =
        static_cast<int>(std::lower_bound(ring.begin(), ring.end(), rank) - ring.begin());
    steps.set_by_message(true, by_adapter);
    add_rounds(steps, kRingOfTeam, {ring, place}, blocks);
    steps.set_by_message(false);
}

} // namespace

TreePlace place_of(int rank, std::span<const int> ranks, const TreeShape &tree)
{
    TreePlace place;
    for (std::size_t vertex = 0; vertex < ranks.size(); ++vertex) {
        const int above = tree.parent[vertex];
        if (above < 0) {
            continue;
        }
        if (ranks[vertex] == rank) {
            place.parent = ranks[above];
        }
        if (ranks[above] == rank) {
            place.children.push_back(ranks[vertex]);
        }
    }
    std::sort(place.children.begin(), place.children.end());
    return place;
}

TreeShape rooted_at(TreeShape tree, int vertex)
{
    tree.root = vertex;
    for (int above = -1; vertex >= 0;) {
        const int next = std::exchange(tree.parent[vertex], above);
        above = std::exchange(vertex, next);
    }
    return tree;
}

void add_steps_up(ScheduleBuilder &steps, const TreePlace &place, BlockRange blocks)
{
    steps.recv_reduce_all(place.children, blocks);
    if (place.parent >= 0) {
        steps.send(place.parent, blocks);
    }
}

void add_steps_down(ScheduleBuilder &steps, const TreePlace &place, BlockRange blocks)
{
    if (place.parent >= 0) {
        steps.recv(place.parent, blocks);
    }
    for (const int child : place.children) {
        steps.send(child, blocks);
    }
}

// A sum is computed only on the way up and copied on the way down: the same bits on every rank.
// With one channel a tree, the way down would wait until the way up has started its last chunk.
Schedule build_trees(int rank, std::span<const int> ranks, std::span<const TreeShape> trees,
                     SideShares sides)
{
    const Weights weights = weigh(trees);
    // Enough blocks to cut the sides' parts for their rings, and the rest for the trees.
    const int parts = sides.host + sides.adapter;
    const int rings = (sides.host > 0 ? 1 : 0) + (sides.adapter > 0 ? 1 : 0);
    const int size = static_cast<int>(ranks.size());
    const int tree_blocks = parts > 0 ? (kSideParts - parts) * size : 1; // of the divisor
    const int part_blocks = size * weights.blocks;
    ScheduleBuilder steps(weights.blocks * tree_blocks + parts * part_blocks,
                          2 * static_cast<int>(trees.size()) + rings);
    BlockRange blocks{.first = 0, .count = 0};
    int channel = 0;
    for (const bool by_adapter : {false, true}) {
        if (const int share = by_adapter ? sides.adapter : sides.host; share > 0) {
            blocks = {.first = blocks.first + blocks.count, .count = share * part_blocks};
            steps.set_channel(channel++);
            add_side_ring(steps, rank, ranks, blocks, by_adapter);
        }
    }
    for (const TreeShape &tree : trees) {
        blocks = {.first = blocks.first + blocks.count,
                  .count = tree.weight / weights.divisor * tree_blocks};
        const TreePlace place = place_of(rank, ranks, tree);
        steps.set_channel(channel++);
        add_steps_up(steps, place, blocks);
        steps.set_channel(channel++);
        add_steps_down(steps, place, blocks);
    }
    return std::move(steps).finish();
}

Schedule build_trees_bcast(int rank, int root, std::span<const int> ranks,
                           std::span<const TreeShape> trees)
{
    return build_one_direction(add_steps_down, rank, root, ranks, trees);
}

Schedule build_trees_reduce(int rank, int root, std::span<const int> ranks,
                            std::span<const TreeShape> trees)
{
    return build_one_direction(add_steps_up, rank, root, ranks, trees);
}

} // namespace hetcoll
