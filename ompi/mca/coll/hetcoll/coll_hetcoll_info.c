/* Info keys of a communicator.
 *   hetcoll_stream        the address of a CUDA stream (CUstream) as a number, decimal or 0x..., or
 *                         the word none: MPI_Allreduce on device memory waits for its work in place
 *                         of the legacy stream's. Each rank names its own
 *   hetcoll_algorithm     as coll_hetcoll_algorithm
 *   hetcoll_reproducible  true or false, as coll_hetcoll_reproducible
 *   hetcoll_tag           what the trace calls the communicator
 * The last three count from the communicator's first call on, if they are given before it. */
#include "coll_hetcoll.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opal/util/info.h"
#include "opal/util/info_subscriber.h"

/* 5.0 made the strings of infos constant, and objects of their own. */
#if defined(MCA_COLL_BASE_VERSION_2_4_0) || defined(MCA_COLL_BASE_VERSION_3_0_0)
typedef const char *text_t;
#else
typedef char *text_t;
#endif

/* What MPI_Comm_get_info tells of a key that nobody has given. */
static char none[] = "none", as_set[] = "default";

static bool parse(const char *value, bool *named, void **stream)
{
    char *end;
    errno = 0;
    const unsigned long long number = strtoull(value, &end, 0);
    *named = 0 != strcmp(value, none);
    *stream = *named ? (void *)(uintptr_t)number : NULL;
    return !*named || (0 == errno && end != value && '\0' == *end && '-' != *value);
}

static bool ignore(const char *key, const char *value, const char *why)
{
    char line[768];
    snprintf(line, sizeof line, "hetcoll: info key %s '%.100s' is ignored: %s", key, value, why);
    mca_coll_hetcoll_log(0, line);
    return false;
}

static bool is_early(const mca_coll_hetcoll_module_t *module, const char *key, const char *value)
{
    return HETCOLL_STATE_NEW == module->state ||
           ignore(key, value,
                  "the communicator has had its first call, give it to MPI_Comm_dup_with_info");
}

static bool take_stream(mca_coll_hetcoll_module_t *module, const char *key, const char *value)
{
    bool named;
    void *stream;
    if (!parse(value, &named, &stream)) {
        return ignore(key, value,
                      "it is no number, write the address of the CUDA stream, as printf's %p does");
    }
    module->names_stream = named;
    module->named_stream = stream;
    if (NULL != module->core) {
        hetcoll_comm_name_stream(module->core, named, stream);
    }
    return true;
}

static bool take_algorithm(mca_coll_hetcoll_module_t *module, const char *key, const char *value)
{
    struct hetcoll_facts facts = {0};
    char why[512];
    if (!is_early(module, key, value)) {
        return false;
    }
    if (0 == strcmp(value, as_set)) {
        module->algorithm = -1;
        return true;
    }
    if (!hetcoll_facts_set_algorithm(&facts, value, why, sizeof why)) {
        return ignore(key, value, why);
    }
    module->algorithm = (int)facts.algorithm;
    return true;
}

static bool take_reproducible(mca_coll_hetcoll_module_t *module, const char *key, const char *value)
{
    const bool yes = 0 == strcmp(value, "true"), set = 0 != strcmp(value, as_set);
    if (!is_early(module, key, value)) {
        return false;
    }
    if (set && !yes && 0 != strcmp(value, "false")) {
        return ignore(key, value, "write true or false");
    }
    module->reproducible = set ? (int)yes : -1;
    return true;
}

/* It becomes a part of a line of JSON. */
static bool take_tag(mca_coll_hetcoll_module_t *module, const char *key, const char *value)
{
    if (!is_early(module, key, value)) {
        return false;
    }
    for (const char *at = value; '\0' != *at; ++at) {
        if (' ' > *at || '~' < *at || '"' == *at || '\\' == *at) {
            return ignore(key, value, "write printable ASCII without quotes and backslashes");
        }
    }
    if (sizeof module->tag <= strlen(value)) {
        return ignore(key, value, "it is longer than 31 characters");
    }
    snprintf(module->tag, sizeof module->tag, "%s", 0 == strcmp(value, none) ? "" : value);
    return true;
}

static const struct key {
    char *name, *otherwise;
    bool (*take)(mca_coll_hetcoll_module_t *module, const char *key, const char *value);
} keys[] = {
    {(char[]){"hetcoll_stream"}, none, take_stream},
    {(char[]){"hetcoll_algorithm"}, as_set, take_algorithm},
    {(char[]){"hetcoll_reproducible"}, as_set, take_reproducible},
    {(char[]){"hetcoll_tag"}, none, take_tag},
};
enum { KEYS = sizeof keys / sizeof *keys };

/* MPI_Comm_set_info. Returns what MPI_Comm_get_info tells. */
static text_t changed(opal_infosubscriber_t *object, text_t key, text_t value)
{
    struct ompi_communicator_t *comm = (struct ompi_communicator_t *)object;
    mca_coll_hetcoll_module_t *module =
        NULL == comm->c_coll || NULL == comm->c_coll->coll_allreduce_module
            ? NULL
            : mca_coll_hetcoll_own_module(comm->c_coll->coll_allreduce_module, comm);
    if (NULL == value || NULL == module) {
        return value; /* the communicator is being made: take_given() has looked */
    }
    for (int i = 0; i < KEYS; ++i) {
        if (0 == strcmp(key, keys[i].name)) {
            return keys[i].take(module, key, value) ? value : NULL;
        }
    }
    return value;
}

/* MPI_Comm_dup_with_info has set it before this. */
static void take_given(mca_coll_hetcoll_module_t *module, const struct key *key, opal_info_t *info)
{
    int given = 0;
#if defined(MCA_COLL_BASE_VERSION_2_4_0) || defined(MCA_COLL_BASE_VERSION_3_0_0)
    opal_cstring_t *value;
    if (OPAL_SUCCESS == opal_info_get(info, key->name, &value, &given) && given) {
        (void)key->take(module, key->name, value->string);
        OBJ_RELEASE(value);
    }
#else
    char value[64];
    if (OPAL_SUCCESS == opal_info_get(info, key->name, (int)sizeof value - 1, value, &given) &&
        given) {
        (void)key->take(module, key->name, value);
    }
#endif
}

void mca_coll_hetcoll_look_at_info(mca_coll_hetcoll_module_t *module)
{
    for (int i = 0; i < KEYS; ++i) {
        if (NULL != module->comm->super.s_info) {
            take_given(module, &keys[i], module->comm->super.s_info);
        }
        (void)opal_infosubscribe_subscribe(&module->comm->super, keys[i].name, keys[i].otherwise,
                                           changed);
    }
}

void mca_coll_hetcoll_apply_info(const mca_coll_hetcoll_module_t *module,
                                 struct hetcoll_facts *facts)
{
    if (0 <= module->algorithm) {
        facts->algorithm = (uint64_t)module->algorithm;
    }
    if (0 <= module->reproducible) {
        facts->reproducible = (uint64_t)module->reproducible;
    }
}
