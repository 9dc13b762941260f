/* The component: its parameters, and its life from MPI_Init to MPI_Finalize. */
#include "coll_hetcoll.h"
#include "coll_hetcoll_request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opal/mca/base/base.h"
#include "opal/util/output.h"
#include "opal/util/proc.h"

const char *mca_coll_hetcoll_component_version_string = "hetcoll, built for Open MPI " OMPI_VERSION;

static int register_parameters(void);
static int open_component(void);
static int close_component(void);
/* The level is taken down here: in 4.1 a program's MPI_T_init_thread changes what MPI says of it.
 */
static int init_query(bool progress_threads, bool mpi_threads)
{
    (void)progress_threads;
    mca_coll_hetcoll_component.thread_multiple = mpi_threads;
    return OMPI_SUCCESS;
}

mca_coll_hetcoll_component_t mca_coll_hetcoll_component = {
    .super =
        {
            .collm_version =
                {
                    HETCOLL_COLL_VERSION,
                    .mca_component_name = "hetcoll",
                    MCA_BASE_MAKE_VERSION(component, OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION,
                                          OMPI_RELEASE_VERSION),
                    .mca_open_component = open_component,
                    .mca_close_component = close_component,
                    .mca_register_component_params = register_parameters,
                },
            .collm_data = {MCA_BASE_METADATA_PARAM_CHECKPOINT},
            .collm_init_query = init_query,
            .collm_comm_query = mca_coll_hetcoll_comm_query,
        },
};
#ifdef MCA_BASE_COMPONENT_INIT
MCA_BASE_COMPONENT_INIT(ompi, coll, hetcoll)
#endif

void mca_coll_hetcoll_log(int level, const char *line)
{
    if (level <= mca_coll_hetcoll_component.verbose) {
        opal_output(0, "%s", line);
    }
}

/* Open MPI's internal structures change even inside a stable series while the library's soname does
 * not, and register runs before the framework compares interface versions. */
static bool is_own_release(void)
{
    char library[MPI_MAX_LIBRARY_VERSION_STRING];
    int length, major, minor, release;
    MPI_Get_library_version(library, &length);
    if (3 == sscanf(library, "Open MPI v%d.%d.%d", &major, &minor, &release) &&
        OMPI_MAJOR_VERSION == major && OMPI_MINOR_VERSION == minor &&
        OMPI_RELEASE_VERSION == release) {
        return true;
    }
    /* One rank of each node speaks, known by its environment: the layout of Open MPI's own
     * structures is in doubt. */
    const char *local_rank = getenv("OMPI_COMM_WORLD_LOCAL_RANK");
    if (NULL == local_rank || 0 == strcmp(local_rank, "0")) {
        library[strcspn(library, ",")] = '\0';
        opal_output(0,
                    "hetcoll was built for Open MPI %d.%d.%d and this is %s: hetcoll steps aside, "
                    "rebuild it for this release",
                    OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION, OMPI_RELEASE_VERSION, library);
    }
    return false;
}

static void register_int(const char *name, const char *help, mca_base_var_info_lvl_t level,
                         int *storage, int value)
{
    *storage = value;
    (void)mca_base_component_var_register(&mca_coll_hetcoll_component.super.collm_version, name,
                                          help, MCA_BASE_VAR_TYPE_INT, NULL, 0, 0, level,
                                          MCA_BASE_VAR_SCOPE_READONLY, storage);
}

static void register_bool(const char *name, const char *help, mca_base_var_info_lvl_t level,
                          mca_base_var_scope_t scope, bool *storage, bool value)
{
    *storage = value;
    (void)mca_base_component_var_register(&mca_coll_hetcoll_component.super.collm_version, name,
                                          help, MCA_BASE_VAR_TYPE_BOOL, NULL, 0, 0, level, scope,
                                          storage);
}

static int register_bytes(const char *name, const char *help, unsigned long *storage,
                          unsigned long value)
{
    *storage = value;
    return mca_base_component_var_register(&mca_coll_hetcoll_component.super.collm_version, name,
                                           help, MCA_BASE_VAR_TYPE_UNSIGNED_LONG, NULL, 0, 0,
                                           OPAL_INFO_LVL_5, MCA_BASE_VAR_SCOPE_ALL_EQ, storage);
}

static int register_string(const char *name, const char *help, char **storage, char *value)
{
    *storage = value;
    return mca_base_component_var_register(&mca_coll_hetcoll_component.super.collm_version, name,
                                           help, MCA_BASE_VAR_TYPE_STRING, NULL, 0, 0,
                                           OPAL_INFO_LVL_5, MCA_BASE_VAR_SCOPE_ALL_EQ, storage);
}

