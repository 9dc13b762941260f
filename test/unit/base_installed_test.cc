#include "base/installed.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace hetcoll {
namespace {

class InstalledTest : public ::testing::Test {
protected:
    InstalledTest()
    {
        std::string name = std::filesystem::temp_directory_path() / "installed.XXXXXX";
        root_ = std::filesystem::canonical(mkdtemp(name.data()));
    }
    ~InstalledTest() override { std::filesystem::remove_all(root_); }

    std::string make_file(const std::string &name) const
    {
        std::filesystem::create_directories((root_ / name).parent_path());
        std::ofstream(root_ / name) << "x";
        return root_ / name;
    }
    [[nodiscard]] std::string path(const std::string &name) const { return root_ / name; }

    std::filesystem::path root_;
    const InstalledFolders configured_ = installed_folders_of("");
};

TEST_F(InstalledTest, AMovedInstallationIsFoundFromAboveTheOneWhoLooks)
{
    make_file("moved/share/hetcoll/topology/dgx1v.topology");
    for (const char *folder : {"moved/bin", "moved/lib/openmpi", "moved/lib/a/b/c"}) {
        const InstalledFolders folders = installed_folders_of(path(folder));
        EXPECT_EQ(folders.topologies, path("moved/share/hetcoll/topology"));
        EXPECT_EQ(folders.data, path("moved/share/hetcoll"));
        const std::string prefix = configured_.data.substr(0, configured_.data.rfind("/share/"));
        const std::string &config = configured_.config;
        EXPECT_EQ(folders.config, config.starts_with(prefix + "/")
                                      ? path("moved") + config.substr(prefix.size())
                                      : config);
    }
}

TEST_F(InstalledTest, ABuildFolderHasTopologiesAndNoTable)
{
    make_file("build/topology/machines/dgx1v.topology");
    const InstalledFolders folders = installed_folders_of(path("build/.libs"));
    EXPECT_EQ(folders.topologies, path("build/topology/machines"));
    EXPECT_EQ(folders.data, configured_.data);
    EXPECT_EQ(folders.config, configured_.config);
}

TEST_F(InstalledTest, WithoutAnyAroundItIsWhereItWasConfigured)
{
    make_file("bin/program");
    EXPECT_EQ(installed_folders_of(path("bin")).topologies, configured_.topologies);
    EXPECT_EQ(configured_.topologies, configured_.data + "/topology");
}

TEST_F(InstalledTest, AProgramOfTheBuildFindsItsTopologies)
{
    EXPECT_TRUE(std::filesystem::exists(installed_folders().topologies + "/dgx1v.topology"));
}

TEST_F(InstalledTest, TheTableOfTheMachineComesBeforeTheShippedOne)
{
    const InstalledFolders folders{"", path("etc"), path("share"), ""};
    EXPECT_EQ(installed_table(folders), "");
    const std::string shipped = make_file("share/tuning_table.json");
    EXPECT_EQ(installed_table(folders), shipped);
    const std::string own = make_file("etc/tuning_table.json");
    EXPECT_EQ(installed_table(folders), own);
}

TEST_F(InstalledTest, ATableThatCannotBeLookedAtIsNotPassedOver)
{
    const InstalledFolders folders{"", path("etc"), path("share"), ""};
    make_file("share/tuning_table.json");
    std::filesystem::create_symlink("etc", path("etc")); // a loop: neither there nor not there
    EXPECT_EQ(installed_table(folders), path("etc") + "/tuning_table.json");
}

} // namespace
} // namespace hetcoll
