#include "cuda_kernels/reduction.h"
#include "test/unit/cuda_kernels_reference.h"
#include "test/unit/float_modes.h"

#include <gtest/gtest.h>

#include <cstring>

namespace hetcoll {
namespace {

using test::Bytes;

class HostReduceTest : public ::testing::TestWithParam<std::pair<ReduceOp, ElementKind>> {
protected:
    const ReduceOp op = GetParam().first;
    const ElementKind kind = GetParam().second;
    const std::size_t bytes = element_bytes(kind);
    const HostReduce reduce = host_reduce(op, kind);

    void expect_same(const Bytes &got, const Bytes &wanted, const char *what)
    {
        const long i = test::first_difference(kind, got, wanted);
        EXPECT_EQ(i, -1) << what << ": got " << test::show_element(kind, got, i) << ", want "
                         << test::show_element(kind, wanted, i);
    }
};

TEST_P(HostReduceTest, AnswersAsTheReferenceDoes)
{
    ASSERT_NE(reduce, nullptr);
    const std::size_t count = 20011;
    const Bytes a = test::random_elements(kind, count, 1),
                b = test::random_elements(kind, count, 2);
    Bytes result(count * bytes);
    reduce(result.data(), a.data(), b.data(), count);
    const Bytes wanted = test::reference_fold(op, kind, {a, b});
    const long i = test::first_difference(kind, result, wanted);
    EXPECT_EQ(i, -1) << test::show_element(kind, a, i) << " with " << test::show_element(kind, b, i)
                     << " is " << test::show_element(kind, wanted, i) << ", not "
                     << test::show_element(kind, result, i);
}

TEST_P(HostReduceTest, WritesNothingBesideTheResult)
{
    for (std::size_t count = 0; count <= 40; ++count) {
        for (std::size_t shift = 0; shift <= 16; ++shift) { // dst and b at odd addresses
            const Bytes a = test::random_elements(kind, count, count + 1);
            const Bytes b = test::random_elements(kind, count, count + 2);
            Bytes b_shifted(shift + b.size());
            Bytes result(shift + count * bytes + 33, 0xa5);
            std::copy(b.begin(), b.end(), b_shifted.begin() + static_cast<long>(shift));
            reduce(result.data() + shift, a.data(), b_shifted.data() + shift, count);
            const auto first = result.begin() + static_cast<long>(shift);
            expect_same(Bytes(first, first + static_cast<long>(count * bytes)),
                        test::reference_fold(op, kind, {a, b}), "result");
            EXPECT_EQ(Bytes(shift, 0xa5), Bytes(result.begin(), first));
            EXPECT_EQ(Bytes(33, 0xa5), Bytes(result.end() - 33, result.end()));
        }
    }
}

TEST_P(HostReduceTest, DestinationMayBeAnOperand)
{
    const std::size_t count = 1003;
    const Bytes a = test::random_elements(kind, count, 5),
                b = test::random_elements(kind, count, 6);
    const Bytes wanted = test::reference_fold(op, kind, {a, b});
    Bytes in_a = a, in_b = b;
    reduce(in_a.data(), in_a.data(), b.data(), count);
    expect_same(in_a, wanted, "dst == a");
    reduce(in_b.data(), a.data(), in_b.data(), count);
    expect_same(in_b, wanted, "dst == b");
}

// Commutativity lets ranks hold the same bits although each starts its fold elsewhere.
class CommutativeReduceTest : public HostReduceTest {};

TEST_P(CommutativeReduceTest, OperandsMayChangePlaces)
{
    const std::size_t count = 20011;
    const Bytes a = test::random_elements(kind, count, 7),
                b = test::random_elements(kind, count, 8);
    Bytes forward(count * bytes), backward(count * bytes);
    reduce(forward.data(), a.data(), b.data(), count);
    reduce(backward.data(), b.data(), a.data(), count);
    expect_same(forward, backward, "op(a, b) and op(b, a)");
}

TEST_P(HostReduceTest, OldProcessorsAnswerTheSame)
{
    const std::size_t count = 20011;
    const Bytes a = test::random_elements(kind, count, 9),
                b = test::random_elements(kind, count, 10);
    Bytes here(count * bytes), baseline(count * bytes);
    reduce(here.data(), a.data(), b.data(), count);
    host_reduce_baseline(op, kind)(baseline.data(), a.data(), b.data(), count);
    expect_same(here, baseline, "with and without newer instructions");
}

TEST_P(HostReduceTest, TheCallersControlRegisterChangesNothing)
{
    const std::size_t count = 4001;
    const Bytes a = test::random_elements(kind, count, 11),
                b = test::random_elements(kind, count, 12);
    Bytes wanted(count * bytes);
    reduce(wanted.data(), a.data(), b.data(), count);
    for (const test::FloatMode mode : test::kFloatModes) {
        const char *const name = test::kFloatModeNames[static_cast<int>(mode)];
        for (const HostReduce code : {reduce, host_reduce_baseline(op, kind)}) {
            Bytes result(count * bytes);
            bool kept = false;
            {
                const test::UnderFloatMode under(mode);
                code(result.data(), a.data(), b.data(), count);
                kept = under.is_as_set();
            }
            expect_same(result, wanted, name);
            EXPECT_TRUE(kept) << name;
        }
    }
}

std::string name_of(const ::testing::TestParamInfo<std::pair<ReduceOp, ElementKind>> &info)
{
    return std::string(op_name(info.param.first)) + "_" + element_name(info.param.second);
}
std::vector<std::pair<ReduceOp, ElementKind>> commutative_reductions()
{
    auto reductions = test::defined_reductions();
    std::erase_if(reductions, [](const auto &one) {
        switch (one.first) {
        case ReduceOp::kMaxloc: // -0 and 0, or two NaN, at the same index are equal but
        case ReduceOp::kMinloc: // not the same
        case ReduceOp::kMaxFirst:
        case ReduceOp::kMinFirst: return true; // they keep the first
        default: return false;
        }
    });
    return reductions;
}
INSTANTIATE_TEST_SUITE_P(All, HostReduceTest, ::testing::ValuesIn(test::defined_reductions()),
                         name_of);
INSTANTIATE_TEST_SUITE_P(All, CommutativeReduceTest, ::testing::ValuesIn(commutative_reductions()),
                         name_of);

TEST(HostReduce, IsThereExactlyWhereMpiDefinesTheOperation)
{
    for (int op = 0; op < kReduceOpCount; ++op) {
        for (int kind = 0; kind < kElementKindCount; ++kind) {
            const auto o = static_cast<ReduceOp>(op);
            const auto k = static_cast<ElementKind>(kind);
            EXPECT_EQ(host_reduce(o, k) != nullptr, is_defined(o, k)) << op << " " << kind;
        }
    }
}

// Folds in float.
class HostFoldTest : public ::testing::TestWithParam<ElementKind> {
protected:
    const ElementKind kind = GetParam();
    const HostFold fold = host_fold(ReduceOp::kSumOnce, kind);

