#include "engine/meeting/call_signature.h"

#include "engine_flag_names.h"

#include <gtest/gtest.h>

#include <string>

namespace hetcoll {
namespace {

hetcoll_call call_of(int collective, int kind, int op, std::size_t bytes, int root = 0)
{
    hetcoll_call call{};
    call.collective = collective;
    call.kind = kind;
    call.op = op;
    call.span = bytes;
    call.dense = 1;
    call.root = root;
    return call;
}

hetcoll_call sum(int kind, std::size_t bytes)
{
    return call_of(HETCOLL_ALLREDUCE, kind, HETCOLL_SUM, bytes);
}

hetcoll_call user_op(int kind, std::size_t bytes)
{
    hetcoll_call call = sum(kind, bytes);
    call.user_op = 2;
    return call;
}

hetcoll_call not_reduced(hetcoll_staged_reason reason, std::size_t bytes, std::size_t holes)
{
    hetcoll_call call = sum(-1, bytes + holes);
    call.reason = reason;
    call.dense = holes == 0;
    call.data_bytes = bytes;
    return call;
}

Differences compare(const hetcoll_call &a, const hetcoll_call &b)
{
    const Differences found = differences_of(signature_of(a), signature_of(b));
    EXPECT_EQ(found, differences_of(signature_of(b), signature_of(a)));
    return found;
}

TEST(CallSignature, OfCallsWithDifferentNumbersNothingElseMatters)
{
    hetcoll_call call = sum(HETCOLL_INT32, 8), next = sum(HETCOLL_FLOAT32, 16);
    call.number = 0xffffffffu;
    next.number = 1;
    EXPECT_EQ(compare(call, next), Differences::kNumber);
    EXPECT_EQ(error_of(Differences::kNumber), HETCOLL_ERROR_COLLECTIVE);
    EXPECT_TRUE(is_later(1, 0xffffffffu));
    EXPECT_FALSE(is_later(0xffffffffu, 1));
    EXPECT_FALSE(is_later(7, 7));
    EXPECT_EQ(later(0xffffffffu, 1), 1u);
}

TEST(CallSignature, TellsWhichArgumentsDiffer)
{
    const hetcoll_call call = sum(HETCOLL_INT32, 8);
    EXPECT_EQ(compare(call, sum(HETCOLL_INT32, 8)), Differences::kNone);
    EXPECT_EQ(compare(call, sum(HETCOLL_INT32, 4)), Differences::kCount);
    EXPECT_EQ(compare(call, sum(HETCOLL_INT32, std::size_t{1} << 46)), Differences::kCount);
    EXPECT_EQ(compare(call, sum(HETCOLL_FLOAT32, 8)), Differences::kType);
    EXPECT_EQ(compare(call, sum(HETCOLL_FLOAT64, 16)), Differences::kType | Differences::kCount);
    EXPECT_EQ(compare(call, call_of(HETCOLL_ALLREDUCE, HETCOLL_INT32, HETCOLL_MAX, 8)),
              Differences::kOp);
    EXPECT_EQ(compare(call, call_of(HETCOLL_BCAST, HETCOLL_UINT8, HETCOLL_MAX, 8)),
              Differences::kCollective);
    EXPECT_EQ(compare(call_of(HETCOLL_BCAST, HETCOLL_UINT8, HETCOLL_MAX, 8, 0),
                      call_of(HETCOLL_BCAST, HETCOLL_UINT8, HETCOLL_MAX, 8, 70'000)),
              Differences::kRoot);
    EXPECT_EQ(compare(call, user_op(HETCOLL_FLOAT16, 8)), Differences::kOp);
    EXPECT_EQ(compare(call, not_reduced(HETCOLL_REASON_TYPE, 8, 0)), Differences::kType);
}

// Ranks may have other functions behind an op, know it or not, and lay elements out differently.
TEST(CallSignature, OfAUserDefinedOpOnlyTheBytesOfDataCount)
{
    EXPECT_EQ(compare(user_op(HETCOLL_FLOAT16, 8), user_op(-1, 8)), Differences::kNone);
    EXPECT_EQ(compare(user_op(HETCOLL_FLOAT16, 8), user_op(HETCOLL_BFLOAT16, 8)),
              Differences::kNone);
    EXPECT_EQ(compare(user_op(-1, 8), user_op(-1, 4)), Differences::kCount);
    EXPECT_EQ(compare(not_reduced(HETCOLL_REASON_USER_OP, 8, 0),
                      not_reduced(HETCOLL_REASON_USER_OP, 8, 24)),
              Differences::kNone);
}

TEST(CallSignature, UnequalCountsOfTheSameSumDiffer)
{
    EXPECT_EQ(compare(call_of(HETCOLL_REDUCE_SCATTER, HETCOLL_INT32, HETCOLL_SUM, 12, 0x1234),
                      call_of(HETCOLL_REDUCE_SCATTER, HETCOLL_INT32, HETCOLL_SUM, 12, 0x4321)),
              Differences::kCount);
}

TEST(CallSignature, TheFirstDifferenceIsTheError)
{
    EXPECT_EQ(error_of(Differences::kCount), HETCOLL_ERROR_COUNT);
    EXPECT_EQ(error_of(Differences::kCount | Differences::kType), HETCOLL_ERROR_TYPE);
    EXPECT_EQ(error_of(Differences::kCollective), HETCOLL_ERROR_COLLECTIVE);
    EXPECT_STREQ(mpi_error_name(Differences::kRoot | Differences::kCount), "MPI_ERR_ROOT");
}

TEST(CallSignature, DescribesACall)
{
    const auto text = [](const hetcoll_call &call) {
        return std::string(describe(signature_of(call)).text);
    };
    EXPECT_EQ(text(sum(HETCOLL_INT32, 8)), "MPI_Allreduce of 2 int32 (8 bytes), sum");
    EXPECT_EQ(text(user_op(-1, 6)), "MPI_Allreduce of 6 bytes, a user-defined op");
    EXPECT_EQ(text(not_reduced(HETCOLL_REASON_TYPE, 32, 0)),
              "MPI_Allreduce of 32 bytes, an unknown type");
    EXPECT_EQ(text(call_of(HETCOLL_BCAST, HETCOLL_UINT8, HETCOLL_MAX, 9, 3)),
              "MPI_Bcast of 9 bytes, root 3");
    EXPECT_EQ(text(call_of(HETCOLL_REDUCE, HETCOLL_FLOAT64, HETCOLL_PROD, 16, 1)),
              "MPI_Reduce of 2 float64 (16 bytes), prod, root 1");
    EXPECT_STREQ(describe(signature_of_move(HETCOLL_BARRIER, 0, 0, 1)).text, "MPI_Barrier");
    EXPECT_STREQ(describe(signature_of_move(HETCOLL_GATHERV, 0, 2, 1)).text, "MPI_Gatherv, root 2");
    EXPECT_STREQ(describe(signature_of_move(HETCOLL_SCATTER, 4, 2, 1)).text,
                 "MPI_Scatter of 4 bytes, root 2");
    EXPECT_STREQ(describe(CallSignature()).text, "no call");
}

} // namespace
} // namespace hetcoll
