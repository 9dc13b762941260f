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
    {HETCOLL_CALLS_ORDERED, "calls_ordered",
     "MPI_Allreduce calls summed in the order of the ranks, along their chain"},
    {HETCOLL_CALLS_IN_NETWORK, "calls_in_network", "MPI_Allreduce calls reduced by aggregators"},
    {HETCOLL_CALLS_WEIGHTED, "calls_weighted",
     "MPI_Allreduce calls in which each rank reduced a share by the rate of its links"},
    {HETCOLL_CALLS_COLLECTIVE, "calls_collective",
     "MPI_Bcast, Reduce, Allgather and Reduce_scatter calls done by schedules of hetcoll"},
    {HETCOLL_CALLS_EARLY, "calls_early",
     "MPI_Allreduce calls that this rank began without the one that comes last, with "
     "coll_hetcoll_skew"},
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
    {HETCOLL_STAGED_USER_OP, "staged_user_op", "Staged calls: hetcoll does not know the op"},
    {HETCOLL_STAGED_TYPE, "staged_type", "Staged calls: no kernel reduces the type"},
    {HETCOLL_STAGED_LAYOUT, "staged_layout",
     "Staged calls: the datatype has holes, or elements of several types"},
    {HETCOLL_STAGED_GPU, "staged_gpu", "Staged calls: this rank could not use its GPU"},
    {HETCOLL_STAGED_OTHER_RANK, "staged_other_rank", "Staged calls: another rank had to"},
    {HETCOLL_STAGED_COLLECTIVE, "staged_collective",
     "Calls of other collectives on device memory that Open MPI served on the host"},
    {HETCOLL_BYTES_STAGED, "bytes_staged",
     "Bytes copied between device and host for calls of other collectives"},
    {HETCOLL_NS_PREVIOUS, "time_previous", "Nanoseconds in calls_previous"},
    {HETCOLL_NS_STAGED, "time_staged", "Nanoseconds in calls_staged"},
    {HETCOLL_NS_RECURSIVE_DOUBLING, "time_recursive_doubling",
     "Nanoseconds in calls_recursive_doubling"},
    {HETCOLL_NS_RABENSEIFNER, "time_rabenseifner", "Nanoseconds in calls_rabenseifner"},
    {HETCOLL_NS_RING, "time_ring", "Nanoseconds in calls_ring"},
    {HETCOLL_NS_ONE_SHOT, "time_one_shot", "Nanoseconds in calls_one_shot"},
    {HETCOLL_NS_TWO_SHOT, "time_two_shot", "Nanoseconds in calls_two_shot"},
    {HETCOLL_NS_LEADER, "time_leader", "Nanoseconds in calls_leader"},
    {HETCOLL_NS_TREE, "time_tree", "Nanoseconds in calls_tree"},
    {HETCOLL_NS_HIERARCHICAL, "time_hierarchical", "Nanoseconds in calls_hierarchical"},
    {HETCOLL_NS_SMALL, "time_small",
     "Nanoseconds in calls_small; of those on host memory only while this variable has a handle"},
    {HETCOLL_NS_COPY_IN, "time_copy_in", "Nanoseconds in calls_copy_in"},
    {HETCOLL_NS_ORDERED, "time_ordered", "Nanoseconds in calls_ordered"},
    {HETCOLL_NS_IN_NETWORK, "time_in_network", "Nanoseconds in calls_in_network"},
    {HETCOLL_NS_WEIGHTED, "time_weighted", "Nanoseconds in calls_weighted"},
    {HETCOLL_NS_PATH_BOUNCE, "time_path_bounce",
     "Nanoseconds in calls whose data went in messages through pinned memory"},
    {HETCOLL_NS_PATH_DIRECT, "time_path_direct",
     "Nanoseconds in calls whose data Open MPI sent from device memory"},
    {HETCOLL_NS_PATH_MAPPED, "time_path_mapped",
     "Nanoseconds in calls whose data was read from or written to mapped memory of peers"},
    {HETCOLL_NS_PATH_MIXED, "time_path_mixed",
     "Nanoseconds in calls whose data went both ways: mapped, and in messages"},
    {HETCOLL_HELD_PINNED, "held_pinned", "Bytes of page-locked host memory held now"},
    {HETCOLL_HELD_DEVICE, "held_device", "Bytes of device memory held now"},
    {HETCOLL_HELD_MAPPED, "held_mapped", "Bytes of the memory of peers mapped now"},
    {HETCOLL_ARRIVAL_WAIT, "arrival_wait",
     "Nanoseconds that this rank waits for the last one to come, on average, with "
     "coll_hetcoll_skew"},
    {HETCOLL_LATE_RANK, "late_rank",
     "The rank that the others have found to come last, plus 1; 0: none"},
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

/* A handle on the time of small calls asks for their clock to be read. */
static int notify_small(struct mca_base_pvar_t *pvar, mca_base_pvar_event_t event, void *object,
                        int *count)
{
    struct hetcoll_process *process = mca_coll_hetcoll_component.process;
    (void)pvar;
    (void)object;
    if (MCA_BASE_PVAR_HANDLE_BIND == event) {
        *count = 1;
    }
    if (NULL != process) {
        hetcoll_process_time_small(process, MCA_BASE_PVAR_HANDLE_BIND == event     ? 1
                                            : MCA_BASE_PVAR_HANDLE_UNBIND == event ? -1
                                                                                   : 0);
    }
    return OMPI_SUCCESS;
}

static int class_of(enum hetcoll_counter counter)
{
    return HETCOLL_NS_PREVIOUS > counter   ? MPI_T_PVAR_CLASS_COUNTER
           : HETCOLL_HELD_PINNED > counter ? MPI_T_PVAR_CLASS_TIMER
                                           : MPI_T_PVAR_CLASS_LEVEL;
}

void mca_coll_hetcoll_register_counters(void)
{
    for (size_t i = 0; i < sizeof counters / sizeof counters[0]; ++i) {
        (void)mca_base_component_pvar_register(
            &mca_coll_hetcoll_component.super.collm_version, counters[i].name, counters[i].help,
            OPAL_INFO_LVL_4, class_of(counters[i].counter), MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG,
            NULL, MCA_BASE_VAR_BIND_NO_OBJECT,
            MCA_BASE_PVAR_FLAG_READONLY | MCA_BASE_PVAR_FLAG_CONTINUOUS, read_counter, NULL,
            HETCOLL_NS_SMALL == counters[i].counter ? notify_small : NULL,
            (void *)(intptr_t)counters[i].counter);
    }
}
