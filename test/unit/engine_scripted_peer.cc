#include "test/unit/engine_scripted_peer.h"

#include "topology/record.h"

#include <algorithm>
#include <array>
#include <thread>

namespace hetcoll::test {

// ---- the peer ----

hetcoll_p2p ScriptedPeer::table()
{
    return {this, 0, 2, isend, irecv, test, [](void *) {}, 0, 0, nullptr, nullptr};
}

void ScriptedPeer::answer(std::vector<Answer> script)
{
    script_ = std::move(script);
    said_.clear();
    asked_ = received_ = 0;
    waited_for_ = failed_ = false;
}

int ScriptedPeer::isend(void *context, const void *buffer, std::size_t bytes, int, int,
                        void **request)
{
    auto &peer = *static_cast<ScriptedPeer *>(context);
    const auto *const first = static_cast<const std::uint8_t *>(buffer);
    peer.said_.emplace_back(first, first + bytes);
    *request = &peer.requests_.emplace_back();
    return 0;
}

int ScriptedPeer::irecv(void *context, void *buffer, std::size_t bytes, int, int, void **request)
{
    auto &peer = *static_cast<ScriptedPeer *>(context);
    *request = &peer.requests_.emplace_back(Request{buffer, bytes, peer.asked_++});
    return 0;
}

int ScriptedPeer::test(void *context, void **request)
{
    auto &peer = *static_cast<ScriptedPeer *>(context);
    const Request &asked = *static_cast<Request *>(*request);
    if (asked.to == nullptr) {
        *request = nullptr;
        return 1;
    }
    if (asked.number >= peer.script_.size()) {
        peer.waited_for_ = true;
        return 0;
    }
    const Answer &answer = peer.script_[asked.number];
    ++peer.received_;
    *request = nullptr;
    if (answer.code != 0) {
        peer.failed_ = true;
        return answer.code;
    }
    EXPECT_EQ(answer.message.size(), asked.bytes) << "message " << asked.number;
    std::memcpy(asked.to, answer.message.data(), std::min(answer.message.size(), asked.bytes));
    return 1;
}

// ---- calls ----

hetcoll_settings CallTest::usual_settings()
{
    hetcoll_settings settings = hetcoll_default_settings();
    settings.ipc = settings.adapt_chunk = settings.recognize_ops = 0;
    settings.check = HETCOLL_CHECK_OFF; // the script makes no calls
    settings.algorithm = "recursive_doubling";
    settings.tuning_table = "none";
    settings.small_limit = kFew * sizeof(double);
    settings.chunk_bytes = 4096;
    return settings;
}

CallTest::CallTest(const hetcoll_settings &settings, int ranks)
    : process_(std::move(*Process::create(settings))), ranks_(ranks)
{
}

void CallTest::make_comm()
{
    std::array<hetcoll_facts, 2> facts = {process_->facts(), process_->facts()};
    ++facts[1].identity.host;
    ++facts[1].identity.machine;
    hetcoll_p2p table = peer_.table();
    table.size = ranks_;
    comm_ = std::make_unique<Communicator>(
        *process_, table, facts[0], std::span(facts).first(static_cast<std::size_t>(ranks_)));
    if (ranks_ > 1) {
        const Message nothing(2 * sizeof(std::uint64_t) +
                              Exchange::kFlagBytes); // set otherwise than by rank 0
        peer_.answer({nothing});
        ASSERT_EQ(comm_->make_ready(HETCOLL_TAGS), Progress::kDone);
        peer_.answer({});
    }
}

void CallTest::SetUp()
{
    HETCOLL_REQUIRE(cuda().driver->cuCtxSetCurrent(cuda().context));
    make_comm();
}

std::vector<int> CallTest::line(std::size_t count, int slope, int first)
{
    std::vector<int> numbers(count);
    for (std::size_t i = 0; i < count; ++i) {
        numbers[i] = slope * static_cast<int>(i) + first;
    }
    return numbers;
}

std::optional<int> CallTest::finish(Operation &operation)
{
    while (!operation.step()) {
        if (peer_.is_waited_for()) {
            return std::nullopt;
        }
        std::this_thread::yield(); // to the device
    }
    return operation.result();
}

std::optional<int> CallTest::run(const hetcoll_call &call)
{
    Operation operation(*comm_, call);
    return finish(operation);
}

void CallTest::find_peers()
{
    Numbers<int> vector(Where::kDevice, mine(kMany));
    peer_.answer({says(kDeviceMemory), records_of_peer(), prices_of_peer(), says(kDeviceMemory),
                  data_of(theirs(kMany)), says(kDeviceMemory)});
    ASSERT_EQ(run(call(vector, vector, kMany)), HETCOLL_SUCCESS);
    ASSERT_TRUE(comm_->planner().peers().known());
    peer_.answer({});
}

// The same GPU in another machine.
Message CallTest::records_of_peer()
{
    Numbers<int> there(Where::kDevice, {0});
    auto record =
        process_->place().probe(*process_->gpus().pointers().find(there.data()), process_->gpus());
    EXPECT_TRUE(record.ok());
    ++record->host_id;
    std::array<RankRecord, 2> records{};
    records[1] = *record;
    Message message(sizeof records + Exchange::kFlagBytes);
    std::memcpy(message.data(), records.data(), sizeof records);
    return message;
}

// No two sizes side by side have prices, which this rank has found for every second one.
Message CallTest::prices_of_peer() { return Message(sizeof(PriceTable) + Exchange::kFlagBytes); }

namespace {

int reduce_by_previous(void *context, const void *send, void *recv)
{
    auto &previous = *static_cast<PreviousModule *>(context);
    ++previous.calls;
    previous.send = send;
    previous.recv = recv;
    const auto *const input = static_cast<const int *>(send);
    previous.input.assign(input, input + previous.count);
    previous.said = previous.peer->said().size();
    std::copy(previous.output.begin(), previous.output.end(), static_cast<int *>(recv));
    return previous.code;
}

} // namespace

void CallTest::stage_by_previous(hetcoll_call &made)
{
    made.previous_allreduce = reduce_by_previous;
    made.context = &previous_;
    previous_.count = made.span / sizeof(int);
    previous_.peer = &peer_;
}

} // namespace hetcoll::test
