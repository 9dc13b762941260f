#include "tuning/build_table.h"

#include "tuning/table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

namespace hetcoll {
namespace {

constexpr std::int64_t kKiB = 1024, kMiB = 1024 * kKiB;
constexpr int kRepetitions = 5;

// Times as a machine would show them: a curve, and noise that differs by repetition.
class Bench {
public:
    explicit Bench(double noise = 0, std::uint64_t seed = 1) : random_(seed), noise_(0, noise)
    {
        measurements_.path = "m.txt";
        measurements_.machine = "box";
    }

    void measure(const Setup &setup, const Variant &variant, std::int64_t from, std::int64_t to,
                 const std::function<double(double)> &us)
    {
        for (std::int64_t bytes = from; bytes <= to; bytes *= 2) {
            for (int i = 0; i < kRepetitions; ++i) {
                add(setup, variant, bytes,
                    us(static_cast<double>(bytes)) * std::exp(noise_(random_)), i);
            }
        }
    }
    void add(const Setup &setup, const Variant &variant, std::int64_t bytes, double us, int job)
    {
        const auto ns = static_cast<std::int64_t>(us * 1e3);
        measurements_.samples.push_back(
            {setup, variant, bytes, ns * 9 / 10, ns, ns * 11 / 10, job});
    }
    [[nodiscard]] const Measurements &measurements() const { return measurements_; }

private:
    std::mt19937_64 random_;
    std::normal_distribution<double> noise_;
    Measurements measurements_;
};

constexpr Setup kFour{.ranks = 4, .nodes = 1, .ranks_per_node_min = 4, .ranks_per_node_max = 4};
constexpr Variant kHost{Algorithm::kHost, {}, 0}, kDoubling{Algorithm::kRecursiveDoubling, {}, 0},
    kRing{Algorithm::kRing, {}, 0};

std::function<double(double)> line(double latency_us, double gbps)
{
    return [=](double bytes) { return latency_us + bytes / (gbps * 1e3); };
}

std::vector<SizeRule> rules_of(const Bench &bench)
{
    return build_rules(bench.measurements()).sets.at(0).rules;
}

TEST(BuildTableTest, TheFasterAlgorithmIsTakenOnEachSideOfTheCrossing)
{
    Bench bench;
    bench.measure(kFour, kDoubling, 8, 64 * kMiB, line(20, 5));
    bench.measure(kFour, kRing, 8, 64 * kMiB, line(100, 20)); // they cross at 533 kB
    const std::vector<SizeRule> rules = rules_of(bench);
    ASSERT_EQ(rules.size(), 2u);
    EXPECT_EQ(rules[0].algorithm, Algorithm::kRecursiveDoubling);
    EXPECT_EQ(rules[1].algorithm, Algorithm::kRing);
    EXPECT_NEAR(static_cast<double>(rules[0].bytes.max), 80e-6 / (1 / 5e9 - 1 / 20e9), 64);
}

TEST(BuildTableTest, SizesAreCoveredWithoutAGap)
{
    Bench bench;
    bench.measure(kFour, kHost, 8, 8 * kKiB, line(10, 0.5)); // not measured above
    bench.measure(kFour, kDoubling, 64, 64 * kMiB, line(30, 5));
    bench.measure(kFour, kRing, 16 * kKiB, 64 * kMiB, line(100, 20));
    const std::vector<SizeRule> rules = rules_of(bench);
    ASSERT_GE(rules.size(), 3u);
    EXPECT_EQ(rules.front().bytes.min, 0);
    EXPECT_EQ(rules.back().bytes.max, Range::kInfinite);
    for (std::size_t i = 1; i < rules.size(); ++i) {
        EXPECT_EQ(rules[i].bytes.min, rules[i - 1].bytes.max + 1);
    }
    EXPECT_LE(rules[0].bytes.max, 8 * kKiB) << "where it was measured, it may be unable to run";
}

TEST(BuildTableTest, NoiseMakesNoSwitches)
{
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
        Bench bench(0.03, seed);
        bench.measure(kFour, kDoubling, 8, 64 * kMiB, line(20, 5));
        bench.measure(kFour, kRing, 8, 64 * kMiB, line(20.2, 5.05)); // the same, but for noise
        EXPECT_EQ(rules_of(bench).size(), 1u) << seed;
    }
}

TEST(BuildTableTest, ABumpInACurveMakesNoRule)
{
    Bench bench;
    bench.measure(kFour, kDoubling, 8, 64 * kMiB,
                  [](double bytes) { return line(20, 5)(bytes) * (bytes == 4096 ? 1.13 : 1); });
    bench.measure(kFour, kRing, 8, 64 * kMiB, line(20.1, 4.99));
    EXPECT_EQ(rules_of(bench).size(), 1u);
}

// Job by job: the time of recursive doubling, and how many times as long the ring takes up to 16
// KiB. Beyond, it is the other way round.
Bench jobs_of(const std::vector<std::pair<double, double>> &us_and_factor)
{
    Bench bench;
    for (std::int64_t bytes = 1024; bytes <= kMiB; bytes *= 2) {
        int job = 0;
        for (const auto &[us, factor] : us_and_factor) {
            bench.add(kFour, kDoubling, bytes, us, job);
            bench.add(kFour, kRing, bytes, bytes < 32 * kKiB ? us * factor : us / factor, job++);
        }
    }
    return bench;
}

TEST(BuildTableTest, JobsThatDifferDoNotHideWhatAllOfThemShow)
{
    EXPECT_EQ(rules_of(jobs_of({{100, 1.4}, {130, 1.4}, {260, 1.4}})).size(), 2u);
}

TEST(BuildTableTest, ASmallDifferenceCountsIfAllJobsShowIt)
{
    EXPECT_EQ(rules_of(jobs_of({{100, 1.1}, {130, 1.1}, {260, 1.1}})).size(), 2u);
    EXPECT_EQ(rules_of(jobs_of({{100, 1.1}, {130, 0.95}, {260, 1.1}})).size(), 1u);
}

TEST(BuildTableTest, ALargeDifferenceCountsIfMostJobsShowIt)
{
    EXPECT_EQ(rules_of(jobs_of({{100, 1.4}, {100, 0.95}, {100, 1.4}})).size(), 2u);
    EXPECT_EQ(rules_of(jobs_of({{100, 1.4}, {100, 0.95}, {100, 1.0}})).size(), 1u);
}

// With four algorithms that are equal, in jobs that differ by 10 %, nearly every size has another
// fastest one.
TEST(BuildTableTest, EqualAlgorithmsInNoisyJobsMakeFewRules)
{
    std::size_t rules = 0;
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
        Bench bench(0.1, seed);
        for (const Algorithm algorithm : {Algorithm::kRecursiveDoubling, Algorithm::kRabenseifner,
                                          Algorithm::kRing, Algorithm::kTwoShot}) {
            bench.measure(kFour, {algorithm, {}, 0}, 8, 4 * kMiB, line(20, 5));
        }
        rules += rules_of(bench).size();
    }
    EXPECT_LE(rules, 4u * 50);
}

