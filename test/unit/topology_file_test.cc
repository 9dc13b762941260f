#include "test/unit/topology_machines.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <unistd.h>

namespace hetcoll {
namespace {

const std::string kHeader = "hetcoll topology 1\n";
const std::string kTwoGpus = kHeader + "gpu a -\ngpu b -\ncpu c\n";

// The error of a broken text.
std::string refusal(const std::string &text)
{
    const Result<Topology> topology = parse_topology(text, "FILE");
    return topology.ok() ? "" : topology.status().message();
}

class ShippedFileTest : public ::testing::TestWithParam<const char *> {};

TEST_P(ShippedFileTest, RoundTrips)
{
    const Topology topology = shipped(GetParam());
    const std::string text = write_topology(topology);
    const Result<Topology> again = parse_topology(text, "again");
    ASSERT_TRUE(again.ok()) << again.status().message();
    EXPECT_EQ(*again, topology);
    EXPECT_EQ(write_topology(*again), text);
}
constexpr const char *kShipped[] = {"dgx1p",       "dgx1v",    "dgx2",        "dgxa100",
                                    "dgxh100",     "pcie8",    "dgx1v-014",   "dgx1v-034",
                                    "dgx1v-0124",  "p100",     "dgx1v-01234", "4xp4000",
                                    "v100-100gbe", "4xtitanv", "4xtitanrtx",  "4xrtx2060"};
INSTANTIATE_TEST_SUITE_P(Machines, ShippedFileTest, ::testing::ValuesIn(kShipped));

TEST(FileTest, EveryShippedFileIsTested)
{
    std::size_t files = 0;
    for (const auto &entry : std::filesystem::directory_iterator(shipped_folder())) {
        files += entry.path().extension() == ".topology" ? 1 : 0;
    }
    EXPECT_EQ(files, std::size(kShipped));
}

TEST(FileTest, ShippedFragmentsAreThoseOfTheirMachine)
{
    EXPECT_EQ(shipped("dgx1v-014"), shipped("dgx1v:0,1,4"));
    EXPECT_EQ(shipped("dgx1v-034"), shipped("dgx1v:0,3,4"));
    EXPECT_EQ(shipped("dgx1v-0124"), shipped("dgx1v:0-2,4"));
    EXPECT_EQ(shipped("dgx1v-01234"), shipped("dgx1v:0-4"));
}

TEST(FileTest, HoldsAllThatATopologyCanHave)
{
    const std::string text =
        kHeader +
        "machine two words\n"
        "gpu g.0 0000:06:00.0 numa 1 model M-1 uuid GPU-01234567-89ab-cdef-0123-456789abcdef\n"
        "gpu g1 - adapter n\n"
        "nvswitch s\n"
        "pcie p\n"
        "cpu c numa 0\n"
        "nic n 00a0:07:00.1 numa 0\n"
        "network w\n"
        "link g.0 s nvlink 2 25\n"
        "link g.0 p pcie 1 12.345678901234567\n"
        "link p c pcie 1 0.1\n"
        "link n w network 1 12.5\n";
    const Result<Topology> topology = parse_topology(text, "FILE");
    ASSERT_TRUE(topology.ok()) << topology.status().message();
    EXPECT_EQ(write_topology(*topology), text);
}

TEST(FileTest, BlanksCommentsAndLineEndsDoNotMatter)
{
    const std::string plain = kTwoGpus + "link a b nvlink 1 25\n";
    const Result<Topology> odd =
        parse_topology("# comment\r\n\n  hetcoll\ttopology   1 # version\r\n gpu a -\r\n"
                       "gpu b -\n\n\ncpu c # here\nlink a b nvlink 1 2.5e1",
                       "odd");
    ASSERT_TRUE(odd.ok()) << odd.status().message();
    EXPECT_EQ(write_topology(*odd), plain);
}

struct Broken {
    const char *name;
    std::string text;
    std::string message; // is part of the refusal
};

class BrokenFileTest : public ::testing::TestWithParam<Broken> {};

TEST_P(BrokenFileTest, IsRefusedWithItsLineAndTheWayOut)
{
    EXPECT_NE(refusal(GetParam().text).find(GetParam().message), std::string::npos)
        << "is: " << refusal(GetParam().text) << "\nnot: " << GetParam().message;
}

INSTANTIATE_TEST_SUITE_P(
    Files, BrokenFileTest,
    ::testing::Values(
        Broken{"Empty", "", "FILE: empty, begin with 'hetcoll topology 1'"},
        Broken{"OnlyComments", "# one\n# two\n", "FILE: empty, begin"},
        Broken{"NoHeader", "gpu a -\n",
               "FILE:1: the first line is 'gpu a -', it must be 'hetcoll topology 1'"},
        Broken{"OtherVersion", "\nhetcoll topology 2\n",
               "FILE:2: version '2' of the format, this hetcoll reads version 1"},
        Broken{"Xml", "<?xml version=\"1.0\"?>\n<topology/>\n", "FILE:1: this looks like XML"},
        Broken{"NoGpu", kHeader + "cpu c\n", "FILE: no GPU in it"},
        Broken{"UnknownLine", kTwoGpus + "gpus c -\n",
               "FILE:5: 'gpus' cannot begin a line, write machine, gpu,"},
        Broken{"SecondHeader", kTwoGpus + kHeader, "FILE:5: 'hetcoll' cannot begin a line"},
        Broken{"SecondMachine", kHeader + "machine a\nmachine b\n",
               "FILE:3: a second machine, the first is 'a'"},
        Broken{"UnnamedMachine", kHeader + "machine\n", "FILE:2: machine '', write a name"},
        Broken{"NoName", kHeader + "gpu\n", "FILE:2: gpu without a name"},
        Broken{"NoBusId", kHeader + "gpu a\n", "FILE:2: gpu without a PCI bus id"},
        Broken{"BadBusId", kHeader + "gpu a 06\n",
               "FILE:2: '06' is not a PCI bus id, write one like 0000:06:00.0, or -"},
        Broken{"BadName", kHeader + "gpu a/b -\n", "FILE:2: 'a/b' is not a name"},
        Broken{"LongName", kHeader + "gpu " + std::string(64, 'a') + " -\n",
               "is not a name, write at most 63 letters"},
        Broken{"TakenName", kTwoGpus + "nic a -\n", "FILE:5: the name a is taken"},
        Broken{"TakenBusId", kHeader + "gpu a 06:00.0\ngpu b 0000:06:00.0\n",
               "FILE:3: b has the bus id of a"},
        Broken{"NumaNotANumber", kHeader + "gpu a - numa x\n",
               "FILE:2: numa 'x', write one node number"},
        Broken{"NumaNegative", kHeader + "gpu a - numa -1\n", "FILE:2: numa '-1'"},
        Broken{"NumaMissing", kHeader + "gpu a - numa\n", "FILE:2: numa ''"},
        Broken{"NumaTwice", kHeader + "gpu a - numa 0 numa 1\n", "FILE:2: numa '1'"},
        Broken{"BadUuid", kHeader + "gpu a - uuid GPU-1\n", "FILE:2: uuid 'GPU-1', write one like"},
        Broken{"BadModel", kHeader + "gpu a - model @\n", "FILE:2: model '@', write one word"},
        Broken{"UnknownProperty", kHeader + "gpu a - speed 3\n",
               "FILE:2: 'speed' is not a property of a gpu"},
        Broken{"ModelOfACpu", kHeader + "cpu a model x\n",
               "FILE:2: 'model' is not a property of a cpu, it can have numa"},
        Broken{"ShortLink", kTwoGpus + "link a b nvlink 1\n",
               "FILE:5: a link of 4 words, write 'link NAME NAME KIND COUNT GB/s'"},
        Broken{"LongLink", kTwoGpus + "link a b nvlink 1 25 GB/s\n", "FILE:5: a link of 6 words"},
        Broken{"UnknownVertex", kTwoGpus + "link a x nvlink 1 25\n",
               "FILE:5: 'x' is not the name of a vertex"},
        Broken{"SelfLink", kTwoGpus + "link a a nvlink 1 25\n", "FILE:5: a link of a to itself"},
        Broken{"UnknownKind", kTwoGpus + "link a b wire 1 25\n",
               "FILE:5: 'wire' is not a kind of link"},
        Broken{"WrongKind", kTwoGpus + "link a b socket 1 25\n",
               "FILE:5: no socket link can join a (gpu) and b (gpu): it joins two cpus"},
        Broken{"SecondLink", kTwoGpus + "link a b nvlink 1 25\nlink b a nvlink 1 25\n",
               "FILE:6: a second nvlink link between"},
        Broken{"NoCount", kTwoGpus + "link a b nvlink x 25\n",
               "FILE:5: 'x' is not a number of links"},
        Broken{"ZeroCount", kTwoGpus + "link a b nvlink 0 25\n", "FILE:5: 0 links between a and b"},
        Broken{"HugeCount", kTwoGpus + "link a b nvlink 99999999999 25\n",
               "FILE:5: '99999999999' is not a number of links"},
        Broken{"NegativeRate", kTwoGpus + "link a b nvlink 1 -25\n",
               "FILE:5: -25 GB/s between a and b, write a rate from 0.001 to 100000"},
        Broken{"ZeroRate", kTwoGpus + "link a b nvlink 1 0\n", "FILE:5: 0 GB/s"},
        Broken{"NanRate", kTwoGpus + "link a b nvlink 1 nan\n", "FILE:5: nan GB/s"},
        Broken{"InfiniteRate", kTwoGpus + "link a b nvlink 1 inf\n", "FILE:5: inf GB/s"},
        Broken{"AbsurdRate", kTwoGpus + "link a b nvlink 1 1e12\n", "FILE:5: 1e+12 GB/s"},
        Broken{"RateOutOfRange", kTwoGpus + "link a b nvlink 1 1e999\n",
               "FILE:5: '1e999' is not a rate"},
        Broken{"RateWithUnit", kTwoGpus + "link a b nvlink 1 25GB/s\n",
               "FILE:5: '25GB/s' is not a rate"},
        Broken{"LongLine", kTwoGpus + "# " + std::string(2000, 'x') + "\n",
               "FILE:5: a line of 2002 bytes, write at most 1024"},
        Broken{"Garbage", std::string("\x7f\x45LF\x00\x01\xff", 7),
               "FILE:1: the first line is '?ELF?"},
        Broken{"TooLarge", std::string(kMaxTopologyFileBytes + 1, '\n'),
               "FILE: larger than 1048576 bytes"}),
    [](const auto &broken) { return std::string(broken.param.name); });

TEST(FileTest, AnyTextIsReadOrRefused)
{
    const std::string text = write_topology(shipped("dgx1v"));
    unsigned state = 1;
    for (int round = 0; round < 2000; ++round) { // what sanitizers look at
        std::string broken = text;
        for (int i = 0; i < 5; ++i) {
            state = state * 1664525 + 1013904223;
            broken[(state >> 8) % broken.size()] = static_cast<char>(state >> 3);
        }
        const Result<Topology> topology = parse_topology(broken, "FILE");
        if (topology.ok()) {
            EXPECT_EQ(parse_topology(write_topology(*topology), "again").ok(), true);
        }
    }
}

TEST(FileNameTest, TheGpusFollowTheLastColon)
{
    EXPECT_EQ(split_topology_name("dgx1v").file, "dgx1v");
    EXPECT_EQ(split_topology_name("dgx1v").gpus, "");
    EXPECT_EQ(split_topology_name("a/b:0,3-5").file, "a/b");
    EXPECT_EQ(split_topology_name("a/b:0,3-5").gpus, "0,3-5");
    EXPECT_EQ(split_topology_name("c:/odd").file, "c:/odd"); // no list of GPUs
}

TEST(FileNameTest, ListsAreNumbersAndRanges)
{
    EXPECT_EQ(*parse_gpu_list("0,3-5,1"), (std::vector<int>{0, 3, 4, 5, 1}));
    for (const char *text :
         {"", ",", "0,", ",0", "3-1", "-1", "0-", "0--1", "a", "0 1", "99999999999", "0-99999"}) {
        EXPECT_FALSE(parse_gpu_list(text).ok()) << text;
    }
}

TEST(FileNameTest, AnUnknownFileNamesItselfAndTheCause)
{
    const Result<Topology> missing = read_topology("no-such-machine", shipped_folder());
    ASSERT_FALSE(missing.ok());
    EXPECT_EQ(
        missing.status().message(),
        "no-such-machine: cannot be read (No such file or directory), name a topology file or "
        "one of those in " +
            shipped_folder());
}

TEST(FileNameTest, WhatIsNoFileIsNotRead)
{
    EXPECT_FALSE(read_topology("/", shipped_folder()).ok());
    EXPECT_FALSE(read_topology("/dev/zero", shipped_folder()).ok());
    EXPECT_FALSE(read_topology("", shipped_folder()).ok());
}

TEST(FileNameTest, AFragmentBeyondTheMachineNamesItsFile)
{
    const Result<Topology> part = read_topology("dgx1v:8", shipped_folder());
    ASSERT_FALSE(part.ok());
    EXPECT_NE(part.status().message().find(
                  "dgx1v.topology: there is no GPU 8 in DGX-1 V100, it has 8, from 0"),
              std::string::npos)
        << part.status().message();
}

TEST(FileNameTest, AFileOfOnesOwnComesFirst)
{
    const std::string path = "topology_file_test." + std::to_string(getpid());
    std::ofstream(path) << kTwoGpus;
    const Result<Topology> own = read_topology(path + ":1", shipped_folder());
    std::remove(path.c_str());
    ASSERT_TRUE(own.ok()) << own.status().message();
    EXPECT_EQ(own->gpus().size(), 1u);
}

} // namespace
} // namespace hetcoll
