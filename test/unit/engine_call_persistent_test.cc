// Calls that are started again.
#include "test/unit/engine_scripted_peer.h"

namespace hetcoll::test {
namespace {

using Said = std::vector<Message>;

class PersistentCallTest : public CallTest {
protected:
    void SetUp() override
    {
        CallTest::SetUp();
        find_peers();
    }
    void answer(Flags closing = kDeviceMemory)
    {
        peer_.answer({says(kDeviceMemory), data_of(theirs(kMany)), says(closing)});
    }
    // How often a buffer was asked about, of the driver or of what is kept of its answers.
    [[nodiscard]] std::uint64_t questions() const
    {
        return counter(HETCOLL_POINTER_QUERIES) + counter(HETCOLL_POINTER_HITS) +
               counter(HETCOLL_POINTER_MISSES) + counter(HETCOLL_POINTER_HOST);
    }
};

TEST_F(PersistentCallTest, LaterStartsAskNothingAboutTheirBuffers)
{
    Numbers<int> send(Where::kDevice, mine(kMany)), recv(Where::kDevice, theirs(kMany));
    const hetcoll_call made = call(send, recv, kMany);
    Operation operation(*comm_, made, Start::kPersistent);
    answer();
    ASSERT_EQ(finish(operation), HETCOLL_SUCCESS);
    const auto before = questions();
    for (int start = 0; start < 2; ++start) {
        upload(static_cast<CUdeviceptr>(reinterpret_cast<std::uintptr_t>(recv.data())),
               theirs(kMany));
        operation.rewind();
        answer();
        EXPECT_EQ(finish(operation), HETCOLL_SUCCESS);
        EXPECT_EQ(peer_.said(),
                  (Said{says(kDeviceMemory), data_of(mine(kMany)), says(kDeviceMemory)}));
        EXPECT_EQ(recv.read(), sums(kMany));
    }
    EXPECT_EQ(questions(), before);
}

TEST_F(PersistentCallTest, AfterAnErrorABufferIsAskedAboutAgain)
{
    Numbers<int> vector(Where::kDevice, mine(kMany));
    const hetcoll_call made = call(vector, vector, kMany);
    Operation operation(*comm_, made, Start::kPersistent);
    answer(kDeviceMemory | kFailed);
    ASSERT_EQ(finish(operation), HETCOLL_ERROR_DEVICE);
    find_peers();
    const auto before = questions();
    operation.rewind();
    answer();
    EXPECT_EQ(finish(operation), HETCOLL_SUCCESS);
    EXPECT_GT(questions(), before);
}

TEST_F(PersistentCallTest, AStartAfterALostMeetingFailsWithoutAWord)
{
    Numbers<int> vector(Where::kDevice, mine(kMany));
    const hetcoll_call made = call(vector, vector, kMany);
    Operation operation(*comm_, made, Start::kPersistent);
    peer_.answer({ScriptedPeer::Answer(kNetworkCode)});
    ASSERT_EQ(finish(operation), kNetworkCode);
    operation.rewind();
    answer();
    EXPECT_EQ(finish(operation), kNetworkCode);
    EXPECT_TRUE(peer_.said().empty());
    EXPECT_EQ(vector.read(), mine(kMany));
}

} // namespace
} // namespace hetcoll::test
