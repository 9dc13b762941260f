// Messages by adapters: UCX's TCP on the loopback device stands for an adapter.
#include "transport/adapter_messages.h"

#include "hetcoll_config.h"

#if HETCOLL_WITH_UCX
#include "transport/ucp_library.h"
#endif

#include <cstdlib>
#include <gtest/gtest.h>
#include <random>
#include <vector>

namespace hetcoll::test {
namespace {

using Bytes = std::vector<std::byte>;
using Addresses = std::vector<std::span<const std::byte>>;

constexpr int kRounds = 1'000'000; // of progress, without a clock

AdapterMessages::Options loopback() { return {.transports = "tcp", .device = "lo", .cuda = false}; }

Bytes pattern(std::size_t bytes, unsigned seed)
{
    Bytes made(bytes);
    for (std::size_t i = 0; i < bytes; ++i) {
        made[i] = static_cast<std::byte>(i * 7 + i / 251 + seed * 31);
    }
    return made;
}

class Quiet {
public:
    Quiet()
    {
        ::testing::internal::CaptureStdout(); // where UCX prints
        ::testing::internal::CaptureStderr();
    }
    ~Quiet()
    {
        EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
        EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
    }
};

// The ranks of a node, all in this process.
class AdapterMessagesTest : public ::testing::Test {
protected:
    void SetUp() override
    {
        if (const auto one = AdapterMessages::create(loopback()); !one.ok()) {
            GTEST_SKIP() << one.status().message();
        }
    }

    void open(int size)
    {
        Addresses addresses;
        for (int rank = 0; rank < size; ++rank) {
            auto one = AdapterMessages::create(loopback());
            ASSERT_TRUE(one.ok()) << one.status().message();
            ranks_.push_back(std::move(*one));
            addresses.push_back(ranks_.back()->address());
        }
        for (int rank = 0; rank < size; ++rank) {
            const Status status = ranks_[rank]->connect(addresses, rank);
            ASSERT_TRUE(status.ok()) << status.message();
        }
    }

    const hetcoll_p2p &table(int rank) const { return ranks_[rank]->table(); }
    void *send(int from, int to, int tag, const Bytes &bytes) const
    {
        void *request = nullptr;
        const hetcoll_p2p &p2p = table(from);
        EXPECT_EQ(p2p.isend(p2p.context, bytes.data(), bytes.size(), to, tag, &request), 0);
        return request;
    }
    void *receive(int at, int from, int tag, Bytes &bytes) const
    {
        void *request = nullptr;
        const hetcoll_p2p &p2p = table(at);
        EXPECT_EQ(p2p.irecv(p2p.context, bytes.data(), bytes.size(), from, tag, &request), 0);
        return request;
    }
    void progress() const
    {
        for (const auto &rank : ranks_) {
            if (rank != nullptr) {
                rank->progress();
            }
        }
    }
    int test(int rank, void *&request) const
    {
        return table(rank).test(table(rank).context, &request);
    }
    // The final answer of test().
    int end(int rank, void *request) const
    {
        int tested = 0;
        for (int i = 0; i < kRounds && tested == 0; ++i) {
            progress();
            tested = test(rank, request);
        }
        EXPECT_EQ(request == nullptr, tested != 0);
        return tested;
    }
    // All ranks exchange something, so that they are connected.
    void meet() const
    {
        for (int from = 0; from < static_cast<int>(ranks_.size()); ++from) {
            for (int to = 0; to < static_cast<int>(ranks_.size()); ++to) {
                if (from != to) {
                    Bytes in(1);
                    void *const received = receive(to, from, 0, in);
                    EXPECT_EQ(end(from, send(from, to, 0, pattern(1, 0))), 1);
                    EXPECT_EQ(end(to, received), 1);
                }
            }
        }
    }

