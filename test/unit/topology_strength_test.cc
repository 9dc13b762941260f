#include "topology/strength.h"

#include "test/unit/topology_dgx1.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

namespace hetcoll::test {
namespace {

// The definition: over all partitions, written as parts[gpu] with new parts in ascending order.
Strength strength_by_definition(const LinkUnits &links)
{
    Strength least{.numerator = 0, .denominator = 0};
    std::vector<int> parts(static_cast<std::size_t>(links.gpus), 0);
    const auto consider = [&](int count) {
        std::int64_t between = 0;
        for (int a = 0; a < links.gpus; ++a) {
            for (int b = 0; b < a; ++b) {
                between += parts[a] != parts[b] ? links.between(a, b) : 0;
            }
        }
        if (least.denominator == 0 || between * least.denominator < least.numerator * (count - 1)) {
            least = {.numerator = between, .denominator = count - 1};
        }
    };
    const auto assign = [&](const auto &self, int gpu, int count) -> void {
        if (gpu == links.gpus) {
            if (count >= 2) {
                consider(count);
            }
            return;
        }
        for (parts[gpu] = 0; parts[gpu] <= count; ++parts[gpu]) {
            self(self, gpu + 1, std::max(count, parts[gpu] + 1));
        }
    };
    assign(assign, 0, 0);
    const std::int64_t divisor = std::gcd(least.numerator, least.denominator);
    return {.numerator = least.numerator / divisor, .denominator = least.denominator / divisor};
}

TEST(StrengthTest, Dgx1PHasFourteenAndDgx1VFortySixClassesOfConnectedFragments)
{
    EXPECT_EQ(classes_of(connected_fragments(kDgx1P)).size(), 14u);
    EXPECT_EQ(classes_of(connected_fragments(kDgx1V)).size(), 46u);
}

TEST(StrengthTest, OfEveryClassIsTheMinimumOverAllPartitions)
{
    for (const Machine &machine : {kDgx1P, kDgx1V}) {
        for (const Fragment &fragment : classes_of(connected_fragments(machine))) {
            EXPECT_EQ(strength_of(fragment.links), strength_by_definition(fragment.links))
                << fragment.name;
        }
    }
}

TEST(StrengthTest, OfTheFullMachinesIsThatOfTheirFinestPartition)
{
    EXPECT_EQ(strength_of(connected_fragments(kDgx1P).back().links), (Strength{16, 7}));
    EXPECT_EQ(strength_of(connected_fragments(kDgx1V).back().links), (Strength{24, 7}));
}

TEST(StrengthTest, OfRandomLinksIsTheMinimumOverAllPartitions)
{
    std::mt19937 random(1);
    for (int round = 0; round < 600; ++round) {
        LinkUnits links;
        links.gpus = 2 + static_cast<int>(random() % 6);
        links.units.assign(static_cast<std::size_t>(links.gpus) * links.gpus, 0);
        const unsigned max_units = round % 3 == 0 ? 2 : round % 3 == 1 ? 6 : 49;
        for (int a = 0; a < links.gpus; ++a) {
            for (int b = 0; b < a; ++b) {
                const int units = static_cast<int>(random() % max_units);
                links.units[static_cast<std::size_t>(a) * links.gpus + b] = units;
                links.units[static_cast<std::size_t>(b) * links.gpus + a] = units;
            }
        }
        EXPECT_EQ(strength_of(links),
                  is_connected(links) ? strength_by_definition(links) : Strength())
            << "round " << round;
    }
}

// Two tight groups behind one weak link: neither the finest partition nor a single GPU.
TEST(StrengthTest, FindsTheWeakSpotInTheMiddle)
{
    std::vector<int> group_of{0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1};
    LinkUnits links;
    links.gpus = 16;
    for (int a = 0; a < 16; ++a) {
        for (int b = 0; b < 16; ++b) {
            links.units.push_back(a == b ? 0 : group_of[a] == group_of[b] ? 48 : 0);
        }
    }
    links.units[2 * 16 + 7] = links.units[7 * 16 + 2] = 5;
    EXPECT_EQ(strength_of(links), (Strength{5, 1}));
}

TEST(StrengthTest, IsZeroForFewerThanTwoGpus)
{
    LinkUnits links;
    EXPECT_EQ(strength_of(links), Strength());
    links.gpus = 1;
    links.units = {0};
    EXPECT_EQ(strength_of(links), Strength());
}

} // namespace
} // namespace hetcoll::test
