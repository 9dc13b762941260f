#include "engine/communicator/agreed_settings.h"

namespace hetcoll {
namespace {

constexpr std::uint64_t kReproducible = std::uint64_t{1} << 63;

} // namespace

std::uint64_t AgreedSettings::changeable() const noexcept
{
    return (facts_.reproducible != 0 ? kReproducible : 0) | facts_.algorithm << 32 |
           facts_.chunk_bytes;
}

void AgreedSettings::settle(const NodeGroup &group) noexcept
{
    if (group.settings_differ()) {
        facts_.algorithm = facts_.chunk_bytes = 0;
        facts_.reproducible = (group.settings_of_some() & kReproducible) != 0 ? 1 : 0;
    }
}

ReduceOp AgreedSettings::op_of(const hetcoll_call &call) const noexcept
{
    const auto op = static_cast<ReduceOp>(call.op);
    if (op != ReduceOp::kSum || call.kind < 0) {
        return op;
    }
    const auto kind = static_cast<ElementKind>(call.kind);
    const bool in_float = facts_.accumulate == 0 && facts_.reproducible == 0;
    const bool once = is_float8(kind) || (is_defined(ReduceOp::kSumOnce, kind) && in_float);
    return once ? ReduceOp::kSumOnce : op;
}

} // namespace hetcoll
