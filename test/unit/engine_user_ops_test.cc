// The functions are the C library's, because a test program's own have no symbols, and only those
// that no sanitizer replaces. The test calls functions of its own in their place.
#include "engine/process/user_ops.h"

#include "cuda_kernels/reduction.h"

#include <gtest/gtest.h>

#include <search.h>
#include <string>
#include <thread>
#include <vector>

namespace hetcoll {
namespace {

std::vector<std::string> lines; // that were logged
void keep(int, const char *line) { lines.emplace_back(line); }

const UserOps::Function kFunction = reinterpret_cast<UserOps::Function>(&lsearch);
const UserOps::Function kOther = reinterpret_cast<UserOps::Function>(&lfind);

struct Callee {
    UserOp op{ReduceOp::kSum, ElementKind::kFloat16};
    std::atomic<int> calls{0};

    UserOps::Caller caller()
    {
        return {[](void *context, const void *in, void *inout, int count) {
                    auto &self = *static_cast<Callee *>(context);
                    ++self.calls;
                    host_reduce(self.op.op, self.op.kind)(inout, in, inout,
                                                          static_cast<std::size_t>(count));
                },
                this};
    }
};

class UserOpsTest : public ::testing::Test {
protected:
    void SetUp() override { lines.clear(); }
    Log log_{keep, 0};
    Callee callee_;
};

TEST_F(UserOpsTest, AFunctionIsKnownByItsSymbol)
{
    UserOps ops("lsearch=half:sum", log_, log_);
    EXPECT_EQ(ops.recognize(kFunction, callee_.caller()), callee_.op);
    EXPECT_TRUE(lines.empty());
}

TEST_F(UserOpsTest, OtherFunctionsAreNeverCalled)
{
    UserOps ops("lsearch=half:sum,lsearc=half:sum,lfind2=half:sum", log_, log_);
    EXPECT_EQ(ops.recognize(kOther, callee_.caller()), std::nullopt);
    EXPECT_EQ(callee_.calls, 0);
}

TEST_F(UserOpsTest, AnAddressWithinAFunctionIsNotTheFunction)
{
    UserOps ops("lsearch=half:sum", log_, log_);
    const auto within =
        reinterpret_cast<UserOps::Function>(reinterpret_cast<std::uintptr_t>(kFunction) + 1);
    EXPECT_EQ(ops.recognize(within, callee_.caller()), std::nullopt);
    EXPECT_EQ(callee_.calls, 0);
}

TEST_F(UserOpsTest, AFunctionIsCalledAtItsFirstUseAlone)
{
    UserOps ops("lsearch=half:sum", log_, log_);
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&] {
            for (int k = 0; k < 100; ++k) {
                EXPECT_EQ(ops.recognize(kFunction, callee_.caller()), callee_.op);
            }
        });
    }
    for (std::thread &thread : threads) {
        thread.join();
    }
    EXPECT_EQ(callee_.calls, 1);
}

TEST_F(UserOpsTest, AFunctionThatAnswersOtherwiseIsNotTaken)
{
    for (const char *entry : {"lsearch=half:prod", "lsearch=bfloat16:sum", "lsearch=half:max"}) {
        lines.clear();
        UserOps ops(entry, log_, log_);
        EXPECT_EQ(ops.recognize(kFunction, callee_.caller()), std::nullopt) << entry;
        EXPECT_EQ(ops.recognize(kFunction, callee_.caller()), std::nullopt) << entry;
        ASSERT_EQ(lines.size(), 1u) << entry;
        EXPECT_NE(lines[0].find("function lsearch is not"), std::string::npos) << lines[0];
    }
}

TEST_F(UserOpsTest, EveryOperationOfTheTableIsConfirmedByItsOwnKernel)
{
    const std::pair<const char *, ReduceOp> ops_of[] = {{"sum", ReduceOp::kSum},
                                                        {"prod", ReduceOp::kProd},
                                                        {"min", ReduceOp::kMinFirst},
                                                        {"max", ReduceOp::kMaxFirst}};
    for (const auto &[name, op] : ops_of) {
        for (const ElementKind kind : {ElementKind::kFloat16, ElementKind::kBfloat16}) {
            callee_.op = {op, kind};
            UserOps ops(std::string("lsearch=") + element_name(kind) + ":" + name, log_, log_);
            EXPECT_EQ(ops.recognize(kFunction, callee_.caller()), callee_.op) << name;
        }
    }
}

