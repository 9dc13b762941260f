// Faults between processes that share device memory: each is an error that names its cause,
// never a crash, and nothing stays behind.
#include "test/unit/transport_peer.h"

#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace hetcoll::test {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

bool contains(const PeerAnswer &answer, const char *text)
{
    return std::string(answer.message).find(text) != std::string::npos;
}

class PeerAccessTest : public ::testing::TestWithParam<PeerMemoryType> {};

TEST_P(PeerAccessTest, GpusApartAreNamedAsTheCause)
{
    const std::vector<std::string> apart{"EMU_NUM_DEVICES=2", "EMU_NO_PEER=all"};
    const Peer owner(apart, 0), user(apart, 1);
    const PeerAnswer mapped = user.map(owner, owner.describe(owner.allocate(4 * kMiB, GetParam())));
    EXPECT_FALSE(mapped.ok);
    EXPECT_TRUE(contains(mapped, "do not reach")) << mapped.message;
    EXPECT_EQ(user.counters().mappings, 0u);
}

INSTANTIATE_TEST_SUITE_P(Types, PeerAccessTest,
                         ::testing::Values(PeerMemoryType::kPlain, PeerMemoryType::kVmm));

TEST(PeerErrorsTest, AnOwnerThatHasEnded)
{
    Peer owner;
    const Peer user;
    const SharedBuffer buffer = owner.describe(owner.allocate(4 * kMiB));
    owner.kill();
    const PeerAnswer mapped = user.map(owner, buffer);
    EXPECT_FALSE(mapped.ok);
    EXPECT_TRUE(contains(mapped, std::to_string(owner.identity().pid).c_str())) << mapped.message;
    EXPECT_EQ(user.counters().failures, 1u);
}

TEST(PeerErrorsTest, AnotherProcessWithThePidOfTheOwner)
{
    const Peer owner, user;
    PeerQuestion question{.ask = Ask::kMap,
                          .owner = owner.identity(),
                          .buffer = owner.describe(owner.allocate(4 * kMiB))};
    --question.owner.start_time;
    const PeerAnswer mapped = user.ask(question);
    EXPECT_FALSE(mapped.ok);
    EXPECT_TRUE(contains(mapped, "has ended")) << mapped.message;
}

TEST(PeerErrorsTest, AnOwnerOnAnotherNode)
{
    const Peer owner({"HETCOLL_TEST_WORD=other"}), user;
    const PeerAnswer mapped = user.map(owner, owner.describe(owner.allocate(4 * kMiB)));
    EXPECT_FALSE(mapped.ok);
    EXPECT_TRUE(contains(mapped, "another node")) << mapped.message;
}

TEST(PeerErrorsTest, AnAnnouncementThatCannotBeRight)
{
    const Peer owner, user;
    const SharedBuffer right = owner.describe(owner.allocate(4 * kMiB), 64);
    SharedBuffer beyond = right, unknown = right;
    beyond.offset = beyond.bytes + 1;
    unknown.kind = static_cast<SharedKind>(9);
    const PeerQuestion too_long{.ask = Ask::kMap,
                                .bytes = right.bytes - right.offset + 1,
                                .owner = owner.identity(),
                                .buffer = right};
    for (const PeerAnswer &mapped :
         {user.map(owner, beyond), user.map(owner, unknown), user.ask(too_long)}) {
        EXPECT_FALSE(mapped.ok);
        EXPECT_TRUE(contains(mapped, "does not hold the")) << mapped.message;
    }
    EXPECT_EQ(user.counters().opens, 0u);
    EXPECT_TRUE(user.map(owner, right).ok);
}

// CUDA lets one context a device open a process's memory.
TEST(PeerErrorsTest, ASecondContextOfADeviceIsNamedAsTheCause)
{
    const Peer owner, user({"EMU_HOSTILE=limits"});
    const SharedBuffer buffer = owner.describe(owner.allocate(4 * kMiB));
    EXPECT_TRUE(user.map(owner, buffer).ok);
    user.tell(Ask::kNewContext);
    const PeerAnswer mapped = user.map(owner, buffer);
    EXPECT_FALSE(mapped.ok);
    EXPECT_TRUE(contains(mapped, "use one, best the primary context")) << mapped.message;
}

