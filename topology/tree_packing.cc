#include "topology/tree_packing.h"

#include "topology/forest_union.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <numeric>
#include <tuple>
#include <utility>

namespace hetcoll {
namespace {

constexpr int kMostCopies = 16; // of trees, equal or not: more are too much work
constexpr int kMostGpusTried = 16, kMostStarts = 8; // see fewest_trees()

using Bundles = std::vector<TreeBundle>;
using Links = std::vector<LinkRoom>;

std::vector<int> hang_on(int root, const std::vector<std::uint64_t> &neighbours)
{
    std::vector<int> parent(neighbours.size(), kNoParent);
    std::vector<int> reached{root};
    for (std::size_t head = 0; head < reached.size(); ++head) {
        const int here = reached[head];
        for (std::uint64_t next = neighbours[here]; next != 0; next &= next - 1) {
            const int gpu = std::countr_zero(next);
            if (gpu != parent[here]) {
                parent[gpu] = here;
                reached.push_back(gpu);
            }
        }
    }
    return parent;
}

Tree centred(const TreeBundle &bundle)
{
    Tree best{};
    int least = 0;
    for (int root = 0; root < static_cast<int>(bundle.neighbours.size()); ++root) {
        Tree tree{root, hang_on(root, bundle.neighbours), bundle.copies};
        const int links = depth(tree);
        if (root == 0 || links < least) {
            least = links;
            best = std::move(tree);
        }
    }
    return best;
}

template <class Visit> void for_each_link(const TreeBundle &tree, const Visit &visit)
{
    for (int a = 0; a < static_cast<int>(tree.neighbours.size()); ++a) {
        const std::uint64_t above = tree.neighbours[a] >> a >> 1 << a << 1;
        for (std::uint64_t next = above; next != 0; next &= next - 1) {
            visit(a, std::countr_zero(next));
        }
    }
}

// The capacity that the trees leave on the links. merge() uses it to make do with fewer trees.
class Leftover {
public:
    Leftover(int gpus, const Links &links, const Bundles &trees)
        : gpus_(gpus), room_(static_cast<std::size_t>(gpus) * gpus, 0)
    {
        for (const LinkRoom &link : links) {
            room(link.a, link.b) = link.room;
        }
        for (const TreeBundle &tree : trees) {
            take(tree, tree.copies);
        }
    }

    // Gives up a tree if others can take its copies, the lightest first.
    void merge(Bundles &trees)
    {
        const auto lightest_first = [](const TreeBundle &one, const TreeBundle &other) {
            return std::tie(one.copies, one.neighbours) < std::tie(other.copies, other.neighbours);
        };
        for (bool merged = true; merged;) {
            std::sort(trees.begin(), trees.end(), lightest_first);
            merged = false;
            for (std::size_t tree = 0; tree < trees.size() && !merged; ++tree) {
                merged = give_up(trees, tree);
            }
        }
    }

private:
    int &room(int a, int b) { return room_[static_cast<std::size_t>(a) * gpus_ + b]; }

    void take(const TreeBundle &tree, int copies)
    {
        for_each_link(tree, [&](int a, int b) { room(a, b) -= copies; });
    }

    bool give_up(Bundles &trees, std::size_t light)
    {
        const std::vector<int> room_before = room_;
        Bundles kept = trees;
        int homeless = kept[light].copies;
        take(kept[light], -homeless);
        kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(light));
        for (std::size_t heavy = kept.size(); heavy-- > 0 && homeless > 0;) {
            int copies = homeless;
            for_each_link(kept[heavy],
                          [&](int a, int b) { copies = std::min(copies, room(a, b)); });
            take(kept[heavy], copies);
            kept[heavy].copies += copies;
            homeless -= copies;
        }
        if (homeless > 0) {
            room_ = room_before;
            return false;
        }
        trees = std::move(kept);
        return true;
    }