    std::vector<Bytes> inputs(std::size_t terms, std::size_t count)
    {
        std::vector<Bytes> all;
        for (std::size_t k = 0; k < terms; ++k) {
            all.push_back(test::random_elements(kind, count, 100 * count + k));
        }
        return all;
    }
    static std::vector<const void *> pointers(const std::vector<Bytes> &inputs, std::size_t shift)
    {
        std::vector<const void *> all;
        for (const Bytes &input : inputs) {
            all.push_back(input.data() + shift);
        }
        return all;
    }
    void expect_reference(const Bytes &got, const std::vector<Bytes> &in, const char *what)
    {
        const Bytes wanted = test::reference_fold(ReduceOp::kSumOnce, kind, in);
        const long i = test::first_difference(kind, got, wanted);
        EXPECT_EQ(i, -1) << what << " of " << in.size() << ": got "
                         << test::show_element(kind, got, i) << ", want "
                         << test::show_element(kind, wanted, i);
    }
};

TEST_P(HostFoldTest, AnswersAsTheReferenceDoesWhateverTheNumberOfInputs)
{
    for (const std::size_t terms : {1, 2, 3, 7, 16, 65, 300}) {
        for (const std::size_t count : {0, 1, 7, 8, 513, 1539}) {
            const std::vector<Bytes> in = inputs(terms, count);
            Bytes result(count * element_bytes(kind) + 8, 0xa5);
            fold(result.data(), pointers(in, 0).data(), terms, count);
            EXPECT_EQ(Bytes(result.end() - 8, result.end()), Bytes(8, 0xa5));
            result.resize(result.size() - 8);
            expect_reference(result, in, "a fold");
        }
    }
}

TEST_P(HostFoldTest, DestinationMayBeAnyInputAtAnyAddress)
{
    constexpr std::size_t kTerms = 5, kCount = 1003;
    const std::vector<Bytes> in = inputs(kTerms, kCount);
    for (std::size_t k = 0; k < kTerms; ++k) {
        std::vector<Bytes> shifted;
        for (const Bytes &content : in) {
            shifted.emplace_back(1, 0xa5);
            shifted.back().insert(shifted.back().end(), content.begin(), content.end());
        }
        fold(shifted[k].data() + 1, pointers(shifted, 1).data(), kTerms, kCount);
        EXPECT_EQ(shifted[k][0], 0xa5);
        expect_reference(Bytes(shifted[k].begin() + 1, shifted[k].end()), in, "in place");
    }
}

TEST_P(HostFoldTest, OldProcessorsAnswerTheSame)
{
    constexpr std::size_t kTerms = 9, kCount = 20011;
    const std::vector<Bytes> in = inputs(kTerms, kCount);
    Bytes here(in[0].size()), baseline(in[0].size());
    fold(here.data(), pointers(in, 0).data(), kTerms, kCount);
    host_fold_baseline(ReduceOp::kSumOnce, kind)(baseline.data(), pointers(in, 0).data(), kTerms,
                                                 kCount);
    EXPECT_EQ(here, baseline);
}

TEST_P(HostFoldTest, TheCallersControlRegisterChangesNothing)
{
    constexpr std::size_t kTerms = 5, kCount = 4001;
    const std::vector<Bytes> in = inputs(kTerms, kCount);
    Bytes wanted(in[0].size());
    fold(wanted.data(), pointers(in, 0).data(), kTerms, kCount);
    std::vector<float> floats(kCount), wide(kCount);
    convert_floats(FloatConversion::kWiden, kind, floats.data(), in[0].data(), kCount);
    for (const test::FloatMode mode : test::kFloatModes) {
        Bytes result(wanted.size()), baseline(wanted.size());
        {
            const test::UnderFloatMode under(mode);
            fold(result.data(), pointers(in, 0).data(), kTerms, kCount);
            host_fold_baseline(ReduceOp::kSumOnce, kind)(baseline.data(), pointers(in, 0).data(),
                                                         kTerms, kCount);
            convert_floats(FloatConversion::kWiden, kind, wide.data(), in[0].data(), kCount);
        }
        EXPECT_EQ(result, wanted) << test::kFloatModeNames[static_cast<int>(mode)];
        EXPECT_EQ(baseline, wanted) << test::kFloatModeNames[static_cast<int>(mode)];
        EXPECT_EQ(std::memcmp(wide.data(), floats.data(), kCount * sizeof(float)), 0);
    }
}

INSTANTIATE_TEST_SUITE_P(Kinds, HostFoldTest,
                         ::testing::Values(ElementKind::kFloat16, ElementKind::kBfloat16,
                                           ElementKind::kFloat8E4m3, ElementKind::kFloat8E5m2),
                         [](const auto &of) { return element_name(of.param); });

TEST(HostFold, OtherOperationsHaveNone)
{
    for (const auto &[op, kind] : test::defined_reductions()) {
        EXPECT_EQ(host_fold(op, kind) != nullptr, op == ReduceOp::kSumOnce);
        EXPECT_EQ(HostReduction(op, kind).reduce, host_reduce(op, kind));
        EXPECT_EQ(HostReduction(op, kind).fold, host_fold(op, kind));
    }
}

TEST(HostReduce, LogicalOperationsAnswerZeroOrOne)
{
    const unsigned char a[] = {0, 0, 2, 255}, b[] = {0, 3, 0, 7};
    unsigned char result[4];
    host_reduce(ReduceOp::kLor, ElementKind::kBool)(result, a, b, 4);
    EXPECT_EQ(Bytes({0, 1, 1, 1}), Bytes(result, result + 4));
    host_reduce(ReduceOp::kLxor, ElementKind::kUint8)(result, a, b, 4);
    EXPECT_EQ(Bytes({0, 1, 1, 0}), Bytes(result, result + 4));
}

TEST(HostReduce, SmallIntegersWrap) // R6
{
    const signed char a[] = {127, -128}, b[] = {1, -1};
    signed char result[2];
    host_reduce(ReduceOp::kSum, ElementKind::kInt8)(result, a, b, 2);
    EXPECT_EQ(result[0], -128);
    EXPECT_EQ(result[1], 127);
}

} // namespace
} // namespace hetcoll
