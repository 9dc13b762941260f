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
        "A component with a higher priority takes MPI_Allreduce instead (Open MPI's cuda has 78, " \
        "tuned 30); negative: off")                                                                \
    HETCOLL_PARAMETER(BOOL, enable, true, NULL, LOCAL, START, SPEED, 3,                            \
        "false leaves every communicator to the other components")                                 \
    HETCOLL_PARAMETER(INT, verbose, 0, HETCOLL_ANY_NUMBER, LOCAL, START, SPEED, 3,                 \
        "1 tells what the job is made of, each fact once: version, settings, GPUs, links, who "    \
        "serves MPI_Allreduce on each communicator, and the first time that a call on device "     \
        "memory could not run in kernels. 2: that every time, and each kind of call")              \
    HETCOLL_PARAMETER(TEXT, verbose_file, "", NULL, ALIKE, START, SPEED, 5,                        \
        "A file for the lines of coll_hetcoll_verbose, in place of stderr: %r in its name is the " \
        "rank, %p the process id; without either .RANK is added. Errors go to both")               \
    HETCOLL_PARAMETER(WORD, fallback, "auto", "auto or never", ALIKE, START, SPEED, 5,             \
        "auto: --mca coll hetcoll brings in the other components for what hetcoll does not serve. "\
        "never: it does not")                                                                      \
    HETCOLL_PARAMETER(BYTES, small_limit, 8192, HETCOLL_RANGE(0, HETCOLL_MAX_SMALL_LIMIT, NULL),   \
        LEAST, START, SPEED, 5,                                                                    \
        "All ranks reduce vectors of up to this many bytes (at most 16384) in host memory, in "    \
        "one exchange, or on a node by one kernel if that costs less. Up to four times as many (at " \
        "most 32768) go the same way where it costs less than the other algorithms")               \
    HETCOLL_PARAMETER(INT, cpu_read_limit, -1,                                                     \
        HETCOLL_RANGE(-1, HETCOLL_MAX_SMALL_LIMIT, NULL), LOCAL, START, SPEED, 5,                  \
        "The processor reads vectors of up to this many bytes out of device memory itself, where " \
        "it can map that. 0: never. -1: as hetcoll_tune has measured, else 2048, or 16384 on "     \
        "machines where device memory is coherent. docs/cpu-path.md")                              \
    HETCOLL_PARAMETER(INT, cpu_write_limit, -1,                                                    \
        HETCOLL_RANGE(-1, HETCOLL_MAX_SMALL_LIMIT, NULL), LOCAL, START, SPEED, 5,                  \
        "The same of writing results. -1: as measured, else 16384")                                \
    HETCOLL_PARAMETER(BYTES, chunk_bytes, 0, HETCOLL_RANGE(4096, 64ul << 20, "to choose"),         \
        LEAST, FIRST_CALL, SPEED, 5,                                                               \
        "Most bytes in one message, 4096 to 64M; 0: by size")                                      \
    HETCOLL_PARAMETER(TEXT, algorithm, "auto", NULL, LEAST, FIRST_CALL, SPEED, 5,                  \
        "An algorithm to use wherever it can run: auto (by table or price, docs/tuning.md)"        \
        HETCOLL_ALGORITHMS(HETCOLL_COMMA_NAME))                                                    \
    HETCOLL_PARAMETER(BOOL, adapt_chunk, false, NULL, LEAST, START, SPEED, 5,                      \
        "true: look for the best chunk in the first calls of a kind (at most 20), unless the "     \
        "table gives it")                                                                          \
    HETCOLL_PARAMETER(INT, rack_nodes, 0, HETCOLL_RANGE(1, HETCOLL_MAX_RACK_NODES, "if not known"),\
        LEAST, START, SPEED, 5,                                                                    \
        "Nodes that hang on one switch, counted in the order of the communicator's nodes: large "  \
        "messages stay among them where that costs less; 0: not known. docs/schedules.md")         \
    HETCOLL_PARAMETER(INT, rack_gbps, 0,                                                           \
        HETCOLL_RANGE(1, HETCOLL_MAX_RACK_GBPS, "for as much as its nodes send"),                  \
        LEAST, START, SPEED, 5,                                                                    \
        "Rate in GB/s of all links of such a switch to the others, in one direction; 0: as much "  \
        "as its nodes send")                                                                       \
    HETCOLL_PARAMETER(TEXT, shares, "off", NULL, SAME, START, SPEED, 5,                            \
        "How much of a vector each rank reduces if links are unequal: off, auto (by the links' "   \
        "rates), or a number for each rank, 3,3,0,2. docs/unequal-links.md")                       \
    HETCOLL_PARAMETER(BOOL, skew, false, NULL, LEAST, START, SPEED, 5,                             \
        "true: find a rank that always comes late, and let the others begin without it. "          \
        "docs/late-ranks.md")                                                                      \
    HETCOLL_PARAMETER(WORD, check, "on", "on or off", MOST, START, SPEED, 5,                       \
        "on: ranks that call differently (count, type, op, root, collective) all get an MPI error, "\
        "and one line shows both calls. off on any rank: nobody looks. docs/troubleshooting.md")   \
    HETCOLL_PARAMETER(INT, report_after, 60,                                                       \
        HETCOLL_RANGE(1, 1000000, "for no line"), LOCAL, START, SPEED, 5,                          \
        "Seconds after which a rank that waits says for whom, in one line, and again after 4 and " \
        "16 times as many; 0: never. docs/troubleshooting.md")                                     \
    HETCOLL_PARAMETER(BOOL, reproducible, false, NULL, MOST, START, RESULTS, 5,                    \
        "true: the same bits whatever the algorithm, the chunks, the nodes and the placement")     \
    HETCOLL_PARAMETER(WORD, accumulate, "float", "float or element", MOST, START, RESULTS, 5,      \
        "Sums of half and bfloat16. float: kernels and processors that add many numbers at once "  \
        "keep the sum in float and round it once. element: they round after every addition. "      \
        "docs/precision.md")                                                                       \
    HETCOLL_PARAMETER(INT, fixed_point, 0, HETCOLL_RANGE(1, 60, "for sums as floats"),             \
        SAME, START, RESULTS, 5,                                                                   \
        "Add floats and doubles as integers with this many bits behind the point, 1 to 60: the "   \
        "same bits in any order. A number that is too large for it is an error. 0: as floats. "    \
        "docs/fixed-point.md")                                                                     \
    HETCOLL_PARAMETER(TEXT, aggregators, "", NULL, SAME, START, SPEED, 5,                          \
        "Reduction servers for larger vectors (hetcoll_aggregator), HOST:PORT,.... If there are "  \
        "several, each serves some of the ranks, and a spine adds up their sums. "                 \
        "docs/in-network.md")                                                                      \
    HETCOLL_PARAMETER(TEXT, aggregator_key, "", NULL, ALIKE, START, SPEED, 5,                      \
        "File with the key of the aggregators, readable by its owner alone; NAME:FILE where they " \
        "have several keys")                                                                       \
    HETCOLL_PARAMETER(INT, aggregator_window, 8, HETCOLL_RANGE(1, 64, NULL), ALIKE, START, SPEED, 5,\
        "Most messages to an aggregator in flight, 1 to 64")                                       \
    HETCOLL_PARAMETER(TEXT, aggregator_rdma, "", NULL, LOCAL, START, SPEED, 5,                     \
        "Device of this machine for RDMA to the aggregators, as UCX calls it (mlx5_0:1), or any. " \
        "Vectors go that way, not encrypted, if the aggregator has --rdma. docs/aggregators.md")   \
    HETCOLL_PARAMETER(BYTES, aggregator_copy, 16ul << 20,                                          \
        HETCOLL_RANGE(64ul << 10, HETCOLL_NO_LIMIT, NULL), ALIKE, START, SPEED, 5,                 \
        "Most bytes of the input that a call in place keeps until all ranks have the result from " \
        "their aggregators; larger vectors go in several parts")                                   \
    HETCOLL_PARAMETER(BOOL, recognize_ops, true, NULL, ALIKE, START, SPEED, 5,                     \
        "false: leave every user-defined operation to Open MPI")                                   \
    HETCOLL_PARAMETER(TEXT, user_ops, "", NULL, SAME, START, SPEED, 5,                             \
        "Functions of user-defined operations that run in kernels: SYMBOL=TYPE:OP,... with TYPE "  \
        "half or bfloat16 and OP sum, prod, min or max")                                           \
    HETCOLL_PARAMETER(BOOL, progress_thread, false, NULL, LOCAL, START, SPEED, 5,                  \
        "true: a thread of hetcoll advances MPI_Iallreduce and persistent operations while the "   \
        "program computes. It needs a processor core of its own and MPI_THREAD_MULTIPLE; without " \
        "the latter one line says so, and it is off")                                              \
    HETCOLL_PARAMETER(WORD, ipc, "auto", "auto or never", LEAST, START, SPEED, 5,                  \
        "auto: map the GPU memory of other ranks on the node if a trial succeeds, docs/ipc.md. "   \
        "never: do not")                                                                           \
    HETCOLL_PARAMETER(TEXT, node, "", NULL, LOCAL, START, SPEED, 5,                                \
        "A word: ranks with different words count as ranks on different nodes")                    \
    HETCOLL_PARAMETER(TEXT, adapters, "", NULL, SAME, START, SPEED, 5,                             \
        "Transports of UCX, rc, by which the ranks of a node may send part of a vector through "   \
        "its network adapters, where packed trees leave these idle: needs a UCX with CUDA and a "  \
        "topology with adapters. docs/trees.md")                                                   \
    HETCOLL_PARAMETER(TEXT, topology_file, "", NULL, ALIKE, START, SPEED, 5,                       \
        "A file with the links, used instead of those found: FILE or FILE:GPUS, as "               \
        "hetcoll_info --topology --write makes it, of hwloc, or a shipped one by name. "           \
        "docs/topology.md")                                                                        \
    HETCOLL_PARAMETER(TEXT, tuning_table, "auto", NULL, SAME, START, SPEED, 5,                     \
        "Measured choices of algorithms. auto: hetcoll/tuning_table.json of sysconfdir "           \
        "(hetcoll_tune writes it), else of the data folder, PREFIX/share; none; or a file")        \
    HETCOLL_PARAMETER(WORD, pointer_cache, "validated", "validated, hooked or off",                \
        ALIKE, START, SPEED, 5,                                                                    \
        "What is remembered of device buffers: validated (one driver query confirms each use), "   \
        "hooked (no query, needs UCX's memory hooks), off. docs/pointer-cache.md")                 \
    HETCOLL_PARAMETER(WORD, pre_sync, "legacy", "legacy or context", ALIKE, START, RESULTS, 5,     \
        "What the call waits for before it reads the buffers: legacy (work on the legacy default " \
        "stream), context (all work of the context). docs/streams.md")                             \
    HETCOLL_PARAMETER(WORD, streams, "legacy", "legacy or independent", LOCAL, START, SPEED, 5,    \
        "legacy: hetcoll's streams wait for what the program has put on the legacy default "       \
        "stream. independent: they wait for none of the program's, which has to synchronise "      \
        "before each call. docs/streams.md")                                                       \
    HETCOLL_PARAMETER(WORD, queued_calls, "prepared", "prepared or all",                           \
        LOCAL, START, SPEED, 5,                                                                    \
        "Which calls hetcoll_stream.h queues; others synchronise. prepared: those whose copies "   \
        "and kernels the stream is given beforehand. all: others too, beside which a program "     \
        "hangs that frees memory, copies or loads kernels. docs/streams.md")                       \
    HETCOLL_PARAMETER(WORD, pml_device, "auto", "auto, never or always", ALIKE, START, SPEED, 5,   \
        "Hand device pointers to Open MPI's messages. auto: if pml ob1 is CUDA-aware and a trial " \
        "succeeds. always: if the trial succeeds, which crashes if messages do not take device "   \
        "memory. never: through pinned memory. Memory that cuMemAlloc (cudaMalloc) did not make "  \
        "always goes that way: managed memory, pools, virtual memory management")                  \
    HETCOLL_PARAMETER(WORD, stage, "auto", "auto, always or never", ALIKE, START, SPEED, 5,        \
        "Other collectives on device memory. auto: if Open MPI says that it is not CUDA-aware, "   \
        "copy all of them to the host and back; else copy reductions, and memory that its CUDA "   \
        "support does not take everywhere. always, never. docs/collectives.md")                    \
    HETCOLL_PARAMETER(BYTES, stage_pinned, 256ul << 20, HETCOLL_ANY_SIZE, ALIKE, START, SPEED, 5,\
        "A larger buffer gets a pageable copy on the host, reached through a few pinned slots: "   \
        "slower, but it pins only 4 MiB")                                                          \
    HETCOLL_PARAMETER(TEXT, trace, "", NULL, ALIKE, START, SPEED, 5,                               \
        "A file that gets one line of JSON for each call, for hetcoll_info --trace: %r in its "    \
        "name is the rank, %p the process id; without either .RANK is added. "                     \
        "docs/observability.md")                                                                   \
    HETCOLL_PARAMETER(BYTES, max_memory, 1ul << 30,                                                \
        HETCOLL_RANGE(256ul << 10, HETCOLL_NO_LIMIT, "for no bound"), ALIKE, START, SPEED, 5,      \
        "Most bytes of page-locked and device memory that a process holds (at least 262144); 0: "  \
        "no bound")                                                                                \
    HETCOLL_PARAMETER(BYTES, max_mapped, 0, HETCOLL_ANY_SIZE, ALIKE, START, SPEED, 5,            \
        "Most bytes of peers' memory that stay mapped between calls; 0: half of what the GPU has")
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
