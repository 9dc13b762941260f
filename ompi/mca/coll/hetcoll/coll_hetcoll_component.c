/* The component: its parameters, and its life from MPI_Init to MPI_Finalize. */
#include "coll_hetcoll.h"
#include "coll_hetcoll_request.h"
#include "hetcoll_config.h"

#include <stdio.h>
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
    const mca_coll_hetcoll_component_t *c = &mca_coll_hetcoll_component;
    if (level > c->settings.verbose || (1 == level && mca_coll_hetcoll_was_told(line))) {
        return;
    }
    char text[2048];
    snprintf(text, sizeof text, "%s%s", 0 < level ? mca_coll_hetcoll_speaker() : "", line);
    const bool written = NULL != c->log_file && hetcoll_log_file_write(c->log_file, text);
    if (0 == level || !written) {
        opal_output(0, "%s", text);
    }
}

/* Lines of the story go to stderr if the file cannot be written. */
static void open_log_file(mca_coll_hetcoll_component_t *c)
{
    const char *pattern = c->settings.verbose_file;
    if (NULL == pattern || '\0' == *pattern) {
        return;
    }
    char problem[512];
    c->log_file = hetcoll_log_file_open(pattern, c->settings.rank, problem, sizeof problem);
    if (NULL == c->log_file && 0 == c->settings.local_rank) {
        opal_output(0, "hetcoll: %s, so its lines go to stderr", problem);
    }
}

void mca_coll_hetcoll_step_aside(const char *why, const char *way_out)
{
    if (mca_coll_hetcoll_speaks_for_node()) {
        opal_output(0, "hetcoll %s: hetcoll steps aside, %s", why, way_out);
    }
}

/* Open MPI's internal structures change even inside a stable series while the library's soname does
 * not, and register runs before the framework compares interface versions. */
static bool is_own_release(void)
{
    char library[MPI_MAX_LIBRARY_VERSION_STRING], why[128];
    int length, major, minor, release;
    MPI_Get_library_version(library, &length);
    if (3 == sscanf(library, "Open MPI v%d.%d.%d", &major, &minor, &release) &&
        OMPI_MAJOR_VERSION == major && OMPI_MINOR_VERSION == minor &&
        OMPI_RELEASE_VERSION == release) {
        return true;
    }
    library[strcspn(library, ",")] = '\0';
    snprintf(why, sizeof why, "was built for Open MPI %d.%d.%d and this is %.64s",
             OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION, OMPI_RELEASE_VERSION, library);
    mca_coll_hetcoll_step_aside(why, "rebuild it for this release");
    return false;
}

enum agree { AGREE_LOCAL, AGREE_ALIKE, AGREE_LEAST, AGREE_MOST, AGREE_SAME, AGREE_VITAL };

/* Returns its index in Open MPI's registry. */
static int register_parameter(const char *name, const char *help, mca_base_var_type_t type,
                              mca_base_var_info_lvl_t level, enum agree agree, void *storage)
{
    const mca_base_var_scope_t scope =
        AGREE_LOCAL == agree ? MCA_BASE_VAR_SCOPE_READONLY : MCA_BASE_VAR_SCOPE_ALL_EQ;
    return mca_base_component_var_register(&mca_coll_hetcoll_component.super.collm_version, name,
                                           help, type, NULL, 0, 0, level, scope, storage);
}

/* A program may write it through MPI_T. Returns its index. */
static int make_settable(int index)
{
    const int rc = mca_base_var_set_flag(index, MCA_BASE_VAR_FLAG_SETTABLE, true);
    return OPAL_SUCCESS == rc ? index : -1;
}

/* A wrong one is the default; mca_coll_hetcoll_check_parameters() says so. */
static void take_word(const char *name, const char *word)
{
    char message[512];
    (void)hetcoll_set_parameter(&mca_coll_hetcoll_component.settings, name,
                                NULL == word ? "" : word, message, sizeof message);
}

#define REGISTER(name, help, type, level, agree)                                    \
    index = register_parameter(#name, help, MCA_BASE_VAR_TYPE_##type, level, agree, \
                               &c->settings.name);
#define REGISTER_BOOL(name, help, level, agree, value, ...) REGISTER(name, help, BOOL, level, agree)
#define REGISTER_INT(name, help, level, agree, value, ...) REGISTER(name, help, INT, level, agree)
#define REGISTER_BYTES(name, help, level, agree, value, ...) \
    REGISTER(name, help, UNSIGNED_LONG, level, agree)
