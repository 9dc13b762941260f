#include "topology/topology.h"

#include <gtest/gtest.h>

#include <cmath>

namespace hetcoll {
namespace {

Topology two_gpus()
{
    Topology topology{.machine = "test", .vertices = {}, .links = {}};
    for (const char *name : {"a", "b"}) {
        EXPECT_TRUE(add_vertex(topology, {.kind = VertexKind::kGpu, .name = name}).ok());
    }
    EXPECT_TRUE(add_vertex(topology, {.kind = VertexKind::kCpu, .name = "c"}).ok());
    return topology;
}

std::string refusal(Topology topology, const Link &link)
{
    const Status status = add_link(topology, link);
    return status.ok() ? "" : status.message();
}

TEST(BusIdTest, ReadsWhatDriversWrite)
{
    const BusId expected{0x10, 0xa6, 0x1f, 7, 1};
    EXPECT_EQ(parse_bus_id("0010:A6:1f.7"), expected);
    EXPECT_EQ(parse_bus_id("00000010:a6:1F.7"), expected); // NVML's longer domain
    EXPECT_EQ(parse_bus_id("a6:1f.7"), (BusId{0, 0xa6, 0x1f, 7, 1}));
    EXPECT_EQ(parse_bus_id("-"), BusId{});
    EXPECT_EQ(print_bus_id(expected), "0010:a6:1f.7");
    EXPECT_EQ(print_bus_id({}), "-");
}

TEST(BusIdTest, RefusesWhatIsNone)
{
    for (const char *text : {"", "06", "06:00", ":00.0", "0000:06:00", "0000:106:00.0",
                             "0000:06:20.0", "0000:06:00.8", "0000:06:00.", "x:06:00.0",
                             "0000:06:00.0 ", "-1:06:00.0", "123456789:06:00.0", ".:", ":.0"}) {
        EXPECT_FALSE(parse_bus_id(text)) << text;
    }
}

TEST(UuidTest, RoundTrips)
{
    const std::string text = "GPU-01234567-89ab-cdef-0123-456789abcdef";
    ASSERT_TRUE(parse_uuid(text));
    EXPECT_EQ(print_uuid(*parse_uuid(text)), text);
    EXPECT_EQ(parse_uuid("MIG-01234567-89ab-cdef-0123-456789abcdef"), parse_uuid(text));
}

TEST(UuidTest, RefusesWhatIsNone)
{
    for (const char *text :
         {"", "GPU-", "01234567-89ab-cdef-0123-456789abcdef",
          "GPU-0123456789abcdef0123456789abcdef", "GPU-01234567-89ab-cdef-0123-456789abcdex",
          "GPU-01234567-89ab-cdef-0123-456789abcdef0", "GPU-01234567-89ab-cdef-0123-456789abcde"}) {
        EXPECT_FALSE(parse_uuid(text)) << text;
    }
}

TEST(WordTest, NamesOfDriversBecomeWords)
{
    EXPECT_EQ(as_word("NVIDIA H100 80GB HBM3"), "NVIDIA-H100-80GB-HBM3");
    EXPECT_EQ(as_word("  (odd)  name! "), "odd-name");
    EXPECT_EQ(as_word("\xff\n"), "");
    EXPECT_TRUE(is_word(as_word(std::string(100, 'x'))));
}

TEST(GraphTest, RefusesVerticesThatAreNotTheirOwn)
{
    Topology topology = two_gpus();
    const Uuid uuid = *parse_uuid("GPU-01234567-89ab-cdef-0123-456789abcdef");
    const BusId bus = *parse_bus_id("0000:06:00.0");
    EXPECT_FALSE(add_vertex(topology, {.kind = VertexKind::kNic, .name = "a"}).ok());
    EXPECT_FALSE(add_vertex(topology, {.kind = VertexKind::kNic, .name = "two words"}).ok());
    EXPECT_FALSE(add_vertex(topology, {.kind = VertexKind::kNic, .name = ""}).ok());
    EXPECT_TRUE(
        add_vertex(topology, {.kind = VertexKind::kGpu, .name = "d", .bus = bus, .uuid = uuid})
            .ok());
    EXPECT_FALSE(add_vertex(topology, {.kind = VertexKind::kGpu, .name = "e", .uuid = uuid}).ok());
    EXPECT_FALSE(add_vertex(topology, {.kind = VertexKind::kGpu, .name = "e", .bus = bus}).ok());
}

TEST(GraphTest, InstancesOfADividedGpuShareItsBusId)
{
    Topology topology = two_gpus();
    Uuid uuid = *parse_uuid("GPU-01234567-89ab-cdef-0123-456789abcdef");
    const BusId bus = *parse_bus_id("0000:06:00.0");
    EXPECT_TRUE(
        add_vertex(topology, {.kind = VertexKind::kGpu, .name = "d", .bus = bus, .uuid = uuid})
            .ok());
    uuid.bytes[0] ^= 1;
    EXPECT_TRUE(
        add_vertex(topology, {.kind = VertexKind::kGpu, .name = "e", .bus = bus, .uuid = uuid})
            .ok());
}

TEST(GraphTest, RefusesLinksThatCannotBe)
{
    const Topology topology = two_gpus();
    EXPECT_EQ(refusal(topology, {0, 1, LinkKind::kNvlink, 1, 25}), "");
    EXPECT_NE(refusal(topology, {0, 0, LinkKind::kNvlink, 1, 25}), "");
    EXPECT_NE(refusal(topology, {0, 1, LinkKind::kPcie, 1, 12}), "");
    EXPECT_NE(refusal(topology, {0, 2, LinkKind::kSocket, 1, 12}), "");
    EXPECT_NE(refusal(topology, {0, 1, LinkKind::kNetwork, 1, 12}), "");
    EXPECT_NE(refusal(topology, {0, 1, LinkKind::kNvlink, 0, 25}), "");
    EXPECT_NE(refusal(topology, {0, 1, LinkKind::kNvlink, kMaxLinkCount + 1, 25}), "");
    for (const double gbps : {0.0, -25.0, 1e-9, 1e9, std::nan(""), HUGE_VAL}) {
        EXPECT_NE(refusal(topology, {0, 1, LinkKind::kNvlink, 1, gbps}), "") << gbps;
    }
}

TEST(GraphTest, RefusesASecondLinkOfAKindBetweenTwoVertices)
{
    Topology topology = two_gpus();
    ASSERT_TRUE(add_link(topology, {0, 1, LinkKind::kNvlink, 1, 25}).ok());
    EXPECT_NE(refusal(topology, {1, 0, LinkKind::kNvlink, 1, 20}), "");
}

TEST(GraphTest, RefusesMoreVerticesThanItsLimit)
{
    Topology topology;
    for (int i = 0; i < kMaxVertices; ++i) {
        ASSERT_TRUE(
            add_vertex(topology, {.kind = VertexKind::kGpu, .name = "g" + std::to_string(i)}).ok());
    }
    EXPECT_FALSE(add_vertex(topology, {.kind = VertexKind::kGpu, .name = "one-more"}).ok());
}

TEST(FragmentTest, HasItsGpusInTheOrderAskedFor)
{
    Topology topology = two_gpus();
    ASSERT_TRUE(add_link(topology, {0, 2, LinkKind::kPcie, 1, 12}).ok());
    ASSERT_TRUE(add_link(topology, {1, 2, LinkKind::kPcie, 1, 24}).ok());
    const Result<Topology> part = fragment(topology, std::vector<int>{1, 0});
    ASSERT_TRUE(part.ok());
    EXPECT_EQ(part->vertices[0].name, "b");
    EXPECT_EQ(part->vertices[1].name, "a");
    EXPECT_EQ(part->links[1], (Link{0, 2, LinkKind::kPcie, 1, 24}));
}

TEST(FragmentTest, LeavesOutSwitchesThatLeadNowhere)
{
    Topology topology = two_gpus();
    ASSERT_TRUE(add_vertex(topology, {.kind = VertexKind::kPcieSwitch, .name = "upper"}).ok());
    ASSERT_TRUE(add_vertex(topology, {.kind = VertexKind::kPcieSwitch, .name = "lower"}).ok());
    ASSERT_TRUE(add_vertex(topology, {.kind = VertexKind::kNvSwitch, .name = "nvs"}).ok());
    ASSERT_TRUE(add_link(topology, {0, 2, LinkKind::kPcie, 1, 12}).ok());
    ASSERT_TRUE(add_link(topology, {1, 4, LinkKind::kPcie, 1, 12}).ok());
    ASSERT_TRUE(add_link(topology, {4, 3, LinkKind::kPcie, 1, 12}).ok());
    ASSERT_TRUE(add_link(topology, {3, 2, LinkKind::kPcie, 1, 12}).ok());
    ASSERT_TRUE(add_link(topology, {1, 5, LinkKind::kNvlink, 1, 25}).ok());
    const Result<Topology> part = fragment(topology, std::vector<int>{0});
    ASSERT_TRUE(part.ok());
    EXPECT_EQ(part->vertices.size(), 2u); // a and the CPU
    EXPECT_EQ(part->links.size(), 1u);
}

TEST(FragmentTest, RefusesGpusThatAreNotThereOrTwice)
{
    const Topology topology = two_gpus();
    EXPECT_FALSE(fragment(topology, std::vector<int>{2}).ok());
    EXPECT_FALSE(fragment(topology, std::vector<int>{-1}).ok());
    EXPECT_FALSE(fragment(topology, std::vector<int>{0, 0}).ok());
}

TEST(HashTest, TellsTopologiesApart)
{
    Topology topology = two_gpus();
    const std::uint64_t before = topology_hash(topology);
    EXPECT_EQ(before, topology_hash(two_gpus()));
    ASSERT_TRUE(add_link(topology, {0, 1, LinkKind::kNvlink, 1, 25}).ok());
    EXPECT_NE(before, topology_hash(topology));
}

} // namespace
} // namespace hetcoll