/* A program may write it through MPI_T. Returns its index in Open MPI's registry. */
static int make_settable(int index)
{
    const int rc = mca_base_var_set_flag(index, MCA_BASE_VAR_FLAG_SETTABLE, true);
    return OPAL_SUCCESS == rc ? index : -1;
}

static int register_parameters(void)
{
    mca_coll_hetcoll_component_t *c = &mca_coll_hetcoll_component;
    if (!is_own_release()) {
        return OPAL_ERR_NOT_AVAILABLE;
    }
    register_int("priority",
                 "Priority of hetcoll. Below 78 the staging component of a CUDA-aware Open MPI "
                 "hides it; negative: never used",
                 OPAL_INFO_LVL_6, &c->priority, 95);
    register_bool("enable", "false leaves every communicator to the other coll components",
                  OPAL_INFO_LVL_3, MCA_BASE_VAR_SCOPE_READONLY, &c->enable, true);
    register_int("verbose",
                 "1 prints once a communicator who serves MPI_Allreduce, and why a call was staged",
                 OPAL_INFO_LVL_3, &c->verbose, 0);
    register_string("fallback",
                    "Use the other coll components too, for what hetcoll does not serve: auto "
                    "(where hetcoll is the only one selected), never",
                    &c->fallback, "auto");
    register_bytes("small_limit",
                   "Largest vector, in bytes, that is reduced in host memory in one exchange "
                   "whatever the memory of the buffers (at most 16384)",
                   &c->small_limit, 8192);
    c->chunk_bytes_index = make_settable(register_bytes(
        "chunk_bytes",
        "Most bytes in one message of a larger vector (4096 to 67108864); 0 chooses by the "
        "vector's size. A communicator takes what is set at its first MPI_Allreduce",
        &c->chunk_bytes, 0));
    c->algorithm_index = make_settable(register_string(
        "algorithm",
        "Algorithm where it can run: auto, recursive_doubling, rabenseifner, ring, one_shot, "
        "two_shot, leader, tree, hierarchical, host, copy_in, ordered, in_network, "
        "weighted. A communicator "
        "takes what is set at its first MPI_Allreduce",
        &c->algorithm, "auto"));
    register_bool(
        "adapt_chunk",
        "Look for the best chunk of a message in the first calls of a kind, at most 20, where no "
        "measured table gives it",
        OPAL_INFO_LVL_5, MCA_BASE_VAR_SCOPE_ALL_EQ, &c->adapt_chunk, false);
    register_string("shares",
                    "How much of a vector each rank reduces, where ranks have unequal links: off, "
                    "auto (by the links' rates), or a whole number for each rank, as 3,3,0,2. "
                    "Ignored with coll_hetcoll_reproducible",
                    &c->shares, "off");
    register_bool(
        "skew",
        "Look which rank comes later than the others to larger vectors, call after call, and let "
        "these begin without it. Ignored with coll_hetcoll_reproducible",
        OPAL_INFO_LVL_5, MCA_BASE_VAR_SCOPE_ALL_EQ, &c->skew, false);
    register_bool(
        "reproducible",
        "Add every element in the order of the ranks, so that a sum has the same bits whatever the "
        "algorithm, the chunks, the number of nodes and the placement; slower on several nodes",
        OPAL_INFO_LVL_5, MCA_BASE_VAR_SCOPE_ALL_EQ, &c->reproducible, false);
    register_int("fixed_point",
                 "Add floats and doubles as integers with so many bits behind the point (1 to 60), "
                 "so that a sum has the same bits whatever the order; 0: as floats. A number that "
                 "is too large for it is an error",
                 OPAL_INFO_LVL_5, &c->fixed_point, 0);
    register_string("aggregators",
                    "Reduction servers (hetcoll_aggregator) that serve larger vectors: "
                    "HOST:PORT,.... With several each serves some of the ranks, and a spine above "
                    "them adds up their sums",
                    &c->aggregators, "");
    register_string("aggregator_key",
                    "File with the key of the aggregators, readable by its owner alone",
                    &c->aggregator_key, "");
    register_int("aggregator_window", "Most messages to an aggregator in flight (1 to 64)",
                 OPAL_INFO_LVL_5, &c->aggregator_window, 8);
    (void)register_bytes("aggregator_copy",
                         "Most bytes of the input that a call in place keeps until all ranks have "
                         "the result from their aggregators; larger vectors go in several parts",
                         &c->aggregator_copy, 16ul << 20);
    register_bool(
        "recognize_ops",
        "Reduce user-defined operations of half and bfloat16 on the GPU where their function is "
        "known: those of hetcoll_types.h, Horovod's, and those of coll_hetcoll_user_ops",
        OPAL_INFO_LVL_5, MCA_BASE_VAR_SCOPE_ALL_EQ, &c->recognize_ops, true);
    register_string("user_ops",
                    "Further functions of user-defined operations, by their symbols: "
                    "SYMBOL=TYPE:OP,... with TYPE half or bfloat16 and OP sum, prod, min or max",
                    &c->user_ops, "");
    register_bool(
        "progress_thread",
        "A thread of hetcoll advances nonblocking and persistent MPI_Allreduce while the program "
        "computes; needs MPI_THREAD_MULTIPLE and a processor core of its own",
        OPAL_INFO_LVL_5, MCA_BASE_VAR_SCOPE_READONLY, &c->progress_thread, false);
    register_string("ipc",
                    "Map the memory of GPUs of other ranks on the node: auto (where a trial "
                    "succeeds), never",
                    &c->ipc, "auto");
    register_string("node",
                    "Ranks with different words count as ranks on different nodes, whatever the "
                    "machine",
                    &c->node, "");
    register_string("topology_file",
                    "Topology to go by instead of what is found: FILE or FILE:GPUS, a file as "
                    "hetcoll_info --topology --write makes it, of hwloc, or a shipped one by name",
                    &c->topology_file, "");
    register_string(
        "tuning_table",
        "Measured choices of algorithms: auto (the table made at installation, if there "
        "is one), none, or a file",
        &c->tuning_table, "auto");
    register_string("pointer_cache",
                    "What is remembered of device buffers: validated (one driver query confirms "
                    "each use), hooked (no query, needs UCX's memory hooks), off",
                    &c->pointer_cache, "validated");
    register_string("pre_sync",
                    "What a buffer's first use waits for: legacy (work on the legacy default "
                    "stream), context (all work of the context)",
                    &c->pre_sync, "legacy");
    register_string("pml_device",
                    "Hand device pointers to Open MPI's messages: auto (pml ob1 of a CUDA-aware "
                    "Open MPI, if a trial succeeds), never, always (if the trial succeeds, which "
                    "crashes where messages do not take device memory)",
                    &c->pml_device, "auto");
    register_string("stage",
                    "Copy device memory to the host for collectives other than Allreduce: auto "
                    "(all of them where Open MPI says that it is not CUDA-aware, else reductions), "
                    "always, never",
                    &c->stage, "auto");
    (void)register_bytes("stage_pinned",
                         "Larger buffers, in bytes, are copied through pageable memory",
                         &c->stage_pinned, 256ul << 20);
    register_string("trace",
                    "Write a line of JSON a call to this file, for hetcoll_info --trace: %r in its "
                    "name is the rank, %p the process id; without either .RANK is added",
                    &c->trace, "");
    (void)register_bytes("max_memory",
                         "Most bytes of page-locked host memory and device memory that a process "
                         "holds for hetcoll (at least 262144); 0: no bound",
                         &c->max_memory, 1ul << 30);
    (void)register_bytes(
        "max_mapped",
        "Most bytes of the memory of other ranks' GPUs that a process keeps mapped "
        "between calls",
        &c->max_mapped, 64ul << 30);
    return mca_coll_hetcoll_bring_fallback();
}

