/* The user's settings: the parameters of the component, as they cross the boundary. */
#ifndef HETCOLL_ENGINE_TYPES_SETTINGS_H
#define HETCOLL_ENGINE_TYPES_SETTINGS_H

#include "base/algorithm_list.h"

#include <stdbool.h>
#include <stddef.h>

/* clang-format off */
/* One row each: HETCOLL_PARAMETER(kind, name, value, allowed, agree, when, changes, level, help).
 * Define HETCOLL_PARAMETER before use. docs/usage.md begins each of its rows with the help.
 *
 *   kind     BOOL, INT, BYTES; TEXT; or WORD: one of a few, a number in struct hetcoll_settings
 *   value    the default; of a WORD the first of the allowed ones
 *   allowed  of a WORD "a, b or c"; of INT and BYTES HETCOLL_RANGE(least, most, zero), where zero
 *            is what 0 means if it is allowed below the least, else NULL; of others it is not used
 *   agree    what a communicator takes if its processes have set different values: struct
 *            hetcoll_facts. LOCAL: each its own. ALIKE: nobody looks, they should be alike
 *   when     START: read when the process starts. FIRST_CALL: a program may set it through MPI_T,
 *            and a communicator takes what is set at its first call
 *   changes  RESULTS: what MPI_Allreduce gives, so a wrong value ends MPI_Init. SPEED: what it
 *            costs, or who serves it, so the default takes the place of a wrong value
 *   level    of Open MPI's information, 1 to 9 */