TEST(BuildTableTest, OneOfSixJobsMayDiffer)
{
    EXPECT_EQ(
        rules_of(jobs_of({{100, 1.4}, {100, 0.9}, {90, 1.4}, {80, 1.3}, {70, 1.4}, {90, 1.4}}))
            .size(),
        2u);
}

// ---- a real measurement ----

struct RealSize {
    std::int64_t bytes;
    double one_shot[3], two_shot[3], leader[3]; // us, job by job
};

// Medians of four GPUs of a DGX A100, emulated with links at 0.004 of their rates, measured at
// 8f33ab0. Jobs differ by up to twice.
constexpr RealSize kLinkModel[] = {
    {128, {49.453, 45.838, 88.272}, {35.322, 30.696, 58.477}, {33.871, 29.414, 55.172}},
    {256, {45.057, 46.329, 103.664}, {31.978, 30.165, 56.695}, {31.466, 29.014, 52.428}},
    {512, {38.046, 46.239, 103.935}, {39.218, 33.170, 66.479}, {30.977, 29.675, 54.551}},
    {1024, {47.180, 64.517, 102.553}, {47.981, 66.489, 105.378}, {31.417, 37.045, 55.903}},
    {2048, {56.184, 47.641, 100.520}, {51.587, 49.304, 103.664}, {31.216, 30.375, 54.612}},
    {4096, {80.671, 47.781, 101.091}, {49.254, 47.741, 100.279}, {32.418, 30.105, 51.526}},
    {8192, {98.787, 110.124, 127.340}, {56.394, 49.734, 84.015}, {40.641, 64.145, 57.876}},
    {16384, {142.773, 164.405, 177.234}, {85.427, 91.116, 113.820}, {83.434, 88.712, 92.928}},
    {32768, {185.046, 194.690, 223.453}, {124.085, 138.517, 166.248}, {126.138, 129.824, 147.020}},
    {65536, {297.083, 331.044, 321.729}, {179.207, 199.327, 200.358}, {215.872, 307.338, 346.316}},
    {131072, {512.309, 589.860, 619.033}, {228.942, 285.786, 241.079}, {547.947, 581.398, 611.922}},
};

