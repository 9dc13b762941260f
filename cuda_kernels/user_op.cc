#include "cuda_kernels/user_op.h"

#include "base/element.h"

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string_view>

namespace hetcoll {
namespace {

// HETCOLL_TYPES_MARK of include/hetcoll_types.h, which cannot be included without MPI.
constexpr std::string_view kMark = "hetcoll_types:1:9d41c7e0b36a582f:";
constexpr std::size_t kBlockBytes = 256;

bool read_name(std::string_view text, ReduceOp &op, ElementKind &kind)
{
    for (const ElementKind k : {ElementKind::kFloat16, ElementKind::kBfloat16,
                                ElementKind::kFloat8E4m3, ElementKind::kFloat8E5m2}) {
        for (const ReduceOp o : {ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kMin, ReduceOp::kMax}) {
            char name[32];
            const int length =
                std::snprintf(name, sizeof name, "%s:%s;", element_name(k), op_name(o));
            if (is_defined(o, k) && text.substr(0, static_cast<std::size_t>(length)) == name) {
                op = o;
                kind = k;
                return true;
            }
        }
    }
    return false;
}

} // namespace
} // namespace hetcoll

[[gnu::no_sanitize_address]] int hetcoll_user_op(void (*function)(void), int *op, int *kind)
{
    using namespace hetcoll;
    if (function == nullptr || reinterpret_cast<std::uintptr_t>(function) % kBlockBytes != 0) {
        return 0;
    }
    const std::string_view code(reinterpret_cast<const char *>(function), kBlockBytes);
    const std::size_t at = code.find(kMark);
    ReduceOp found_op{};
    ElementKind found_kind{};
    if (at == code.npos || !read_name(code.substr(at + kMark.size()), found_op, found_kind)) {
        return 0;
    }
    *op = static_cast<int>(found_op);
    *kind = static_cast<int>(found_kind);
    return 1;
}