#define HETCOLL_PARAMETERS                                                                         \
    HETCOLL_PARAMETER(INT, priority, 95, HETCOLL_ANY_NUMBER, VITAL, START, SPEED, 6,               \
        "Components with a higher priority take MPI_Allreduce instead (Open MPI's cuda 78, "       \
        "tuned 30). Negative: off")                                                                \
    HETCOLL_PARAMETER(BOOL, enable, true, NULL, LOCAL, START, SPEED, 3,                            \
        "false: leave every communicator to the other components")                                 \
    HETCOLL_PARAMETER(INT, verbose, 0, HETCOLL_ANY_NUMBER, LOCAL, START, SPEED, 3,                 \
        "1: print each fact of the job once: settings, GPUs, links, the component that serves "    \
        "MPI_Allreduce, the first call on device memory that could not run in kernels. 2: every "  \
        "such call, and each kind of call")                                                        \
    HETCOLL_PARAMETER(TEXT, verbose_file, "", NULL, ALIKE, START, SPEED, 5,                        \
        "File for the lines of coll_hetcoll_verbose, in place of stderr; %r and %p as in "         \
        "coll_hetcoll_trace. Errors go to both")                                                   \
    HETCOLL_PARAMETER(WORD, fallback, "auto", "auto or never", ALIKE, START, SPEED, 5,             \
        "auto: --mca coll hetcoll also loads the components for calls that hetcoll does not "      \
        "serve. never: it does not")                                                               \
    HETCOLL_PARAMETER(BYTES, small_limit, 8192, HETCOLL_RANGE(0, HETCOLL_MAX_SMALL_LIMIT, NULL),   \
        LEAST, START, SPEED, 5,                                                                    \
        "Vectors of up to this many bytes (at most 16384) are reduced in host memory in one "      \
        "exchange, or if that costs less by one kernel on a node, or by messages between nodes; "  \
        "up to four times as many bytes (at most 32768) if this costs least")                      \
    HETCOLL_PARAMETER(INT, cpu_read_limit, -1,                                                     \
        HETCOLL_RANGE(-1, HETCOLL_MAX_SMALL_LIMIT, NULL), LOCAL, START, SPEED, 5,                  \
        "Most bytes that the processor reads from mapped device memory itself, without a copy. "   \
        "0: never. -1: as measured by hetcoll_tune, else 2048, or 16384 if device memory is "      \
        "coherent. docs/internals/latency.md")                                                     \
    HETCOLL_PARAMETER(INT, cpu_write_limit, -1,                                                    \
        HETCOLL_RANGE(-1, HETCOLL_MAX_SMALL_LIMIT, NULL), LOCAL, START, SPEED, 5,                  \
        "Like cpu_read_limit, but for writing results. -1: as measured, else 16384")               \
    HETCOLL_PARAMETER(BYTES, chunk_bytes, 0,                                                       \
        HETCOLL_RANGE(HETCOLL_MIN_CHUNK, HETCOLL_MAX_CHUNK, "to choose"), LEAST, FIRST_CALL,       \
        SPEED, 5,                                                                                  \
        "Largest message in bytes, 4096 to 64M. 0: by size")                                       \
    HETCOLL_PARAMETER(TEXT, algorithm, "auto", NULL, LEAST, FIRST_CALL, SPEED, 5,                  \
        "Algorithm to use wherever it can run: auto (by table or price, docs/tuning.md)"           \
        HETCOLL_ALGORITHMS(HETCOLL_COMMA_NAME))                                                    \
    HETCOLL_PARAMETER(BOOL, adapt_chunk, false, NULL, LEAST, START, SPEED, 5,                      \
        "true: try chunk sizes in the first calls of each kind (at most 20), unless the table "    \
        "gives one")                                                                               \
    HETCOLL_PARAMETER(INT, rack_nodes, 0, HETCOLL_RANGE(1, HETCOLL_MAX_RACK_NODES, "if not known"),\
        LEAST, START, SPEED, 5,                                                                    \
        "Nodes on one switch, in the order of the communicator's nodes: large messages stay "      \
        "among them where that costs less. 0: not known. docs/internals/schedules.md")             \
    HETCOLL_PARAMETER(INT, rack_gbps, 0,                                                           \
        HETCOLL_RANGE(1, HETCOLL_MAX_RACK_GBPS, "for as much as its nodes send"),                  \
        LEAST, START, SPEED, 5,                                                                    \
        "Rate in GB/s from one such switch to all others, in one direction. 0: as much as its "    \
        "nodes send")                                                                              \
    HETCOLL_PARAMETER(TEXT, shares, "off", NULL, SAME, START, SPEED, 5,                            \
        "How much of a vector each rank reduces if links are unequal: off, auto (by their "        \
        "rates), or a number for each rank, 3,3,0,2. docs/unequal-gpus.md")                        \
    HETCOLL_PARAMETER(BOOL, skew, false, NULL, LEAST, START, SPEED, 5,                             \
        "true: find a rank that always comes last, and start without it. docs/unequal-gpus.md")    \
    HETCOLL_PARAMETER(WORD, check, "on", "on or off", MOST, START, SPEED, 5,                       \
        "on: ranks that call differently (count, type, op, root, collective) all get an MPI "      \
        "error. off on any rank: calls are not compared. docs/troubleshooting.md")                 \
    HETCOLL_PARAMETER(INT, report_after, 60,                                                       \
        HETCOLL_RANGE(1, 1000000, "for no line"), LOCAL, START, SPEED, 5,                          \
        "Seconds until a waiting rank names the ranks that it waits for, and again after 4 and "   \
        "16 times as many. 0: never. docs/troubleshooting.md")                                     \
    HETCOLL_PARAMETER(BOOL, reproducible, false, NULL, MOST, START, RESULTS, 5,                    \
        "true: the same bits whatever the algorithm, chunks, nodes and placement")                 \
    HETCOLL_PARAMETER(WORD, accumulate, "float", "float or element", MOST, START, RESULTS, 5,      \
        "Sums of half and bfloat16. float: where several numbers are added together, keep the "    \
        "sum in float and round it once. element: round after every addition. docs/precision.md")  \
    HETCOLL_PARAMETER(INT, fixed_point, 0, HETCOLL_RANGE(1, 60, "for sums as floats"),             \
        SAME, START, RESULTS, 5,                                                                   \
        "Bits after the binary point (1 to 60) to add floats and doubles as integers: the same "   \
        "bits in any order, an error if a number is too large. 0: as floats. docs/precision.md")   \
    HETCOLL_PARAMETER(TEXT, aggregators, "", NULL, SAME, START, SPEED, 5,                          \
        "Reduction servers for larger vectors, HOST:PORT,.... If there are several, each serves "  \
        "some of the ranks and a spine adds their sums. docs/aggregators.md")                      \
    HETCOLL_PARAMETER(TEXT, aggregator_key, "", NULL, ALIKE, START, SPEED, 5,                      \
        "File with the aggregators' key, readable by its owner alone. NAME:FILE if they have "     \
        "several")                                                                                 \
    HETCOLL_PARAMETER(INT, aggregator_window, 8, HETCOLL_RANGE(1, 64, NULL), ALIKE, START, SPEED, 5,\
        "Most messages in flight to one aggregator, 1 to 64")                                      \
    HETCOLL_PARAMETER(TEXT, aggregator_rdma, "", NULL, LOCAL, START, SPEED, 5,                     \
        "Local device for RDMA to the aggregators, named as in UCX (mlx5_0:1), or any. Vectors "   \
        "go that way, not encrypted, if the aggregator has --rdma. docs/aggregators.md")           \
    HETCOLL_PARAMETER(BYTES, aggregator_copy, 16ul << 20,                                          \
        HETCOLL_RANGE(64ul << 10, HETCOLL_NO_LIMIT, NULL), ALIKE, START, SPEED, 5,                 \
        "Most bytes of input that a call in place keeps until all ranks have the result. Larger "  \
        "vectors go in several parts")                                                             \
    HETCOLL_PARAMETER(BOOL, recognize_ops, true, NULL, ALIKE, START, SPEED, 5,                     \
        "false: leave all user-defined operations to Open MPI")                                    \
    HETCOLL_PARAMETER(TEXT, user_ops, "", NULL, SAME, START, SPEED, 5,                             \
        "User-defined operations to run in kernels: SYMBOL=TYPE:OP,... with TYPE half or "         \
        "bfloat16 and OP sum, prod, min or max")                                                   \
    HETCOLL_PARAMETER(BOOL, progress_thread, false, NULL, LOCAL, START, SPEED, 5,                  \
        "true: a thread advances MPI_Iallreduce and persistent operations while the program "      \
        "computes. It needs a core of its own. Without MPI_THREAD_MULTIPLE it stays off, with a "  \
        "line")                                                                                    \
    HETCOLL_PARAMETER(WORD, ipc, "auto", "auto or never", LEAST, START, SPEED, 5,                  \
        "auto: map the GPU memory of other ranks on the node if a trial succeeds. never: do "      \
        "not. docs/internals/ipc.md")                                                              \
    HETCOLL_PARAMETER(TEXT, node, "", NULL, LOCAL, START, SPEED, 5,                                \
        "Any word: ranks with different words count as on different nodes")                        \
    HETCOLL_PARAMETER(TEXT, adapters, "", NULL, SAME, START, SPEED, 5,                             \
        "UCX transports (rc) that send part of a vector between ranks of a node over network "     \
        "adapters that packed trees leave idle. They need UCX with CUDA and a topology with "      \
        "adapters. docs/internals/trees.md")                                                       \
    HETCOLL_PARAMETER(TEXT, topology_file, "", NULL, ALIKE, START, SPEED, 5,                       \
        "Links from this file instead of the detected ones: FILE or FILE:GPUS, from "              \
        "hetcoll_info topology --write or hwloc, or the name of a shipped one. docs/topology.md")  \
    HETCOLL_PARAMETER(TEXT, tuning_table, "auto", NULL, SAME, START, SPEED, 5,                     \
        "Measured choices of algorithms. auto: hetcoll/tuning_table.json in sysconfdir (written "  \
        "by hetcoll_tune), else in the data folder, PREFIX/share. none: no table. Or a file")      \
    HETCOLL_PARAMETER(WORD, pointer_cache, "validated", "validated, hooked or off",                \
        ALIKE, START, SPEED, 5,                                                                    \
        "How device pointers are remembered: validated (one driver query confirms each use), "     \
        "hooked (no query, needs UCX's memory hooks), off. docs/internals/pointer-cache.md")       \
    HETCOLL_PARAMETER(WORD, pre_sync, "legacy", "legacy or context", ALIKE, START, RESULTS, 5,     \
        "Work that a call waits for before it reads the buffers: legacy (of the legacy default "   \
        "stream), context (all of the context). docs/streams.md")                                  \
    HETCOLL_PARAMETER(WORD, streams, "legacy", "legacy or independent", LOCAL, START, SPEED, 5,    \
        "legacy: hetcoll's streams wait for the program's work on the legacy default stream. "     \
        "independent: they do not, and the program must synchronise before each call. "            \
        "docs/streams.md")                                                                         \
    HETCOLL_PARAMETER(WORD, queued_calls, "prepared", "prepared or all",                           \
        LOCAL, START, SPEED, 5,                                                                    \
        "Calls that hetcoll_stream.h queues; others synchronise. prepared: those whose copies "    \
        "and kernels the stream gets beforehand. all: others too; programs then hang if they "     \
        "free memory, copy or load kernels meanwhile. docs/streams.md")                            \
    HETCOLL_PARAMETER(WORD, pml_device, "auto", "auto, never or always", ALIKE, START, SPEED, 5,   \
        "Send from device memory through Open MPI. auto: if pml ob1 is CUDA-aware and a trial "    \
        "succeeds. always: if the trial succeeds; crashes if messages do not take device "         \
        "memory. never: through pinned memory, as always for memory not from cuMemAlloc "          \
        "(cudaMalloc): managed, pools, virtual memory management")                                 \
    HETCOLL_PARAMETER(WORD, stage, "auto", "auto, always or never", ALIKE, START, SPEED, 5,        \
        "Copy other collectives on device memory to the host and back. auto: all if Open MPI is "  \
        "not CUDA-aware; else reductions, and memory that its CUDA support does not take "         \
        "everywhere. always, never. docs/collectives.md")                                          \
    HETCOLL_PARAMETER(BYTES, stage_pinned, 256ul << 20, HETCOLL_ANY_SIZE, ALIKE, START, SPEED, 5,\
        "Above this many bytes the host copy is pageable, reached through a few pinned slots: "    \
        "slower, but it pins only 4 MiB")                                                          \
    HETCOLL_PARAMETER(TEXT, trace, "", NULL, ALIKE, START, SPEED, 5,                               \
        "File for one line of JSON per call, for hetcoll_info trace. %r in its name is the "       \
        "rank, %p the process id; without either .RANK is added. docs/observability.md")           \
    HETCOLL_PARAMETER(BYTES, max_memory, 1ul << 30,                                                \
        HETCOLL_RANGE(256ul << 10, HETCOLL_NO_LIMIT, "for no bound"), ALIKE, START, SPEED, 5,      \
        "Most bytes of page-locked and device memory that a process holds (at least 262144). 0: "  \
        "no limit")                                                                                \
    HETCOLL_PARAMETER(BYTES, max_mapped, 0, HETCOLL_ANY_SIZE, ALIKE, START, SPEED, 5,            \
        "Most bytes of other ranks' GPU memory mapped between calls. 0: half of the GPU's memory")