Bench link_model()
{
    Bench bench;
    for (const RealSize &size : kLinkModel) {
        for (int job = 0; job < 3; ++job) {
            bench.add(kFour, {Algorithm::kOneShot, {}, 0}, size.bytes, size.one_shot[job], job);
            bench.add(kFour, {Algorithm::kTwoShot, {}, 0}, size.bytes, size.two_shot[job], job);
            bench.add(kFour, {Algorithm::kLeader, {}, 0}, size.bytes, size.leader[job], job);
        }
    }
    return bench;
}

TEST(BuildTableTest, TheLeaderServesSmallVectorsOnTheLinkModel)
{
    const std::vector<SizeRule> rules = rules_of(link_model());
    ASSERT_EQ(rules.size(), 2u);
    EXPECT_EQ(rules[0].algorithm, Algorithm::kLeader);
    EXPECT_GE(rules[0].bytes.max, 8 * kKiB);
    EXPECT_LT(rules[0].bytes.max, 64 * kKiB); // there all jobs show the opposite
    EXPECT_EQ(rules[1].algorithm, Algorithm::kTwoShot);
}

TEST(BuildTableTest, WhatJobsContradictIsUndecided)
{
    const Undecided open = undecided(link_model().measurements().samples);
    EXPECT_EQ(open.sizes, (std::set<std::int64_t>{8192, 32768}));
    EXPECT_EQ(open.variants,
              (std::set<Variant>{{Algorithm::kTwoShot, {}, 0}, {Algorithm::kLeader, {}, 0}}));
}

TEST(BuildTableTest, WhatAllJobsShowIsDecided)
{
    EXPECT_TRUE(undecided(jobs_of({{100, 1.4}, {130, 1.4}, {260, 1.4}}).measurements().samples)
                    .sizes.empty());
    // And where one may take either.
    EXPECT_TRUE(undecided(jobs_of({{100, 1.02}, {130, 0.98}, {260, 1.03}}).measurements().samples)
                    .sizes.empty());
}

// The bound that the table is checked against, with true times instead of fresh runs.
TEST(BuildTableTest, NoChoiceIsMuchSlowerThanTheBest)
{
    std::mt19937_64 random(11);
    const auto power = [&](double low, double high) {
        return std::pow(10, std::uniform_real_distribution(low, high)(random));
    };
    for (int i = 0; i < 300; ++i) {
        Bench bench(0.02, static_cast<std::uint64_t>(i));
        std::map<Algorithm, std::function<double(double)>> truth;
        for (const Algorithm algorithm : {Algorithm::kRecursiveDoubling, Algorithm::kRabenseifner,
                                          Algorithm::kRing, Algorithm::kTwoShot}) {
            truth[algorithm] = line(power(0.5, 2.5), power(-0.5, 2));
            bench.measure(kFour, {algorithm, {}, 0}, 8, 64 * kMiB, truth[algorithm]);
        }
        const std::vector<SizeRule> rules = rules_of(bench);
        double before = 0;
        for (double bytes = 8; bytes <= 64.0 * kMiB; bytes *= 2) {
            double best = 1e18;
            for (const auto &[algorithm, us] : truth) {
                best = std::min(best, us(bytes));
            }
            const auto rule = std::find_if(rules.begin(), rules.end(), [&](const SizeRule &r) {
                return r.bytes.contains(static_cast<std::int64_t>(bytes));
            });
            ASSERT_NE(rule, rules.end());
            const double chosen = truth.at(rule->algorithm)(bytes);
            ASSERT_LE(chosen, 1.25 * best) << bytes << " bytes";
            ASSERT_TRUE(before == 0 || chosen <= 3 * before) << bytes << " bytes";
            before = chosen;
        }
    }
}