/* One rank of each node speaks for all. Not through Open MPI's help files: their way to mpirun
 * loses messages in 4.1.4 when several ranks send at once. */
static void report(const char *problem)
{
    if (0 == opal_process_info.my_local_rank) {
        opal_output(0,
                    "hetcoll is off, the other coll components serve this job, device memory in "
                    "MPI_Allreduce is as unsafe or slow as without hetcoll: %s",
                    problem);
    }
}

static bool is_one_of(const char *value, const char *first, const char *second)
{
    return 0 == strcmp(value, first) || 0 == strcmp(value, second);
}

static bool settings_are_valid(const mca_coll_hetcoll_component_t *c)
{
    char line[256];
    if (!is_one_of(c->pre_sync, "legacy", "context")) {
        snprintf(line, sizeof line,
                 "coll_hetcoll_pre_sync '%s' is unknown, write legacy or context", c->pre_sync);
    } else if (!is_one_of(c->pml_device, "auto", "never") && 0 != strcmp(c->pml_device, "always")) {
        snprintf(line, sizeof line,
                 "coll_hetcoll_pml_device '%s' is unknown, write auto, never or always",
                 c->pml_device);
    } else if (!is_one_of(c->ipc, "auto", "never")) {
        snprintf(line, sizeof line, "coll_hetcoll_ipc '%s' is unknown, write auto or never",
                 c->ipc);
    } else if (!is_one_of(c->stage, "auto", "never") && 0 != strcmp(c->stage, "always")) {
        snprintf(line, sizeof line,
                 "coll_hetcoll_stage '%s' is unknown, write auto, always or never", c->stage);
    } else if (!is_one_of(c->fallback, "auto", "never")) {
        snprintf(line, sizeof line, "coll_hetcoll_fallback '%s' is unknown, write auto or never",
                 c->fallback);
    } else {
        return true;
    }
    report(line);
    return false;
}