/* clang-format on */
#define HETCOLL_COMMA_NAME(constant, enumerator, name, ...) ", " #name
/* clang-format off */
#define HETCOLL_RANGE(least, most, zero) {least, most, zero}
/* clang-format on */
#define HETCOLL_NO_LIMIT 0x7fffffffffffffffll
#define HETCOLL_ANY_NUMBER HETCOLL_RANGE(-0x7fffffff, 0x7fffffff, NULL)
#define HETCOLL_ANY_SIZE HETCOLL_RANGE(0, HETCOLL_NO_LIMIT, NULL)

/* Largest value of rack_nodes, of rack_gbps. */
#define HETCOLL_MAX_RACK_NODES 16384
#define HETCOLL_MAX_RACK_GBPS 1000000

/* Range of chunk_bytes. */
#define HETCOLL_MIN_CHUNK 4096
#define HETCOLL_MAX_CHUNK (64ul << 20)

/* Largest value of small_limit. */
#define HETCOLL_MAX_SMALL_LIMIT 16384

/* Numbers of words, in the order of `allowed`. */
enum { HETCOLL_POINTER_CACHE_VALIDATED, HETCOLL_POINTER_CACHE_HOOKED, HETCOLL_POINTER_CACHE_OFF };
enum { HETCOLL_PRE_SYNC_LEGACY, HETCOLL_PRE_SYNC_CONTEXT };
enum { HETCOLL_STREAMS_LEGACY, HETCOLL_STREAMS_INDEPENDENT };
enum { HETCOLL_QUEUED_CALLS_PREPARED, HETCOLL_QUEUED_CALLS_ALL };
enum { HETCOLL_IPC_AUTO, HETCOLL_IPC_NEVER };
enum { HETCOLL_STAGE_AUTO, HETCOLL_STAGE_ALWAYS, HETCOLL_STAGE_NEVER };
enum { HETCOLL_PML_DEVICE_AUTO, HETCOLL_PML_DEVICE_NEVER, HETCOLL_PML_DEVICE_ALWAYS };
enum { HETCOLL_CHECK_ON, HETCOLL_CHECK_OFF };
enum { HETCOLL_FALLBACK_AUTO, HETCOLL_FALLBACK_NEVER };
enum { HETCOLL_ACCUMULATE_FLOAT, HETCOLL_ACCUMULATE_ELEMENT };

