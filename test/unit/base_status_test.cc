#include "base/status.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

namespace hetcoll {
namespace {

TEST(StatusTest, ADefaultStatusIsSuccess) { EXPECT_TRUE(Status().ok()); }

TEST(StatusTest, SuccessCostsOnePointer) { static_assert(sizeof(Status) == sizeof(void *)); }

TEST(StatusTest, AnErrorHasItsCodeAndMessage)
{
    const Status status(Errc::kDriver, "isend to rank 3 failed");
    EXPECT_FALSE(status.ok());
    EXPECT_EQ(status.code(), Errc::kDriver);
    EXPECT_EQ(status.message(), "isend to rank 3 failed");
}

TEST(StatusTest, ErrorFormatsItsMessage)
{
    const Status status = error(Errc::kInvalid, "%s:%d: chunk '%s' is not a size", "table", 7, "x");
    EXPECT_EQ(status.code(), Errc::kInvalid);
    EXPECT_EQ(status.message(), "table:7: chunk 'x' is not a size");
}

TEST(StatusTest, AMessageThatIsTooLongIsCut)
{
    const std::string word(2000, 'w');
    const Status status = error(Errc::kInvalid, "%s", word.c_str());
    EXPECT_EQ(status.message(), word.substr(0, 511));
}

TEST(StatusTest, MovingHandsTheErrorOn)
{
    Status from = error(Errc::kDriver, "cuInit failed");
    const Status to = std::move(from);
    EXPECT_EQ(to.message(), "cuInit failed");
}

TEST(ResultTest, HoldsAValue)
{
    Result<int> result = 7;
    ASSERT_TRUE(result.ok());
    EXPECT_EQ(*result, 7);
    *result = 8;
    EXPECT_EQ(*std::as_const(result), 8);
}

TEST(ResultTest, HoldsAMoveOnlyValue)
{
    Result<std::unique_ptr<std::string>> result = std::make_unique<std::string>("value");
    ASSERT_TRUE(result.ok());
    EXPECT_EQ((*result)->size(), 5u);
    const std::unique_ptr<std::string> taken = std::move(*result);
    EXPECT_EQ(*taken, "value");
}

TEST(ResultTest, HoldsTheReasonWhyThereIsNoValue)
{
    Result<int> result = error(Errc::kNoMemory, "no pinned memory for %d bytes", 64);
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.status().code(), Errc::kNoMemory);
    const Status status = result.take_status();
    EXPECT_EQ(status.message(), "no pinned memory for 64 bytes");
}

} // namespace
} // namespace hetcoll