TEST(PeerErrorsTest, ASecondContextTakesOverWhatNoCallUses)
{
    const Peer owner, user;
    const SharedBuffer buffer = owner.describe(owner.allocate(4 * kMiB));
    EXPECT_TRUE(user.map(owner, buffer).ok);
    user.tell(Ask::kRelease);
    user.tell(Ask::kNewContext);
    user.set_faults("cuIpcOpenMemHandle:1:201");
    EXPECT_TRUE(user.map(owner, buffer).ok);
    EXPECT_EQ(user.counters().mappings, 1u);
    EXPECT_EQ(user.counters().closes, 1u);
}

TEST(PeerErrorsTest, AnOpenThatFailsOtherwiseIsSaidToBeTheContainers)
{
    const Peer owner, user;
    user.set_faults("cuIpcOpenMemHandle:1:201");
    const PeerAnswer mapped = user.map(owner, owner.describe(owner.allocate(4 * kMiB)));
    EXPECT_FALSE(mapped.ok);
    EXPECT_TRUE(contains(mapped, "containers need both GPUs")) << mapped.message;
}

TEST(PeerErrorsTest, VmmMemoryThatItsOwnerHasGivenUp)
{
    const Peer owner, user;
    const SharedBuffer buffer = owner.describe(owner.allocate(0, PeerMemoryType::kVmm));
    owner.tell(Ask::kCloseExports);
    const PeerAnswer mapped = user.map(owner, buffer);
    EXPECT_FALSE(mapped.ok);
    EXPECT_TRUE(contains(mapped, "file descriptors")) << mapped.message;
}

TEST(PeerErrorsTest, VmmMemoryOfAnOwnerWithoutASocket)
{
    const Peer owner, user;
    PeerQuestion question{.ask = Ask::kMap,
                          .owner = owner.identity(),
                          .buffer = owner.describe(owner.allocate(0, PeerMemoryType::kVmm))};
    ++question.buffer.fds.socket;
    const PeerAnswer mapped = user.ask(question);
    EXPECT_FALSE(mapped.ok);
    EXPECT_TRUE(contains(mapped, "network namespace")) << mapped.message;
}

TEST(PeerErrorsTest, AFailureToCloseIsNoError)
{
    const Peer owner, user;
    EXPECT_TRUE(user.map(owner, owner.describe(owner.allocate(4 * kMiB))).ok);
    EXPECT_TRUE(user.map(owner, owner.describe(owner.allocate(0, PeerMemoryType::kVmm))).ok);
    user.tell(Ask::kRelease);
    user.set_faults("cuIpcCloseMemHandle:*:999,cuMemUnmap:*:999,cuMemAddressFree:*:999");
    user.tell(Ask::kCloseAll);
    EXPECT_EQ(user.counters().mappings, 0u);
    user.set_faults("");
}

struct Fault {
    const char *call;
    PeerMemoryType type;
    bool at_owner;
};

class PeerFaultTest : public ::testing::TestWithParam<Fault> {};

TEST_P(PeerFaultTest, IsAnErrorAndTheNextTryWorks)
{
    const Peer owner, user;
    const auto [call, type, at_owner] = GetParam();
    const int slot = owner.allocate(4 * kMiB, type, 2);
    owner.fill(slot, 8);
    const Peer &faulty = at_owner ? owner : user;
    faulty.set_faults((std::string(call) + ":1:999").c_str());
    SharedBuffer buffer = owner.describe(slot, 0, 4 * kMiB);
    const PeerAnswer mapped = user.map(owner, buffer);
    EXPECT_FALSE(mapped.ok) << "the fault did not show";
    EXPECT_STRNE(mapped.message, "");
    faulty.set_faults("");
    owner.tell(Ask::kCloseExports);
    buffer = owner.describe(slot, 0, 4 * kMiB);
    const PeerAnswer again = user.map(owner, buffer);
    EXPECT_TRUE(again.ok) << again.message;
    EXPECT_EQ(again.word, 8u);
    EXPECT_EQ(user.counters().mappings, 1u);
}

