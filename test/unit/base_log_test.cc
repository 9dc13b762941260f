#include "base/log.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hetcoll {
namespace {

// Log takes a plain function, so what it wrote is kept here.
struct Line {
    int level;
    std::string text;
    friend bool operator==(const Line &, const Line &) = default;
};

std::vector<Line> &lines()
{
    static std::vector<Line> written;
    return written;
}

void write(int level, const char *line) { lines().push_back({level, line}); }

class LogTest : public ::testing::Test {
protected:
    LogTest() { lines().clear(); }
};

TEST_F(LogTest, WithoutAWriterNothingIsEnabledAndNothingHappens)
{
    const Log none;
    EXPECT_FALSE(none.enabled(0));
    log(none, 0, "%d", 1);
    EXPECT_TRUE(lines().empty());
}

TEST_F(LogTest, LevelZeroIsAlwaysWritten)
{
    const Log quiet{.write = write, .verbose = 0};
    log(quiet, 0, "staged on %s", "rank 3");
    EXPECT_EQ(lines(), (std::vector<Line>{{0, "staged on rank 3"}}));
}

TEST_F(LogTest, HigherLevelsAreWrittenUpToTheVerbosity)
{
    const Log some{.write = write, .verbose = 2};
    EXPECT_TRUE(some.enabled(2));
    EXPECT_FALSE(some.enabled(3));
    for (int level = 1; level <= 3; ++level) {
        log(some, level, "level %d", level);
    }
    EXPECT_EQ(lines(), (std::vector<Line>{{1, "level 1"}, {2, "level 2"}}));
}

TEST_F(LogTest, ALineThatIsTooLongIsCut)
{
    const std::string word(2000, 'w');
    log(Log{.write = write, .verbose = 0}, 0, "%s", word.c_str());
    ASSERT_EQ(lines().size(), 1u);
    EXPECT_EQ(lines()[0].text, word.substr(0, 511));
}

} // namespace
} // namespace hetcoll
