#include "emulated_gpu/limits.h"

#include "emulated_gpu/contexts.h"
#include "emulated_gpu/hostility.h"

#include <bit>

namespace hetcoll::emulated_gpu {
namespace {

constexpr int kMostPeers = 8; // without NVSwitches

} // namespace

CUresult add_peer(Context &context, int device)
{
    const unsigned bit = 1u << device, own = 1u << context.device;
    const unsigned others = (context.peers.load() | bit) & ~own;
    if (is_hostile(Hostility::kLimits) && std::popcount(others) > kMostPeers) {
        return CUDA_ERROR_TOO_MANY_PEERS;
    }
    context.peers.fetch_or(bit);
    return CUDA_SUCCESS;
}

} // namespace hetcoll::emulated_gpu