INSTANTIATE_TEST_SUITE_P(
    DriverCalls, PeerFaultTest,
    ::testing::Values(Fault{"cuIpcGetMemHandle", PeerMemoryType::kPlain, true},
                      Fault{"cuMemRetainAllocationHandle", PeerMemoryType::kVmm, true},
                      Fault{"cuMemGetAllocationPropertiesFromHandle", PeerMemoryType::kVmm, true},
                      Fault{"cuMemExportToShareableHandle", PeerMemoryType::kVmm, true},
                      Fault{"cuMemGetAddressRange", PeerMemoryType::kVmm, true},
                      Fault{"cuCtxPushCurrent", PeerMemoryType::kPlain, false},
                      Fault{"cuIpcOpenMemHandle", PeerMemoryType::kPlain, false},
                      Fault{"cuMemAddressReserve", PeerMemoryType::kVmm, false},
                      Fault{"cuMemImportFromShareableHandle", PeerMemoryType::kVmm, false},
                      Fault{"cuMemMap", PeerMemoryType::kVmm, false},
                      Fault{"cuCtxGetDevice", PeerMemoryType::kVmm, false},
                      Fault{"cuMemSetAccess", PeerMemoryType::kVmm, false}),
    [](const ::testing::TestParamInfo<Fault> &fault) { return std::string(fault.param.call); });

std::string temporary_file()
{
    char path[] = "/tmp/hetcoll_test.XXXXXX";
    const int fd = mkstemp(path);
    close(fd);
    return path;
}

TEST(PeerErrorsTest, NothingIsLeftOfMappingsThatFailed)
{
    const std::string path = temporary_file();
    {
        const std::vector<std::string> watched{"EMU_LEAKS_FILE=" + path};
        const Peer owner(watched), user(watched);
        const int slot = owner.allocate(0, PeerMemoryType::kVmm, 2);
        for (const char *const fault :
             {"cuMemImportFromShareableHandle:2:999", "cuMemMap:2:999", "cuMemSetAccess:1:999",
              "cuMemAddressReserve:1:2", "cuMemImportFromShareableHandle:1:999"}) {
            user.set_faults(fault);
            EXPECT_FALSE(user.map(owner, owner.describe(slot, 0, 4 * kMiB)).ok) << fault;
        }
        user.set_faults("");
    }
    EXPECT_EQ(leaks_in(path), "");
}

TEST(PeerErrorsTest, NothingIsLeftAtTheEnd)
{
    const std::string path = temporary_file();
    {
        const std::vector<std::string> watched{"EMU_LEAKS_FILE=" + path};
        const Peer owner(watched), user(watched);
        for (const PeerMemoryType type : {PeerMemoryType::kPlain, PeerMemoryType::kVmm}) {
            EXPECT_TRUE(user.map(owner, owner.describe(owner.allocate(4 * kMiB, type, 2))).ok);
        }
        user.tell(Ask::kRelease);
    }
    EXPECT_EQ(leaks_in(path), "");
}

TEST(PeerErrorsTest, NoFileDescriptorStaysOpen)
{
    const Peer owner, user;
    std::uint32_t of_owner[2], of_user[2];
    for (int round = 0; round < 2; ++round) { // the first one settles what is opened once
        for (int i = 0; i < 10; ++i) {
            const int slot = owner.allocate(0, PeerMemoryType::kVmm, 3);
            EXPECT_TRUE(user.map(owner, owner.describe(slot, 0, 6 * kMiB)).ok);
            user.tell(Ask::kRelease);
            owner.free(slot);
        }
        user.tell(Ask::kCloseAll);
        owner.tell(Ask::kCloseExports);
        of_owner[round] = owner.ask(Ask::kDescriptors).word;
        of_user[round] = user.ask(Ask::kDescriptors).word;
    }
    EXPECT_EQ(of_owner[1], of_owner[0]);
    EXPECT_EQ(of_user[1], of_user[0]);
}

} // namespace
} // namespace hetcoll::test
