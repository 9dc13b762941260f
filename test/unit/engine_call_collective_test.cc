// Broadcast, reduce, allgather and reduce-scatter.
#include "test/unit/engine_scripted_peer.h"

namespace hetcoll::test {
namespace {

using Said = std::vector<Message>;

class CollectiveCallTest : public CallTest {
protected:
    static constexpr std::size_t kShare = kMany / 2;

    template <class T> static std::vector<T> first_half(std::vector<T> numbers)
    {
        numbers.resize(kShare);
        return numbers;
    }
    template <class T> static std::vector<T> second_half(const std::vector<T> &numbers)
    {
        return {numbers.begin() + kShare, numbers.end()};
    }
    // A vector on its way along the chain of ranks.
    static std::vector<Message> halves_of(const std::vector<int> &numbers)
    {
        return {data_of(first_half(numbers)), data_of(second_half(numbers))};
    }
    hetcoll_call collective(int which, Numbers<int> &send, Numbers<int> &recv, int root = 0)
    {
        hetcoll_call made = call(send, recv, kMany);
        made.collective = which;
        made.root = root;
        return made;
    }
    static Said between(const Message &agreement, const std::vector<Message> &data)
    {
        Said all = {agreement};
        all.insert(all.end(), data.begin(), data.end());
        all.push_back(agreement);
        return all;
    }
    void answer(const std::vector<Message> &data)
    {
        const Said all = between(says(kDeviceMemory), data);
        peer_.answer({all.begin(), all.end()});
    }
    void expect_said(const std::vector<Message> &data)
    {
        EXPECT_EQ(peer_.said(), between(says(kDeviceMemory), data));
        EXPECT_TRUE(peer_.is_over());
    }
};

TEST_F(CollectiveCallTest, TheFirstFindsPeersAndAgreesAgain)
{
    Numbers<int> vector(Where::kDevice, mine(kMany));
    peer_.answer({says(kDeviceMemory), records_of_peer(), prices_of_peer(), says(kDeviceMemory),
                  says(kDeviceMemory)});
    EXPECT_EQ(run(collective(HETCOLL_BCAST, vector, vector)), HETCOLL_SUCCESS);
    ASSERT_EQ(peer_.said().size(), 7u);
    EXPECT_EQ(peer_.said()[0], says(kDeviceMemory));
    const Said after_records(peer_.said().begin() + 3, peer_.said().end());
    EXPECT_EQ(after_records, between(says(kDeviceMemory), halves_of(mine(kMany))));
}

TEST_F(CollectiveCallTest, ABroadcastGoesFromTheRoot)
{
    find_peers();
    Numbers<int> vector(Where::kDevice, mine(kMany));
    answer({});
    EXPECT_EQ(run(collective(HETCOLL_BCAST, vector, vector, 0)), HETCOLL_SUCCESS);
    expect_said(halves_of(mine(kMany)));
    EXPECT_EQ(vector.read(), mine(kMany));

    answer(halves_of(theirs(kMany)));
    EXPECT_EQ(run(collective(HETCOLL_BCAST, vector, vector, 1)), HETCOLL_SUCCESS);
    expect_said({});
    EXPECT_EQ(vector.read(), theirs(kMany));
    EXPECT_EQ(counter(HETCOLL_CALLS_COLLECTIVE), 2u);
}

TEST_F(CollectiveCallTest, AReduceGoesToTheRoot)
{
    find_peers();
    Numbers<int> send(Where::kDevice, mine(kMany)), recv(Where::kDevice, theirs(kMany));
    answer(halves_of(theirs(kMany)));
    EXPECT_EQ(run(collective(HETCOLL_REDUCE, send, recv, 0)), HETCOLL_SUCCESS);
    expect_said({});
    EXPECT_EQ(recv.read(), sums(kMany));

    hetcoll_call from_here = collective(HETCOLL_REDUCE, send, recv, 1);
    from_here.recv = nullptr;
    answer({});
    EXPECT_EQ(run(from_here), HETCOLL_SUCCESS);
    expect_said(halves_of(mine(kMany)));
    EXPECT_EQ(send.read(), mine(kMany));
}

TEST_F(CollectiveCallTest, AnAllgatherBringsEachShareToItsPlace)
{
    find_peers();
    Numbers<int> send(Where::kDevice, mine(kShare)), recv(Where::kDevice, line(kMany, 0, -1));
    answer({data_of(theirs(kShare))});
    EXPECT_EQ(run(collective(HETCOLL_ALLGATHER, send, recv)), HETCOLL_SUCCESS);
    expect_said({data_of(mine(kShare))});
    EXPECT_EQ(first_half(recv.read()), mine(kShare));
    EXPECT_EQ(second_half(recv.read()), theirs(kShare));
}

TEST_F(CollectiveCallTest, AReduceScatterLeavesEachRankItsShareOfTheSum)
{
    find_peers();
    Numbers<int> send(Where::kDevice, mine(kMany)), recv(Where::kDevice, line(kShare, 0, -1));
    answer({data_of(first_half(theirs(kMany)))});
    EXPECT_EQ(run(collective(HETCOLL_REDUCE_SCATTER, send, recv)), HETCOLL_SUCCESS);
    expect_said({data_of(second_half(mine(kMany)))});
    EXPECT_EQ(recv.read(), first_half(sums(kMany)));
    EXPECT_EQ(send.read(), mine(kMany));
}

TEST_F(CollectiveCallTest, APeerWithHostMemoryOrNoUseOfItsGpuMakesAllDecline)
{
    for (const Flags there : {kHostMemory, kDeviceMemory | kMustStage}) {
        Numbers<int> vector(Where::kDevice, mine(kMany));
        peer_.answer({says(there)});
        EXPECT_EQ(run(collective(HETCOLL_BCAST, vector, vector)), HETCOLL_DECLINED_TO_STAGE);
        EXPECT_EQ(peer_.said(), (Said{says(kDeviceMemory)}));
    }
    EXPECT_EQ(counter(HETCOLL_CALLS_FAILED), 0u);
    EXPECT_EQ(counter(HETCOLL_CALLS_COLLECTIVE), 0u);
}

TEST_F(CollectiveCallTest, ARankWithHostMemoryOrHolesInItsDatatypeSaysSoAndAllDecline)
{
    Numbers<int> host(Where::kHost, mine(kMany)), device(Where::kDevice, mine(kMany));
    hetcoll_call with_holes = collective(HETCOLL_BCAST, device, device);
    with_holes.dense = 0;
    peer_.answer({says(kDeviceMemory)});
    EXPECT_EQ(run(collective(HETCOLL_BCAST, host, host)), HETCOLL_DECLINED_TO_STAGE);
    EXPECT_EQ(peer_.said(), (Said{says(kHostMemory)}));
    peer_.answer({says(kHostMemory)});
    EXPECT_EQ(run(with_holes), HETCOLL_DECLINED_TO_STAGE);
    EXPECT_EQ(peer_.said(), (Said{says(kHostMemory | kDeviceMemory)}));
}

TEST_F(CollectiveCallTest, WhereAllHaveHostMemoryNothingIsCopiedAndNobodyMeetsAgain)
{
    Numbers<int> host(Where::kHost, mine(kMany));
    peer_.answer({says(kHostMemory)});
    EXPECT_EQ(run(collective(HETCOLL_BCAST, host, host)), HETCOLL_DECLINED);
}

TEST_F(CollectiveCallTest, AfterTheCopiesARankThatFailedToMakeItsMakesAllFail)
{
    Numbers<int> vector(Where::kDevice, mine(kMany));
    hetcoll_call made = collective(HETCOLL_BCAST, vector, vector);
    struct {
        hetcoll_copies own;
        Flags said, of_peer;
        int result;
    } const cases[] = {{HETCOLL_COPIES_MADE, Flags{}, Flags{}, HETCOLL_DECLINED},
                       {HETCOLL_COPIES_FAILED, kFailed, Flags{}, HETCOLL_ERROR_DEVICE},
                       {HETCOLL_COPIES_MADE, Flags{}, kFailed, HETCOLL_ERROR_DEVICE}};
    for (const auto &one : cases) {
        made.copies = one.own;
        peer_.answer({says(one.of_peer)});
        EXPECT_EQ(run(made), one.result);
        EXPECT_EQ(peer_.said(), (Said{says(one.said)}));
    }
    EXPECT_EQ(counter(HETCOLL_CALLS_FAILED), 2u);
}

TEST_F(CollectiveCallTest, AFailureOfThePeerIsTheResultInEitherAgreement)
{
    Numbers<int> vector(Where::kDevice, mine(kMany));
    peer_.answer({says(kDeviceMemory | kFailed)});
    EXPECT_EQ(run(collective(HETCOLL_BCAST, vector, vector)), HETCOLL_ERROR_DEVICE);
    EXPECT_EQ(peer_.said().size(), 1u);

    find_peers();
    peer_.answer({says(kDeviceMemory), says(kDeviceMemory | kFailed)});
    EXPECT_EQ(run(collective(HETCOLL_BCAST, vector, vector)), HETCOLL_ERROR_DEVICE);
    EXPECT_EQ(peer_.said(), between(says(kDeviceMemory), halves_of(mine(kMany))));
    EXPECT_FALSE(comm_->planner().peers().known());
}

TEST_F(CollectiveCallTest, ARankThatCannotFindItsBuffersSaysSo)
{
    Numbers<int> vector(Where::kDevice, mine(kMany));
    peer_.answer({says(kDeviceMemory)});
    {
        const Faults faults("cuPointerGetAttributes:*:999,cuPointerGetAttribute:*:999");
        EXPECT_EQ(run(collective(HETCOLL_BCAST, vector, vector)), HETCOLL_ERROR_DEVICE);
    }
    EXPECT_EQ(peer_.said(), (Said{says(kFailed)}));
}

TEST_F(CollectiveCallTest, ALostMessageEndsTheCallAtOnce)
{
    const ScriptedPeer::Answer lost(kNetworkCode);
    const std::vector<Message> halves = halves_of(theirs(kMany));
    const std::vector<std::vector<ScriptedPeer::Answer>> scripts = {
        {lost}, {says(kDeviceMemory), lost}, {says(kDeviceMemory), halves[0], halves[1], lost}};
    const std::size_t said[] = {1, 1, 2};
    for (std::size_t i = 0; i < scripts.size(); ++i) {
        make_comm();
        find_peers();
        Numbers<int> vector(Where::kDevice, mine(kMany));
        peer_.answer(scripts[i]);
        EXPECT_EQ(run(collective(HETCOLL_BCAST, vector, vector, 1)), kNetworkCode);
        EXPECT_EQ(peer_.said().size(), said[i]);
    }
}

} // namespace
} // namespace hetcoll::test
