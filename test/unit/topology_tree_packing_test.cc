#include "topology/tree_packing.h"

#include "test/unit/topology_dgx1.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace hetcoll::test {
namespace {

// Everything that a packing promises for whatever links.
void expect_sound(const Packing &packing, const LinkUnits &links, const std::string &name)
{
    std::vector<std::int64_t> load(links.units.size(), 0);
    for (const Tree &tree : packing.trees) {
        EXPECT_GT(tree.weight, 0) << name;
        ASSERT_EQ(tree.parent.size(), static_cast<std::size_t>(links.gpus)) << name;
        int roots = 0;
        for (int gpu = 0; gpu < links.gpus; ++gpu) {
            int above = gpu;
            for (int links_up = 0; links_up < links.gpus && above != kNoParent; ++links_up) {
                above = tree.parent[above];
            }
            ASSERT_EQ(above, kNoParent) << name << ": GPU " << gpu << " is on a circle";
            const int parent = tree.parent[gpu];
            roots += parent == kNoParent;
            if (parent != kNoParent) {
                load[static_cast<std::size_t>(gpu) * links.gpus + parent] += tree.weight;
                load[static_cast<std::size_t>(parent) * links.gpus + gpu] += tree.weight;
            }
        }
        EXPECT_EQ(roots, 1) << name;
        EXPECT_EQ(tree.parent[tree.root], kNoParent) << name;
    }
    for (std::size_t link = 0; link < load.size(); ++link) {
        EXPECT_LE(load[link], std::int64_t{links.units[link]} * packing.denominator) << name;
    }
}

std::int64_t whole_part(int denominator, const Strength &strength)
{
    return denominator * strength.numerator / strength.denominator;
}

LinkUnits random_links(std::mt19937 &random, int gpus, int max_units, int percent)
{
    LinkUnits links;
    links.gpus = gpus;
    links.units.assign(static_cast<std::size_t>(gpus) * gpus, 0);
    for (int a = 0; a < gpus; ++a) {
        for (int b = 0; b < a; ++b) {
            if (static_cast<int>(random() % 100) < percent) {
                const int units = 1 + static_cast<int>(random() % max_units);
                links.units[static_cast<std::size_t>(a) * gpus + b] = units;
                links.units[static_cast<std::size_t>(b) * gpus + a] = units;
            }
        }
    }
    return links;
}

LinkUnits complete(int gpus, int units)
{
    std::mt19937 random;
    LinkUnits links = random_links(random, gpus, 1, 100);
    for (int &between : links.units) {
        between *= units;
    }
    return links;
}

TEST(TreePackingTest, TheRateOfEveryDgx1FragmentIsTheStrengthInWholeTrees)
{
    for (const Machine &machine : {kDgx1P, kDgx1V}) {
        for (const Fragment &fragment : connected_fragments(machine)) {
            for (int denominator = 1; denominator <= kMaxDenominator; ++denominator) {
                const Packing packing = pack_trees(fragment.links, denominator);
                EXPECT_EQ(packing.denominator, denominator);
                EXPECT_EQ(packing.strength, strength_of(fragment.links));
                EXPECT_EQ(packing.weight(), whole_part(denominator, packing.strength))
                    << fragment.name << ", denominator " << denominator;
                EXPECT_EQ(packing.rate_units() * denominator, packing.weight());
                expect_sound(packing, fragment.links, fragment.name);
            }
        }
    }
}

TEST(TreePackingTest, TheFullDgx1VTakesAtMostSixTreesAtDenominatorOne)
{
    const Packing packing = pack_trees(connected_fragments(kDgx1V).back().links, 1);
    EXPECT_EQ(packing.weight(), 3); // of 24/7
    EXPECT_LE(packing.trees.size(), 6u);
}

// The counts of the best of many random orders, so that a change that loses trees is seen.
TEST(TreePackingTest, Dgx1FragmentsTakeFewTrees)
{
    const std::vector<std::size_t> most_trees_p{2, 3, 4, 6}, most_trees_v{3, 4, 6, 7};
    for (int denominator = 1; denominator <= kMaxDenominator; ++denominator) {
        for (const Fragment &fragment : connected_fragments(kDgx1P)) {
            EXPECT_LE(pack_trees(fragment.links, denominator).trees.size(),
                      most_trees_p[denominator - 1])
                << fragment.name << ", denominator " << denominator;
        }
        for (const Fragment &fragment : connected_fragments(kDgx1V)) {
            EXPECT_LE(pack_trees(fragment.links, denominator).trees.size(),
                      most_trees_v[denominator - 1])
                << fragment.name << ", denominator " << denominator;
        }
    }
}

TEST(TreePackingTest, RandomLinksArePackedToTheirStrengthToo)
{
    std::mt19937 random(1);
    for (int round = 0; round < 300; ++round) {
        const int gpus = 2 + static_cast<int>(random() % 9);
        const int max_units = round % 2 == 0 ? 3 : 12;
        const LinkUnits links = random_links(random, gpus, max_units, 60);
        const int denominator = 1 + round % 4;
        const Packing packing = pack_trees(links, denominator);
        EXPECT_EQ(packing.weight(), whole_part(denominator, strength_of(links)))
            << "round " << round;
        expect_sound(packing, links, "round " + std::to_string(round));
    }
}

TEST(TreePackingTest, MoreGpusThanAMaskHasBitsHaveNoTrees)
{
    for (const int gpus : {65, 72, 128, 512}) {
        LinkUnits ring;
        ring.gpus = gpus;
        ring.units.assign(static_cast<std::size_t>(gpus) * gpus, 0);
        for (int gpu = 0; gpu < gpus; ++gpu) {
            const int next = (gpu + 1) % gpus;
            ring.units[static_cast<std::size_t>(gpu) * gpus + next] = 2;
            ring.units[static_cast<std::size_t>(next) * gpus + gpu] = 2;
        }
        EXPECT_TRUE(pack_trees(ring, 1).trees.empty()) << gpus << " GPUs";
        EXPECT_TRUE(pack_best(ring).trees.empty()) << gpus << " GPUs";
    }
}

TEST(TreePackingTest, SixteenGpusWithWideLinksArePacked)
{
    std::mt19937 random(2);
    const LinkUnits links = random_links(random, 16, 48, 50);
    const Packing packing = pack_trees(links, 1);
    EXPECT_EQ(packing.weight(), whole_part(1, strength_of(links)));
    expect_sound(packing, links, "16 GPUs");
}

TEST(TreePackingTest, ACompleteGraphIsFullyUsedByHalfAsManyTreesAsGpus)
{
    for (const int gpus : {2, 4, 6, 8, 16}) {
        const Packing packing = pack_trees(complete(gpus, 1), 1);
        EXPECT_EQ(packing.weight(), gpus / 2);
        EXPECT_EQ(packing.rate_units(), gpus / 2.0);
        expect_sound(packing, complete(gpus, 1), std::to_string(gpus) + " GPUs");
    }
}

TEST(TreePackingTest, TwoGpusHaveOneTreeAsWideAsTheirLink)
{
    const Packing packing = pack_trees(complete(2, 48), 1);
    EXPECT_EQ(packing.trees, (std::vector<Tree>{{0, {kNoParent, 0}, 48}}));
}

TEST(TreePackingTest, ThereAreNoTreesForOneGpuOrUnconnectedOnes)
{
    LinkUnits apart = complete(4, 1);
    apart.units = {0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0};
    for (const LinkUnits &links : {LinkUnits(), complete(1, 0), complete(2, 0), apart}) {
        EXPECT_TRUE(pack_trees(links, 1).trees.empty()) << links.gpus << " GPUs";
        EXPECT_TRUE(pack_best(links).trees.empty()) << links.gpus << " GPUs";
        EXPECT_EQ(pack_best(links).rate_units(), 0) << links.gpus << " GPUs";
    }
}

TEST(TreePackingTest, NoOtherRootMakesATreeLessDeepAndALowerOneOnlyDeeper)
{
    for (const Fragment &fragment : classes_of(connected_fragments(kDgx1V))) {
        for (const Tree &tree : pack_trees(fragment.links, 3).trees) {
            for (int root = 0; root < fragment.links.gpus; ++root) {
                Tree other = tree;
                for (int gpu = root, below = kNoParent; gpu != kNoParent;) { // turn the way up
                    const int above = tree.parent[gpu];
                    other.parent[gpu] = below;
                    below = gpu;
                    gpu = above;
                }
                EXPECT_GE(depth(other), depth(tree) + (root < tree.root)) << fragment.name;
            }
        }
    }
}

TEST(TreePackingTest, TheSameLinksGiveTheSameTrees)
{
    for (const Machine &machine : {kDgx1P, kDgx1V}) {
        for (const Fragment &fragment : classes_of(connected_fragments(machine))) {
            const LinkUnits copy = fragment.links; // elsewhere in memory
            EXPECT_EQ(pack_best(copy), pack_best(fragment.links)) << fragment.name;
            EXPECT_EQ(pack_trees(copy, 3), pack_trees(fragment.links, 3)) << fragment.name;
        }
    }
}

TEST(TreePackingTest, OtherNumbersForTheGpusChangeNeitherStrengthNorRate)
{
    std::mt19937 random(3);
    for (const Fragment &fragment : classes_of(connected_fragments(kDgx1V))) {
        std::vector<int> order(static_cast<std::size_t>(fragment.links.gpus));
        std::iota(order.begin(), order.end(), 0);
        std::shuffle(order.begin(), order.end(), random);
        const LinkUnits links = renumbered(fragment.links, order);
        const Packing before = pack_best(fragment.links), after = pack_best(links);
        EXPECT_EQ(after.strength, before.strength) << fragment.name;
        EXPECT_EQ(after.denominator, before.denominator) << fragment.name;
        EXPECT_EQ(after.weight(), before.weight()) << fragment.name;
        expect_sound(after, links, fragment.name);
    }
}

TEST(PackBestTest, TakesTheSmallestDenominatorWithinFivePercentOfTheBest)
{
    for (const Machine &machine : {kDgx1P, kDgx1V}) {
        for (const Fragment &fragment : connected_fragments(machine)) {
            double best = 0;
            for (int denominator = 1; denominator <= kMaxDenominator; ++denominator) {
                best = std::max(best, pack_trees(fragment.links, denominator).rate_units());
            }
            int smallest = 1;
            while (pack_trees(fragment.links, smallest).rate_units() < 0.95 * best - 1e-9) {
                ++smallest;
            }
            EXPECT_EQ(pack_best(fragment.links), pack_trees(fragment.links, smallest))
                << fragment.name;
        }
    }
}

TEST(PackBestTest, StaysWithinTheDenominatorThatTheCallerAllows)
{
    const LinkUnits full = connected_fragments(kDgx1V).back().links;
    EXPECT_EQ(pack_best(full).denominator, 3); // 10/3 of 24/7
    EXPECT_EQ(pack_best(full, 2).denominator, 1);
}

TEST(PackBestTest, HandsOutSeveralUnitsAtATimeWhereUnitsAreFine)
{
    std::mt19937 random(4);
    for (const int gpus : {3, 4, 6, 8}) {
        const LinkUnits links = random_links(random, gpus, 48, 100);
        const Packing packing = pack_best(links);
        EXPECT_EQ(packing.denominator, 1);
        EXPECT_LE(packing.trees.size(), static_cast<std::size_t>(kMaxTrees));
        expect_sound(packing, links, std::to_string(gpus) + " GPUs");
        const Strength most = packing.strength;
        EXPECT_GE(packing.rate_units() * static_cast<double>(most.denominator),
                  0.75 * static_cast<double>(most.numerator))
            << gpus << " GPUs";
    }
}

TEST(PackBestTest, LeavesTheLightestTreesOutWhereFewerAreAllowed)
{
    const LinkUnits full = connected_fragments(kDgx1V).back().links;
    for (int most_trees = 1; most_trees <= 6; ++most_trees) {
        const Packing packing = pack_best(full, kMaxDenominator, most_trees);
        EXPECT_LE(packing.trees.size(), static_cast<std::size_t>(most_trees));
        EXPECT_GE(packing.rate_units(), std::min(most_trees, 3)); // what denominator 1 has
        expect_sound(packing, full, std::to_string(most_trees) + " trees");
    }
    EXPECT_EQ(pack_best(complete(16, 1)).weight(), kMaxTrees); // of eight
}

TEST(PackBestTest, EvenFineUnitsThatAreMultiplesLoseNothing)
{
    const Packing coarse = pack_best(complete(8, 1)), fine = pack_best(complete(8, 48));
    EXPECT_EQ(fine.weight(), 48 * coarse.weight());
    EXPECT_EQ(fine.trees.size(), coarse.trees.size());
}

TEST(TreeTest, ChildrenAreInAscendingOrderAndDepthCountsLinks)
{
    const Tree tree{.root = 2, .parent = {2, 0, kNoParent, 2, 0}, .weight = 1};
    EXPECT_EQ(children(tree, 0), (std::vector<int>{1, 4}));
    EXPECT_EQ(children(tree, 2), (std::vector<int>{0, 3}));
    EXPECT_EQ(children(tree, 4), std::vector<int>());
    EXPECT_EQ(depth(tree), 2);
    const Tree star{.root = 3, .parent = {3, 3, 3, kNoParent, 3}, .weight = 1};
    EXPECT_EQ(depth(star), 1);
    EXPECT_EQ(deepest({.denominator = 1, .trees = {star, tree}, .strength = {}}), 2);
    EXPECT_EQ(deepest({}), 0);
    EXPECT_EQ(depth({.root = 0, .parent = {kNoParent}, .weight = 1}), 0);
}

} // namespace
} // namespace hetcoll::test
