#include "engine/process/parameters.h"

#include <gtest/gtest.h>

#include <string>

namespace hetcoll {
namespace {

// The message about a text; "" if it is right.
std::string said_of(const char *name, const char *text)
{
    hetcoll_settings settings = hetcoll_default_settings();
    const auto wrong = set_parameter(settings, name, text);
    return wrong ? wrong->message : "";
}

TEST(ParametersTest, TextsOfEveryKindAreRead)
{
    hetcoll_settings settings = hetcoll_default_settings();
    EXPECT_FALSE(set_parameter(settings, "chunk_bytes", "64K"));
    EXPECT_EQ(settings.chunk_bytes, 65536u);
    EXPECT_FALSE(set_parameter(settings, "max_memory", "2t"));
    EXPECT_EQ(settings.max_memory, 2ul << 40);
    EXPECT_FALSE(set_parameter(settings, "priority", "-1"));
    EXPECT_EQ(settings.priority, -1);
    EXPECT_FALSE(set_parameter(settings, "reproducible", "yes"));
    EXPECT_TRUE(settings.reproducible);
    EXPECT_FALSE(set_parameter(settings, "reproducible", "0"));
    EXPECT_FALSE(settings.reproducible);
    EXPECT_FALSE(set_parameter(settings, "stage", "never"));
    EXPECT_EQ(settings.stage, HETCOLL_STAGE_NEVER);
    EXPECT_FALSE(set_parameter(settings, "algorithm", "ring"));
    EXPECT_STREQ(settings.algorithm, "ring");
    EXPECT_FALSE(set_parameter(settings, "node", "left"));
    EXPECT_STREQ(settings.node, "left");
}

TEST(ParametersTest, AWrongTextLeavesTheDefaultAndSaysSo)
{
    hetcoll_settings settings = hetcoll_default_settings();
    settings.algorithm = "ring";
    settings.chunk_bytes = 4096;
    settings.stage = -1;
    const auto wrong = set_parameter(settings, "chunk_bytes", "5");
    ASSERT_TRUE(wrong);
    EXPECT_FALSE(wrong->changes_results);
    EXPECT_EQ(wrong->message, "coll_hetcoll_chunk_bytes 5 is too small, write at least 4096, or 0 "
                              "to choose: its default, 0, is used");
    EXPECT_EQ(settings.chunk_bytes, 0u);
    EXPECT_TRUE(set_parameter(settings, "algorithm", "rings"));
    EXPECT_STREQ(settings.algorithm, "auto");
    EXPECT_TRUE(set_parameter(settings, "stage", "nevr"));
    EXPECT_EQ(settings.stage, HETCOLL_STAGE_AUTO);
}

TEST(ParametersTest, OfNamedOperationsTheRightEntriesCount)
{
    hetcoll_settings settings = hetcoll_default_settings();
    const char *const text = "a=half:sum,nothing";
    const auto wrong = set_parameter(settings, "user_ops", text);
    ASSERT_TRUE(wrong);
    EXPECT_FALSE(wrong->changes_results);
    EXPECT_EQ(wrong->message, "coll_hetcoll_user_ops: 'nothing' is not SYMBOL=TYPE:OP with TYPE "
                              "half or bfloat16 and OP sum, prod, min or max: such entries are "
                              "left out");
    EXPECT_STREQ(settings.user_ops, text);
}

TEST(ParametersTest, WhatChangesResultsIsRefused)
{
    for (const char *name : {"reproducible", "accumulate", "fixed_point", "pre_sync"}) {
        hetcoll_settings settings = hetcoll_default_settings();
        const auto wrong = set_parameter(settings, name, "flaot");
        ASSERT_TRUE(wrong) << name;
        EXPECT_TRUE(wrong->changes_results) << name;
    }
    EXPECT_EQ(said_of("accumulate", "flaot"),
              "coll_hetcoll_accumulate 'flaot' is unknown, write float or element: MPI_Init fails, "
              "because results depend on it");
}

TEST(ParametersTest, OnlyWholeNumbersAreNumbers)
{
    for (const char *text : {"", "abc", "8x", "5G5", "1.5M", "1e3", "nan", "inf", "0x10", " 8",
                             "8 ", "--8", "+-8", "K", "8KB"}) {
        EXPECT_EQ(said_of("max_memory", text),
                  "coll_hetcoll_max_memory '" + std::string(text) +
                      "' is no whole number: its default, 1G, is used");
    }
}

TEST(ParametersTest, NumbersOutOfTheirRangeAreNamedAsTheyWereWritten)
{
    EXPECT_EQ(said_of("small_limit", "1M"), "coll_hetcoll_small_limit 1M is too large, write at "
                                            "most 16384: its default, 8K, is used");
    EXPECT_EQ(said_of("small_limit", "-1"), "coll_hetcoll_small_limit -1 is too small, write at "
                                            "least 0: its default, 8K, is used");
    EXPECT_EQ(said_of("max_memory", "99999999999999999999"),
              "coll_hetcoll_max_memory 99999999999999999999 is too large, write at most "
              "9223372036854775807: its default, 1G, is used");
    EXPECT_EQ(said_of("max_mapped", "-99999999999999999999"),
              "coll_hetcoll_max_mapped -99999999999999999999 is too small, write at least 0: its "
              "default, 0, is used");
    EXPECT_EQ(said_of("verbose", "4G"), "coll_hetcoll_verbose 4G is too large, write at most "
                                        "2147483647: its default, 0, is used");
    EXPECT_EQ(said_of("max_memory", "9000000T"),
              "coll_hetcoll_max_memory 9000000T is too large, write at most 9223372036854775807: "
              "its default, 1G, is used");
}

TEST(ParametersTest, OneWordAlone)
{
    for (const char *text : {"", "maybe", "2", "TRUE?", "tru"}) {
        EXPECT_NE(said_of("skew", text), "") << text;
    }
    for (const char *text : {"", "auto or never", "or", "aut", "auto,", "Auto"}) {
        EXPECT_NE(said_of("ipc", text), "") << text;
    }
    EXPECT_EQ(said_of("node", "any\nword"), "");
    EXPECT_EQ(said_of("ipc", "a\nb"), "coll_hetcoll_ipc 'a?b' is unknown, write auto or never: its "
                                      "default, auto, is used");
}

} // namespace
} // namespace hetcoll