// std::min and std::max of floats, as instructions have them: zeros of either sign are equal.
TEST_F(UserOpsTest, TheSignOfAZeroDoesNotRefuteAMinimum)
{
    UserOps ops("lsearch=half:min", log_, log_);
    callee_.op.op = ReduceOp::kMin;
    EXPECT_NE(ops.recognize(kFunction, callee_.caller()), std::nullopt);
}

TEST_F(UserOpsTest, AFunctionThatWritesElsewhereIsNotTaken)
{
    const UserOps::Caller into_input{[](void *, const void *in, void *, int) {
                                         *static_cast<std::uint16_t *>(const_cast<void *>(in)) = 7;
                                     },
                                     nullptr};
    const UserOps::Caller beyond{[](void *, const void *in, void *inout, int count) {
                                     auto *to = static_cast<std::uint16_t *>(inout);
                                     host_reduce(ReduceOp::kSum, ElementKind::kFloat16)(
                                         to, in, to, static_cast<std::size_t>(count));
                                     to[count] = 0;
                                 },
                                 nullptr};
    EXPECT_NE(refute(callee_.op, into_input), std::nullopt);
    EXPECT_NE(refute(callee_.op, beyond), std::nullopt);
}

TEST_F(UserOpsTest, BadEntriesAreLeftOutAndTheOthersCount)
{
    UserOps ops("nothing, =half:sum, f=half, f=float:sum ,f=half:band,, lsearch = half:sum ", log_,
                log_);
    EXPECT_EQ(ops.recognize(kFunction, callee_.caller()), callee_.op);
    EXPECT_TRUE(lines.empty());
}

TEST_F(UserOpsTest, BadEntriesAreNamed)
{
    EXPECT_TRUE(check_user_ops("").ok());
    EXPECT_TRUE(check_user_ops("a=half:sum,, b = bfloat16:max ,").ok());
    for (const char *bad : {"nothing", "=half:sum", "f=half", "f=float:sum", "f=half:band"}) {
        const auto says = [&](const char *more, const std::string &what) {
            const Status status = check_user_ops(std::string("a=half:sum, ") + bad + more);
            EXPECT_NE(status.message().find("coll_hetcoll_user_ops: '" + std::string(bad) + what),
                      std::string::npos)
                << status.message();
        };
        says("", "' is not SYMBOL=TYPE:OP with");
        says(" ,other, b=half:min, f=half:", "', 'other', 'f=half:' are not SYMBOL=TYPE:OP with");
    }
}

TEST_F(UserOpsTest, BadEntriesThatFitNoLineAreCounted)
{
    std::string entries;
    for (int i = 0; i < 30; ++i) {
        entries += "symbol_" + std::to_string(i) + "_" + std::string(40, 'x') + ",";
    }
    const std::string message = check_user_ops(entries).message();
    EXPECT_NE(message.find("'symbol_0_"), std::string::npos) << message;
    EXPECT_NE(message.find("' and 25 more are not"), std::string::npos) << message;
    EXPECT_NE(message.find("min or max"), std::string::npos) << message;
    EXPECT_NE(check_user_ops(std::string(5000, 'x') + ",y").message().find(", 'y' are not"),
              std::string::npos);
}

TEST_F(UserOpsTest, TheLastEntryOfASymbolCounts)
{
    UserOps ops("lsearch=half:prod,lsearch=half:sum", log_, log_);
    EXPECT_EQ(ops.recognize(kFunction, callee_.caller()), callee_.op);
}

TEST_F(UserOpsTest, EqualTablesHaveOneHash)
{
    const auto hash = [&](const char *entries) { return UserOps(entries, log_, log_).hash(); };
    EXPECT_EQ(hash("a=half:sum,b=half:min"), hash(" b=float16:min , a=half:sum"));
    EXPECT_NE(hash("a=half:sum"), hash("a=bfloat16:sum"));
    EXPECT_NE(hash("a=half:sum"), hash("a=half:prod"));
    EXPECT_NE(hash("a=half:sum"), hash(""));
    EXPECT_EQ(hash("wrong"), hash(""));
}

TEST_F(UserOpsTest, FunctionsByTheHundredLeaveRoomForThoseThatAreKnown)
{
    alignas(1024) static char functions[1024]; // hetcoll looks into aligned blocks around them
    UserOps ops("lsearch=half:sum", log_, log_);
    for (char &function : functions) {
        EXPECT_EQ(ops.recognize(reinterpret_cast<UserOps::Function>(&function), callee_.caller()),
                  std::nullopt);
    }
    for (int i = 0; i < 2; ++i) {
        EXPECT_EQ(ops.recognize(kFunction, callee_.caller()), callee_.op);
    }
    EXPECT_EQ(callee_.calls, 1);
}

} // namespace
} // namespace hetcoll
