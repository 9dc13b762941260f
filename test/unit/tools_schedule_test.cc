#include "schedule/algorithms.h"
#include "tools/info_schedule.h"

#include <gtest/gtest.h>

namespace hetcoll {
namespace {

AllSchedules ring_of(int ranks)
{
    AllSchedules all;
    for (int rank = 0; rank < ranks; ++rank) {
        all.schedules.push_back(build_ring(rank, ranks));
    }
    return all;
}

TEST(InfoScheduleTest, SchedulesThatDoNotAddUpArePrintedAndCalledWrong)
{
    AllSchedules all = ring_of(3);
    all.schedules[1].steps[0].blocks.first = 0;
    const Proved shown = print_and_prove(all, "three ranks", 1);
    EXPECT_FALSE(shown.ok);
    EXPECT_EQ(shown.text.substr(0, 20), "three ranks\n\nrank 1:");
    EXPECT_NE(shown.text.find("\nWRONG: rank 1, step "), std::string::npos) << shown.text;
    EXPECT_EQ(shown.text.find("proved"), std::string::npos) << shown.text;
}

TEST(InfoScheduleTest, RightSchedulesAreProvedWhoeverIsPrinted)
{
    for (const int rank : {-1, 0, 2}) {
        const Proved shown = print_and_prove(ring_of(3), "three ranks", rank);
        EXPECT_TRUE(shown.ok);
        EXPECT_NE(shown.text.find("proved: no race and no deadlock in all 24 steps"),
                  std::string::npos)
            << shown.text;
    }
}

TEST(InfoScheduleTest, EveryNameOfEveryCollectiveIsBuiltAndProved)
{
    for (const char *collective : {"allreduce", "bcast", "reduce", "allgather", "reduce_scatter"}) {
        const std::vector<std::string> names = schedule_names(collective);
        EXPECT_GE(names.size(), 2u) << collective;
        for (const std::string &name : names) {
            if (name == "tree" || name == "trees") {
                continue; // need a topology: hetcoll_info_schedule_test.sh
            }
            CallRequest call;
            call.ranks = 6;
            call.nodes = 2;
            call.aggregators = 1;
            call.collective = collective;
            const Result<Query> query = parse_call(call);
            ASSERT_TRUE(query.ok());
            const Result<AllSchedules> all = build_all(name, call, *query, nullptr, 5);
            ASSERT_TRUE(all.ok()) << all.status().message();
            EXPECT_TRUE(print_and_prove(*all, name, 0).ok) << collective << " by " << name;
        }
    }
}

} // namespace
} // namespace hetcoll