static bool is_set_by_program(int index)
{
    mca_base_var_source_t source = MCA_BASE_VAR_SOURCE_DEFAULT;
    return 0 <= index && OPAL_SUCCESS == mca_base_var_get_value(index, NULL, &source, NULL) &&
           MCA_BASE_VAR_SOURCE_SET == source;
}

void mca_coll_hetcoll_apply_settings(struct hetcoll_facts *facts)
{
    const mca_coll_hetcoll_component_t *c = &mca_coll_hetcoll_component;
    char problem[512], line[600];
    bool good = true;
    if (is_set_by_program(c->algorithm_index)) {
        good = hetcoll_facts_set_algorithm(facts, c->algorithm, problem, sizeof problem);
    }
    if (good && is_set_by_program(c->chunk_bytes_index)) {
        good = hetcoll_facts_set_chunk_bytes(facts, c->chunk_bytes, problem, sizeof problem);
    }
    if (!good) {
        snprintf(line, sizeof line, "hetcoll: ignores what the program set: %s", problem);
        mca_coll_hetcoll_log(0, line);
    }
}

/* No CUDA call and no message: what a communicator needs is made at its first call. */
static int open_component(void)
{
    mca_coll_hetcoll_component_t *c = &mca_coll_hetcoll_component;
    c->process = NULL;
    c->stage_mode = HETCOLL_STAGE_UNDECIDED;
    if (!settings_are_valid(c)) {
        return OMPI_SUCCESS;
    }
    if (!c->enable || 0 > c->priority) {
        if (1 <= c->verbose) {
            report(c->enable ? "coll_hetcoll_priority is negative" : "coll_hetcoll_enable is 0");
        }
        return OMPI_SUCCESS;
    }
    const struct hetcoll_settings settings = {
        .pointer_cache = c->pointer_cache,
        .algorithm = c->algorithm,
        .node = c->node,
        .topology_file = c->topology_file,
        .tuning_table = c->tuning_table,
        .ipc = 0 == strcmp(c->ipc, "auto"),
        .collectives = 0 != strcmp(c->stage, "never"),
        .adapt_chunk = c->adapt_chunk,
        .shares = c->shares,
        .skew = c->skew,
        .reproducible = c->reproducible,
        .fixed_point = c->fixed_point,
        .aggregators = c->aggregators,
        .aggregator_key = c->aggregator_key,
        .aggregator_window = c->aggregator_window,
        .aggregator_copy = c->aggregator_copy,
        .recognize_ops = c->recognize_ops,
        .user_ops = c->user_ops,
        .small_limit = c->small_limit,
        .chunk_bytes = c->chunk_bytes,
        .sync_context = 0 == strcmp(c->pre_sync, "context"),
        .priority = c->priority,
        .local_rank = opal_process_info.my_local_rank,
        .verbose = c->verbose,
        .trace = c->trace,
        .rank = (int)OPAL_PROC_MY_NAME.vpid,
        .max_memory = c->max_memory,
        .max_mapped = c->max_mapped,
        .stage_pinned = c->stage_pinned,
        .log = mca_coll_hetcoll_log,
    };
    char problem[512];
    c->process = hetcoll_process_create(&settings, problem, sizeof problem);
    if (NULL == c->process) {
        report(problem);
        return OMPI_SUCCESS;
    }
    mca_coll_hetcoll_register_counters();
    return mca_coll_hetcoll_publish_facts();
}

static int close_component(void)
{
    mca_coll_hetcoll_stop_requests();
    mca_coll_hetcoll_forget_facts();
    if (NULL != mca_coll_hetcoll_component.process) {
        hetcoll_process_destroy(mca_coll_hetcoll_component.process);
        mca_coll_hetcoll_component.process = NULL;
    }
    return OMPI_SUCCESS;
}