    std::vector<std::unique_ptr<AdapterMessages>> ranks_;
};

TEST_F(AdapterMessagesTest, RanksOfARingGetWhatTheOneBeforeHasSentWhateverTheSize)
{
    constexpr int kSize = 4;
    open(kSize);
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{7}, std::size_t{4096},
                                    std::size_t{100'003}, std::size_t{4} << 20}) {
        std::vector<Bytes> in(kSize, Bytes(bytes)), out;
        std::vector<void *> sends, receives;
        for (int rank = 0; rank < kSize; ++rank) {
            out.push_back(pattern(bytes, rank));
        }
        for (int rank = 0; rank < kSize; ++rank) {
            receives.push_back(receive(rank, (rank + kSize - 1) % kSize, 0, in[rank]));
            sends.push_back(send(rank, (rank + 1) % kSize, 0, out[rank]));
        }
        for (int rank = 0; rank < kSize; ++rank) {
            EXPECT_EQ(end(rank, receives[rank]), 1);
            EXPECT_EQ(end(rank, sends[rank]), 1);
            EXPECT_TRUE(in[rank] == out[(rank + kSize - 1) % kSize]) << rank << ", " << bytes;
        }
    }
}

TEST_F(AdapterMessagesTest, MessagesOfOneTagMatchInTheirOrder)
{
    open(2);
    const std::vector<std::size_t> sizes = {3, 1 << 20, 64, 300'000, 5, 5};
    std::vector<Bytes> in, out;
    std::vector<void *> sends, receives;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        in.emplace_back(sizes[i]);
        out.push_back(pattern(sizes[i], i));
    }
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        receives.push_back(receive(1, 0, 3, in[i]));
        sends.push_back(send(0, 1, 3, out[i]));
    }
    for (std::size_t i = sizes.size(); i-- > 0;) { // asked for in another order
        EXPECT_EQ(end(1, receives[i]), 1);
        EXPECT_EQ(end(0, sends[i]), 1);
        EXPECT_TRUE(in[i] == out[i]) << i;
    }
}

TEST_F(AdapterMessagesTest, MessagesWaitForTheReceiveOfTheirTagAndSender)
{
    open(3);
    constexpr std::size_t kBytes = 200'000;
    const Bytes one = pattern(kBytes, 1), two = pattern(kBytes, 2), other = pattern(kBytes, 3);
    void *const sends[] = {send(0, 2, 1, one), send(0, 2, 2, two), send(1, 2, 2, other)};
    for (int i = 0; i < 1000; ++i) {
        progress(); // they come before anybody asks for them
    }
    Bytes in_one(kBytes), in_two(kBytes), in_other(kBytes);
    EXPECT_EQ(end(2, receive(2, 1, 2, in_other)), 1);
    EXPECT_EQ(end(2, receive(2, 0, 2, in_two)), 1);
    EXPECT_EQ(end(2, receive(2, 0, 1, in_one)), 1);
    EXPECT_TRUE(in_one == one && in_two == two && in_other == other);
    EXPECT_EQ(end(0, sends[0]), 1);
    EXPECT_EQ(end(0, sends[1]), 1);
    EXPECT_EQ(end(1, sends[2]), 1);
}

TEST_F(AdapterMessagesTest, AMessageOfAnotherSizeThanItsReceiveIsAnError)
{
    open(2);
    for (const std::size_t sent : {std::size_t{4}, std::size_t{12}, std::size_t{1} << 20}) {
        const Bytes out = pattern(sent, 0);
        Bytes in(8);
        void *const received = receive(1, 0, 0, in);
        void *const send_request = send(0, 1, 0, out);
        EXPECT_LT(end(1, received), 0) << sent;
        (void)end(0, send_request);
    }
    Bytes in(8); // which has come before the receive
    EXPECT_EQ(end(0, send(0, 1, 0, pattern(4, 0))), 1);
    for (int i = 0; i < 1000; ++i) {
        progress();
    }
    void *request = nullptr;
    const hetcoll_p2p &p2p = table(1);
    if (p2p.irecv(p2p.context, in.data(), in.size(), 0, 0, &request) == 0) {
        EXPECT_LT(end(1, request), 0);
    } else {
        EXPECT_EQ(request, nullptr);
    }
}

TEST_F(AdapterMessagesTest, TestsMakeNoProgress)
{
    open(2);
    const Bytes out = pattern(8, 0);
    Bytes in(8);
    void *received = receive(1, 0, 0, in);
    void *const sent = send(0, 1, 0, out);
    for (int i = 0; i < 1000; ++i) {
        ASSERT_EQ(test(1, received), 0);
    }
    EXPECT_EQ(end(1, received), 1);
    EXPECT_EQ(end(0, sent), 1);
}

TEST_F(AdapterMessagesTest, NoMessageGoesToOneselfOrToARankWithoutAnAddress)
{
    open(2);
    auto alone = AdapterMessages::create(loopback());
    ASSERT_TRUE(alone.ok());
    const Addresses addresses = {ranks_[0]->address(), {}, (*alone)->address()};
    ASSERT_TRUE((*alone)->connect(addresses, 2).ok());
    const hetcoll_p2p &p2p = (*alone)->table();
    EXPECT_EQ(p2p.rank, 2);
    EXPECT_EQ(p2p.size, 3);
    Bytes bytes(1);
    for (const int peer : {-1, 1, 2, 3}) {
        void *request = nullptr;
        EXPECT_EQ(p2p.isend(p2p.context, bytes.data(), 1, peer, 0, &request), kAdapterFailed);
        EXPECT_EQ(p2p.irecv(p2p.context, bytes.data(), 1, peer, 0, &request), kAdapterFailed);
        EXPECT_EQ(request, nullptr);
    }
}

// ---- the end ----

TEST_F(AdapterMessagesTest, RanksGoInAnyOrder)
{
    const Quiet quiet;
    for (const std::vector<int> &order : {std::vector{0, 1, 2}, {2, 0, 1}, {1, 2, 0}}) {
        open(3);
        meet();
        for (const int rank : order) {
            ranks_[rank].reset();
            progress();
        }
        ranks_.clear();
    }
    open(3); // which have not met
}

TEST_F(AdapterMessagesTest, ARankGoesThatHasOpenRequests)
{
    open(2);
    meet();
    Bytes in(1 << 22);
    const Bytes out = pattern(1 << 22, 0);
    (void)receive(0, 1, 0, in);
    (void)send(0, 1, 0, out);
    ranks_[0].reset();
}

TEST_F(AdapterMessagesTest, WhereAPeerIsLostRequestsWithItFail)
{
    open(3);
    meet();
    Bytes in(8), from_other(8);
    const Bytes out = pattern(1 << 24, 0);
    void *const received = receive(0, 1, 0, in);
    void *const sent = send(0, 1, 0, out);
    void *const other = receive(0, 2, 0, from_other);
    ranks_[1]->abandon();
    EXPECT_EQ(end(0, received), kAdapterFailed);
    EXPECT_EQ(end(0, sent), kAdapterFailed);
    void *request = nullptr;
    EXPECT_EQ(table(0).isend(table(0).context, out.data(), 8, 1, 0, &request), kAdapterFailed);
    EXPECT_EQ(table(0).irecv(table(0).context, in.data(), 8, 1, 0, &request), kAdapterFailed);
    const Bytes bytes = pattern(8, 1); // the others go on
    EXPECT_EQ(end(2, send(2, 0, 0, bytes)), 1);
    EXPECT_EQ(end(0, other), 1);
    EXPECT_TRUE(from_other == bytes);
}

TEST_F(AdapterMessagesTest, AbandonedRequestsFail)
{
    open(2);
    meet();
    Bytes in(8), large(1 << 24);
    const Bytes out = pattern(1 << 24, 0);
    void *const unmatched = receive(0, 1, 5, in);
    void *const begun = receive(0, 1, 6, large);
    void *const sent = send(0, 1, 0, out);
    void *const theirs = send(1, 0, 6, out);
    for (int i = 0; i < 20; ++i) {
        progress(); // the large one is under way
    }
    ranks_[0]->abandon();
    EXPECT_EQ(end(0, unmatched), kAdapterFailed);
    EXPECT_EQ(end(0, begun), kAdapterFailed);
    EXPECT_EQ(end(0, sent), kAdapterFailed);
    EXPECT_NE(end(1, theirs), 0);
    ranks_[0]->abandon(); // again
    void *request = nullptr;
    EXPECT_EQ(table(0).isend(table(0).context, out.data(), 8, 1, 0, &request), kAdapterFailed);
}

TEST_F(AdapterMessagesTest, RanksLeaveInTheMiddleOfAnythingAndTheOthersRequestsEnd)
{
    constexpr int kSize = 3, kSeeds = 30;
    for (int seed = 0; seed < kSeeds; ++seed) {
        std::mt19937 random(seed);
        const auto below = [&](unsigned bound) { return static_cast<int>(random() % bound); };
        open(kSize);
        const Bytes out(1 << 20);
        std::vector<Bytes> in;
        struct Open {
            int rank;
            void *request;
        };
        std::vector<Open> requests;
        const auto work = [&] {
            for (int i = below(20); i > 0; --i) {
                const int rank = below(kSize), peer = (rank + 1 + below(kSize - 1)) % kSize;
                const std::size_t bytes = std::size_t{1} << below(21);
                const hetcoll_p2p &p2p = table(rank);
                void *request = nullptr;
                in.emplace_back(bytes);
                const int started =
                    below(2) == 0
                        ? p2p.isend(p2p.context, out.data(), bytes, peer, below(2), &request)
                        : p2p.irecv(p2p.context, in.back().data(), bytes, peer, below(2), &request);
                if (started == 0) {
                    requests.push_back({rank, request});
                }
            }
            for (int i = below(50); i > 0; --i) {
                ranks_[below(kSize)]->progress();
            }
        };
        work();
        const int first = below(kSize);
        ranks_[first]->abandon();
        work();
        const int second = (first + 1) % kSize;
        ranks_[second]->abandon();
        work();
        for (int i = 0; i < 1000; ++i) {
            progress();
        }
        ranks_[(first + 2) % kSize]->abandon();
        for (Open &open : requests) {
            EXPECT_NE(test(open.rank, open.request), 0) << seed;
        }
        ranks_.clear();
    }
}

// ---- what cannot be ----

TEST_F(AdapterMessagesTest, AnUnknownTransportOrDeviceIsNamedAndUcxIsQuiet)
{
    const Quiet quiet;
    AdapterMessages::Options options = loopback();
    options.transports = "nonsense";
    const auto transport = AdapterMessages::create(options);
    ASSERT_FALSE(transport.ok());
    EXPECT_EQ(transport.status().message(),
              "UCX has no transport 'nonsense' on adapter lo with a port that is up");
    options = loopback();
    options.device = "nowhere0";
    const auto device = AdapterMessages::create(options);
    ASSERT_FALSE(device.ok());
    EXPECT_EQ(device.status().message(),
              "UCX has no transport 'tcp' on adapter nowhere0 with a port that is up");
}

TEST_F(AdapterMessagesTest, AUcxWithoutCudaIsNamedAndIsQuiet)
{
    const Quiet quiet;
    AdapterMessages::Options options = loopback();
    options.cuda = true;
    const auto made = AdapterMessages::create(options);
    if (!made.ok()) { // Debian's
        EXPECT_NE(made.status().message().find("without CUDA"), std::string::npos)
            << made.status().message();
    }
}

TEST_F(AdapterMessagesTest, TheEnvironmentSaysNothingOfTransportsAndDevices)
{
    const Quiet quiet;
    setenv("UCX_TLS", "sysv", 1);
    setenv("UCX_NET_DEVICES", "nowhere0", 1);
    open(2);
    meet();
    ranks_.clear();
    unsetenv("UCX_TLS");
    unsetenv("UCX_NET_DEVICES");
}

TEST_F(AdapterMessagesTest, AnAddressThatIsNoneIsAnError)
{
    const auto there = AdapterMessages::create(loopback());
    ASSERT_TRUE(there.ok());
    const std::span<const std::byte> right = (*there)->address();
    EXPECT_LE(right.size(), AdapterMessages::kMostAddressBytes);
    RecordProperty("address_bytes", static_cast<int>(right.size()));
    std::vector<Bytes> wrong = {Bytes(1), Bytes(100, std::byte{0x5a}), Bytes(5000)};
    wrong.emplace_back(right.begin(), right.end() - 1);
    for (const std::size_t at :
         {std::size_t{0}, std::size_t{8}, std::size_t{16}, std::size_t{24}, right.size() - 1}) {
        wrong.emplace_back(right.begin(), right.end())[at] ^= std::byte{1};
    }
    for (const Bytes &bytes : wrong) {
        const auto here = AdapterMessages::create(loopback());
        ASSERT_TRUE(here.ok());
        const Addresses addresses = {(*here)->address(), bytes};
        const Status status = (*here)->connect(addresses, 0);
        ASSERT_FALSE(status.ok());
        EXPECT_EQ(status.message(), "rank 1 has sent " + std::to_string(bytes.size()) +
                                        " bytes that are no adapter's address");
        (*here)->progress(); // does nothing
    }
}

#if HETCOLL_WITH_UCX
TEST(UcpLibraryTest, ALibraryThatIsNotThereOrIsNoUcxIsNamed)
{
    const auto missing = load_ucp("libno_such_ucp.so.0");
    ASSERT_FALSE(missing.ok());
    EXPECT_NE(missing.status().message().find("libno_such_ucp.so.0"), std::string::npos);
    const auto other = load_ucp("libm.so.6");
    ASSERT_FALSE(other.ok());
    EXPECT_NE(other.status().message().find("UCX (libm.so.6) lacks "), std::string::npos);
}
#else
TEST(AdapterMessagesStubTest, ABuildWithoutUcxSaysSo)
{
    const auto made = AdapterMessages::create(loopback());
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.status().code(), Errc::kUnsupported);
    EXPECT_NE(made.status().message().find("libucx-dev"), std::string::npos);
}
#endif

} // namespace
} // namespace hetcoll::test
