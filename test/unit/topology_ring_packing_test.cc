#include "topology/ring_packing.h"

#include "test/unit/topology_dgx1.h"
#include "test/unit/topology_machines.h"

#include <algorithm>
#include <numeric>

namespace hetcoll::test {
namespace {

// Through all GPUs, in links that are there, each direction of a unit once.
void expect_sound(const std::vector<Ring> &rings, const LinkUnits &links, const std::string &name)
{
    LinkUnits left = links;
    for (const Ring &ring : rings) {
        Ring sorted = ring;
        std::sort(sorted.begin(), sorted.end());
        Ring all(static_cast<std::size_t>(links.gpus));
        std::iota(all.begin(), all.end(), 0);
        ASSERT_EQ(sorted, all) << name;
        for (std::size_t i = 0; i < ring.size(); ++i) {
            const int from = ring[i], to = ring[(i + 1) % ring.size()];
            EXPECT_GE(--left.units[static_cast<std::size_t>(from * links.gpus + to)], 0) << name;
        }
    }
}

std::size_t rings_of(const Machine &machine, std::vector<int> gpus)
{
    return pack_rings(fragment_of(machine, gpus).links).size();
}

TEST(RingPackingTest, SharesNoLinkOfAnyFragment)
{
    for (const Machine &machine : {kDgx1P, kDgx1V}) {
        for (const Fragment &fragment : connected_fragments(machine)) {
            const std::vector<Ring> rings = pack_rings(fragment.links);
            expect_sound(rings, fragment.links, fragment.name);
            EXPECT_EQ(pack_rings(fragment.links), rings) << fragment.name;
        }
    }
}

TEST(RingPackingTest, FillsTheFullMachines)
{
    EXPECT_EQ(rings_of(kDgx1V, {0, 1, 2, 3, 4, 5, 6, 7}), 6U);
    EXPECT_EQ(rings_of(kDgx1P, {0, 1, 2, 3, 4, 5, 6, 7}), 4U);
}

TEST(RingPackingTest, FindsWhatDocsTreesSays)
{
    EXPECT_EQ(rings_of(kDgx1V, {0, 1, 2}), 2U);
    EXPECT_EQ(rings_of(kDgx1V, {0, 2, 3}), 2U);
    EXPECT_EQ(rings_of(kDgx1V, {0, 1, 4}), 0U);
    EXPECT_EQ(rings_of(kDgx1V, {0, 3, 4}), 0U);
    EXPECT_EQ(rings_of(kDgx1V, {0, 1, 2, 3}), 4U);
    EXPECT_EQ(rings_of(kDgx1V, {0, 3, 4, 7}), 2U);
    EXPECT_EQ(rings_of(kDgx1V, {0, 1, 2, 3, 4}), 0U);
    EXPECT_EQ(rings_of(kDgx1V, {0, 1, 2, 4, 5}), 2U);
    EXPECT_EQ(rings_of(kDgx1V, {0, 2, 3, 4, 7}), 2U);
    EXPECT_EQ(rings_of(kDgx1V, {0, 1, 2, 3, 4, 5}), 2U);
    EXPECT_EQ(rings_of(kDgx1V, {0, 1, 2, 4, 5, 6}), 4U);
    EXPECT_EQ(rings_of(kDgx1V, {0, 2, 3, 4, 6, 7}), 4U);
    EXPECT_EQ(rings_of(kDgx1V, {0, 1, 2, 3, 4, 5, 6}), 4U);
}

TEST(RingPackingTest, TakesAWideLinkSeveralTimesButNotWithoutEnd)
{
    const auto complete = [](int gpus, int units) {
        LinkUnits links{.gpus = gpus, .units = {}, .unit_gbps = 1, .host_gbps = {}};
        for (int a = 0; a < gpus; ++a) {
            for (int b = 0; b < gpus; ++b) {
                links.units.push_back(a == b ? 0 : units);
            }
        }
        return links;
    };
    EXPECT_EQ(pack_rings(complete(3, 4)).size(), 8U);
    EXPECT_EQ(pack_rings(complete(8, kMaxLinkUnits)).size(), std::size_t{kMostRings});
    EXPECT_TRUE(pack_rings(complete(2, 1)).empty());
    EXPECT_TRUE(pack_rings(complete(kMostRingGpus + 1, 1)).empty());
    EXPECT_TRUE(pack_rings(complete(5, 0)).empty());
}

TEST(RingPackingTest, TakesNoOtherLinksThanNvlinks)
{
    const Topology dgx1v = shipped("dgx1v");
    const PackedRings full = pack_nvlink_rings(dgx1v, all_gpus(dgx1v));
    EXPECT_EQ(full.rings.size(), 6U);
    EXPECT_EQ(full.gbps, 150);
    EXPECT_EQ(pack_nvlink_rings(shipped("dgx1p"), all_gpus(dgx1v)).gbps, 80);
    const std::vector<int> apart{0, 1, 4}; // 1 and 4 by PCIe
    EXPECT_EQ(pack_nvlink_rings(dgx1v, apart).gbps, 0);
    EXPECT_TRUE(pack_nvlink_rings(shipped("pcie8"), all_gpus(dgx1v)).rings.empty());
}

} // namespace
} // namespace hetcoll::test