TEST(BuildTableTest, AJumpInTheTimesIsNoted)
{
    Bench bench;
    bench.measure(kFour, kHost, 1024, 8 * kKiB, line(10, 5));
    bench.measure(kFour, kRing, 16 * kKiB, kMiB, line(100, 5));
    const BuiltRules built = build_rules(bench.measurements());
    ASSERT_EQ(built.notes.size(), 1u);
    EXPECT_EQ(
        built.notes[0],
        "4 ranks on 1 node, 1 a GPU: ring takes 103.3 us at 16384 bytes, host only 11.6 us at "
        "8192: more than 3 times for at most twice the size");
}

TEST(BuildTableTest, ChunksAndTheExchangeBetweenNodesAreRulesToo)
{
    Bench bench;
    bench.measure(kFour, {Algorithm::kRing, {}, 64 * kKiB}, 64 * kKiB, 64 * kMiB, line(50, 5));
    bench.measure(kFour, {Algorithm::kRing, {}, 512 * kKiB}, 64 * kKiB, 64 * kMiB, line(150, 10));
    std::vector<SizeRule> rules = rules_of(bench);
    ASSERT_EQ(rules.size(), 2u);
    EXPECT_EQ(rules[0].chunk_bytes, static_cast<std::size_t>(64 * kKiB));
    EXPECT_EQ(rules[1].chunk_bytes, static_cast<std::size_t>(512 * kKiB));

    Bench between;
    between.measure(kFour, {Algorithm::kHierarchical, Algorithm::kRing, 0}, 8, kMiB, line(50, 5));
    between.measure(kFour, {Algorithm::kHierarchical, Algorithm::kRabenseifner, 0}, 8, kMiB,
                    line(20, 5));
    rules = rules_of(between);
    ASSERT_EQ(rules.size(), 1u);
    EXPECT_EQ(rules[0].between_nodes, Algorithm::kRabenseifner);
}

// ---- files ----

Bench several_setups()
{
    Bench bench(0.01);
    const auto add = [&](Setup setup) {
        bench.measure(setup, kDoubling, 8, kMiB, line(20 * setup.ranks, 5));
        bench.measure(setup, kRing, 8, kMiB, line(100, 20));
    };
    for (const int ranks : {2, 3, 4, 8}) {
        add({.ranks = ranks, .nodes = 1, .ranks_per_node_min = ranks, .ranks_per_node_max = ranks});
        add({.ranks = ranks,
             .nodes = 1,
             .ranks_per_node_min = ranks,
             .ranks_per_node_max = ranks,
             .ranks_per_gpu = 2});
    }
    add({.ranks = 8, .nodes = 2, .ranks_per_node_min = 4, .ranks_per_node_max = 4});
    add({.ranks = 8, .nodes = 2, .ranks_per_node_min = 1, .ranks_per_node_max = 7});
    add({.ranks = 8, .nodes = 2, .ranks_per_node_min = 2, .ranks_per_node_max = 6});
    add({.ranks = 4, .nodes = 2, .ranks_per_node_min = 2, .ranks_per_node_max = 2});
    return bench;
}

TableFile table_of(const Bench &bench)
{
    TableFile table;
    replace_machine(table, bench.measurements(), build_rules(bench.measurements()), "m.txt");
    return table;
}

