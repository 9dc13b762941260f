/* The counters of a process. */
#ifndef HETCOLL_ENGINE_TYPES_COUNTERS_H
#define HETCOLL_ENGINE_TYPES_COUNTERS_H

#include "base/algorithm_list.h"

#include <stddef.h>
#include <stdint.h>

/* Counters of a process since its start, one row each: HETCOLL_COUNTER(constant, name, class,
 * help). The kind is MPI_T's class: a COUNTER of events or bytes, a TIMER in nanoseconds, a LEVEL
 * that falls too. Define HETCOLL_COUNTER before use. */
/* clang-format off */
#define HETCOLL_COUNTERS                                                                           \
    HETCOLL_COUNTER(CALLS_PREVIOUS, calls_previous, COUNTER,                                       \
        "MPI_Allreduce calls on host memory left to the previous component. None are counted "     \
        "where no rank can have a GPU")                                                            \
    HETCOLL_COUNTER(CALLS_STAGED, calls_staged, COUNTER,                                           \
        "MPI_Allreduce calls on device memory that Open MPI reduced on the host")                  \
    HETCOLL_ALGORITHMS(HETCOLL_CALLS_COUNTER)                                                      \
    HETCOLL_COUNTER(CALLS_COLLECTIVE, calls_collective, COUNTER,                                   \
        "MPI_Bcast, Reduce, Allgather and Reduce_scatter calls done by schedules of hetcoll")      \
    HETCOLL_COUNTER(CALLS_EARLY, calls_early, COUNTER,                                             \
        "MPI_Allreduce calls that this rank began without the late one (coll_hetcoll_skew)")       \
    HETCOLL_COUNTER(CALLS_FAILED, calls_failed, COUNTER,                                           \
        "MPI_Allreduce calls that returned an error")                                              \
    HETCOLL_COUNTER(AGREEMENTS, agreements, COUNTER,                                               \
        "Exchanges of a word before or after a call")                                              \
    HETCOLL_COUNTER(ALLOCATIONS, allocations, COUNTER,                                             \
        "Allocations of bounce and staging memory")                                                \
    HETCOLL_COUNTER(BYTES_BOUNCE, bytes_bounce, COUNTER,                                           \
        "Bytes sent through pinned or host memory")                                                \
    HETCOLL_COUNTER(BYTES_DIRECT, bytes_direct, COUNTER,                                           \
        "Bytes that Open MPI sent from device memory")                                             \
    HETCOLL_COUNTER(BYTES_ADAPTER, bytes_adapter, COUNTER,                                         \
        "Bytes sent through network adapters to ranks of the same node")                           \
    HETCOLL_COUNTER(BYTES_MAPPED, bytes_mapped, COUNTER,                                           \
        "Bytes read from or written to peers' memory")                                             \
    HETCOLL_COUNTER(MAPPINGS, mappings, COUNTER,                                                   \
        "Mappings made of peers' memory")                                                          \
    HETCOLL_COUNTER(CPU_READS, cpu_reads, COUNTER,                                                 \
        "Small calls whose vector the processor read from device memory")                          \
    HETCOLL_COUNTER(CPU_WRITES, cpu_writes, COUNTER,                                               \
        "Small calls whose sum the processor wrote to device memory")                              \
    HETCOLL_COUNTER(POINTER_HITS, pointer_hits, COUNTER,                                           \
        "Pointers that the cache knew")                                                            \
    HETCOLL_COUNTER(POINTER_MISSES, pointer_misses, COUNTER,                                       \
        "Pointers that the driver was asked about in full")                                        \
    HETCOLL_COUNTER(POINTER_INVALIDATIONS, pointer_invalidations, COUNTER,                         \
        "Cached allocations that were found freed or replaced")                                    \
    HETCOLL_COUNTER(POINTER_QUERIES, pointer_queries, COUNTER,                                     \
        "Driver calls made to classify pointers")                                                  \
    HETCOLL_COUNTER(POINTER_HOST, pointer_host, COUNTER,                                           \
        "Pointers known as host memory without a driver call")                                     \
    HETCOLL_COUNTER(STAGED_USER_OP, staged_user_op, COUNTER, /* as enum hetcoll_staged_reason */   \
        "Staged calls: hetcoll does not know the op")                                              \
    HETCOLL_COUNTER(STAGED_TYPE, staged_type, COUNTER,                                             \
        "Staged calls: no kernel reduces the type")                                                \
    HETCOLL_COUNTER(STAGED_LAYOUT, staged_layout, COUNTER,                                         \
        "Staged calls: the datatype has gaps or several types")                                    \
    HETCOLL_COUNTER(STAGED_GPU, staged_gpu, COUNTER,                                               \
        "Staged calls: this rank could not use its GPU")                                           \
    HETCOLL_COUNTER(STAGED_OTHER_RANK, staged_other_rank, COUNTER,                                 \
        "Staged calls: another rank had to")                                                       \
    HETCOLL_COUNTER(STAGED_COLLECTIVE, staged_collective, COUNTER,                                 \
        "Other collectives on device memory that Open MPI served on the host")                     \
    HETCOLL_COUNTER(BYTES_STAGED, bytes_staged, COUNTER,                                           \
        "Bytes copied between device and host for other collectives")                              \
    HETCOLL_COUNTER(NS_PREVIOUS, time_previous, TIMER, /* from here on in the order of the calls */\
        "Nanoseconds in calls_previous")                                                           \
    HETCOLL_COUNTER(NS_STAGED, time_staged, TIMER,                                                 \
        "Nanoseconds in calls_staged")                                                             \
    HETCOLL_ALGORITHMS(HETCOLL_TIME_COUNTER)                                                       \
    HETCOLL_COUNTER(NS_PATH_BOUNCE, time_path_bounce, TIMER,                                       \
        "Nanoseconds in calls whose data went in messages through pinned memory")                  \
    HETCOLL_COUNTER(NS_PATH_DIRECT, time_path_direct, TIMER,                                       \
        "Nanoseconds in calls whose data was sent from device memory")                        \
    HETCOLL_COUNTER(NS_PATH_MAPPED, time_path_mapped, TIMER,                                       \
        "Nanoseconds in calls whose data was read from or written to mapped memory of peers")      \
    HETCOLL_COUNTER(NS_PATH_MIXED, time_path_mixed, TIMER,                                         \
        "Nanoseconds in calls whose data went both ways: mapped, and in messages")                 \
    HETCOLL_COUNTER(HELD_PINNED, held_pinned, LEVEL,                                               \
        "Bytes of page-locked host memory held now")                                               \
    HETCOLL_COUNTER(HELD_DEVICE, held_device, LEVEL,                                               \
        "Bytes of device memory held now")                                                         \
    HETCOLL_COUNTER(HELD_MAPPED, held_mapped, LEVEL,                                               \
        "Bytes of peers' memory mapped now")                                                       \
    HETCOLL_COUNTER(HELD_VIEWS, held_views, LEVEL,                                                 \
        "Bytes of device memory that the processor has mapped now")                                \
    HETCOLL_COUNTER(ARRIVAL_WAIT, arrival_wait, LEVEL, /* see choice/arrivals.h */                 \
        "Average nanoseconds that this rank waits for the last one (coll_hetcoll_skew)")           \
    HETCOLL_COUNTER(LATE_RANK, late_rank, LEVEL, /* in the communicator that told last */          \
        "Rank that comes last, plus 1. 0: none")