#define HETCOLL_TYPE_BOOL bool
#define HETCOLL_TYPE_INT int
#define HETCOLL_TYPE_BYTES unsigned long
#define HETCOLL_TYPE_WORD int
#define HETCOLL_TYPE_TEXT const char *

struct hetcoll_ended_call; /* engine/types/counters.h */

/* The parameters, read once, and what goes with them. Strings are copied. */
struct hetcoll_settings {
#define HETCOLL_PARAMETER(kind, name, ...) HETCOLL_TYPE_##kind name;
    HETCOLL_PARAMETERS
#undef HETCOLL_PARAMETER
    int local_rank;     /* what concerns all ranks of a node alike is logged by rank 0 of it */
    int node_processes; /* of the job, on this one's node; 0: not known */
    int rank;           /* in MPI_COMM_WORLD, for the name of the trace */
    void (*log)(int level, const char *line);
    void (*ended)(const struct hetcoll_ended_call *call); /* on the thread that ended it; or NULL */
};

#define HETCOLL_DEFAULT_BOOL(value) value
#define HETCOLL_DEFAULT_INT(value) value
#define HETCOLL_DEFAULT_BYTES(value) value
#define HETCOLL_DEFAULT_WORD(value) 0
#define HETCOLL_DEFAULT_TEXT(value) value
static inline struct hetcoll_settings hetcoll_default_settings(void)
{
#define HETCOLL_PARAMETER(kind, name, value, ...) .name = HETCOLL_DEFAULT_##kind(value),
    const struct hetcoll_settings settings = {HETCOLL_PARAMETERS.local_rank = 0,
                                              .node_processes = 0, .rank = 0, .log = NULL,
                                              .ended = NULL}; /* NOLINT: C too */
#undef HETCOLL_PARAMETER
    return settings;
}

#endif
