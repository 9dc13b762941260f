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
    {HETCOLL_CALLS_STAGED, "calls_staged",
     "MPI_Allreduce calls on device memory that Open MPI reduced on the host"},
    {HETCOLL_CALLS_RECURSIVE_DOUBLING, "calls_recursive_doubling",
     "MPI_Allreduce calls done by recursive doubling"},
    {HETCOLL_CALLS_RABENSEIFNER, "calls_rabenseifner",
     "MPI_Allreduce calls done by Rabenseifner's algorithm"},
    {HETCOLL_CALLS_RING, "calls_ring", "MPI_Allreduce calls done by the ring algorithm"},
    {HETCOLL_CALLS_ONE_SHOT, "calls_one_shot",
     "MPI_Allreduce calls in which every rank's kernel read all inputs"},
    {HETCOLL_CALLS_TWO_SHOT, "calls_two_shot",
     "MPI_Allreduce calls in which every rank's kernel reduced a share for all"},
    {HETCOLL_CALLS_LEADER, "calls_leader",
     "MPI_Allreduce calls in which one rank's kernel reduced for all"},
    {HETCOLL_CALLS_TREE, "calls_tree", "MPI_Allreduce calls done by packed trees"},
    {HETCOLL_CALLS_HIERARCHICAL, "calls_hierarchical",
     "MPI_Allreduce calls done on the nodes, between them, and on the nodes"},
    {HETCOLL_CALLS_SMALL, "calls_small", "MPI_Allreduce calls reduced by the processors"},
    {HETCOLL_CALLS_COPY_IN, "calls_copy_in",
     "MPI_Allreduce calls through memory that all ranks map"},
    {HETCOLL_CALLS_FAILED, "calls_failed", "MPI_Allreduce calls that returned an error"},
    {HETCOLL_AGREEMENTS, "agreements", "Exchanges of a word before or after a call"},
    {HETCOLL_ALLOCATIONS, "allocations", "Allocations of bounce and staging memory"},
    {HETCOLL_BYTES_BOUNCE, "bytes_bounce", "Bytes sent through pinned or host memory"},
    {HETCOLL_BYTES_DIRECT, "bytes_direct", "Bytes that Open MPI sent from device memory"},
    {HETCOLL_BYTES_MAPPED, "bytes_mapped", "Bytes read from or written to the memory of peers"},
    {HETCOLL_MAPPINGS, "mappings", "Mappings made of the memory of peers"},
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