/* clang-format on */
#define HETCOLL_CALLS_COUNTER(constant, enumerator, name, counter, form, needs, sizes, traits, \
                              plan, rounding, help)                                            \
    HETCOLL_COUNTER(CALLS_##constant, calls_##counter, COUNTER, "MPI_Allreduce calls " help)
/* Small calls on host memory are timed only while somebody looks: hetcoll_process_time_small(). */
#define HETCOLL_TIME_COUNTER(constant, enumerator, name, counter, ...) \
    HETCOLL_COUNTER(NS_##constant, time_##counter, TIMER, "Nanoseconds in calls_" #counter)

#define HETCOLL_COUNTER(constant, name, kind, help) HETCOLL_##constant,
enum hetcoll_counter { HETCOLL_COUNTERS HETCOLL_COUNTER_COUNT };
#undef HETCOLL_COUNTER

/* The counter of algorithm number i of the list. */
#define HETCOLL_CALLS_OF(i) ((enum hetcoll_counter)(HETCOLL_CALLS_STAGED + 1 + (int)(i)))

/* A call that has ended on this rank, for who watches them. */
struct hetcoll_ended_call {
    size_t bytes; /* of the vector */
    uint64_t ns;  /* how long it took */
    int counter;  /* enum hetcoll_counter of the calls that it is one of; negative: none */
    int path;     /* of the data, a number of HETCOLL_PATHS */
    int failed;
};
#define HETCOLL_PATHS "0 bounce, 1 direct, 2 mapped, 3 mixed, 4 small, 5 cpu, 6 staged, 7 host"

#endif
