// The list of parameters: what follows from it.
#include "engine/process/settings.h"
#include "engine/types/facts.h"

#include <gtest/gtest.h>

#include <string>

namespace hetcoll {
namespace {

std::string problem_with(const hetcoll_settings &settings)
{
    const Status status = check_numbers(settings);
    return status.ok() ? "" : status.message();
}

TEST(SettingsTest, TheDefaultsAreRight)
{
    const hetcoll_settings settings = hetcoll_default_settings();
    EXPECT_EQ(problem_with(settings), "");
    EXPECT_EQ(settings.priority, 95);
    EXPECT_EQ(settings.small_limit, 8192u);
    EXPECT_STREQ(settings.algorithm, "auto");
    EXPECT_EQ(settings.pointer_cache, HETCOLL_POINTER_CACHE_VALIDATED);
    EXPECT_TRUE(settings.recognize_ops);
}

TEST(SettingsTest, ANumberOutOfItsRangeIsNamedWithTheRange)
{
    hetcoll_settings settings = hetcoll_default_settings();
    settings.small_limit = 16385;
    EXPECT_EQ(problem_with(settings),
              "coll_hetcoll_small_limit 16385 is too large, write at most 16384");
    settings = hetcoll_default_settings();
    settings.chunk_bytes = 4095;
    EXPECT_EQ(problem_with(settings),
              "coll_hetcoll_chunk_bytes 4095 is too small, write at least 4096, or 0 to choose");
    settings = hetcoll_default_settings();
    settings.fixed_point = -1;
    EXPECT_EQ(problem_with(settings), "coll_hetcoll_fixed_point -1 is too small, write at least 1, "
                                      "or 0 for sums as floats");
    settings = hetcoll_default_settings();
    settings.aggregator_window = 0;
    EXPECT_EQ(problem_with(settings),
              "coll_hetcoll_aggregator_window 0 is too small, write at least 1");
}

TEST(SettingsTest, NumbersWithoutABoundMayBeAny)
{
    hetcoll_settings settings = hetcoll_default_settings();
    settings.priority = -1;
    settings.max_memory = settings.max_mapped = settings.aggregator_copy = ~0ul;
    EXPECT_EQ(problem_with(settings), "");
}

TEST(FactsTest, TheLeastTheMostOrTheSameIsAgreed)
{
    hetcoll_facts a{}, b{};
    a.small_limit = 100, b.small_limit = 50;
    a.reproducible = 0, b.reproducible = 1;
    a.accumulate = 0, b.accumulate = 1; // by element, if any rank wants that
    a.user_ops = b.user_ops = 7;
    a.shares = 3, b.shares = 4;
    a.rack_nodes = 0, b.rack_nodes = 24; // not known, if any rank does not
    hetcoll_facts merged = a;
    hetcoll_facts_merge(&merged, &b);
    EXPECT_EQ(merged.small_limit, 50u);
    EXPECT_EQ(merged.reproducible, 1u);
    EXPECT_EQ(merged.accumulate, 1u);
    EXPECT_EQ(merged.user_ops, 7u);
    EXPECT_EQ(merged.user_ops_differs, 0u);
    EXPECT_EQ(merged.shares, 0u);
    EXPECT_EQ(merged.rack_nodes, 0u);
    EXPECT_EQ(merged.shares_differs, 1u);
}

TEST(FactsTest, WithoutACommonPriorityThereIsNoProtocol)
{
    hetcoll_facts a{}, b{};
    a.protocol = b.protocol = HETCOLL_PROTOCOL;
    a.priority = 95, b.priority = 96;
    hetcoll_facts merged = a;
    hetcoll_facts_merge(&merged, &a);
    EXPECT_EQ(merged.protocol, HETCOLL_PROTOCOL);
    hetcoll_facts_merge(&merged, &b);
    EXPECT_EQ(merged.protocol, 0u);
    hetcoll_facts_merge(&merged, &a); // stays
    EXPECT_EQ(merged.protocol, 0u);
}

} // namespace
} // namespace hetcoll
