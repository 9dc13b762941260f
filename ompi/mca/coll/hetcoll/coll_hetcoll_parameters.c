/* Are the parameters what they may be? Open MPI's parser takes any text for a number (abc is 0, 8x
 * is 8), so hetcoll reads the texts themselves, and says once a node what is wrong with one. */
#include "coll_hetcoll.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "opal/mca/base/mca_base_var.h"
#include "opal/mca/base/mca_base_vari.h"
#include "opal/util/output.h"
#include "opal/util/proc.h"
#if defined(MCA_COLL_BASE_VERSION_2_4_0) || defined(MCA_COLL_BASE_VERSION_3_0_0)
#include "ompi/runtime/ompi_rte.h"
#else
#include "ompi/mca/rte/rte.h"
#endif

/* True once a node and line, on whichever rank comes first: the others may have other values. In
 * the job's own folder, which goes with the job; without one every rank speaks. */
static bool speaks_first(const char *line)
{
    const char *folder = opal_process_info.job_session_dir;
    if (NULL == folder || 0 == opal_process_info.num_local_peers) {
        return true;
    }
    uint64_t hash = 14695981039346656037ul; /* FNV-1a */
    for (const char *c = line; '\0' != *c; ++c) {
        hash = (hash ^ (unsigned char)*c) * 1099511628211ul;
    }
    char path[512];
    snprintf(path, sizeof path, "%s/hetcoll.%016llx", folder, (unsigned long long)hash);
    const int fd = open(path, O_CREAT | O_EXCL | O_CLOEXEC | O_WRONLY, 0600);
    if (0 <= fd) {
        close(fd);
        return true;
    }
    return EEXIST != errno;
}

/* As somebody has written it; NULL: nobody has set it. `now` is the value, for what a program has
 * set through MPI_T. mpirun of 5.0 hands the values of its files on in the environment. */
static const char *text_of(const char *name, const char *now)
{
    const mca_base_var_t *var = NULL;
    const int index = mca_base_var_find("ompi", "coll", "hetcoll", name);
    if (0 > index || OPAL_SUCCESS != mca_base_var_get(index, &var) ||
        MCA_BASE_VAR_SOURCE_DEFAULT == var->mbv_source) {
        return NULL;
    }
    if (MCA_BASE_VAR_SOURCE_SET == var->mbv_source) {
        return now;
    }
    const bool in_file = MCA_BASE_VAR_SOURCE_FILE == var->mbv_source ||
                         MCA_BASE_VAR_SOURCE_OVERRIDE == var->mbv_source;
    if (in_file && NULL != var->mbv_file_value) {
        return ((const mca_base_var_file_value_t *)var->mbv_file_value)->mbvfv_value;
    }
    char variable[128];
    snprintf(variable, sizeof variable, "OMPI_MCA_coll_hetcoll_%s", name);
    const char *text = getenv(variable);
    return NULL == text ? now : text;
}

/* Open MPI frees what it finds in a variable. */
static void replace(const char **text, const char *constant)
{
    free((void *)(uintptr_t)*text);
    *text = strdup(constant);
}

#define SHOW_BOOL(name) (snprintf(room, sizeof room, "%d", c->settings.name), room)
#define SHOW_INT(name) (snprintf(room, sizeof room, "%d", c->settings.name), room)
#define SHOW_BYTES(name) (snprintf(room, sizeof room, "%lu", c->settings.name), room)
#define SHOW_WORD(name) (room[0] = '\0', NULL == c->words.name ? room : c->words.name)
#define SHOW_TEXT(name) (room[0] = '\0', NULL == c->settings.name ? room : c->settings.name)
#define TAKE_BOOL(name) c->settings.name = read.name
#define TAKE_INT(name) c->settings.name = read.name
#define TAKE_BYTES(name) c->settings.name = read.name
#define TAKE_WORD(name) c->settings.name = read.name
#define TAKE_TEXT(name)                                \
    if (1 != right && c->settings.name != read.name) { \
        replace(&c->settings.name, read.name);         \
    }

/* Returns hetcoll_set_parameter()'s verdict. */
static int say(int right, const char *message)
{
    if (1 != right && speaks_first(message)) {
        opal_output(0, "hetcoll: %s", message);
    }
    return right;
}

#define HETCOLL_PARAMETER(kind, name, ...)                                                    \
    static int check_##name(mca_coll_hetcoll_component_t *c)                                  \
    {                                                                                         \
        char room[32], message[512];                                                          \
        struct hetcoll_settings read = c->settings;                                           \
        const char *text = text_of(#name, SHOW_##kind(name));                                 \
        if (NULL == text) {                                                                   \
            return 1;                                                                         \
        }                                                                                     \
        const int right = hetcoll_set_parameter(&read, #name, text, message, sizeof message); \
        TAKE_##kind(name);                                                                    \
        return say(right, message);                                                           \
    }
HETCOLL_PARAMETERS
#undef HETCOLL_PARAMETER

void mca_coll_hetcoll_check_parameters(void)
{
    mca_coll_hetcoll_component_t *c = &mca_coll_hetcoll_component;
    if (!c->settings.enable) {
        return;
    }
#define HETCOLL_PARAMETER(kind, name, ...) c->refused |= -1 == check_##name(c);
    HETCOLL_PARAMETERS
#undef HETCOLL_PARAMETER
}

void mca_coll_hetcoll_refuse(void)
{
    if (mca_coll_hetcoll_component.refused) { /* the runtime ends the other ranks */
        ompi_rte_abort(1, NULL);
    }
}
