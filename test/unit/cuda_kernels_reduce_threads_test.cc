// The body of the kernels, run on the CPU as many threads: addressing, alignment, aliasing, folds.
#include "cuda_kernels/reduce.cuh"
#include "cuda_kernels/reduction_list.h"
#include "emulated_kernels/collapsed.h"
#include "test/unit/cuda_kernels_reference.h"

#include <gtest/gtest.h>

#include <cstring>

namespace hetcoll {
namespace {

using test::Bytes;

// A buffer that starts `shift` bytes after a multiple of 64.
class Shifted {
public:
    Shifted(const Bytes &content, std::size_t shift) : memory_(content.size() + shift + 192, 0xa5)
    {
        const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
        first_ = (64 - address % 64) % 64 + 64 + shift;
        bytes_ = content.size();
        std::copy(content.begin(), content.end(), memory_.begin() + static_cast<long>(first_));
    }
    void *data() { return memory_.data() + first_; }
    Bytes content() const
    {
        const auto first = memory_.begin() + static_cast<long>(first_);
        return Bytes(first, first + static_cast<long>(bytes_));
    }
    bool intact_outside() const
    {
        for (std::size_t i = 0; i < memory_.size(); ++i) {
            if ((i < first_ || i >= first_ + bytes_) && memory_[i] != 0xa5) {
                return false;
            }
        }
        return true;
    }

private:
    Bytes memory_;
    std::size_t first_, bytes_;
};

template <class Op, class T, class Outputs, class Inputs>
void reduce_in_threads(const Outputs &outputs, const Inputs &inputs, std::size_t count,
                       std::size_t threads)
{
    for (std::size_t thread = threads; thread-- > 0;) { // any order of the threads will do
        reduce_as_thread<Op, T>(outputs, inputs, count, thread, threads);
    }
}

// Buffer k lies at (first + k * step) % 17 bytes after a multiple of 64.
struct Shifts {
    std::size_t first, step;
    [[nodiscard]] std::size_t of(int k) const
    {
        return (first + static_cast<std::size_t>(k) * step) % 17;
    }
};

// A reduction of elements of one kind. Its types are in two functions, so that the rest is compiled
// once.
class Case {
public:
    template <class Op, class T> static Case of(ReduceOp op, ElementKind kind)
    {
        Case one(op, kind);
        one.many_ = reduce_in_threads<Op, T, ListedOutputs, ListedInputs>;
        if constexpr (!std::is_same_v<Op, SumOnce>) {
            one.three_ = reduce_in_threads<Op, T, OneOutput, TwoInputs>;
        }
        return one;
    }

    // dst = op(a, b), the pointers shifted by the given numbers of bytes.
    void three_inputs(std::size_t count, std::size_t to, std::size_t left, std::size_t right,
                      std::size_t threads) const
    {
        const Bytes a = elements(count, 1), b = elements(count, 2);
        Shifted dst(elements(count, 3), to), x(a, left), y(b, right);
        three_(OneOutput{{dst.data()}}, TwoInputs{{x.data(), y.data()}}, count, threads);
        expect(dst, {a, b}, "three inputs", count, to);
        EXPECT_EQ(test::first_difference(kind_, x.content(), a), -1);
        EXPECT_EQ(test::first_difference(kind_, y.content(), b), -1);
    }

    // `terms` inputs and `results` outputs, of which the first `in_place` are inputs `alias` and
    // on.
    void many_inputs(std::size_t count, int terms, int results, int in_place, int alias,
                     Shifts shifts, std::size_t threads = 3) const
    {
        std::vector<Bytes> contents;
        std::vector<Shifted> buffers;
        const int apart = results - in_place;
        for (int k = 0; k < terms + apart; ++k) {
            contents.push_back(elements(count, static_cast<unsigned>(10 + k)));
            buffers.emplace_back(contents.back(), shifts.of(k));
        }
        OperandLists lists;
        for (int k = 0; k < terms; ++k) {
            lists.input[k] = buffers[static_cast<std::size_t>(k)].data();
        }
        std::vector<bool> is_output(buffers.size(), false);
        for (int k = 0; k < results; ++k) {
            const auto at =
                static_cast<std::size_t>(k < in_place ? (alias + k) % terms : terms + k - in_place);
            is_output[at] = true;
            lists.output[k] = buffers[at].data();
        }
        many_(ListedOutputs{lists.output, results}, ListedInputs{lists.input, terms}, count,
              threads);
        const std::vector<Bytes> in(contents.begin(), contents.begin() + terms);
        for (std::size_t k = 0; k < buffers.size(); ++k) {
            if (is_output[k]) {
                expect(buffers[k], in, "many inputs", count, shifts.first);
            } else {
                EXPECT_EQ(test::first_difference(kind_, buffers[k].content(), contents[k]), -1);
            }
        }
    }

private:
    template <class Outputs, class Inputs>
    using Reduce = void (*)(const Outputs &, const Inputs &, std::size_t, std::size_t);

