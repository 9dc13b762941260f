#include "cuda_kernels/reduction.h"
#include "test/unit/cuda_kernels_reference.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>

namespace hetcoll {
namespace {

constexpr KernelShape kShapes[] = {KernelShape::kTwoInput, KernelShape::kThreeInput,
                                   KernelShape::kManyInput};

TEST(KernelNames, ExistExactlyWhereMpiDefinesTheOperation)
{
    for (int op = 0; op < kReduceOpCount; ++op) {
        for (int kind = 0; kind < kElementKindCount; ++kind) {
            for (const KernelShape shape : kShapes) {
                const auto o = static_cast<ReduceOp>(op);
                const auto k = static_cast<ElementKind>(kind);
                EXPECT_EQ(kernel_name(shape, o, k) != nullptr, is_defined(o, k))
                    << op << " " << kind;
            }
        }
    }
}

TEST(KernelNames, AreSharedOnlyByKindsOfOneSizeAndOneOperation)
{
    std::map<std::string, std::pair<std::pair<int, ReduceOp>, std::size_t>> seen;
    for (const auto &[op, kind] : test::defined_reductions()) {
        for (const KernelShape shape : kShapes) {
            const ReduceOp code = shape == KernelShape::kManyInput ? op : by_element(op);
            const auto meaning =
                std::pair(std::pair(static_cast<int>(shape), code), element_bytes(kind));
            const auto [at, added] = seen.emplace(kernel_name(shape, op, kind), meaning);
            EXPECT_EQ(at->second, meaning) << at->first;
        }
    }
    EXPECT_EQ(seen.size(), 3u * 92u + 4u); // four that many inputs alone have
}

TEST(KernelNames, SignMattersToMaxAlone)
{
    EXPECT_STREQ(kernel_name(KernelShape::kThreeInput, ReduceOp::kSum, ElementKind::kInt32),
                 kernel_name(KernelShape::kThreeInput, ReduceOp::kSum, ElementKind::kUint32));
    EXPECT_STRNE(kernel_name(KernelShape::kThreeInput, ReduceOp::kMax, ElementKind::kInt32),
                 kernel_name(KernelShape::kThreeInput, ReduceOp::kMax, ElementKind::kUint32));
    EXPECT_STREQ(kernel_name(KernelShape::kTwoInput, ReduceOp::kMaxloc, ElementKind::kFloat32Int32),
                 "hetcoll_reduce2_maxloc_float32_int32");
}

TEST(KernelImage, IsAFatbin)
{
    unsigned magic = 0;
    std::memcpy(&magic, kernel_image(), sizeof magic);
    EXPECT_EQ(magic, 0xba55ed50u);
}

} // namespace
} // namespace hetcoll
