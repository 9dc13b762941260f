// Allreduce over packed spanning trees (Wang et al., Blink, 2020): a tree reduces its share of the
// vector up to its root and broadcasts the sum down again, chunk by chunk, so that both directions
// of its links carry something all the time. Where the trees fill the links, nothing is faster for
// large vectors (topology/strength.h).
#include "schedule/algorithms.h"
#include "schedule/builder.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace hetcoll {
namespace {

// A rank's neighbours in one tree, by rank.
struct Place {
    int parent = -1; // none: the root
    std::vector<int> children;
};

Place place_of(int rank, std::span<const int> ranks, const TreeShape &tree)
{
    Place place;
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

} // namespace

// A sum is computed on the way up alone and copied on the way down: the same bits on every rank.
// With one channel a tree, the way down would wait until the way up has started its last chunk.
Schedule build_trees(int rank, std::span<const int> ranks, std::span<const TreeShape> trees)
{
    int divisor = 0, weight = 0;
    for (const TreeShape &tree : trees) {
        divisor = std::gcd(divisor, tree.weight);
        weight += tree.weight;
    }
    ScheduleBuilder steps(weight / divisor, 2 * static_cast<int>(trees.size()));
    BlockRange blocks{.first = 0, .count = 0};
    int channel = 0;
    for (const TreeShape &tree : trees) {
        blocks = {.first = blocks.first + blocks.count, .count = tree.weight / divisor};
        const Place place = place_of(rank, ranks, tree);
        steps.set_channel(channel++);
        steps.recv_reduce_all(place.children, blocks);
        if (place.parent >= 0) {
            steps.send(place.parent, blocks);
        }
        steps.set_channel(channel++);
        if (place.parent >= 0) {
            steps.recv(place.parent, blocks);
        }
        for (const int child : place.children) {
            steps.send(child, blocks);
        }
    }
    return std::move(steps).finish();
}

} // namespace hetcoll
