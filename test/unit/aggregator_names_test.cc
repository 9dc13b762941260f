// A name service that is slow, over the loopback device: it holds up nobody who does not need it.
#include "aggregator/names.h"
#include "test/unit/aggregator_tcp_house.h"

#include <dlfcn.h>
#include <netdb.h>
#include <sched.h>

#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>

namespace hetcoll::test {
namespace {

// The name service of this program: getaddrinfo below asks it for *.test.
class NameService {
public:
    // Waits until the name has an answer: an address, or "unknown", or "again", once.
    std::string ask(const std::string &name)
    {
        std::unique_lock lock(mutex_);
        ++asked_[name];
        answered_.wait(lock, [&] { return answers_.contains(name); });
        const std::string answer = answers_[name];
        if (answer == "again") {
            answers_.erase(name);
        }
        return answer;
    }
    void answer(const std::string &name, const std::string &answer)
    {
        const std::lock_guard lock(mutex_);
        answers_[name] = answer;
        answered_.notify_all();
    }
    int asked(const std::string &name)
    {
        const std::lock_guard lock(mutex_);
        return asked_[name];
    }

private:
    std::mutex mutex_;
    std::condition_variable answered_;
    std::map<std::string, std::string> answers_;
    std::map<std::string, int> asked_;
};

NameService &service()
{
    static NameService &one = *new NameService; // threads may ask when the program ends
    return one;
}

} // namespace
} // namespace hetcoll::test

// In place of the C library's.
extern "C" int getaddrinfo(const char *name, const char *port, const addrinfo *hints,
                           addrinfo **found)
{
    using hetcoll::test::service;
    static const auto next =
        reinterpret_cast<decltype(&getaddrinfo)>(dlsym(RTLD_NEXT, "getaddrinfo"));
    const bool ours = name != nullptr && std::strstr(name, ".test") != nullptr;
    if (!ours || (hints->ai_flags & AI_NUMERICHOST) != 0) {
        return next(name, port, hints, found);
    }
    const std::string answer = service().ask(name);
    return answer == "unknown" ? EAI_NONAME
           : answer == "again" ? EAI_AGAIN
                               : next(answer.c_str(), port, hints, found);
}

namespace hetcoll::test {
namespace {

using AggregatorNamesTest = TcpHouse;

// The call before would wait here for the answer that comes after it.
TEST_F(AggregatorNamesTest, WhoLooksUpANameGoesOnMeanwhile)
{
    serve();
    const Endpoint numeric = plan_.endpoint;
    join(0);
    plan_.endpoint.host = "slow.test";
    join(1);
    settle_until([] { return service().asked("slow.test") == 1; });
    EXPECT_EQ(clients_[1]->step(), AggregatorState::kJoining);
    service().answer("slow.test", numeric.host);
    settle_joined();
    both_reduce();
}

// A leaf asks for its spine; another job's ranks need none.
TEST_F(AggregatorNamesTest, ALeafServesOthersWhileItLooksUpItsSpine)
{
    serve({}, {.spine = Endpoint{"spine.test", 7470}});
    AggregatorPlan part = plan_;
    part.job = 77;
    part.ranks = 4; // the leaf has two of them
    std::vector<std::unique_ptr<AggregatorClient>> waiting;
    for (part.rank = 0; part.rank < 2; ++part.rank) {
        waiting.push_back(std::move(*AggregatorClient::start(part)));
    }
    settle_until([&] {
        for (const auto &client : waiting) {
            (void)client->step();
        }
        return service().asked("spine.test") == 1;
    });
    join(0);
    join(1);
    settle_joined();
    both_reduce();
    EXPECT_EQ(waiting[0]->step(), AggregatorState::kJoining);
    service().answer("spine.test", "unknown");
    settle_until([&] {
        const AggregatorState first = waiting[0]->step(), second = waiting[1]->step();
        return first == AggregatorState::kFailed && second == AggregatorState::kFailed;
    });
    EXPECT_NE(
        waiting[0]->status().message().find("aggregator spine.test:7470: its host is not known"),
        std::string::npos)
        << waiting[0]->status().message();
    both_reduce();
}

TEST_F(AggregatorNamesTest, ANameServiceThatIsDownIsAskedAgain)
{
    serve();
    const std::string address = std::exchange(plan_.endpoint.host, "again.test");
    service().answer("again.test", "again");
    join(0);
    settle_until([] { return service().asked("again.test") == 2; });
    service().answer("again.test", address);
    join(1);
    settle_joined();
    both_reduce();
}

TEST(NamesTest, ANameIsLookedUpOnceUntilItIsOfNoUse)
{
    Names names;
    const Endpoint at{"once.test", 1};
    const auto first = names.ask(at), second = names.ask(at);
    EXPECT_EQ(first, second);
    names.forget(at); // it has not ended
    EXPECT_EQ(names.ask(at), first);
    service().answer("once.test", "127.0.0.1");
    while (!first->is_over()) {
        sched_yield();
    }
    ASSERT_TRUE(first->answer().ok());
    EXPECT_EQ(first->answer()->front().port(), 1);
    EXPECT_EQ(names.ask(at), first);
    EXPECT_EQ(service().asked("once.test"), 1);
    names.forget(at);
    EXPECT_NE(names.ask(at), first);
}

TEST(NamesTest, AnAddressIsThereAtOnce)
{
    Names names;
    for (const char *const host : {"127.0.0.1", "::1"}) {
        EXPECT_TRUE(names.ask({host, 7})->is_over()) << host;
    }
}

// Whoever asked is gone when the answer comes.
TEST(NamesTest, AnAnswerThatNobodyWaitsForHurtsNobody)
{
    {
        Names names;
        (void)names.ask({"late.test", 1});
    }
    service().answer("late.test", "127.0.0.1");
}

} // namespace
} // namespace hetcoll::test
