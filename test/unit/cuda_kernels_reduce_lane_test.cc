// The body of the kernels, run on the CPU as many lanes: addressing, alignment, aliasing, folds.
#include "cuda_kernels/reduce.cuh"
#include "cuda_kernels/reduction_list.h"
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

template <class Op, class T, class Inputs>
void reduce_in_lanes(void *dst, const Inputs &inputs, std::size_t count, std::size_t lanes)
{
    for (std::size_t lane = lanes; lane-- > 0;) { // any order of the lanes will do
        reduce_lane<Op, T>(dst, inputs, count, lane, lanes);
    }
}

template <class Op, class T> class Case {
public:
    Case(ReduceOp op, ElementKind kind) : op_(op), kind_(kind) {}

    // dst = op(a, b), the pointers shifted by the given numbers of bytes.
    void three_inputs(std::size_t count, std::size_t to, std::size_t left, std::size_t right,
                      std::size_t lanes)
    {
        const Bytes a = elements(count, 1), b = elements(count, 2);
        Shifted dst(elements(count, 3), to), x(a, left), y(b, right);
        reduce_in_lanes<Op, T>(dst.data(), TwoInputs{{x.data(), y.data()}}, count, lanes);
        expect(dst, {a, b}, "three inputs", count, to);
        EXPECT_EQ(test::first_difference(kind_, x.content(), a), -1);
        EXPECT_EQ(test::first_difference(kind_, y.content(), b), -1);
    }

    // dst is input `alias` of `terms` inputs, each at its own shift.
    void many_inputs(std::size_t count, int terms, int alias, std::size_t shift, std::size_t step)
    {
        std::vector<Bytes> contents;
        std::vector<Shifted> buffers;
        for (int k = 0; k < terms; ++k) {
            contents.push_back(elements(count, static_cast<unsigned>(10 + k)));
            buffers.emplace_back(contents.back(),
                                 (shift + static_cast<std::size_t>(k) * step) % 17);
        }
        ReduceInputs inputs = {{}, terms};
        for (int k = 0; k < terms; ++k) {
            inputs.input[k] = buffers[static_cast<std::size_t>(k)].data();
        }
        Shifted &dst = buffers[static_cast<std::size_t>(alias)];
        reduce_in_lanes<Op, T>(dst.data(), inputs, count, 3);
        expect(dst, contents, "many inputs", count, shift);
    }

private:
    Bytes elements(std::size_t count, unsigned seed)
    {
        return test::random_elements(kind_, count, seed + 100 * count);
    }
    void expect(const Shifted &dst, const std::vector<Bytes> &inputs, const char *what,
                std::size_t count, std::size_t shift)
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
};

#define FOR_EACH_CASE(Op, op, Kind, kind) \
    run(Case<Op, element::Kind>(ReduceOp::k##Op, ElementKind::k##Kind));

TEST(ReduceLane, EqualAlignmentOfAnyKindAndAnyLength)
{
    const auto run = [](auto one) {
        for (std::size_t count = 0; count <= 100; ++count) {
            one.three_inputs(count, count % 17, count % 17, count % 17, 1 + count % 7);
        }
        for (std::size_t shift = 0; shift <= 16; ++shift) {
            one.three_inputs(37, shift, shift, shift, 1);
        }
    };
    HETCOLL_FOR_EACH_REDUCTION(FOR_EACH_CASE)
}

TEST(ReduceLane, DifferentAlignments)
{
    const auto run = [](auto one) {
        for (std::size_t shift = 0; shift <= 16; ++shift) {
            one.three_inputs(29, shift, 0, 0, 2);
            one.three_inputs(29, 0, shift, 16, 5);
            one.three_inputs(29, 8, 16, shift, 1);
        }
    };
    HETCOLL_FOR_EACH_REDUCTION(FOR_EACH_CASE)
}

TEST(ReduceLane, ManyInputsAreALeftFoldAndTheDestinationMayBeAnyOfThem)
{
    const auto run = [](auto one) {
        for (int terms = 1; terms <= kMaxReduceInputs; ++terms) {
            one.many_inputs(41, terms, terms - 1, 0, 0);
            one.many_inputs(40, terms, terms / 2, 4, 0);
            one.many_inputs(19, terms, 0, 1, 3);
        }
    };
    HETCOLL_FOR_EACH_REDUCTION(FOR_EACH_CASE)
}

TEST(ReduceLane, LongVectorsInManyLanes)
{
    const auto run = [](auto one) {
        one.three_inputs(3001, 0, 0, 0, 96);
        one.three_inputs(3001, 4, 4, 4, 512);
    };
    HETCOLL_FOR_EACH_REDUCTION(FOR_EACH_CASE)
}

TEST(ReduceLane, PacksOfSixteenBytesAreUsedWheneverTheAlignmentsAgree)
{
    alignas(16) char memory[256];
    const TwoInputs inputs{{memory + 64 + 4, memory + 128 + 4}};
    const Split floats = split<float>(memory + 4, inputs, 15);
    EXPECT_EQ(floats.head, 3u); // up to the next multiple of sixteen
    EXPECT_EQ(floats.packs, 3u);
    EXPECT_TRUE(floats.element_aligned);
    const Split doubles = split<double>(memory + 4, inputs, 7);
    EXPECT_EQ(doubles.packs, 0u);
    EXPECT_FALSE(doubles.element_aligned);
    const Split apart = split<float>(memory + 8, inputs, 15);
    EXPECT_EQ(apart.packs, 0u);
    EXPECT_TRUE(apart.element_aligned);
}

} // namespace
} // namespace hetcoll
