/* The core's counters as MPI_T performance variables coll_hetcoll_*. */
#include "coll_hetcoll.h"

#include "opal/mca/base/mca_base_pvar.h"

static const struct {
    enum hetcoll_counter counter;
    const char *name, *help;
} counters[] = {
    {HETCOLL_CALLS_PREVIOUS, "calls_previous",
     "MPI_Allreduce calls on host memory left to the previous module. Where no rank can have a GPU "
     "hetcoll is not called"},
    {HETCOLL_CALLS_SMALL, "calls_small", "MPI_Allreduce calls done in one exchange"},
    {HETCOLL_CALLS_STAGED, "calls_staged",
     "MPI_Allreduce calls on device memory that Open MPI reduced on the host"},
    {HETCOLL_CALLS_RECURSIVE_DOUBLING, "calls_recursive_doubling",
     "MPI_Allreduce calls done by recursive doubling"},
    {HETCOLL_CALLS_RABENSEIFNER, "calls_rabenseifner",
     "MPI_Allreduce calls done by Rabenseifner's algorithm"},
    {HETCOLL_CALLS_RING, "calls_ring", "MPI_Allreduce calls done by the ring algorithm"},
    {HETCOLL_CALLS_FAILED, "calls_failed", "MPI_Allreduce calls that returned an error"},
    {HETCOLL_AGREEMENTS, "agreements", "Exchanges of a word before or after a call"},
    {HETCOLL_ALLOCATIONS, "allocations", "Allocations of bounce and staging memory"},
    {HETCOLL_BYTES_BOUNCE, "bytes_bounce", "Bytes sent through pinned or host memory"},
    {HETCOLL_BYTES_DIRECT, "bytes_direct", "Bytes that Open MPI sent from device memory"},
    {HETCOLL_POINTER_HITS, "pointer_hits", "Pointers that the cache knew"},
    {HETCOLL_POINTER_MISSES, "pointer_misses", "Pointers that the driver was asked about in full"},
    {HETCOLL_POINTER_INVALIDATIONS, "pointer_invalidations",
     "Cached allocations that were found freed or replaced"},
    {HETCOLL_POINTER_QUERIES, "pointer_queries", "Driver calls made to classify pointers"},
    {HETCOLL_POINTER_HOST, "pointer_host", "Pointers known as host memory without a driver call"},
};

static int read_counter(const struct mca_base_pvar_t *pvar, void *value, void *object)
{
    (void)object;
    const struct hetcoll_process *process = mca_coll_hetcoll_component.process;
    *(unsigned long long *)value =
        NULL == process
            ? 0
            : hetcoll_process_counter(process, (enum hetcoll_counter)(intptr_t)pvar->ctx);
    return OMPI_SUCCESS;
}

void mca_coll_hetcoll_register_counters(void)
{
    for (size_t i = 0; i < sizeof counters / sizeof counters[0]; ++i) {
        (void)mca_base_component_pvar_register(
            &mca_coll_hetcoll_component.super.collm_version, counters[i].name, counters[i].help,
            OPAL_INFO_LVL_4, MPI_T_PVAR_CLASS_COUNTER, MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG, NULL,
            MCA_BASE_VAR_BIND_NO_OBJECT,
            MCA_BASE_PVAR_FLAG_READONLY | MCA_BASE_PVAR_FLAG_CONTINUOUS, read_counter, NULL, NULL,
            (void *)(intptr_t)counters[i].counter);
    }
}
