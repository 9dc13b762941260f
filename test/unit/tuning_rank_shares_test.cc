#include "machine/rank_shares.h"

#include "topology/file.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

namespace hetcoll {
namespace {

// GPUs on one NVSwitch, with the given number of links each.
Topology switched(const std::vector<int> &links)
{
    std::string text = "hetcoll topology 1\nnvswitch s0\ncpu c0\n";
    for (std::size_t i = 0; i < links.size(); ++i) {
        const std::string name = "g" + std::to_string(i);
        text += "gpu " + name + " 0000:0" + std::to_string(i) + ":00.0\n";
        text += "link " + name + " s0 nvlink " + std::to_string(links[i]) + " 25\n";
        text += "link " + name + " c0 pcie 1 12\n";
    }
    return *parse_topology(text, "switched");
}

std::vector<int> all_of(int count)
{
    std::vector<int> numbers(static_cast<std::size_t>(count));
    std::iota(numbers.begin(), numbers.end(), 0);
    return numbers;
}

RankShares shares_of(const char *setting, int ranks, std::vector<double> rates, bool forced = false)
{
    return rank_shares(*parse_shares(setting), ranks, std::move(rates), 10, forced);
}

TEST(ShareSettingTest, IsOffAutoOrANumberForEachRank)
{
    EXPECT_EQ(parse_shares("off")->hash(), 0u);
    EXPECT_EQ(parse_shares("auto")->hash(), 1u);
    EXPECT_EQ(parse_shares("3,3,0,2")->weights, (std::vector<double>{3, 3, 0, 2}));
    EXPECT_NE(parse_shares("3,3,0,2")->hash(), parse_shares("3,3,2,0")->hash());
    for (const char *wrong : {"", "on", "0,0", "1,", ",1", "1,-2", "1;2", "1.5,2", "1,2000000",
                              "1 ,2", "99999999999"}) {
        const auto parsed = parse_shares(wrong);
        ASSERT_FALSE(parsed.ok()) << wrong;
        EXPECT_EQ(parsed.status().message(),
                  "coll_hetcoll_shares '" + std::string(wrong) +
                      "' is unknown, write off, auto, or a whole number of up to 1000000 for each "
                      "rank, not all of them 0, as 3,3,0,2");
    }
}

TEST(PortTest, IsTheGpusOwnWhereASwitchJoinsAll)
{
    EXPECT_EQ(port_gbps(switched({4, 4, 2, 3}), all_of(4)),
              (std::vector<double>{100, 100, 50, 75}));
    EXPECT_EQ(port_gbps(switched({4, 4, 2, 3}), std::vector<int>{2, 0}),
              (std::vector<double>{50, 50}))
        << "of two GPUs the faster one cannot show";
}

TEST(PortTest, IsNothingWhereOtherLinksAreShared)
{
    const Topology pairs = *parse_topology("hetcoll topology 1\n"
                                           "gpu g0 -\ngpu g1 -\ngpu g2 -\ncpu c0\ncpu c1\n"
                                           "link g0 c0 pcie 1 12\nlink g1 c0 pcie 1 6\n"
                                           "link g2 c1 pcie 1 12\nlink c0 c1 socket 1 20\n",
                                           "pairs");
    EXPECT_TRUE(port_gbps(pairs, all_of(3)).empty());
    EXPECT_EQ(port_gbps(pairs, all_of(2)), (std::vector<double>{6, 6}));
}

TEST(RankSharesTest, FollowTheRates)
{
    const RankShares half = shares_of("auto", 4, {2, 2, 2, 1});
    EXPECT_EQ(half.shares, (std::vector<int>{1, 1, 1, 0}));
    EXPECT_DOUBLE_EQ(half.vector_gbps(), 1);
}

TEST(RankSharesTest, AreNoneWhereLinksAreEqual)
{
    EXPECT_TRUE(shares_of("auto", 3, {2, 2, 2}).shares.empty());
    EXPECT_STREQ(shares_of("auto", 3, {2, 2, 2}).why_none, "its links are equally fast");
    EXPECT_EQ(shares_of("auto", 3, {2, 2, 2}, true).shares, (std::vector<int>{1, 1, 1}))
        << "forced";
    EXPECT_EQ(shares_of("1,1,1", 3, {2, 2, 2}).shares, (std::vector<int>{1, 1, 1})) << "given";
}

TEST(RankSharesTest, AreAsGiven)
{
    const RankShares given = shares_of("1,1,2", 3, {});
    EXPECT_EQ(given.shares, (std::vector<int>{1, 1, 2}));
    EXPECT_DOUBLE_EQ(given.vector_gbps(), 10 / 1.5) << "half of the vector once more";
    EXPECT_EQ(shares_of("4,4,0", 3, {1, 1, 1}).shares, (std::vector<int>{1, 1, 0}));
}

TEST(RankSharesTest, AreNoneWhereNobodyAsksOrKnows)
{
    EXPECT_TRUE(shares_of("off", 3, {2, 2, 1}, true).shares.empty());
    EXPECT_TRUE(shares_of("auto", 3, {}).shares.empty());
    EXPECT_TRUE(shares_of("1,1,2", 4, {1, 1, 1, 1}).shares.empty()) << "not as many as ranks";
    EXPECT_TRUE(shares_of("auto", 1, {1}).shares.empty());
    EXPECT_EQ(shares_of("off", 3, {}).vector_gbps(), 0);
    EXPECT_EQ(shares_of("auto", 3, {}, true).shares, (std::vector<int>{1, 1, 1})) << "forced";
}

TEST(RankSharesTest, OfALateRankAreNothing)
{
    EXPECT_EQ(shares_without(std::vector<int>{3, 2, 1}, 0), (std::vector<int>{0, 2, 1}));
    EXPECT_EQ(shares_without(std::vector<int>{0, 5, 0}, 1), (std::vector<int>{1, 0, 1}));
}

} // namespace
} // namespace hetcoll