#define REGISTER_TEXT(name, help, level, agree, value, ...) \
    REGISTER(name, help, STRING, level, agree)
#define REGISTER_WORD(name, help, level, agree, value, ...)                                      \
    c->words.name = value;                                                                       \
    index =                                                                                      \
        register_parameter(#name, help, MCA_BASE_VAR_TYPE_STRING, level, agree, &c->words.name); \
    take_word(#name, c->words.name);
#define SET_AT_START(name)
#define SET_AT_FIRST_CALL(name) c->name##_index = make_settable(index);

/* For programs and ompi_info. Nobody can set it. */
static void register_version(void)
{
    static const char *version;
    version = HETCOLL_VERSION; /* Open MPI puts a copy here, and frees that */
    (void)mca_base_component_var_register(
        &mca_coll_hetcoll_component.super.collm_version, "version",
        "The release of hetcoll: not to be set", MCA_BASE_VAR_TYPE_STRING, NULL, 0,
        MCA_BASE_VAR_FLAG_DEFAULT_ONLY, OPAL_INFO_LVL_4, MCA_BASE_VAR_SCOPE_CONSTANT, &version);
}

static int register_parameters(void)
{
    mca_coll_hetcoll_component_t *c = &mca_coll_hetcoll_component;
    if (!is_own_release() || !mca_coll_hetcoll_has_sizes()) {
        return OPAL_ERR_NOT_AVAILABLE;
    }
    int index;
    register_version();
    c->settings = hetcoll_default_settings();
#define HETCOLL_PARAMETER(kind, name, value, allowed, agree, when, changes, level, help) \
    REGISTER_##kind(name, help, OPAL_INFO_LVL_##level, AGREE_##agree, value, allowed)    \
        SET_AT_##when(name)
    HETCOLL_PARAMETERS
#undef HETCOLL_PARAMETER
    mca_coll_hetcoll_register_counters();
    mca_coll_hetcoll_register_event();
    mca_coll_hetcoll_register_stream_functions();
    return mca_coll_hetcoll_bring_fallback();
}

/* One rank of each node speaks for all. Not through Open MPI's help files: their way to mpirun
 * loses messages in 4.1.4 when several ranks send at the same time. */
static void report(const char *problem)
{
    if (0 == opal_process_info.my_local_rank) {
        opal_output(0,
                    "hetcoll is off, the other coll components serve this job, device memory in "
                    "MPI_Allreduce is as unsafe or slow as without hetcoll: %s",
                    problem);
    }
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
        good = hetcoll_facts_set_algorithm(facts, c->settings.algorithm, problem, sizeof problem);
    }
    if (good && is_set_by_program(c->chunk_bytes_index)) {
        good =
            hetcoll_facts_set_chunk_bytes(facts, c->settings.chunk_bytes, problem, sizeof problem);
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
    mca_coll_hetcoll_check_parameters();
    if (!c->settings.enable || 0 > c->settings.priority) {
        if (1 <= c->settings.verbose) {
            report(c->settings.enable ? "coll_hetcoll_priority is negative"
                                      : "coll_hetcoll_enable is 0");
        }
        return mca_coll_hetcoll_publish_facts();
    }
    c->settings.local_rank = opal_process_info.my_local_rank;
    c->settings.node_processes = 1 + (int)opal_process_info.num_local_peers;
    c->settings.rank = (int)OPAL_PROC_MY_NAME.vpid;
    c->settings.log = mca_coll_hetcoll_log;
    open_log_file(c);
    mca_coll_hetcoll_begin_story();
    char problem[512];
    c->process = hetcoll_process_create(&c->settings, problem, sizeof problem);
    if (NULL == c->process) {
        report(problem);
        return mca_coll_hetcoll_publish_facts();
    }
    mca_coll_hetcoll_begin_events();
    return mca_coll_hetcoll_publish_facts();
}

static int close_component(void)
{
    mca_coll_hetcoll_watch_no_more();
    mca_coll_hetcoll_stop_requests();
    mca_coll_hetcoll_drop_spare();
    mca_coll_hetcoll_end_events();
    mca_coll_hetcoll_forget_facts();
    if (NULL != mca_coll_hetcoll_component.process) {
        hetcoll_process_destroy(mca_coll_hetcoll_component.process);
        mca_coll_hetcoll_component.process = NULL;
    }
    if (NULL != mca_coll_hetcoll_component.log_file) {
        hetcoll_log_file_close(mca_coll_hetcoll_component.log_file);
        mca_coll_hetcoll_component.log_file = NULL;
    }
    return OMPI_SUCCESS;
}
