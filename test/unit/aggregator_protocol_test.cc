#include "aggregator/protocol.h"

#include "test/fuzz/decode_fuzz.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>

namespace hetcoll {
namespace {

constexpr Member kMember{.job = 0x0123456789abcdef,
                         .comm = 5,
                         .rank = 4,
                         .span = 2,
                         .first = 3,
                         .count = 5,
                         .ranks = 16,
                         .window = 8,
                         .message_bytes = 4096};
constexpr Reduction kReduction{.job = 9,
                               .comm = 1,
                               .op = ReduceOp::kMax,
                               .kind = ElementKind::kFloat64,
                               .window = 4,
                               .message_bytes = 1 << 20,
                               .count = 1ull << 40};

struct Example {
    Message message;
    std::size_t payload_bytes;
};

std::vector<Example> examples()
{
    return {{Join{kMember}, 0},
            {Ready{8}, 0},
            {Refused{"no"}, 0},
            {Part{12, kReduction}, 100},
            {Part{13, std::nullopt}, 100},
            {PartSum{14}, 100},
            {Alive{}, 0}};
}

std::vector<std::byte> bytes_of(const HeaderBytes &header)
{
    return {header.view().begin(), header.view().end()};
}

TEST(AggregatorProtocolTest, EveryMessageComesBackFromItsBytes)
{
    for (const Example &example : examples()) {
        const HeaderBytes header = encode(example.message);
        const std::optional<Message> decoded = decode(header.view(), example.payload_bytes);
        ASSERT_TRUE(decoded.has_value()) << example.message.index();
        EXPECT_EQ(decoded->index(), example.message.index());
        EXPECT_EQ(bytes_of(encode(*decoded)), bytes_of(header));
    }
}

TEST(AggregatorProtocolTest, TheFieldsOfAReductionComeBack)
{
    const auto decoded = decode(encode(Part{2, kReduction}).view(), 8);
    ASSERT_TRUE(decoded.has_value());
    EXPECT_EQ(std::get<Part>(*decoded).sequence, 2u);
    EXPECT_EQ(std::get<Part>(*decoded).reduction, kReduction);
}

TEST(AggregatorProtocolTest, OnlyAReductionsFirstMessageHasItsHeader)
{
    EXPECT_EQ(encode(Part{2, kReduction}).view().size(), 42u);
    EXPECT_EQ(encode(Part{3, std::nullopt}).view().size(), 12u);
    EXPECT_EQ(encode(PartSum{3}).view().size(), 12u);
}

TEST(AggregatorProtocolTest, NoPartOfAMessageIsOne)
{
    for (const Example &example : examples()) {
        const bool is_text = std::holds_alternative<Refused>(example.message);
        const std::vector<std::byte> whole = bytes_of(encode(example.message));
        for (std::size_t n = 0; n < whole.size() - (is_text ? 2 : 0); ++n) {
            EXPECT_FALSE(is_text && n >= 4) << n;
            if (!is_text || n < 4) {
                EXPECT_FALSE(decode(std::span(whole).first(n), example.payload_bytes).has_value());
            }
        }
    }
}

TEST(AggregatorProtocolTest, MoreThanAMessageIsNone)
{
    for (const Example &example : examples()) {
        std::vector<std::byte> more = bytes_of(encode(example.message));
        more.push_back(std::byte{0});
        EXPECT_FALSE(decode(more, example.payload_bytes).has_value()) << example.message.index();
    }
}

TEST(AggregatorProtocolTest, APayloadIsWhereItBelongsAndNowhereElse)
{
    for (const Example &example : examples()) {
        const std::size_t wrong = example.payload_bytes == 0 ? 1 : 0;
        EXPECT_FALSE(decode(encode(example.message).view(), wrong).has_value());
    }
    EXPECT_FALSE(decode(encode(PartSum{2}).view(), kMostMessageBytes + 1).has_value());
}

TEST(AggregatorProtocolTest, ANumberOutOfItsRangeIsRefused)
{
    const auto join = [](auto change) {
        Member member = kMember;
        change(member);
        return decode(encode(Join{member}).view(), 0).has_value();
    };
    EXPECT_TRUE(join([](Member &) {}));
    EXPECT_FALSE(join([](Member &m) { m.ranks = 0; }));
    EXPECT_FALSE(join([](Member &m) { m.ranks = kMostRanks + 1; }));
    EXPECT_FALSE(join([](Member &m) { m.rank = m.first - 1; }));
    EXPECT_FALSE(join([](Member &m) { m.rank = m.first + m.count; }));
    EXPECT_FALSE(join([](Member &m) { m.span = m.first + m.count - m.rank + 1; }));
    EXPECT_FALSE(join([](Member &m) { m.span = UINT32_MAX; }));
    EXPECT_FALSE(join([](Member &m) { m.count = UINT32_MAX; }));
    EXPECT_FALSE(join([](Member &m) { m.window = 0; }));
    EXPECT_FALSE(join([](Member &m) { m.window = kMostWindow + 1; }));
    EXPECT_FALSE(join([](Member &m) { m.message_bytes = kMostMessageBytes + 1; }));
}

TEST(AggregatorProtocolTest, OperationsThatMpiDoesNotDefineAreRefused)
{
    for (int op = 0; op < kReduceOpCount + 2; ++op) {
        for (int kind = 0; kind < kElementKindCount + 2; ++kind) {
            Reduction reduction = kReduction;
            reduction.op = static_cast<ReduceOp>(op);
            reduction.kind = static_cast<ElementKind>(kind);
            const bool defined = op < kReduceOpCount && kind < kElementKindCount &&
                                 is_defined(reduction.op, reduction.kind);
            EXPECT_EQ(decode(encode(Part{0, reduction}).view(), 8).has_value(), defined)
                << op << ' ' << kind;
        }
    }
}

TEST(AggregatorProtocolTest, ARefusalIsPrintableAndNotTooLong)
{
    const auto decoded = decode(encode(Refused{"line\n" + std::string(1000, 'x')}).view(), 0);
    ASSERT_TRUE(decoded.has_value());
    EXPECT_EQ(std::get<Refused>(*decoded).why.substr(0, 6), "line?x");
    EXPECT_EQ(std::get<Refused>(*decoded).why.size(), kMostRefusalBytes);
}

// The fuzzer's checks, on its initial corpus.
TEST(AggregatorProtocolTest, TheFuzzersCorpusHoldsWhatItMust)
{
    const char *const source = std::getenv("HETCOLL_SRCDIR");
    const std::filesystem::path folder =
        std::filesystem::path(source == nullptr ? "." : source) / "test/fuzz/corpus/aggregator";
    int files = 0, messages = 0;
    for (const auto &entry : std::filesystem::directory_iterator(folder)) {
        std::ifstream in(entry.path(), std::ios::binary);
        const std::string text((std::istreambuf_iterator<char>(in)), {});
        messages += test::check_decode(std::as_bytes(std::span(text))) ? 1 : 0;
        ++files;
    }
    EXPECT_GE(files, 16);
    EXPECT_EQ(messages, 8); // one of each kind, and an offer
}

TEST(AggregatorProtocolTest, ChangedMessagesAreRefusedOrMessages)
{
    std::mt19937 random(1);
    for (const Example &example : examples()) {
        std::vector<std::byte> bytes = bytes_of(encode(example.message));
        bytes.insert(bytes.begin(), static_cast<std::byte>(example.payload_bytes));
        for (int i = 0; i < 2000; ++i) {
            std::vector<std::byte> changed = bytes;
            for (int k = 0; k < 1 + i % 3; ++k) {
                changed[random() % changed.size()] = static_cast<std::byte>(random());
            }
            test::check_decode(changed); // ends the program where it finds something
        }
    }
}

TEST(AggregatorOfferTest, IsReadAsItWasWrittenAndInNoOtherWay)
{
    const RdmaOffer offer{.token = {.connection = 7, .secret = 0x0123456789abcdef},
                          .address = {.kind = "rc_verbs 1.13 8256 18 10",
                                      .device = std::string("a\0b", 3),
                                      .queue = std::string(kMostRdmaAddressBytes, 'q')}};
    const HeaderBytes header = encode(offer);
    ASSERT_EQ(decode_offer(header.view()), offer);
    EXPECT_EQ(decode_offer(encode(RdmaOffer{}).view()), RdmaOffer{});
    for (std::size_t bytes = 0; bytes < header.view().size(); ++bytes) {
        EXPECT_EQ(decode_offer(header.view().first(bytes)), std::nullopt) << bytes;
    }
    HeaderBytes longer = header;
    longer.append("", 1);
    EXPECT_EQ(decode_offer(longer.view()), std::nullopt);
    EXPECT_EQ(decode(header.view(), 0), std::nullopt); // no message
    EXPECT_EQ(decode_offer(encode(Alive{}).view()), std::nullopt);
    RdmaOffer large = offer;
    large.address.device = std::string(kMostRdmaAddressBytes + 1, 'd');
    EXPECT_EQ(decode_offer(encode(large).view()), std::nullopt);
    RdmaOffer unprintable = offer;
    unprintable.address.kind = "\n";
    EXPECT_EQ(decode_offer(encode(unprintable).view()), std::nullopt);
}

} // namespace
} // namespace hetcoll
