#include "engine/meeting/roll_call.h"

#include "engine/meeting/flags.h"

#include <cstring>

namespace hetcoll {

void RollCall::start(const hetcoll_p2p &all, int tag) noexcept
{
    std::memset(mine_, 0, sizeof mine_);
    exchange_.start(all, tag, mine_, theirs_, sizeof(Settings), sizeof(Settings),
                    host_reduce(ReduceOp::kBor, ElementKind::kByte), kFailed);
}

} // namespace hetcoll
