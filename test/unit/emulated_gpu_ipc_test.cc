// CUDA IPC: a peer process opens what this one exports.
#include "test/unit/emulated_gpu_driver.h"

#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <string>

namespace hetcoll::test {
namespace {

constexpr std::size_t kBytes = std::size_t{4} << 20;

enum class Ask { kOpen, kOpenElsewhere, kClose, kRead, kOpenEvent, kQueryEvent, kStop };

struct Question {
    Ask ask;
    CUipcMemHandle memory;
    CUipcEventHandle event;
};

struct Answer {
    CUresult result = CUDA_SUCCESS;
    CUdeviceptr address = 0;
    unsigned word = 0;
};

bool send(int fd, const auto &value)
{
    return write(fd, &value, sizeof value) == static_cast<ssize_t>(sizeof value);
}
bool receive(int fd, auto &value)
{
    return read(fd, &value, sizeof value) == static_cast<ssize_t>(sizeof value);
}

// The peer's side: answers until told to stop.
class PeerState {
public:
    Answer answer(const Question &question)
    {
        Answer answer;
        switch (question.ask) {
        case Ask::kOpen:
            answer.result = cu().cuIpcOpenMemHandle(&answer.address, question.memory,
                                                    CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
            last_ = answer.result == CUDA_SUCCESS ? answer.address : last_;
            break;
        case Ask::kOpenElsewhere: answer.result = open_elsewhere(question.memory); break;
        case Ask::kClose: answer.result = cu().cuIpcCloseMemHandle(last_); break;
        case Ask::kRead:
            answer.result = cu().cuMemcpyDtoH(&answer.word, last_, sizeof answer.word);
            break;
        case Ask::kOpenEvent:
            answer.result = cu().cuIpcOpenEventHandle(&event_, question.event);
            break;
        default: answer.result = cu().cuEventQuery(event_); break;
        }
        return answer;
    }

private:
    // In another context of the same device.
    static CUresult open_elsewhere(const CUipcMemHandle &memory)
    {
        CUcontext other = nullptr;
        CUdeviceptr opened = 0;
        EXPECT_EQ(cu().cuCtxCreate_v2(&other, 0, 0), CUDA_SUCCESS);
        const CUresult result =
            cu().cuIpcOpenMemHandle(&opened, memory, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
        EXPECT_EQ(cu().cuCtxDestroy(other), CUDA_SUCCESS);
        return result;
    }

    CUdeviceptr last_ = 0;
    CUevent event_ = nullptr;
};

TEST(EmulatedIpcChild, DISABLED_Serve)
{
    const PrimaryContext context;
    const int in = std::atoi(std::getenv("HETCOLL_TEST_IN"));
    const int out = std::atoi(std::getenv("HETCOLL_TEST_OUT"));
    PeerState state;
    for (Question question; receive(in, question) && question.ask != Ask::kStop;) {
        ASSERT_TRUE(send(out, state.answer(question)));
    }
}

class Peer {
public:
    Peer()
    {
        int to[2], from[2];
        EXPECT_EQ(pipe(to), 0);
        EXPECT_EQ(pipe(from), 0);
        process_ = fork();
        if (process_ == 0) {
            setenv("HETCOLL_TEST_IN", std::to_string(to[0]).c_str(), 1);
            setenv("HETCOLL_TEST_OUT", std::to_string(from[1]).c_str(), 1);
            execl("/proc/self/exe", "test", "--gtest_filter=EmulatedIpcChild.DISABLED_Serve",
                  "--gtest_also_run_disabled_tests", "--gtest_brief=1", nullptr);
            _exit(127);
        }
        close(to[0]);
        close(from[1]);
        out_ = to[1];
        in_ = from[0];
    }
    ~Peer()
    {
        static_cast<void>(send(out_, Question{Ask::kStop, {}, {}}));
        close(out_);
        close(in_);
        int status = 0;
        waitpid(process_, &status, 0);
        EXPECT_EQ(status, 0);
    }
    Peer(const Peer &) = delete;
    Peer &operator=(const Peer &) = delete;

    Answer ask(const Question &question)
    {
        Answer answer;
        EXPECT_TRUE(send(out_, question));
        EXPECT_TRUE(receive(in_, answer));
        return answer;
    }
    Answer open(const CUipcMemHandle &memory) { return ask({Ask::kOpen, memory, {}}); }
    Answer ask(Ask what) { return ask(Question{what, {}, {}}); }

private:
    pid_t process_;
    int in_, out_;
};

CUipcMemHandle handle_of(CUdeviceptr memory)
{
    CUipcMemHandle handle{};
    EXPECT_EQ(cu().cuIpcGetMemHandle(&handle, memory), CUDA_SUCCESS);
    return handle;
}

TEST(EmulatedIpcTest, APeerSeesWhatThisProcessWrites)
{
    const PrimaryContext context;
    const CUdeviceptr memory = allocate(kBytes);
    fill(memory, 111, 1);
    Peer peer;
    EXPECT_EQ(peer.open(handle_of(memory)).result, CUDA_SUCCESS);
    EXPECT_EQ(peer.ask(Ask::kRead).word, 111u);
    fill(memory, 222, 1);
    EXPECT_EQ(peer.ask(Ask::kRead).word, 222u);
    EXPECT_EQ(peer.ask(Ask::kClose).result, CUDA_SUCCESS);
    EXPECT_EQ(peer.ask(Ask::kRead).result, CUDA_ERROR_INVALID_VALUE);
    free_memory(memory);
}

TEST(EmulatedIpcTest, AProcessCannotOpenItsOwnHandle)
{
    const PrimaryContext context;
    const CUdeviceptr memory = allocate(kBytes);
    CUdeviceptr opened = 0;
    EXPECT_EQ(
        cu().cuIpcOpenMemHandle(&opened, handle_of(memory), CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
        CUDA_ERROR_INVALID_CONTEXT);
    free_memory(memory);
}

TEST(EmulatedIpcTest, OpeningTwiceIsOneMapping)
{
    const PrimaryContext context;
    const CUdeviceptr memory = allocate(kBytes);
    Peer peer;
    const CUipcMemHandle handle = handle_of(memory);
    const Answer first = peer.open(handle), second = peer.open(handle);
    EXPECT_EQ(second.result, CUDA_SUCCESS);
    EXPECT_EQ(first.address, second.address);
    EXPECT_EQ(peer.ask(Ask::kClose).result, CUDA_SUCCESS);
    EXPECT_EQ(peer.ask(Ask::kRead).result, CUDA_SUCCESS); // opened once still
    EXPECT_EQ(peer.ask(Ask::kClose).result, CUDA_SUCCESS);
    EXPECT_EQ(peer.ask(Ask::kRead).result, CUDA_ERROR_INVALID_VALUE);
    free_memory(memory);
}

// "Only by one CUcontext per CUdevice per other process" (cuda.h), as a hostile driver has it.
TEST(EmulatedIpcTest, ADeviceHasOneContextThatImportsFromAProcess)
{
    const PrimaryContext context;
    const CUdeviceptr first = allocate(kBytes), second = allocate(kBytes);
    Peer peer;
    EXPECT_EQ(peer.open(handle_of(first)).result, CUDA_SUCCESS);
    EXPECT_EQ(peer.ask({Ask::kOpenElsewhere, handle_of(second), {}}).result,
              CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(peer.ask(Ask::kClose).result, CUDA_SUCCESS);
    EXPECT_EQ(peer.ask({Ask::kOpenElsewhere, handle_of(second), {}}).result, CUDA_SUCCESS);
    free_memory(first);
    free_memory(second);
}

TEST(EmulatedIpcTest, FreedMemoryIsInUseUntilTheLastPeerHasClosedIt)
{
    const PrimaryContext context;
    const CUdeviceptr memory = allocate(kBytes);
    const CUipcMemHandle handle = handle_of(memory);
    Peer one, other;
    EXPECT_EQ(one.open(handle).result, CUDA_SUCCESS);
    EXPECT_EQ(other.open(handle).result, CUDA_SUCCESS);
    const std::size_t before = free_bytes();
    free_memory(memory);
    EXPECT_EQ(free_bytes(), before);
    EXPECT_EQ(one.ask(Ask::kClose).result, CUDA_SUCCESS);
    EXPECT_EQ(free_bytes(), before);
    EXPECT_EQ(other.ask(Ask::kClose).result, CUDA_SUCCESS);
    EXPECT_EQ(free_bytes(), before + kBytes);
}

TEST(EmulatedIpcTest, FreedMemoryIsInUseUntilThePeerThatMapsItHasEnded)
{
    const PrimaryContext context;
    const CUdeviceptr memory = allocate(kBytes);
    std::size_t before = 0;
    {
        Peer peer;
        EXPECT_EQ(peer.open(handle_of(memory)).result, CUDA_SUCCESS);
        before = free_bytes();
        free_memory(memory);
        EXPECT_EQ(free_bytes(), before);
    }
    EXPECT_EQ(free_bytes(), before + kBytes);
}

TEST(EmulatedIpcTest, AnAllocationHasOneHandle)
{
    const PrimaryContext context;
    const CUdeviceptr memory = allocate(kBytes);
    const CUipcMemHandle handle = handle_of(memory), again = handle_of(memory + 4096);
    EXPECT_EQ(std::memcmp(&handle, &again, sizeof handle), 0);
    free_memory(memory);
}

// Memory with a 2 at an address where the peer still has memory with a 1 open, which is freed.
struct ReusedAddress {
    explicit ReusedAddress(Peer &peer)
    {
        const CUdeviceptr memory = allocate(kBytes);
        fill(memory, 1, 1);
        stale = handle_of(memory);
        old = peer.open(stale);
        EXPECT_EQ(old.result, CUDA_SUCCESS);
        free_memory(memory);
        again = allocate(kBytes);
        EXPECT_EQ(again, memory);
        fill(again, 2, 1);
    }

    CUipcMemHandle stale{};
    Answer old;
    CUdeviceptr again = 0;
};

TEST(EmulatedIpcChild, DISABLED_ReuseAnAddress)
{
    const PrimaryContext context;
    Peer peer;
    const auto [stale, old, again] = ReusedAddress(peer);
    const Answer opened = peer.open(handle_of(again));
    EXPECT_EQ(opened.result, CUDA_SUCCESS);
    EXPECT_NE(opened.address, old.address);
    EXPECT_EQ(peer.ask(Ask::kRead).word, 2u);
    EXPECT_EQ(peer.open(stale).address, old.address); // as long as it is mapped
    EXPECT_NE(peer.ask(Ask::kRead).word, 2u);
    EXPECT_EQ(peer.ask(Ask::kClose).result, CUDA_SUCCESS);
    EXPECT_EQ(peer.ask(Ask::kClose).result, CUDA_SUCCESS);
    EXPECT_NE(peer.open(stale).result, CUDA_SUCCESS);
    free_memory(again);
}

TEST(EmulatedIpcTest, NewMemoryAtAStaleAddressIsMappedBesideIt)
{
    const ChildResult child =
        run_in_child("EmulatedIpcChild.DISABLED_ReuseAnAddress", {"EMU_HOSTILE=0"});
    EXPECT_EQ(child.exit_status, 0) << child.errors;
}

// As drivers had it that UCX was written for.
TEST(EmulatedIpcTest, NewMemoryAtAStaleAddressIsAlreadyMappedIfTheDriverIsHostile)
{
    const PrimaryContext context;
    Peer peer;
    const auto [stale, old, again] = ReusedAddress(peer);
    EXPECT_EQ(peer.open(handle_of(again)).result, CUDA_ERROR_ALREADY_MAPPED);
    EXPECT_NE(peer.ask(Ask::kRead).word, 2u); // the old memory, not the new
    EXPECT_EQ(peer.ask(Ask::kClose).result, CUDA_SUCCESS);
    EXPECT_EQ(peer.open(handle_of(again)).result, CUDA_SUCCESS);
    EXPECT_EQ(peer.ask(Ask::kRead).word, 2u);
    EXPECT_EQ(peer.ask(Ask::kClose).result, CUDA_SUCCESS);
    EXPECT_NE(peer.open(stale).result, CUDA_SUCCESS);
    free_memory(again);
}

TEST(EmulatedIpcTest, SmallAllocationsAreSharedWithTheirOffset)
{
    const PrimaryContext context;
    const CUdeviceptr first = allocate(1000), second = allocate(1000);
    fill(first, 1, 1);
    fill(second, 2, 1);
    Peer peer;
    const Answer first_answer = peer.open(handle_of(first));
    EXPECT_EQ(peer.ask(Ask::kRead).word, 1u);
    const Answer second_answer = peer.open(handle_of(second));
    EXPECT_EQ(second_answer.result, CUDA_SUCCESS);
    EXPECT_EQ(peer.ask(Ask::kRead).word, 2u);
    EXPECT_EQ(second_answer.address - first_answer.address, second - first);
    EXPECT_EQ(peer.ask(Ask::kClose).result, CUDA_SUCCESS);
    EXPECT_EQ(peer.ask(Ask::kClose).result, CUDA_SUCCESS);
    free_memory(first);
    free_memory(second);
}

TEST(EmulatedIpcTest, APeerSeesWhetherAnEventHasHappened)
{
    const PrimaryContext context;
    CUevent event = nullptr;
    EXPECT_EQ(cu().cuEventCreate(&event, CU_EVENT_INTERPROCESS), CUDA_ERROR_INVALID_VALUE);
    ASSERT_EQ(cu().cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING),
              CUDA_SUCCESS);
    Question question{Ask::kOpenEvent, {}, {}};
    ASSERT_EQ(cu().cuIpcGetEventHandle(&question.event, event), CUDA_SUCCESS);
    Peer peer;
    EXPECT_EQ(peer.ask(question).result, CUDA_SUCCESS);
    EXPECT_EQ(peer.ask(Ask::kQueryEvent).result, CUDA_SUCCESS);
    {
        const DevicesHeld held; // of this process
        EXPECT_EQ(cu().cuEventRecord(event, nullptr), CUDA_SUCCESS);
        EXPECT_EQ(peer.ask(Ask::kQueryEvent).result, CUDA_ERROR_NOT_READY);
    }
    EXPECT_EQ(cu().cuEventSynchronize(event), CUDA_SUCCESS);
    EXPECT_EQ(peer.ask(Ask::kQueryEvent).result, CUDA_SUCCESS);
    EXPECT_EQ(cu().cuEventDestroy(event), CUDA_SUCCESS);
}

} // namespace
} // namespace hetcoll::test
