/* Info keys of a communicator. hetcoll_stream: the address of a CUDA stream (CUstream) as a number,
 * decimal or 0x..., or the word none; MPI_Allreduce on device memory waits for its work in place of
 * the legacy stream's. Each rank names its own. */
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

static char stream_key[] = "hetcoll_stream", none[] = "none";

static bool parse(const char *value, bool *named, void **stream)
{
    char *end;
    errno = 0;
    const unsigned long long number = strtoull(value, &end, 0);
    *named = 0 != strcmp(value, none);
    *stream = *named ? (void *)(uintptr_t)number : NULL;
    return !*named || (0 == errno && end != value && '\0' == *end && '-' != *value);
}

static bool take(mca_coll_hetcoll_module_t *module, const char *value)
{
    bool named;
    void *stream;
    if (!parse(value, &named, &stream)) {
        char line[256];
        snprintf(line, sizeof line,
                 "hetcoll: info key hetcoll_stream '%.100s' is ignored: it is no number, write the "
                 "address of the CUDA stream, as printf's %%p does",
                 value);
        mca_coll_hetcoll_log(0, line);
        return false;
    }
    module->names_stream = named;
    module->named_stream = stream;
    if (NULL != module->engine) {
        hetcoll_engine_name_stream(module->engine, named, stream);
    }
    return true;
}

/* MPI_Comm_set_info. Returns what MPI_Comm_get_info tells. */
static text_t changed(opal_infosubscriber_t *object, text_t key, text_t value)
{
    struct ompi_communicator_t *comm = (struct ompi_communicator_t *)object;
    (void)key;
    mca_coll_hetcoll_module_t *module =
        NULL == comm->c_coll || NULL == comm->c_coll->coll_allreduce_module
            ? NULL
            : mca_coll_hetcoll_own_module(comm->c_coll->coll_allreduce_module, comm);
    if (NULL == value || NULL == module) {
        return value; /* the communicator is being made: take_given() has looked */
    }
    return take(module, value) ? value : NULL;
}

/* MPI_Comm_dup_with_info has set it before this. */
static void take_given(mca_coll_hetcoll_module_t *module, opal_info_t *info)
{
    int given = 0;
#if defined(MCA_COLL_BASE_VERSION_2_4_0) || defined(MCA_COLL_BASE_VERSION_3_0_0)
    opal_cstring_t *value;
    if (OPAL_SUCCESS == opal_info_get(info, stream_key, &value, &given) && given) {
        (void)take(module, value->string);
        OBJ_RELEASE(value);
    }
#else
    char value[64];
    if (OPAL_SUCCESS == opal_info_get(info, stream_key, (int)sizeof value - 1, value, &given) &&
        given) {
        (void)take(module, value);
    }
#endif
}

void mca_coll_hetcoll_look_at_info(mca_coll_hetcoll_module_t *module)
{
    if (NULL != module->comm->super.s_info) {
        take_given(module, module->comm->super.s_info);
    }
    (void)opal_infosubscribe_subscribe(&module->comm->super, stream_key, none, changed);
}
