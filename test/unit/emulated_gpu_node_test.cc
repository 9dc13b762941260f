// Shared memory that processes leave behind. Each test has a node of its own.
#include "test/unit/emulated_gpu_driver.h"

#include <unistd.h>

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>

namespace hetcoll::test {
namespace {

constexpr std::size_t kMib = std::size_t{1} << 20;

std::string node_name(const char *test) { return std::string(test) + std::to_string(getpid()); }

int files_of_node(const std::string &node)
{
    int files = 0;
    for (const auto &entry : std::filesystem::directory_iterator("/dev/shm")) {
        files += entry.path().filename().string().find("." + node + ".") != std::string::npos;
    }
    return files;
}

TEST(EmulatedNodeChild, DISABLED_FillMostOfTheDevice)
{
    const PrimaryContext context;
    free_memory(allocate(1000 * kMib));
}

TEST(EmulatedNodeChild, DISABLED_FillMostOfTheDeviceAndDie)
{
    const PrimaryContext context;
    static_cast<void>(allocate(1000 * kMib));
    EXPECT_EQ(files_of_node(std::getenv("EMU_NODE")), 1);
    raise(SIGKILL);
}

TEST(EmulatedNodeTest, TheLastProcessRemovesIt)
{
    const std::string node = node_name("last");
    EXPECT_EQ(
        run_in_child("EmulatedNodeChild.DISABLED_FillMostOfTheDevice", {"EMU_NODE=" + node}).errors,
        "");
    EXPECT_EQ(files_of_node(node), 0);
}

TEST(EmulatedNodeTest, WhatAKilledProcessHeldIsFreeInTheNextRunWhichRemovesTheRest)
{
    const std::string node = node_name("killed");
    const std::vector<std::string> environment = {"EMU_NODE=" + node, "EMU_MEM_MB=1500",
                                                  "EMU_POISON=0"};
    EXPECT_EQ(run_in_child("EmulatedNodeChild.DISABLED_FillMostOfTheDeviceAndDie", environment)
                  .exit_status,
              128 + SIGKILL);
    EXPECT_EQ(files_of_node(node), 1);
    EXPECT_EQ(
        run_in_child("EmulatedNodeChild.DISABLED_FillMostOfTheDevice", environment).exit_status, 0);
    EXPECT_EQ(files_of_node(node), 0);
}

} // namespace
} // namespace hetcoll::test
