#include "machine/rank_trees.h"

#include <cstddef>
#include <utility>

namespace hetcoll {

RankTrees rank_trees(const Packing &packing, const NodeGroups &gpus)
{
    RankTrees result;
    std::vector<int> followed; // by vertex behind the GPUs: the vertex that stands for its GPU
    for (const GpuGroup &group : gpus) {
        result.ranks.push_back(group.front());
    }
    for (std::size_t gpu = 0; gpu < gpus.size(); ++gpu) {
        for (std::size_t other = 1; other < gpus[gpu].size(); ++other) {
            result.ranks.push_back(gpus[gpu][other]);
            followed.push_back(static_cast<int>(gpu));
        }
    }
    const auto add = [&](int root, std::vector<int> parent, int weight) {
        parent.insert(parent.end(), followed.begin(), followed.end());
        result.trees.push_back({root, std::move(parent), weight});
    };
    if (gpus.size() == 1) {
        add(0, {kNoParent}, 1);
    }
    for (const Tree &tree : packing.trees) {
        add(tree.root, tree.parent, tree.weight);
    }
    return result;
}

} // namespace hetcoll
