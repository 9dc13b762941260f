#include "topology_probe/hwloc_xml.h"

#include "test/unit/topology_probe_boxes.h"

namespace hetcoll::test {
namespace {

class HwlocXmlTest : public ::testing::TestWithParam<Box> {};

TEST_P(HwlocXmlTest, HasTheRoutesOfTheMachine)
{
    const TemporaryFile file("box.xml", hwloc_xml_of(GetParam(), true));
    const auto topology = topology_from_hwloc_xml(file.path());
    ASSERT_TRUE(topology.ok()) << topology.status().message();
    expect_same_routes(*topology, shipped(GetParam().name));
}
INSTANTIATE_TEST_SUITE_P(Boxes, HwlocXmlTest, ::testing::ValuesIn(kBoxes));

Topology topology_of(const std::string &xml)
{
    const TemporaryFile file("machine.xml", xml);
    auto topology = topology_from_hwloc_xml(file.path());
    EXPECT_TRUE(topology.ok()) << topology.status().message();
    return topology.ok() ? *topology : Topology{};
}

std::string error_of(const std::string &xml)
{
    const TemporaryFile file("machine.xml", xml);
    const auto topology = topology_from_hwloc_xml(file.path());
    return topology.ok() ? "" : topology.status().message();
}

TEST(HwlocXml, KnowsGpusByPciAloneIfNoDriverWasThere)
{
    const Topology box = shipped("pcie8");
    const Topology found = topology_of(hwloc_xml_of(box, {.nvlinks = false, .drivers = false}));
    EXPECT_EQ(found.gpus().size(), 8u);
    EXPECT_EQ(find_route(found, 0, 1).distance, Distance::kPix);
}

TEST(HwlocXml, HasNoNvlinksIfHwlocHadNone)
{
    const Topology found = topology_of(hwloc_xml_of(shipped("dgx1v"), {.nvlinks = false}));
    ASSERT_EQ(found.gpus().size(), 8u);
    EXPECT_EQ(find_route(found, 0, 1).kind, RouteKind::kPcie);
}

TEST(HwlocXml, NvlinksLeadToCpusToo)
{
    Topology power{.machine = "two GPUs on two CPUs", .vertices = {}, .links = {}};
    for (const char *cpu : {"cpu0", "cpu1"}) {
        ASSERT_TRUE(add_vertex(power, {.kind = VertexKind::kCpu, .name = cpu}).ok());
    }
    for (int g = 0; g < 2; ++g) {
        const BusId bus{.domain = 4, .bus = static_cast<std::uint8_t>(g + 1), .known = 1};
        ASSERT_TRUE(add_vertex(power, {.name = "gpu" + std::to_string(g), .bus = bus}).ok());
        for (const auto &[kind, count, gbps] :
             {std::tuple(LinkKind::kNvlink, 3, 25.0), std::tuple(LinkKind::kPcie, 1, 12.0)}) {
            ASSERT_TRUE(
                add_link(power, {.a = g + 2, .b = g, .kind = kind, .count = count, .gbps = gbps})
                    .ok());
        }
    }
    const Topology found = topology_of(hwloc_xml_of(power));
    ASSERT_EQ(found.gpus().size(), 2u);
    for (const int gpu : found.gpus()) {
        EXPECT_EQ(find_host_route(found, gpu).gbps, 75);
    }
}

TEST(HwlocXml, KeepsTheUuidsAndModelsOfGpus)
{
    Topology box = shipped("pcie8:0");
    box.vertices[box.gpus()[0]].uuid.bytes = {1, 2, 3};
    const Topology found = topology_of(hwloc_xml_of(box));
    EXPECT_EQ(found.vertices[found.gpus()[0]].uuid, box.vertices[box.gpus()[0]].uuid);
    EXPECT_EQ(found.vertices[found.gpus()[0]].model, "Tesla-V100-PCIE-16GB");
}

TEST(HwlocXml, ANetworkCardMayBeCalledLikeAGpu)
{
    Topology box = shipped("pcie8");
    for (Vertex &vertex : box.vertices) {
        vertex.name = vertex.name == "mlx5_0" ? "gpu0"
                      : vertex.name == "gpu0" ? "first"
                                              : vertex.name;
    }
    EXPECT_EQ(topology_of(hwloc_xml_of(box)).of_kind(VertexKind::kNic).size(), 2u);
}

// One socket in two NUMA nodes, and a GPU at the second.
constexpr const char *kHalves = R"(<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0">
 <object type="Machine" os_index="0" cpuset="0x3" complete_cpuset="0x3" allowed_cpuset="0x3"
   nodeset="0x3" complete_nodeset="0x3" allowed_nodeset="0x3" gp_index="1">
  <info name="DMIProductName" value="two halves&#10;of a # socket"/>
  <object type="Package" os_index="0" cpuset="0x3" complete_cpuset="0x3" nodeset="0x3"
    complete_nodeset="0x3" gp_index="2">
   <object type="Group" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1" complete_nodeset="0x1"
     gp_index="3" kind="0" subkind="0">
    <object type="NUMANode" os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1"
      complete_nodeset="0x1" gp_index="4" local_memory="1024"/>
    <object type="PU" os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1"
      complete_nodeset="0x1" gp_index="5"/>
   </object>
   <object type="Group" cpuset="0x2" complete_cpuset="0x2" nodeset="0x2" complete_nodeset="0x2"
     gp_index="6" kind="0" subkind="0">
    <object type="NUMANode" os_index="1" cpuset="0x2" complete_cpuset="0x2" nodeset="0x2"
      complete_nodeset="0x2" gp_index="7" local_memory="1024"/>
    <object type="PU" os_index="1" cpuset="0x2" complete_cpuset="0x2" nodeset="0x2"
      complete_nodeset="0x2" gp_index="8"/>
    <object type="Bridge" gp_index="9" bridge_type="0-1" depth="0" bridge_pci="0000:[01-01]">
     <object type="PCIDev" gp_index="10" pci_busid="0000:01:00.0"
       pci_type="0300 [10de:1db8] [10de:0001] 00" pci_link_speed="0.000000"/>
    </object>
   </object>
  </object>
 </object>
</topology>
)";

TEST(HwlocXml, ASocketMayHaveSeveralNumaNodes)
{
    const Topology found = topology_of(kHalves);
    ASSERT_EQ(found.gpus().size(), 1u);
    EXPECT_EQ(found.vertices[found.gpus()[0]].numa, 1);
    EXPECT_EQ(found.of_kind(VertexKind::kCpu).size(), 1u);
    EXPECT_EQ(find_host_route(found, found.gpus()[0]).gbps, 12); // a rate that nobody knows
}

TEST(HwlocXml, TheMachinesNameIsOneLine)
{
    EXPECT_EQ(topology_of(kHalves).machine, "two halves of a   socket");
}

TEST(HwlocXml, MachinesWithoutGpusAreAnErrorThatNamesTheFile)
{
    Topology box{.machine = "no GPU", .vertices = {}, .links = {}};
    ASSERT_TRUE(add_vertex(box, {.kind = VertexKind::kCpu, .name = "cpu0"}).ok());
    const std::string message = error_of(hwloc_xml_of(box));
    EXPECT_NE(message.find("machine.xml: no NVIDIA GPU"), std::string::npos) << message;
}

TEST(HwlocXml, BrokenFilesAreAnErrorThatNamesTheFile)
{
    const std::string whole = hwloc_xml_of(shipped("pcie8"));
    for (const std::string &xml :
         {std::string("<?xml version=\"1.0\"?>\n<topology version=\"9.0\"></topology>\n"),
          std::string("<?xml version=\"1.0\"?>\n<svg></svg>\n"), std::string("<topology"),
          whole.substr(0, whole.size() / 2)}) {
        const std::string message = error_of(xml);
        EXPECT_NE(message.find("machine.xml: "), std::string::npos) << message;
    }
}

TEST(HwlocXml, IsRecognizedByItsContent)
{
    EXPECT_TRUE(is_hwloc_xml("<?xml version=\"1.0\"?>"));
    EXPECT_TRUE(is_hwloc_xml("\xef\xbb\xbf \n<topology version=\"2.0\">"));
    EXPECT_TRUE(is_hwloc_xml("<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">"));
    EXPECT_FALSE(is_hwloc_xml("hetcoll topology 1\n"));
    EXPECT_FALSE(is_hwloc_xml(""));
    EXPECT_FALSE(is_hwloc_xml(" \n"));
}

TEST(ReadAnyTopology, TakesFragmentsOfBothKindsOfFiles)
{
    const TemporaryFile file("box.xml", hwloc_xml_of(kBoxes[1], true));
    const auto xml = read_any_topology(file.path() + ":0,3-4", "");
    ASSERT_TRUE(xml.ok()) << xml.status().message();
    const auto text = read_any_topology("dgx1v:0,3-4", shipped_folder());
    ASSERT_TRUE(text.ok()) << text.status().message();
    expect_same_routes(*xml, *text);
}

TEST(ReadAnyTopology, AFragmentThatIsNotThereIsAnErrorThatNamesTheFile)
{
    const TemporaryFile file("box.xml", hwloc_xml_of(shipped("dgx1v")));
    const auto topology = read_any_topology(file.path() + ":0,8", "");
    ASSERT_FALSE(topology.ok());
    EXPECT_NE(topology.status().message().find("box.xml: there is no GPU 8"), std::string::npos)
        << topology.status().message();
}

} // namespace
} // namespace hetcoll::test
