#include "choice/choose.h"
#include "tuning/table.h"

#include <gtest/gtest.h>

#include <limits>

namespace hetcoll {
namespace {

constexpr auto kAll = static_cast<AlgorithmSet>((1u << kAlgorithmCount) - 1);

TableFile file_with(std::vector<RuleSet> sets)
{
    TableFile file;
    file.path = "t.json";
    file.sets = std::move(sets);
    return file;
}

Table table_of(const TableFile &file) { return *Table::select(file, {}); }

RuleSet set_for(Range ranks, std::vector<SizeRule> rules)
{
    RuleSet set;
    set.ranks = ranks;
    set.rules = std::move(rules);
    return set;
}

SizeRule rule(std::int64_t min, std::int64_t max, Algorithm algorithm)
{
    return {.bytes = {min, max}, .algorithm = algorithm};
}

Query query_of(std::size_t bytes, int ranks)
{
    return {.bytes = bytes, .ranks = ranks, .available = kAll};
}

TEST(TableTest, TheRuleOfTheSizeIsFoundAtItsVeryEnds)
{
    const Table table = table_of(file_with(
        {set_for({2, 8}, {rule(101, 200, Algorithm::kRing), rule(0, 100, Algorithm::kHost),
                          rule(301, Range::kInfinite, Algorithm::kTree)})}));
    const auto found = [&](std::size_t bytes) {
        const int index = table.find(query_of(bytes, 4), kAll);
        return index < 0 ? "none" : algorithm_name(table.rule(index).algorithm);
    };
    EXPECT_STREQ(found(0), "host");
    EXPECT_STREQ(found(100), "host");
    EXPECT_STREQ(found(101), "ring");
    EXPECT_STREQ(found(200), "ring");
    EXPECT_STREQ(found(201), "none");
    EXPECT_STREQ(found(300), "none");
    EXPECT_STREQ(found(301), "tree");
    EXPECT_STREQ(found(std::numeric_limits<std::int64_t>::max()), "tree");
}

TEST(TableTest, TheFirstListThatMatchesWins)
{
    const Table table = table_of(file_with({set_for({4, 4}, {rule(0, 10, Algorithm::kHost)}),
                                            set_for({2, 8}, {rule(0, 100, Algorithm::kRing)})}));
    EXPECT_EQ(table.rule(table.find(query_of(10, 4), kAll)).algorithm, Algorithm::kHost);
    EXPECT_EQ(table.rule(table.find(query_of(11, 4), kAll)).algorithm, Algorithm::kRing);
    EXPECT_EQ(table.rule(table.find(query_of(10, 2), kAll)).algorithm, Algorithm::kRing);
    EXPECT_EQ(table.find(query_of(10, 9), kAll), -1);
}

TEST(TableTest, EveryRangeAndClassIsLookedAt)
{
    RuleSet set = set_for({}, {rule(0, Range::kInfinite, Algorithm::kRing)});
    set.nodes = {2, 2};
    set.ranks_per_node = {3, 5};
    set.ranks_per_gpu = {2, 2};
    set.element_bytes = {4, 8};
    set.op = OpClass::kSum;
    set.memory = CallMemory::kDevice;
    const Table table = table_of(file_with({set}));
    Query good = query_of(100, 8);
    good.nodes = 2;
    good.ranks_per_node_min = 3;
    good.ranks_per_node_max = 5;
    good.ranks_per_gpu = 2;
    EXPECT_EQ(table.find(good, kAll), 0);
    const auto changed = [&](auto change) {
        Query query = good;
        change(query);
        return table.find(query, kAll);
    };
    EXPECT_EQ(changed([](Query &q) { q.nodes = 3; }), -1);
    EXPECT_EQ(changed([](Query &q) { q.ranks_per_node_min = 2; }), -1);
    EXPECT_EQ(changed([](Query &q) { q.ranks_per_node_max = 6; }), -1);
    EXPECT_EQ(changed([](Query &q) { q.ranks_per_node_min = q.ranks_per_node_max = 0; }), 0)
        << "4 on each";
    EXPECT_EQ(changed([](Query &q) { q.ranks_per_gpu = 1; }), -1);
    EXPECT_EQ(changed([](Query &q) { q.element_bytes = 2; }), -1); // R23: half has its own rules
    EXPECT_EQ(changed([](Query &q) { q.op = OpClass::kOther; }), -1);
    EXPECT_EQ(changed([](Query &q) { q.memory = CallMemory::kMixed; }), -1);
}

TEST(TableTest, ARuleWhoseAlgorithmCannotRunIsPassedOver)
{
    const TableFile file = file_with({set_for({4, 4}, {rule(0, 100, Algorithm::kTree)}),
                                      set_for({}, {rule(0, 100, Algorithm::kRing)})});
    const Table table = table_of(file);
    EXPECT_EQ(table.find(query_of(10, 4), bit(Algorithm::kRing)), 1);
    EXPECT_EQ(table.find(query_of(10, 4), bit(Algorithm::kHost)), -1);
}

TEST(TableTest, ChooseTakesForcedThenTheTableThenTheModel)
{
    SizeRule chosen = rule(0, 1000, Algorithm::kHierarchical);
    chosen.between_nodes = Algorithm::kRabenseifner;
    chosen.chunk_bytes = 4096;
    const Table table = table_of(file_with({set_for({}, {chosen})}));
    Query query = query_of(1000, 4);
    Choice choice = choose(query, &table);
    EXPECT_EQ(choice.source, ChoiceSource::kTable);
    EXPECT_EQ(choice.rule, 0);
    EXPECT_EQ(choice.algorithm, Algorithm::kHierarchical);
    EXPECT_EQ(choice.between_nodes, Algorithm::kRabenseifner);
    EXPECT_EQ(choice.chunk_bytes, 4096u);

    query.chunk_bytes = 8192;
    EXPECT_EQ(choose(query, &table).chunk_bytes, 8192u);
    query.chunk_bytes = 0;

    query.forced = Algorithm::kRing;
    choice = choose(query, &table);
    EXPECT_EQ(choice.source, ChoiceSource::kForced);
    EXPECT_EQ(choice.algorithm, Algorithm::kRing);
    EXPECT_EQ(choice.rule, -1);

    query.available &= static_cast<AlgorithmSet>(~bit(Algorithm::kRing));
    choice = choose(query, &table);
    EXPECT_EQ(choice.source, ChoiceSource::kTable);
    EXPECT_TRUE(choice.forced_unavailable);

    query.bytes = 1001;
    query.forced.reset();
    choice = choose(query, &table);
    EXPECT_EQ(choice.source, ChoiceSource::kPrice);
    EXPECT_EQ(choice.algorithm, choose(query).algorithm);
}

TEST(TableTest, ReproducibleCallsDoNotTakeTheTablesOtherAlgorithms)
{
    const Table table =
        table_of(file_with({set_for({}, {rule(0, Range::kInfinite, Algorithm::kRing)})}));
    Query query = query_of(1000, 4);
    query.reproducible = true;
    EXPECT_EQ(choose(query, &table).source, ChoiceSource::kPrice);
}

// ---- machines ----

TableFile two_machines(bool rules_for_all)
{
    TableFile file = file_with({});
    file.machines = {{"a", {{{"gpu", "A100"}, {"links", "1"}}}, "", {}, 5},
                     {"b", {{{"gpu", "V100"}}}, "", {}, 6}};
    for (const auto &[name, algorithm] :
         {std::pair{"a", Algorithm::kTwoShot}, {"b", Algorithm::kTree}, {"", Algorithm::kHost}}) {
        if (*name != '\0' || rules_for_all) {
            file.sets.push_back(set_for({}, {rule(0, 10, algorithm)}));
            file.sets.back().machine = name;
        }
    }
    return file;
}

TEST(TableTest, AMachineTakesItsOwnRulesThenThoseForAll)
{
    const TableFile file = two_machines(true);
    const auto first = [&](const Fingerprint &machine) {
        const Result<Table> table = Table::select(file, machine);
        return table.ok() ? table->rule(0).algorithm : Algorithm::kRing;
    };
    EXPECT_EQ(first({{{"gpu", "A100"}, {"links", "1"}, {"driver", "535"}}}), Algorithm::kTwoShot)
        << "facts that the table does not ask for may be anything";
    EXPECT_EQ(first({{{"gpu", "V100"}}}), Algorithm::kTree);
    EXPECT_EQ(first({{{"gpu", "H100"}}}), Algorithm::kHost);
}

TEST(TableTest, AnotherMachinesTableIsAFault)
{
    const Result<Table> table = Table::select(two_machines(false), {{{"gpu", "A100"}}});
    ASSERT_FALSE(table.ok());
    EXPECT_EQ(
        table.status().message().find(
            "t.json:5: it was measured on another machine (a: links is unknown here, not '1', "
            "b: gpu is 'A100' here, not 'V100'); make a new table with"),
        0u)
        << table.status().message();
}

TEST(TableTest, AMachineIsSelectedByNameForATool)
{
    const TableFile file = two_machines(false);
    EXPECT_EQ(Table::select_named(file, "b")->rule(0).algorithm, Algorithm::kTree);
    EXPECT_EQ(Table::select_named(file, "").status().message(),
              "t.json: no machine '' in it: say one of a, b");
    TableFile one = file;
    one.machines.pop_back();
    one.sets.pop_back();
    EXPECT_EQ(Table::select_named(one, "")->machine(), "a");
}

// ---- the hash ----

TEST(TableTest, EqualTablesHaveEqualHashesWhateverTheFile)
{
    TableFile file = two_machines(false), other = file;
    other.path = "elsewhere.json";
    other.machines.erase(other.machines.begin());
    other.sets.erase(other.sets.begin());
    other.sets[0].rules[0].line = 77;
    const Fingerprint v100{{{"gpu", "V100"}}};
    EXPECT_EQ(Table::select(file, v100)->hash(), Table::select(other, v100)->hash());
}

TEST(TableTest, WhateverDecidesChangesTheHash)
{
    const TableFile file = file_with({set_for({2, 8}, {rule(0, 100, Algorithm::kRing)})});
    const std::uint64_t hash = table_of(file).hash();
    const auto changed = [&](auto change) {
        TableFile other = file;
        change(other.sets[0]);
        return table_of(other).hash() != hash;
    };
    EXPECT_TRUE(changed([](RuleSet &s) { s.ranks.max = 9; }));
    EXPECT_TRUE(changed([](RuleSet &s) { s.nodes.min = 1; }));
    EXPECT_TRUE(changed([](RuleSet &s) { s.ranks_per_node.min = 1; }));
    EXPECT_TRUE(changed([](RuleSet &s) { s.ranks_per_gpu.min = 1; }));
    EXPECT_TRUE(changed([](RuleSet &s) { s.element_bytes.min = 1; }));
    EXPECT_TRUE(changed([](RuleSet &s) { s.op = OpClass::kSum; }));
    EXPECT_TRUE(changed([](RuleSet &s) { s.memory = CallMemory::kDevice; }));
    EXPECT_TRUE(changed([](RuleSet &s) { s.rules[0].bytes.max = 101; }));
    EXPECT_TRUE(changed([](RuleSet &s) { s.rules[0].algorithm = Algorithm::kTree; }));
    EXPECT_TRUE(changed([](RuleSet &s) { s.rules[0].between_nodes = Algorithm::kRing; }));
    EXPECT_TRUE(changed([](RuleSet &s) { s.rules[0].chunk_bytes = 4096; }));
    EXPECT_TRUE(changed([](RuleSet &s) { s.rules.clear(); }));
    EXPECT_FALSE(changed([](RuleSet &) {}));
}

TEST(TableTest, AFilesHashIsOfAllMachines)
{
    TableFile file = two_machines(false), other = file;
    other.path = "elsewhere.json";
    other.sets[0].line = 77;
    EXPECT_EQ(table_hash(file), table_hash(other));
    other.sets[1].rules[0].algorithm = Algorithm::kRing;
    EXPECT_NE(table_hash(file), table_hash(other));
    other = file;
    other.machines[1].fingerprint.facts["gpu"] = "P100";
    EXPECT_NE(table_hash(file), table_hash(other));
    other = file;
    other.sets[1].machine = "a";
    EXPECT_NE(table_hash(file), table_hash(other));
}

TEST(TableTest, AFingerprintsHashIsOfItsFacts)
{
    const Fingerprint a{{{"gpu", "A100"}}}, b{{{"gpu", "A"}, {"x", "100"}}};
    EXPECT_EQ(a.hash(), Fingerprint{a}.hash());
    EXPECT_NE(a.hash(), b.hash());
    EXPECT_NE(a.hash(), Fingerprint{}.hash());
}

TEST(TableTest, LoadHandsFaultsOn)
{
    const Result<Table> table = Table::load("/nowhere/t.json", {});
    ASSERT_FALSE(table.ok());
    EXPECT_EQ(table.status().message().find("/nowhere/t.json: cannot be opened"), 0u);
}

} // namespace
} // namespace hetcoll
