// Reading recorded calls, and the order in which they are played.
#include "bench/trace.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

namespace hetcoll {
namespace {

constexpr char kHeading[] = "fn,type,op,comm_size,inplace,bytes,main_thread,calls,avg_us,min_us\n";

Result<std::vector<PlayedCall>> read(const std::string &lines)
{
    const std::string path = testing::TempDir() + "/trace.csv";
    std::ofstream(path) << kHeading << lines;
    auto calls = read_trace(path);
    std::remove(path.c_str());
    return calls;
}

std::vector<std::size_t> counts_of(const std::vector<PlayedCall> &calls)
{
    std::vector<std::size_t> counts;
    for (const PlayedCall &call : calls) {
        counts.push_back(call.data.count);
    }
    return counts;
}

TEST(TraceTest, PlaysTheFirstCallOfEachKindThenTheSecond)
{
    const auto calls = read("Allreduce,MPI_FLOAT,SUM,2,1,400,0,3,1,1\n"
                            "Allreduce,MPI_FLOAT,SUM,2,1,800,0,1,1,1\n"
                            "Allreduce,MPI_FLOAT,SUM,2,1,1200,0,2,1,1\n");
    ASSERT_TRUE(calls.ok());
    EXPECT_EQ(counts_of(*calls), (std::vector<std::size_t>{100, 200, 300, 100, 300, 100}));
}

TEST(TraceTest, PlaysAllBroadcastsOfASizeTogether)
{
    const auto calls = read("Bcast,MPI_FLOAT,,2,0,400,0,2,1,1\n"
                            "Allreduce,MPI_FLOAT,SUM,2,1,40,0,2,1,1\n");
    ASSERT_TRUE(calls.ok());
    EXPECT_EQ(counts_of(*calls), (std::vector<std::size_t>{100, 100, 10, 10}));
}

TEST(TraceTest, KnowsHorovodsHalf)
{
    const auto calls =
        read("Allreduce,unnamed(2),user:_ZN7horovod6common11float16_sumEPvS1_PiPP15ompi_datatype_t,"
             "2,1,2000,0,1,1,1\n");
    ASSERT_TRUE(calls.ok());
    ASSERT_EQ(calls->size(), 1U);
    const DataCall &data = calls->front().data;
    EXPECT_EQ(data.kind, ElementKind::kFloat16);
    EXPECT_EQ(data.op, ReduceOp::kSum);
    EXPECT_TRUE(data.user_op && data.in_place);
    EXPECT_EQ(data.count, 1000U);
}

TEST(TraceTest, SharesOutNegotiationsEvenly)
{
    const auto calls = read("Allreduce,MPI_LONG_LONG_INT,BAND,2,1,8,0,4,1,1\n"
                            "Gather,MPI_INT,,2,1,4,0,1,1,1\n"
                            "Gatherv,MPI_BYTE,,2,0,0,0,1,1,1\n"
                            "Bcast,MPI_INT,,2,0,4,0,1,1,1\n"
                            "Bcast,MPI_BYTE,,2,0,25,0,1,1,1\n"
                            "Allreduce,MPI_LONG_LONG_INT,BAND,2,1,24,0,3,1,1\n"
                            "Allreduce,MPI_FLOAT,SUM,2,1,400,0,2,1,1\n");
    ASSERT_TRUE(calls.ok());
    ASSERT_EQ(calls->size(), 2U);
    EXPECT_EQ((*calls)[0].before.agreed_words, (std::vector<std::size_t>{1, 1, 1}));
    EXPECT_EQ((*calls)[1].before.agreed_words, (std::vector<std::size_t>{1, 3, 3, 3}));
    EXPECT_EQ((*calls)[0].before.response_bytes, -1);
    EXPECT_EQ((*calls)[1].before.response_bytes, 25);
}

TEST(TraceTest, NamesTheLineThatIsNone)
{
    const auto calls = read("Allreduce,MPI_FLOAT,SUM,2,1,400,0,1,1,1\n"
                            "Allreduce,MPI_FLOAT,SUM,2\n");
    ASSERT_FALSE(calls.ok());
    EXPECT_NE(calls.status().message().find("trace.csv:3: not a line of a trace"),
              std::string::npos)
        << calls.status().message();
}

TEST(TraceTest, RefusesATypeThatItCannotPlay)
{
    const auto calls = read("Allreduce,unnamed(16),SUM,2,1,400,0,1,1,1\n");
    ASSERT_FALSE(calls.ok());
    EXPECT_NE(calls.status().message().find("cannot play Allreduce of type unnamed(16)"),
              std::string::npos)
        << calls.status().message();
}

TEST(TraceTest, RefusesMoreCallsThanMemoryHolds)
{
    const std::string row = "Allreduce,MPI_FLOAT,SUM,2,1,400,0,";
    for (const char *const second : {"1000000,1,1\n", "18446744073709551615,1,1\n"}) {
        const auto calls = read(row + "1,1,1\n" + row + second);
        ASSERT_FALSE(calls.ok());
        EXPECT_NE(calls.status().message().find("trace.csv:3: more than 1000000 calls"),
                  std::string::npos)
            << calls.status().message();
    }
}

TEST(TraceTest, ShrinksToOneElementAtLeast)
{
    auto calls = read("Allreduce,MPI_FLOAT,SUM,2,1,400,0,1,1,1\n"
                      "Allreduce,MPI_FLOAT,SUM,2,1,4,0,1,1,1\n");
    ASSERT_TRUE(calls.ok());
    shrink(*calls, 10);
    EXPECT_EQ(counts_of(*calls), (std::vector<std::size_t>{10, 1}));
}

TEST(TraceTest, ReadsEveryShippedTrace)
{
    for (const char *name :
         {"horovod_resnet50_float", "horovod_resnet50_half", "horovod_resnet50_float_50ms",
          "horovod_bert_large_like", "horovod_digits_float", "horovod_digits_half",
          "horovod_every_collective"}) {
        const char *const sources = std::getenv("HETCOLL_SRCDIR");
        const std::string folder = std::string(sources != nullptr ? sources : ".");
        const auto calls = read_trace(folder + "/bench/traces/" + name + ".csv");
        EXPECT_TRUE(calls.ok()) << name;
    }
}

} // namespace
} // namespace hetcoll
