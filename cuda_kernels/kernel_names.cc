#include "cuda_kernels/reduction.h"
#include "cuda_kernels/reduction_list.h"

namespace hetcoll {
namespace {

// The bytes of arguments that every GPU takes.
static_assert(sizeof(ReduceOutputs) + sizeof(ReduceInputs) + sizeof(std::size_t) + sizeof(Signal) <=
              4096);

struct Names {
    ReduceOp op;
    ElementKind kind;
    const char *name[3]; // by KernelShape
};

constexpr Names kNames[] = {
#define HETCOLL_KERNEL_NAMES(Op, op, Kind, kind)                          \
    {ReduceOp::k##Op,                                                     \
     ElementKind::k##Kind,                                                \
     {"hetcoll_reduce2_" #op "_" #kind, "hetcoll_reduce3_" #op "_" #kind, \
      "hetcoll_reduce_many_" #op "_" #kind}},
    HETCOLL_FOR_EACH_REDUCTION(HETCOLL_KERNEL_NAMES)
#undef HETCOLL_KERNEL_NAMES
#define HETCOLL_KERNEL_NAME(Op, op, Kind, kind) \
    {ReduceOp::k##Op, ElementKind::k##Kind, {"", "", "hetcoll_reduce_many_" #op "_" #kind}},
        HETCOLL_FOR_EACH_FOLD_ALONE(HETCOLL_KERNEL_NAME)
#undef HETCOLL_KERNEL_NAME
};

} // namespace

extern "C" const unsigned char hetcoll_kernel_image[]; // kernel_image.S

const char *kernel_name(KernelShape shape, ReduceOp op, ElementKind kind) noexcept
{
    if (!is_defined(op, kind)) {
        return nullptr;
    }
    const ReduceOp code_op = shape == KernelShape::kManyInput ? op : by_element(op);
    for (const Names &entry : kNames) { // asked once per kernel and context
        if (entry.op == code_op && entry.kind == code_kind(op, kind)) {
            return entry.name[static_cast<int>(shape)];
        }
    }
    return nullptr;
}

const char *float_kernel_name(FloatConversion conversion, ElementKind kind) noexcept
{
    const bool widens = conversion == FloatConversion::kWiden;
#define HETCOLL_FLOAT_NAME(Kind, kind_name)                                         \
    if (kind == ElementKind::k##Kind) {                                             \
        return widens ? "hetcoll_widen_" #kind_name : "hetcoll_narrow_" #kind_name; \
    }
    HETCOLL_FOR_EACH_WIDENED(HETCOLL_FLOAT_NAME)
#undef HETCOLL_FLOAT_NAME
    return nullptr;
}

const void *kernel_image() noexcept { return hetcoll_kernel_image; }

} // namespace hetcoll
