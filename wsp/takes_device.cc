#include "wsp/takes_device.h"

#include <mpi.h>
#if defined(OPEN_MPI)
#include <mpi-ext.h>
#endif

namespace hetcoll {
namespace {

// A counter of hetcoll is there if and only if its component is on.
bool hetcoll_is_on()
{
    int level = MPI_THREAD_SINGLE;
    MPI_Query_thread(
        &level); // Open MPI 4.1 takes a lower level given here as MPI's own from then on
    if (MPI_T_init_thread(level, &level) != MPI_SUCCESS) {
        return false;
    }
    int index = 0;
    const bool on = MPI_T_pvar_get_index("coll_hetcoll_agreements", MPI_T_PVAR_CLASS_COUNTER,
                                         &index) == MPI_SUCCESS;
    MPI_T_finalize();
    return on;
}

} // namespace

bool takes_device_memory()
{
#if defined(MPIX_CUDA_AWARE_SUPPORT)
    if (MPIX_Query_cuda_support() == 1) {
        return true;
    }
#endif
    return hetcoll_is_on();
}

} // namespace hetcoll