TEST(BuildTableTest, TheSameMeasurementsMakeTheSameFile)
{
    const Bench bench = several_setups();
    const std::string text = write_table(table_of(bench));
    EXPECT_EQ(write_table(table_of(bench)), text);
    // Whatever the order of the lines, and by way of the file.
    Measurements shuffled = *parse_measurements(write_measurements(bench.measurements()), "m.txt");
    std::shuffle(shuffled.samples.begin(), shuffled.samples.end(), std::mt19937_64(5));
    TableFile table;
    replace_machine(table, shuffled, build_rules(shuffled), "m.txt");
    EXPECT_EQ(write_table(table), text);
}

TEST(BuildTableTest, WhatIsBuiltIsAValidTable)
{
    const std::string text = write_table(table_of(several_setups()));
    const Result<TableFile> read = parse_table(text, "t.json");
    EXPECT_TRUE(read.ok()) << read.status().message() << '\n' << text;
}

TEST(BuildTableTest, EverySetupIsServedByItsOwnRules)
{
    const Bench bench = several_setups();
    const TableFile file = *parse_table(write_table(table_of(bench)), "t.json");
    const Result<Table> table = Table::select(file, {});
    ASSERT_TRUE(table.ok());
    const auto rule_for = [&](int ranks, int nodes, int low, int high, int sharing) {
        const Query query{.bytes = 64,
                          .ranks = ranks,
                          .nodes = nodes,
                          .ranks_per_node_min = low,
                          .ranks_per_node_max = high,
                          .ranks_per_gpu = sharing};
        const int rule = table->find(query, kMessageAlgorithms);
        return rule < 0 ? RuleSet{} : table->set_of(rule);
    };
    EXPECT_EQ(rule_for(2, 1, 2, 2, 1).ranks, (Range{1, 2}));
    EXPECT_EQ(rule_for(3, 1, 3, 3, 1).ranks, (Range{3, 3}));
    EXPECT_EQ(rule_for(5, 1, 5, 5, 1).ranks, (Range{4, 6}));
    EXPECT_EQ(rule_for(7, 1, 7, 7, 1).ranks, (Range{7, 16}));
    EXPECT_EQ(rule_for(17, 1, 17, 17, 1), RuleSet{}) << "too far from what was measured";
    EXPECT_EQ(rule_for(8, 1, 8, 8, 1).ranks_per_gpu, (Range{1, 1}));
    EXPECT_EQ(rule_for(8, 1, 8, 8, 3).ranks_per_gpu, (Range{2, 4}));
    EXPECT_EQ(rule_for(8, 1, 8, 8, 1).nodes, (Range{1, 1}));
    EXPECT_EQ(rule_for(8, 2, 4, 4, 1).nodes, (Range{2, 4}));
    EXPECT_EQ(rule_for(8, 2, 4, 4, 1).ranks_per_node, (Range{4, 4}));
    EXPECT_EQ(rule_for(8, 2, 3, 5, 1).ranks_per_node, (Range{2, 6}));
    EXPECT_EQ(rule_for(8, 2, 1, 7, 1).ranks_per_node, (Range{1, 7}));
    EXPECT_EQ(rule_for(9, 2, 1, 8, 1).ranks_per_node, Range{});
    EXPECT_EQ(rule_for(8, 5, 1, 2, 1), RuleSet{});
}

TEST(BuildTableTest, OneMachinesRulesReplaceItsOwnAndLeaveTheOthers)
{
    TableFile table = table_of(several_setups());
    Bench other;
    other.measure(kFour, kRing, 8, 64, line(1, 1));
    Measurements elsewhere = other.measurements();
    elsewhere.machine = "other";
    replace_machine(table, elsewhere, build_rules(elsewhere), "o.txt");
    const std::string both = write_table(table);
    EXPECT_EQ(table.machines.size(), 2u);
    EXPECT_EQ(table.sets.front().machine, "other");
    replace_machine(table, elsewhere, build_rules(elsewhere), "o.txt");
    EXPECT_EQ(write_table(table), both);
}

TEST(BuildTableTest, NothingMeasuredMakesNoRules)
{
    EXPECT_TRUE(build_rules(Bench().measurements()).sets.empty());
}

} // namespace
} // namespace hetcoll