    Case(ReduceOp op, ElementKind kind) : op_(op), kind_(kind) {}
    Bytes elements(std::size_t count, unsigned seed) const
    {
        return test::random_elements(kind_, count, seed + 100 * count);
    }
    void expect(const Shifted &dst, const std::vector<Bytes> &inputs, const char *what,
                std::size_t count, std::size_t shift) const
    {
        const Bytes wanted = test::reference_fold(op_, kind_, inputs), got = dst.content();
        const long i = test::first_difference(kind_, got, wanted);
        ASSERT_EQ(i, -1) << what << ", " << op_name(op_) << " " << element_name(kind_) << ", count "
                         << count << ", shift " << shift << ": "
                         << test::show_element(kind_, got, i) << " for "
                         << test::show_element(kind_, wanted, i);
        ASSERT_TRUE(dst.intact_outside());
    }

    ReduceOp op_;
    ElementKind kind_;
    Reduce<OneOutput, TwoInputs> three_ = nullptr; // none of what only folds
    Reduce<ListedOutputs, ListedInputs> many_ = nullptr;
};

#define CASE(Op, op, Kind, kind) Case::of<Op, element::Kind>(ReduceOp::k##Op, ElementKind::k##Kind),
const Case kReductions[] = {HETCOLL_FOR_EACH_REDUCTION(CASE)};
const Case kFolds[] = {HETCOLL_FOR_EACH_REDUCTION(CASE) HETCOLL_FOR_EACH_FOLD_ALONE(CASE)};

TEST(ReduceThreads, EqualAlignmentOfAnyKindAndAnyLength)
{
    for (const Case &one : kReductions) {
        for (std::size_t count = 0; count <= 100; ++count) {
            one.three_inputs(count, count % 17, count % 17, count % 17, 1 + count % 7);
        }
        for (std::size_t shift = 0; shift <= 16; ++shift) {
            one.three_inputs(37, shift, shift, shift, 1);
        }
    }
}

TEST(ReduceThreads, DifferentAlignments)
{
    for (const Case &one : kReductions) {
        for (std::size_t shift = 0; shift <= 16; ++shift) {
            one.three_inputs(29, shift, 0, 0, 2);
            one.three_inputs(29, 0, shift, 16, 5);
            one.three_inputs(29, 8, 16, shift, 1);
        }
    }
}

TEST(ReduceThreads, ManyInputsAreALeftFoldInAnyNumber)
{
    for (const Case &one : kFolds) {
        for (int terms = 1; terms <= kMaxReduceInputs; terms += terms < 18 ? 1 : 34) {
            one.many_inputs(41, terms, 1, 0, 0, {0, 0});
            one.many_inputs(19, terms, 1, 0, 0, {1, 3});
        }
    }
}

TEST(ReduceThreads, AnyNumberOfOutputsGetTheSameResult)
{
    for (const Case &one : kFolds) {
        for (int results = 1; results <= kMaxReduceInputs; results += results < 18 ? 1 : 34) {
            one.many_inputs(41, 3, results, 0, 0, {4, 0});
            one.many_inputs(18, 2, results, 0, 0, {0, 5}); // one is at an odd address
            one.many_inputs(18, 2, results, 0, 0, {0, 8});
        }
    }
}

TEST(ReduceThreads, AnOutputMayBeAnyOfTheInputs)
{
    for (const Case &one : kFolds) {
        for (const int terms : {1, 2, 3, 5, 8, 17}) {
            for (int k = 0; k < terms; ++k) {
                one.many_inputs(37, terms, 1, 1, k, {0, 0});
                one.many_inputs(11, terms, 2, 1, k, {4, 4});
            }
        }
    }
}

TEST(ReduceThreads, EveryOutputMayBeAnInputOfItsOwn)
{
    for (const Case &one : kFolds) {
        for (const int terms : {1, 2, 3, 5, 8, kMaxArgumentInputs, 33}) {
            one.many_inputs(41, terms, terms, terms, 0, {8, 0});
            one.many_inputs(19, terms, terms, terms, terms / 2, {1, 3});
        }
    }
}

TEST(ReduceThreads, EveryShiftOfManyInputsAndOutputs)
{
    for (const Case &one : kFolds) {
        for (std::size_t count = 0; count <= 33; ++count) {
            one.many_inputs(count, 5, 3, 1, 2, {count % 17, 0});
            one.many_inputs(count, 6, 2, 0, 0, {count % 17, 1 + count % 16});
        }
    }
}

TEST(ReduceThreads, OneThreadOfManyInputsWorksPieceByPiece)
{
    for (const Case &one : kFolds) {
        for (const std::size_t count : {0, 1, 37, 4099}) {
            one.many_inputs(count, 5, 3, 1, 2, {0, 0}, 1);
            one.many_inputs(count, 2, 2, 2, 0, {1, 3}, 1);
        }
    }
}

// The sums of large, 1, 1, -large in order: large + 1 is rounded to large, so 0. Any other order
// gives 1 or 2, and rounding once at the end 2.
template <class Op, class T, class Bits>
void expect_fold_in_order(Bits large, Bits one, Bits minus_large, Bits wanted)
{
    constexpr std::size_t kCount = 21; // in packs and one by one
    std::vector<T> in[4];
    const Bits value[] = {large, one, one, minus_large};
    const void *inputs[4];
    for (int k = 0; k < 4; ++k) {
        in[k].assign(kCount, bits_as<T>(value[k]));
        inputs[k] = in[k].data();
    }
    void *const output = in[1].data();
    reduce_in_threads<Op, T>(ListedOutputs{&output, 1}, ListedInputs{inputs, 4}, kCount, 2);
    for (const T &sum : in[1]) {
        EXPECT_EQ(bits_as<Bits>(sum), wanted);
    }
}

constexpr std::uint16_t kHalfOf2To11 = 0x6800, kBfloat16Of2To8 = 0x4380, kSign = 0x8000;

TEST(ReduceThreads, AFoldKeepsTheOrderOfTheInputsAndRoundsEverySum)
{
    expect_fold_in_order<Sum, float, std::uint32_t>(0x4b800000, 0x3f800000, 0xcb800000, 0); // 2^24
    expect_fold_in_order<Sum, Half, std::uint16_t>(kHalfOf2To11, 0x3c00, kHalfOf2To11 | kSign, 0);
    expect_fold_in_order<Sum, Bfloat16, std::uint16_t>(kBfloat16Of2To8, 0x3f80,
                                                       kBfloat16Of2To8 | kSign, 0);
}

TEST(ReduceThreads, ASumInFloatIsRoundedAtItsEndAlone)
{
    expect_fold_in_order<SumOnce, Half, std::uint16_t>(kHalfOf2To11, 0x3c00, kHalfOf2To11 | kSign,
                                                       0x4000);
    expect_fold_in_order<SumOnce, Bfloat16, std::uint16_t>(kBfloat16Of2To8, 0x3f80,
                                                           kBfloat16Of2To8 | kSign, 0x4000);
    // 65504 + 16384 is no half: rounded there it would be infinity.
    expect_fold_in_order<SumOnce, Half, std::uint16_t>(0x7bff, 0x7400, 0xfbff, 0x7800);
}

TEST(ReduceThreads, LongVectorsInManyThreads)
{
    for (const Case &one : kReductions) {
        one.three_inputs(3001, 0, 0, 0, 96);
        one.three_inputs(3001, 4, 4, 4, 512);
    }
}

TEST(ReduceThreads, PacksOfSixteenBytesAreUsedWheneverTheAlignmentsAgree)
{
    alignas(16) char memory[256];
    const TwoInputs inputs{{memory + 64 + 4, memory + 128 + 4}};
    const Split floats = split<float>(OneOutput{{memory + 4}}, inputs, 15);
    EXPECT_EQ(floats.head, 3u); // up to the next multiple of sixteen
    EXPECT_EQ(floats.packs, 3u);
    EXPECT_TRUE(floats.element_aligned);
    const Split doubles = split<double>(OneOutput{{memory + 4}}, inputs, 7);
    EXPECT_EQ(doubles.packs, 0u);
    EXPECT_FALSE(doubles.element_aligned);
    const Split apart = split<float>(OneOutput{{memory + 8}}, inputs, 15);
    EXPECT_EQ(apart.packs, 0u);
    EXPECT_TRUE(apart.element_aligned);
    void *const outputs[] = {memory + 4, memory + 192 + 4};
    EXPECT_EQ(split<float>(ListedOutputs{outputs, 2}, inputs, 15).packs, 3u);
    void *const outputs_apart[] = {memory + 4, memory + 192};
    EXPECT_EQ(split<float>(ListedOutputs{outputs_apart, 2}, inputs, 15).packs, 0u);
}

} // namespace
} // namespace hetcoll
