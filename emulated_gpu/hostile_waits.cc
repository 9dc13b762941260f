#include "emulated_gpu/hostile_waits.h"

#include "emulated_gpu/contexts.h"
#include "emulated_gpu/hostility.h"
#include "emulated_gpu/streams.h"

namespace hetcoll::emulated_gpu {

void may_synchronise()
{
    Context *context = nullptr;
    if (is_hostile(Hostility::kWaits) && usable_context(context) == CUDA_SUCCESS) {
        wait_for_device(context->device);
    }
}

void may_synchronise(int device)
{
    if (is_hostile(Hostility::kWaits)) {
        wait_for_device(device);
    }
}

} // namespace hetcoll::emulated_gpu
