// One rank's calls against a script: a communicator of two ranks on two nodes, so that each meeting
// is one message each way. Rank 0 is the tested one. Rank 1 is a list of answers, written down
// beforehand; what rank 0 says is kept.
#pragma once

#include "base/p2p.h"
#include "engine/call/operation.h"
#include "engine/communicator/communicator.h"
#include "engine/process/process.h"
#include "test/unit/device_cuda.h"
#include "test/unit/engine_flag_names.h"

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

namespace hetcoll {

namespace test {

using Message = std::vector<std::uint8_t>;

// A message of a schedule, a meeting without a sum, and one that sums numbers.
template <class T> Message data_of(const std::vector<T> &numbers)
{
    Message message(numbers.size() * sizeof(T));
    std::memcpy(message.data(), numbers.data(), message.size());
    return message;
}
inline Message says(Flags flags)
{
    Message message(Exchange::kFlagBytes);
    std::memcpy(message.data(), &flags, message.size());
    return message;
}
template <class T> Message sum_of(const std::vector<T> &numbers, Flags flags)
{
    Message message = data_of(numbers);
    for (const std::uint8_t byte : says(flags)) {
        message.push_back(byte);
    }
    return message;
}
// The content of a meeting's message.
inline Flags flags_of(const Message &message)
{
    Flags flags;
    std::memcpy(&flags, message.data() + message.size() - sizeof flags, sizeof flags);
    return flags;
}

class ScriptedPeer {
public:
    struct Answer {
        Answer(Message what) // so that a script is a list of messages
            : message(std::move(what))
        {
        }
        explicit Answer(int its_code) : code(its_code) {}
        Message message;
        int code = 0; // else the network fails with it
    };

    // Rank 0's messages; the peer outlives them.
    [[nodiscard]] hetcoll_p2p table();

    // From now on the n-th message that rank 0 receives is the n-th of these.
    void answer(std::vector<Answer> script);
    // Rank 0's flags since then.
    [[nodiscard]] const std::vector<Message> &said() const noexcept { return said_; }
    // Rank 0 has asked for a message that is not in the script.
    [[nodiscard]] bool is_waited_for() const noexcept { return waited_for_; }
    // Rank 0 has heard that the network fails.
    [[nodiscard]] bool has_failed() const noexcept { return failed_; }
    // It has received all that is in it, and no more.
    [[nodiscard]] bool is_over() const noexcept { return received_ == script_.size(); }

private:
    struct Request {
        void *to = nullptr; // null: sent
        std::size_t bytes = 0;
        std::size_t number = 0; // of the answer
    };

    static int isend(void *context, const void *buffer, std::size_t bytes, int peer, int tag,
                     void **request);
    static int irecv(void *context, void *buffer, std::size_t bytes, int peer, int tag,
                     void **request);
    static int test(void *context, void **request);

    std::vector<Answer> script_;
    std::vector<Message> said_;
    std::size_t asked_ = 0, received_ = 0;
    bool waited_for_ = false, failed_ = false;
    std::deque<Request> requests_; // kept until the end: a call may leave some behind
};

// Numbers in host or device memory.
enum class Where { kHost, kDevice };
template <class T> class Numbers {
public:
    Numbers(Where where, const std::vector<T> &values) : host_(values)
    {
        if (where == Where::kDevice) {
            device_ = cuda().allocate(values.size() * sizeof(T));
            upload(device_, values);
        }
    }
    ~Numbers()
    {
        if (device_ != 0) {
            HETCOLL_REQUIRE(cuda().driver->cuCtxSetCurrent(cuda().context));
            HETCOLL_REQUIRE(cuda().driver->cuMemFree(device_));
        }
    }
    Numbers(const Numbers &) = delete;
    Numbers &operator=(const Numbers &) = delete;

    [[nodiscard]] void *data() { return device_ != 0 ? pointer(device_) : host_.data(); }
    [[nodiscard]] std::vector<T> read() const
    {
        return device_ != 0 ? download<T>(device_, host_.size()) : host_;
    }

private:
    std::vector<T> host_;
    CUdeviceptr device_ = 0;
};

// The previous module's allreduce.
struct PreviousModule {
    int calls = 0;
    const void *send = nullptr, *recv = nullptr; // of the last call
    std::vector<int> input;                      // of the last call
    std::size_t said = 0;                        // messages of this rank before it
    std::vector<int> output;                     // what it answers
    int code = 0;                                // and with which code
    std::size_t count = 0;
    const ScriptedPeer *peer = nullptr;
};

class CallTest : public ::testing::Test {
protected:
    static constexpr std::size_t kFew = 4, kMany = 100; // elements, below and above the small limit
    static constexpr int kNetworkCode = -7;

    // Recursive doubling: two ranks send each other the vector, in one message.
    static hetcoll_settings usual_settings();
    explicit CallTest(const hetcoll_settings &settings = usual_settings(), int ranks = 2);
    void SetUp() override;
    // A communicator that has made no calls yet.
    void make_comm();

    // The vectors of ranks 0 and 1, and their sum: i + 1, 10 i and 11 i + 1.
    static std::vector<int> mine(std::size_t count) { return line(count, 1, 1); }
    static std::vector<int> theirs(std::size_t count) { return line(count, 10, 0); }
    static std::vector<int> sums(std::size_t count) { return line(count, 11, 1); }
    static std::vector<int> line(std::size_t count, int slope, int first);

    // A blocking sum.
    template <class T>
    hetcoll_call call(Numbers<T> &send, Numbers<T> &recv, std::size_t count, int kind)
    {
        hetcoll_call made{};
        made.send = send.data();
        made.recv = recv.data();
        made.kind = kind;
        made.op = HETCOLL_SUM;
        made.count = count;
        made.span = count * sizeof(T);
        made.dense = 1;
        made.tag = HETCOLL_TAGS;
        stage_by_previous(made);
        return made;
    }
    hetcoll_call call(Numbers<int> &send, Numbers<int> &recv, std::size_t count)
    {
        return call(send, recv, count, HETCOLL_INT32);
    }

    // The module before this one is there to reduce it on the host.
    void stage_by_previous(hetcoll_call &made);

    // The result; nothing if the call waits for what is not in the script.
    std::optional<int> finish(Operation &operation);
    std::optional<int> run(const hetcoll_call &call);
    // A first call, in which the ranks tell each other where their GPUs are.
    void find_peers();
    // Rank 1's flags then.
    [[nodiscard]] Message records_of_peer();
    // Its prices.
    [[nodiscard]] static Message prices_of_peer();
    [[nodiscard]] std::uint64_t counter(hetcoll_counter which) const
    {
        return process_->counters().counter(which);
    }

    ScriptedPeer peer_;
    PreviousModule previous_;
    std::unique_ptr<Process> process_;
    std::unique_ptr<Communicator> comm_;

private:
    int ranks_;
};

} // namespace test
} // namespace hetcoll
