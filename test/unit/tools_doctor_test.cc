// Inputs of hetcoll_info doctor: ompi_info's lines, and nvcc's flags.
#include "tools/kernel_code.h"
#include "tools/ompi_info.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hetcoll {
namespace {

OmpiInfo read(const std::vector<std::string> &lines)
{
    OmpiInfo info;
    for (const std::string &line : lines) {
        info.add_line(line);
    }
    return info;
}

TEST(OmpiInfoTest, TwoRanksOfWhichBothHaveTheComponent)
{
    const std::vector<std::string> rank = {
        "ompi:version:full:4.1.4",
        "path:pkglibdir:/usr/lib/openmpi3",
        "option:dlopen:yes",
        "mca:mca:base:param:mca_base_component_path:value:\"/a/component:SYSTEM_DEFAULT\"",
        "mca:mca:base:param:mca_base_component_path:source:environment",
        "mca:coll:hetcoll:version:\"mca:2.1.0\"",
        "mca:coll:hetcoll:version:\"api:2.0.0\"",
        "mca:coll:hetcoll:version:\"component:4.1.4\"",
        "mca:coll:hetcoll:param:coll_hetcoll_enable:value:true",
        "mca:coll:base:param:coll:value:",
    };
    std::vector<std::string> lines = rank;
    lines.insert(lines.end(), rank.begin(), rank.end());
    const OmpiInfo info = read(lines);
    EXPECT_EQ(info.ranks(), 2);
    EXPECT_EQ(info.ranks_with_hetcoll(), 2);
    EXPECT_EQ(info.fact("ompi:version:full"), "4.1.4");
    EXPECT_EQ(info.fact("option:dlopen"), "yes");
    EXPECT_EQ(info.component("coll", "hetcoll"), "4.1.4");
    EXPECT_EQ(info.component("pml", "ucx"), "");
    EXPECT_EQ(info.parameter("coll_hetcoll_enable"), "true");
    EXPECT_EQ(info.parameter("coll"), "");
    EXPECT_EQ(info.source("mca_base_component_path"), "environment");
    EXPECT_EQ(info.searched(), (std::vector<std::string>{"/a/component", "/usr/lib/openmpi3"}));
    EXPECT_EQ(info.complaint(), "");
}

TEST(OmpiInfoTest, AValueOfAParameterMayHaveColons)
{
    const OmpiInfo info = read({
        "mca:coll:base:param:coll:value:^hetcoll",
        "mca:coll:base:param:coll:source:file (/home/me/.openmpi/mca-params.conf:12)",
        "mca:mca:base:param:mca_base_param_files:value:/home/me/a:b.conf,/etc/b.conf",
        "mca:mca:base:param:mca_base_override_param_file:value:/etc/over.conf",
    });
    EXPECT_EQ(info.parameter("coll"), "^hetcoll");
    EXPECT_EQ(info.source("coll"), "file (/home/me/.openmpi/mca-params.conf:12)");
    EXPECT_EQ(info.parameter_files(),
              (std::vector<std::string>{"/etc/over.conf", "/home/me/a:b.conf", "/etc/b.conf"}));
}

TEST(OmpiInfoTest, WhoTakesAllreduceBeforeHetcoll)
{
    const auto with = [](const std::string &own, const std::string &coll) {
        return read({"mca:coll:hetcoll:param:coll_hetcoll_priority:value:" + own,
                     "mca:coll:base:param:coll:value:" + coll,
                     "mca:coll:tuned:param:coll_tuned_priority:value:30",
                     "mca:coll:self:param:coll_self_priority:value:75",
                     "mca:coll:basic:param:coll_basic_priority:value:10",
                     "mca:coll:han:param:coll_han_priority:value:40",
                     "mca:coll:han:param:coll_han_priority:source:environment"})
            .above_hetcoll();
    };
    using Texts = std::vector<std::string>;
    EXPECT_EQ(with("95", ""), Texts());
    EXPECT_EQ(with("40", ""), Texts());
    EXPECT_EQ(with("5", ""),
              (Texts{"han has 40 (by environment)", "tuned has 30", "basic has 10"}));
    EXPECT_EQ(with("5", "^han,basic"), Texts{"tuned has 30"});
    EXPECT_EQ(with("5", "hetcoll,basic,self"), Texts{"basic has 10"});
}

TEST(OmpiInfoTest, WhyAComponentIsNotTaken)
{
    const std::string built = "hetcoll was built for Open MPI 4.1.4 and this is Open MPI v4.1.5: "
                              "hetcoll steps aside, rebuild it for this release";
    EXPECT_EQ(read({"[node:12] " + built, "[node:13] " + built}).complaint(), built);
    const std::string lacks = "mca_base_component_repository_open: unable to open "
                              "mca_coll_hetcoll: libhwloc.so.15: cannot open shared object file";
    EXPECT_EQ(read({"[node:12] " + lacks}).complaint(), lacks);
}

TEST(OmpiInfoTest, WhatIsNotItsOutputSaysNothing)
{
    const OmpiInfo info = read({"", "a line", "--------", "a: b", "\"", ":\"", "x:\"y"});
    EXPECT_EQ(info.ranks(), 0);
    EXPECT_TRUE(info.searched().empty());
}

TEST(KernelCodeTest, MachineCodeRunsOnLaterRevisionsOfItsGeneration)
{
    const std::string flags = " -gencode=arch=compute_75,code=sm_75 "
                              "-gencode=arch=compute_80,code=sm_80 "
                              "-gencode=arch=compute_75,code=compute_75 "
                              "-gencode=arch=compute_80,code=compute_80";
    EXPECT_EQ(kernel_code_for(flags, 75), KernelCode::kMachine);
    EXPECT_EQ(kernel_code_for(flags, 80), KernelCode::kMachine);
    EXPECT_EQ(kernel_code_for(flags, 86), KernelCode::kMachine);
    EXPECT_EQ(kernel_code_for(flags, 90), KernelCode::kPtx);
    EXPECT_EQ(kernel_code_for(flags, 120), KernelCode::kPtx);
    EXPECT_EQ(kernel_code_for(flags, 70), KernelCode::kNone);
}

TEST(KernelCodeTest, AnEarlierRevisionHasNone)
{
    EXPECT_EQ(kernel_code_for("-gencode=arch=compute_86,code=sm_86", 80), KernelCode::kNone);
    EXPECT_EQ(kernel_code_for("", 80), KernelCode::kNone);
}

} // namespace
} // namespace hetcoll
