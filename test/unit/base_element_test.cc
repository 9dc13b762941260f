#include "base/element.h"

#include <gtest/gtest.h>

#include <complex>
#include <cstdint>
#include <initializer_list>
#include <set>
#include <string>

namespace hetcoll {
namespace {

// The structs as MPI 4.0 table 6.1 ff. defines them: a value and an index, as a C compiler lays
// them out.
template <class Value, class Index> struct Pair {
    Value value;
    Index index;
};

TEST(ElementTest, SizesAreThoseOfTheCTypes)
{
    const struct {
        ElementKind kind;
        std::size_t bytes;
    } known[] = {
        {ElementKind::kInt8, sizeof(std::int8_t)},
        {ElementKind::kUint8, sizeof(std::uint8_t)},
        {ElementKind::kInt16, sizeof(std::int16_t)},
        {ElementKind::kUint16, sizeof(std::uint16_t)},
        {ElementKind::kInt32, sizeof(std::int32_t)},
        {ElementKind::kUint32, sizeof(std::uint32_t)},
        {ElementKind::kInt64, sizeof(std::int64_t)},
        {ElementKind::kUint64, sizeof(std::uint64_t)},
        {ElementKind::kFloat16, sizeof(std::uint16_t)},
        {ElementKind::kBfloat16, sizeof(std::uint16_t)},
        {ElementKind::kFloat32, sizeof(float)},
        {ElementKind::kFloat64, sizeof(double)},
        {ElementKind::kComplex64, sizeof(std::complex<float>)},
        {ElementKind::kComplex128, sizeof(std::complex<double>)},
        {ElementKind::kBool, sizeof(bool)},
        {ElementKind::kByte, 1},
        {ElementKind::kInt16Int32, sizeof(Pair<short, int>)},
        {ElementKind::kInt32Int32, sizeof(Pair<int, int>)},
        {ElementKind::kInt64Int32, sizeof(Pair<long, int>)},
        {ElementKind::kFloat32Int32, sizeof(Pair<float, int>)},
        {ElementKind::kFloat64Int32, sizeof(Pair<double, int>)},
        {ElementKind::kFloat32x2, sizeof(Pair<float, float>)},
        {ElementKind::kFloat64x2, sizeof(Pair<double, double>)},
        {ElementKind::kFloat8E4m3, 1},
        {ElementKind::kFloat8E5m2, 1},
    };
    static_assert(sizeof known / sizeof *known == kElementKindCount);
    for (const auto &[kind, bytes] : known) {
        EXPECT_EQ(element_bytes(kind), bytes) << element_name(kind);
        EXPECT_EQ(16 % element_bytes(kind), 0u) << "chunks are multiples of 16 bytes";
    }
}

TEST(ElementTest, NamesAreUnique)
{
    std::set<std::string> names;
    for (int kind = 0; kind < kElementKindCount; ++kind) {
        names.insert(element_name(static_cast<ElementKind>(kind)));
    }
    EXPECT_EQ(names.size(), static_cast<std::size_t>(kElementKindCount));
    names.clear();
    for (int op = 0; op < kReduceOpCount; ++op) {
        names.insert(op_name(static_cast<ReduceOp>(op)));
    }
    EXPECT_EQ(names.size(), static_cast<std::size_t>(kReduceOpCount));
    EXPECT_STREQ(element_name(ElementKind::kBfloat16), "bfloat16");
    EXPECT_STREQ(op_name(ReduceOp::kMinloc), "minloc");
    EXPECT_STREQ(op_name(ReduceOp::kMinFirst), "min_first");
    EXPECT_STREQ(op_name(ReduceOp::kSumOnce), "sum_once");
}

// One line an operation, one column a kind, in the order of the enumerations: signed and unsigned
// integers of 8, 16, 32, 64 bits; half, bfloat16, float, double; two complex; bool, byte; the
// pairs; 8-bit floats.
TEST(ElementTest, OperationsAreDefinedWhereMpiDefinesThem)
{
    const struct {
        ReduceOp op;
        std::string kinds;
    } defined[] = {
        {ReduceOp::kMax, "xxxxxxxx xxxx -- -- ------- xx"},
        {ReduceOp::kMin, "xxxxxxxx xxxx -- -- ------- xx"},
        {ReduceOp::kSum, "xxxxxxxx xxxx xx -- ------- xx"},
        {ReduceOp::kProd, "xxxxxxxx xxxx xx -- ------- --"},
        {ReduceOp::kLand, "xxxxxxxx ---- -- x- ------- --"},
        {ReduceOp::kBand, "xxxxxxxx ---- -- -x ------- --"},
        {ReduceOp::kLor, "xxxxxxxx ---- -- x- ------- --"},
        {ReduceOp::kBor, "xxxxxxxx ---- -- -x ------- --"},
        {ReduceOp::kLxor, "xxxxxxxx ---- -- x- ------- --"},
        {ReduceOp::kBxor, "xxxxxxxx ---- -- -x ------- --"},
        {ReduceOp::kMaxloc, "-------- ---- -- -- xxxxxxx --"},
        {ReduceOp::kMinloc, "-------- ---- -- -- xxxxxxx --"},
        {ReduceOp::kMaxFirst, "-------- xx-- -- -- ------- --"},
        {ReduceOp::kMinFirst, "-------- xx-- -- -- ------- --"},
        {ReduceOp::kSumOnce, "-------- xx-- -- -- ------- xx"},
    };
    static_assert(sizeof defined / sizeof *defined == kReduceOpCount);
    for (const auto &[op, kinds] : defined) {
        int kind = 0;
        for (const char column : kinds) {
            if (column == ' ') {
                continue;
            }
            EXPECT_EQ(is_defined(op, static_cast<ElementKind>(kind)), column == 'x')
                << op_name(op) << " of " << element_name(static_cast<ElementKind>(kind));
            ++kind;
        }
        EXPECT_EQ(kind, kElementKindCount);
    }
}

TEST(ElementTest, ASumThatIsRoundedOnceIsASumOfTwo)
{
    for (int i = 0; i < kReduceOpCount; ++i) {
        const auto op = static_cast<ReduceOp>(i);
        EXPECT_EQ(by_element(op), op == ReduceOp::kSumOnce ? ReduceOp::kSum : op);
    }
}

TEST(ElementTest, OrderMattersToRoundingAndToWhatKeepsTheFirst)
{
    EXPECT_TRUE(depends_on_order(ReduceOp::kSum, ElementKind::kFloat32));
    EXPECT_TRUE(depends_on_order(ReduceOp::kProd, ElementKind::kComplex128));
    EXPECT_TRUE(depends_on_order(ReduceOp::kMinFirst, ElementKind::kFloat16));
    EXPECT_TRUE(depends_on_order(ReduceOp::kSumOnce, ElementKind::kBfloat16));
    EXPECT_TRUE(depends_on_order(ReduceOp::kSum, ElementKind::kFloat8E4m3));
    EXPECT_FALSE(depends_on_order(ReduceOp::kMax, ElementKind::kFloat8E5m2));
    EXPECT_TRUE(depends_on_order(ReduceOp::kMaxloc, ElementKind::kFloat64Int32));
    EXPECT_FALSE(depends_on_order(ReduceOp::kSum, ElementKind::kInt8));
    EXPECT_FALSE(depends_on_order(ReduceOp::kMax, ElementKind::kFloat64));
    EXPECT_FALSE(depends_on_order(ReduceOp::kMinloc, ElementKind::kInt64Int32));
    EXPECT_FALSE(depends_on_order(ReduceOp::kBxor, ElementKind::kUint64));
}

} // namespace
} // namespace hetcoll
