// The driver's messages about EMU_ variables that it cannot follow.
#include "test/unit/emulated_gpu_driver.h"

#include <unistd.h>

#include <gtest/gtest.h>

namespace hetcoll::test {
namespace {

TEST(EmulatedSettingsChild, DISABLED_UseTheDevice)
{
    const PrimaryContext context;
    free_memory(allocate(1000));
}

std::string said_with(const std::string &variable)
{
    const ChildResult child =
        run_in_child("EmulatedSettingsChild.DISABLED_UseTheDevice",
                     {"EMU_NODE=settings" + std::to_string(getpid()), variable});
    EXPECT_EQ(child.exit_status, 0) << child.errors;
    return child.errors;
}

TEST(EmulatedSettingsTest, GoodValuesPassInSilence)
{
    for (const char *variable :
         {"EMU_NUM_DEVICES=2", "EMU_MEM_MB=0x100", "EMU_VA=same", "EMU_NO_PEER=0-1,2-15",
          "EMU_NO_PEER=all", "EMU_NO_PEER=sockets", "EMU_LINK_SCALE=0.01", "EMU_LINK_GBPS=12.5",
          "EMU_DELAY_US=", "EMU_FAIL=cuMemAlloc_v2:9:2", "EMU_FAIL_RANK=0", "EMU_NODE=west"}) {
        EXPECT_EQ(said_with(variable), "") << variable;
    }
}

TEST(EmulatedSettingsTest, EveryBadValueIsNamed)
{
    for (const std::string variable : {"EMU_CC=9.0",
                                       "EMU_COLLAPSE=no",
                                       "EMU_DELAY_US=1ms",
                                       "EMU_DRIVER_VERSION=13",
                                       "EMU_FAIL=cuMemAlloc",
                                       "EMU_FAIL_RANK=all",
                                       "EMU_GDR=yes",
                                       "EMU_ID_STAYS=2",
                                       "EMU_LEAKS=on",
                                       "EMU_LINK_GBPS=-1",
                                       "EMU_LINK_LATENCY_US=2.5",
                                       "EMU_LINKS=/no/such.topology",
                                       "EMU_LINK_SCALE=0",
                                       "EMU_CHECK_FOOTPRINT=x",
                                       "EMU_MIG=8",
                                       "EMU_MEM_MB=0",
                                       "EMU_NO_PEER=0+1",
                                       "EMU_NUM_DEVICES=17",
                                       "EMU_POISON=x",
                                       "EMU_POOLS=x",
                                       "EMU_SEED=-1",
                                       "EMU_SMS=0",
                                       "EMU_STATS=x",
                                       "EMU_STRICT=x",
                                       "EMU_TRACE=x",
                                       "EMU_VA=here",
                                       "EMU_VA_REUSE=x",
                                       "EMU_VMM=x",
                                       "EMU_WINDOW_GB=1T",
                                       "EMU_KERNELS=/no/such.so"}) {
        const std::string name = variable.substr(0, variable.find('='));
        EXPECT_NE(said_with(variable).find(name), std::string::npos) << variable;
    }
}

TEST(EmulatedSettingsTest, AMisspeltVariableIsNamed)
{
    EXPECT_NE(said_with("EMU_DELAY=100").find("EMU_DELAY is not a setting"), std::string::npos);
}

TEST(EmulatedSettingsTest, AFaultThatCannotComeIsNamed)
{
    EXPECT_NE(said_with("EMU_FAIL=cuMemAloc:1:2").find("no driver call cuMemAloc"),
              std::string::npos);
    EXPECT_NE(said_with("EMU_FAIL=cuMemAlloc:9:2000").find("2000 is not an error code"),
              std::string::npos);
}

} // namespace
} // namespace hetcoll::test
