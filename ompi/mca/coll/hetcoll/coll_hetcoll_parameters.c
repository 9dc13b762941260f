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
    if (NULL == folder) {
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

/* As somebody has written it; NULL: nobody has set it. A program that has set a number through
 * MPI_T wrote no text: `room` gets one. */
static const char *text_of(const char *name, const char *now, char *room, size_t bytes)
{
    const mca_base_var_t *var = NULL;
    const int index = mca_base_var_find("ompi", "coll", "hetcoll", name);
    if (0 > index || OPAL_SUCCESS != mca_base_var_get(index, &var)) {
        return NULL;
    }
    switch (var->mbv_source) {
    case MCA_BASE_VAR_SOURCE_DEFAULT: return NULL;
    case MCA_BASE_VAR_SOURCE_COMMAND_LINE:
    case MCA_BASE_VAR_SOURCE_ENV:
        snprintf(room, bytes, "OMPI_MCA_coll_hetcoll_%s", name);
        return getenv(room);
    case MCA_BASE_VAR_SOURCE_FILE:
    case MCA_BASE_VAR_SOURCE_OVERRIDE:
        return NULL == var->mbv_file_value
                   ? now
                   : ((const mca_base_var_file_value_t *)var->mbv_file_value)->mbvfv_value;
    default: return now;
    }
}

/* Open MPI frees what it finds in a variable. */
static void replace(const char **text, const char *constant)
{
    free((void *)(uintptr_t)*text);
    *text = strdup(constant);
}

#define SHOW_BOOL(name) snprintf(now, sizeof now, "%d", c->settings.name)
#define SHOW_INT(name) snprintf(now, sizeof now, "%d", c->settings.name)
#define SHOW_BYTES(name) snprintf(now, sizeof now, "%lu", c->settings.name)
#define SHOW_WORD(name) snprintf(now, sizeof now, "%s", NULL == c->words.name ? "" : c->words.name)
#define SHOW_TEXT(name) \
    snprintf(now, sizeof now, "%s", NULL == c->settings.name ? "" : c->settings.name)
#define TAKE_BOOL(name) c->settings.name = read.name
#define TAKE_INT(name) c->settings.name = read.name
#define TAKE_BYTES(name) c->settings.name = read.name
#define TAKE_WORD(name) c->settings.name = read.name
#define TAKE_TEXT(name)                        \
    if (1 != right) {                          \
        replace(&c->settings.name, read.name); \
    }

/* Returns hetcoll_set_parameter()'s verdict. */
static int say(int right, const char *message)
{
    char line[600];
    snprintf(line, sizeof line, "hetcoll: %s", message);
    if (1 != right && speaks_first(line)) {
        opal_output(0, "%s", line);
    }
    return right;
}

#define HETCOLL_PARAMETER(kind, name, ...)                                                    \
    static int check_##name(mca_coll_hetcoll_component_t *c)                                  \
    {                                                                                         \
        char now[512], room[512], message[512];                                               \
        struct hetcoll_settings read = c->settings;                                           \
        SHOW_##kind(name);                                                                    \
        const char *text = text_of(#name, now, room, sizeof room);                            \
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
    check_enable(c);
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