    int gpus_;
    std::vector<int> room_; // by two GPUs, the lower one first
};

std::vector<Tree> trees_of(int gpus, const Links &links, int count)
{
    Bundles bundles = pack_bundles(gpus, links, count);
    Leftover(gpus, links, bundles).merge(bundles);
    std::vector<Tree> trees;
    for (const TreeBundle &bundle : bundles) {
        trees.push_back(centred(bundle));
    }
    std::sort(trees.begin(), trees.end(), [](const Tree &one, const Tree &other) {
        return std::tie(other.weight, one.parent) < std::tie(one.weight, other.parent);
    });
    return trees;
}

int deepest_of(const std::vector<Tree> &trees)
{
    int most = 0;
    for (const Tree &tree : trees) {
        most = std::max(most, depth(tree));
    }
    return most;
}

// Which of many packings the matroid union finds depends on the order of the links. Some orders are
// tried while that is fast: the lower number of different trees wins, then the lower depth.
std::vector<Tree> fewest_trees(int gpus, Links links, int count)
{
    const auto cost = [](const std::vector<Tree> &trees) {
        return std::pair(trees.size(), deepest_of(trees));
    };
    std::vector<Tree> best = trees_of(gpus, links, count);
    const bool fast = gpus <= kMostGpusTried && count <= kMostCopies;
    const int starts = fast ? std::min(gpus, kMostStarts) : 0;
    const bool all_alike = std::all_of(links.begin(), links.end(), [&](const LinkRoom &link) {
        return link.room == links[0].room;
    });
    for (const int wide_sign : {0, 1, -1}) { // whatever their width, wide ones first, last
        if (all_alike && wide_sign != 0) {
            break;
        }
        for (int first = 0; first < starts && best.size() > 1; ++first) {
            const auto key = [&](const LinkRoom &link) {
                const int a = (link.a + first) % gpus, b = (link.b + first) % gpus;
                return std::tuple(-wide_sign * link.room, std::min(a, b), std::max(a, b));
            };
            std::sort(links.begin(), links.end(), [&](const LinkRoom &one, const LinkRoom &other) {
                return key(one) < key(other);
            });
            std::vector<Tree> trees = trees_of(gpus, links, count);
            if (cost(trees) < cost(best)) {
                best = std::move(trees);
            }
        }
    }
    return best;
}

// One tree of a packing takes group / denominator units of a link.
struct Grain {
    int denominator, group;
};

LinkUnits in_groups(const LinkUnits &links, int group)
{
    LinkUnits coarse = links;
    for (int &units : coarse.units) {
        units /= group;
    }
    return coarse;
}

int tree_count(const LinkUnits &links, Grain grain)
{
    const Strength strength = strength_of(in_groups(links, grain.group));
    return static_cast<int>(grain.denominator * strength.numerator / strength.denominator);
}

std::vector<Tree> pack(const LinkUnits &links, Grain grain)
{
    const int count = tree_count(links, grain);
    if (count == 0) {
        return {};
    }
    Links rooms;
    for (int a = 0; a < links.gpus; ++a) {
        for (int b = a + 1; b < links.gpus; ++b) {
            if (links.between(a, b) >= grain.group) {
                rooms.push_back({a, b, links.between(a, b) / grain.group * grain.denominator});
            }
        }
    }
    std::vector<Tree> trees = fewest_trees(links.gpus, std::move(rooms), count);
    for (Tree &tree : trees) {
        tree.weight *= grain.group;
    }
    return trees;
}

// A grain and the rate that it allows, in trees.
struct Choice {
    Grain grain;
    std::int64_t trees;
};

bool is_slower(const Choice &one, const Choice &other)
{
    return one.trees * one.grain.group * other.grain.denominator <
           other.trees * other.grain.group * one.grain.denominator;
}

// The first one that is at most 5 % slower than the fastest. Requires one.
const Choice &first_fast(const std::vector<Choice> &choices)
{
    const Choice &best = *std::max_element(choices.begin(), choices.end(), is_slower);
    return *std::find_if(choices.begin(), choices.end(), [&](const Choice &choice) {
        return 20 * choice.trees * choice.grain.group * best.grain.denominator >=
               19 * best.trees * best.grain.group * choice.grain.denominator;
    });
}

// The coarsest grain first, and with it the fewest trees.
std::vector<Choice> choices_of(const LinkUnits &links, int max_denominator)
{
    std::vector<Choice> choices;
    const int most_copies = std::max(kMostCopies, links.gpus / 2); // what single links can need
    if (tree_count(links, {1, 1}) > most_copies) {
        int group = *std::max_element(links.units.begin(), links.units.end());
        for (; group > 1; --group) {
            choices.push_back({{1, group}, tree_count(links, {1, group})});
        }
    }
    for (int denominator = 1; denominator <= max_denominator; ++denominator) {
        choices.push_back({{denominator, 1}, tree_count(links, {denominator, 1})});
    }
    std::erase_if(choices, [&](const Choice &choice) { return choice.trees > most_copies; });
    return choices;
}

std::vector<Tree> heaviest(std::vector<Tree> trees, int most_trees)
{
    trees.resize(std::min(trees.size(), static_cast<std::size_t>(most_trees)));
    return trees;
}

int weight_of(const std::vector<Tree> &trees)
{
    int sum = 0;
    for (const Tree &tree : trees) {
        sum += tree.weight;
    }
    return sum;
}

} // namespace

int Packing::weight() const noexcept { return weight_of(trees); }

double Packing::rate_units() const noexcept { return static_cast<double>(weight()) / denominator; }

Packing pack_trees(const LinkUnits &links, int denominator)
{
    if (links.gpus > kMaxPackedGpus) {
        return {};
    }
    return {.denominator = denominator,
            .trees = pack(links, {.denominator = denominator, .group = 1}),
            .strength = strength_of(links)};
}

Packing pack_best(const LinkUnits &links, int max_denominator, int most_trees)
{
    assert(max_denominator > 0 && most_trees > 0);
    if (links.gpus > kMaxPackedGpus) {
        return {};
    }
    std::vector<Choice> choices = choices_of(links, max_denominator);
    Grain grain = first_fast(choices).grain;
    std::vector<Tree> trees = pack(links, grain);
    if (static_cast<int>(trees.size()) > most_trees) {
        for (Choice &choice : choices) {
            choice.trees =
                weight_of(heaviest(pack(links, choice.grain), most_trees)) / choice.grain.group;
        }
        grain = first_fast(choices).grain;
        trees = heaviest(pack(links, grain), most_trees);
    }
    return {.denominator = grain.denominator,
            .trees = std::move(trees),
            .strength = strength_of(links)};
}

std::vector<int> children(const Tree &tree, int gpu)
{
    std::vector<int> found;
    for (int child = 0; child < static_cast<int>(tree.parent.size()); ++child) {
        if (tree.parent[child] == gpu) {
            found.push_back(child);
        }
    }
    return found;
}

int depth(const Tree &tree)
{
    int deepest = 0;
    for (int gpu = 0; gpu < static_cast<int>(tree.parent.size()); ++gpu) {
        int links = 0;
        for (int above = tree.parent[gpu]; above != kNoParent; above = tree.parent[above]) {
            ++links;
        }
        deepest = std::max(deepest, links);
    }
    return deepest;
}

int deepest(const Packing &packing) { return deepest_of(packing.trees); }

} // namespace hetcoll
