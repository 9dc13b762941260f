#include "base/element.h"

namespace hetcoll {
namespace {

// Which groups of operations MPI defines on a kind.
enum Group : std::uint8_t {
    kOrder = 1,
    kAdd = 2,
    kMultiply = 4,
    kLogic = 8,
    kBits = 16,
    kLoc = 32,
    kFirst = 64,
    kOnce = 128
};

struct KindInfo {
    const char *name;
    std::uint8_t bytes;
    std::uint8_t groups;
};

constexpr std::uint8_t kArith = kAdd | kMultiply;
constexpr std::uint8_t kInteger = kOrder | kArith | kLogic | kBits;
constexpr std::uint8_t kReal = kOrder | kArith;
constexpr std::uint8_t kSmallReal = kReal | kFirst | kOnce;
constexpr std::uint8_t kTinyReal = kOrder | kAdd | kOnce;

constexpr KindInfo kKinds[kElementKindCount] = {
    {"int8", 1, kInteger},         {"uint8", 1, kInteger},
    {"int16", 2, kInteger},        {"uint16", 2, kInteger},
    {"int32", 4, kInteger},        {"uint32", 4, kInteger},
    {"int64", 8, kInteger},        {"uint64", 8, kInteger},
    {"float16", 2, kSmallReal},    {"bfloat16", 2, kSmallReal},
    {"float32", 4, kReal},         {"float64", 8, kReal},
    {"complex64", 8, kArith},      {"complex128", 16, kArith},
    {"bool", 1, kLogic},           {"byte", 1, kBits},
    {"int16_int32", 8, kLoc},      {"int32_int32", 8, kLoc},
    {"int64_int32", 16, kLoc},     {"float32_int32", 8, kLoc},
    {"float64_int32", 16, kLoc},   {"float32x2", 8, kLoc},
    {"float64x2", 16, kLoc},       {"float8_e4m3", 1, kTinyReal},
    {"float8_e5m2", 1, kTinyReal},
};

struct OpInfo {
    const char *name;
    Group group;
};

constexpr OpInfo kOps[kReduceOpCount] = {
    {"max", kOrder},       {"min", kOrder},       {"sum", kAdd},       {"prod", kMultiply},
    {"land", kLogic},      {"band", kBits},       {"lor", kLogic},     {"bor", kBits},
    {"lxor", kLogic},      {"bxor", kBits},       {"maxloc", kLoc},    {"minloc", kLoc},
    {"max_first", kFirst}, {"min_first", kFirst}, {"sum_once", kOnce},
};

const KindInfo &info(ElementKind kind) { return kKinds[static_cast<int>(kind)]; }
const OpInfo &info(ReduceOp op) { return kOps[static_cast<int>(op)]; }

} // namespace

std::size_t element_bytes(ElementKind kind) noexcept { return info(kind).bytes; }

bool is_defined(ReduceOp op, ElementKind kind) noexcept
{
    return (info(kind).groups & info(op).group) != 0;
}

// Integers wrap, so their sums and products associate; so do MAX and MIN as operations.h defines
// them. MAXLOC and MINLOC choose between equal integers by index. Floats that count as equal (-0
// and +0, two NaNs) can have different bits, and with equal indices the order decides.
bool depends_on_order(ReduceOp op, ElementKind kind) noexcept
{
    switch (info(op).group) {
    case kAdd:
    case kMultiply: return (info(kind).groups & kBits) == 0;
    case kLoc: return kind >= ElementKind::kFloat32Int32;
    case kFirst:
    case kOnce: return true;
    case kOrder:
    case kLogic:
    case kBits: break;
    }
    return false;
}

const char *element_name(ElementKind kind) noexcept { return info(kind).name; }
const char *op_name(ReduceOp op) noexcept { return info(op).name; }

} // namespace hetcoll
