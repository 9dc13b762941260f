#include "test/unit/topology_machines.h"
#include "topology/layout.h"
#include "topology/print.h"

namespace hetcoll {
namespace {

Topology parsed(const std::string &lines)
{
    Result<Topology> topology = parse_topology("hetcoll topology 1\n" + lines, "test");
    EXPECT_TRUE(topology.ok()) << topology.status().message();
    return topology.ok() ? *topology : Topology{};
}

TEST(PrintMatrixTest, SaysWhatJoinsGpusAndNicsAndHowFast)
{
    EXPECT_EQ(print_matrix(shipped("dgx1v:0,3,4")),
              R"(      gpu0  gpu3  gpu4  mlx5_0  mlx5_1  mlx5_2  mlx5_3  NUMA        bus id
gpu0     X   NV2   NV2     PIX     PHB     SYS     SYS     0  0000:06:00.0
gpu3   NV2     X   SYS     PHB     PIX     SYS     SYS     0  0000:0b:00.0
gpu4   NV2   SYS     X     SYS     SYS     PIX     PHB     1  0000:85:00.0

GB/s  gpu0  gpu3  gpu4  host
gpu0     X    50    50    12
gpu3    50     X   9.6    12
gpu4    50   9.6     X    12

NVn   n NVLinks, direct
PIX   one PCIe switch
PHB   PCIe through a CPU
SYS   PCIe and the link between CPUs
host  memory of the nearest CPU, pinned; every rate is one way, alone
)");
}

TEST(PrintMatrixTest, KnowsSwitchesAndWhatIsNotThere)
{
    EXPECT_NE(print_matrix(shipped("dgxa100:0,1")).find("gpu0      X  NVS12"), std::string::npos)
        << print_matrix(shipped("dgxa100:0,1"));
    EXPECT_EQ(print_matrix(parsed("gpu a -\ngpu b -\n")), R"(   a  b  NUMA  bus id
a  X  -     -       -
b  -  X     -       -

GB/s  a  b  host
a     X  0     0
b     0  X     0

-     no way
host  memory of the nearest CPU, pinned; every rate is one way, alone
)");
}

TEST(PrintDotTest, HasEveryVertexAndLink)
{
    const Topology topology =
        parsed("machine a \"quoted\" name\ngpu g - model M-1\ncpu c\nlink g c pcie 1 12.5\n");
    const std::string dot = print_dot(topology);
    EXPECT_NE(dot.find("label=\"a \\\"quoted\\\" name\";"), std::string::npos) << dot;
    EXPECT_NE(dot.find("\"g\" [label=\"g\\nM-1\""), std::string::npos) << dot;
    EXPECT_NE(dot.find("\"g\" -- \"c\" [label=\"12.5\""), std::string::npos) << dot;
}

TEST(PrintGbpsTest, WritesFewDigits)
{
    EXPECT_EQ(print_gbps(25), "25");
    EXPECT_EQ(print_gbps(9.6), "9.6");
    EXPECT_EQ(print_gbps(300.0 / 7), "42.86");
    EXPECT_EQ(print_links(2, 25), "2 x 25");
    EXPECT_EQ(print_links(1, 25), "25");
}

bool overlap(const Box &a, const Box &b)
{
    return a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.bottom() && b.y < a.bottom();
}

class LayoutTest : public ::testing::TestWithParam<const char *> {};

TEST_P(LayoutTest, NothingOverlaps)
{
    const Layout layout = lay_out(shipped(GetParam()));
    std::vector<Box> boxes;
    for (const Box &box : layout.boxes) {
        if (box.width > 0) {
            boxes.push_back(box);
        }
    }
    for (const SwitchBar &bar : layout.bars) {
        boxes.push_back(bar.box);
    }
    for (std::size_t i = 0; i < boxes.size(); ++i) {
        EXPECT_GE(boxes[i].x, 0);
        EXPECT_GE(boxes[i].y, 0);
        EXPECT_LE(boxes[i].x + boxes[i].width, layout.width);
        EXPECT_LE(boxes[i].bottom(), layout.height);
        for (std::size_t j = i + 1; j < boxes.size(); ++j) {
            EXPECT_FALSE(overlap(boxes[i], boxes[j])) << i << " " << j;
        }
    }
    for (const Track &a : layout.tracks) {
        for (const Track &b : layout.tracks) {
            EXPECT_FALSE(a.link != b.link && a.y == b.y && a.from_x < b.to_x && b.from_x < a.to_x);
            for (const double x : {a.from_x, a.to_x}) { // nor do the ends at the GPUs
                EXPECT_FALSE(a.link != b.link && (x == b.from_x || x == b.to_x));
            }
        }
    }
}

TEST_P(LayoutTest, EveryLinkOfAGpuIsDrawnOnce)
{
    const Topology topology = shipped(GetParam());
    const Layout layout = lay_out(topology);
    std::size_t direct = 0;
    for (const Link &link : topology.links) {
        direct += topology.vertices[link.a].kind == VertexKind::kGpu &&
                  topology.vertices[link.b].kind == VertexKind::kGpu;
    }
    EXPECT_EQ(layout.tracks.size(), direct);
    const std::size_t switched =
        topology.of_kind(VertexKind::kNvSwitch).empty() ? 0 : topology.gpus().size();
    EXPECT_EQ(layout.risers.size(), switched);
    for (const int gpu : topology.gpus()) {
        ASSERT_NE(layout.parent[gpu], kNoVertex);
        EXPECT_GT(layout.boxes[layout.parent[gpu]].y, layout.boxes[gpu].bottom());
    }
}
INSTANTIATE_TEST_SUITE_P(Machines, LayoutTest,
                         ::testing::Values("dgx1p", "dgx1v", "dgx2", "dgxa100", "dgxh100", "pcie8",
                                           "dgx1v:0,1,4", "dgx2:7,8"));

TEST(PrintSvgTest, IsOneWellFormedElement)
{
    const std::string svg = print_svg(
        parsed("machine <a> & b\ngpu g -\ngpu h -\ncpu c\ncpu d\ncpu e\nnvswitch s\nnvswitch t\n"
               "link g c pcie 1 12\nlink c e socket 1 9.6\nlink c d socket 1 9.6\n"
               "link g h nvlink 2 25\nlink g s nvlink 1 25\nlink h t nvlink 1 25\n"
               "link s t nvlink 1 25\n"));
    EXPECT_TRUE(svg.starts_with("<svg ")) << svg;
    EXPECT_TRUE(svg.ends_with("</svg>\n"));
    EXPECT_NE(svg.find("&lt;a&gt; &amp; b"), std::string::npos) << svg;
    std::size_t texts = 0, ends = 0;
    for (std::size_t at = 0; (at = svg.find("<text", at)) != svg.npos; ++at) {
        ++texts;
    }
    for (std::size_t at = 0; (at = svg.find("</text>", at)) != svg.npos; ++at) {
        ++ends;
    }
    EXPECT_EQ(texts, ends);
    EXPECT_EQ(svg.find("nan"), svg.npos);
}

} // namespace
} // namespace hetcoll
