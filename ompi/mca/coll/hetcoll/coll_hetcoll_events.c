/* Ended calls as the MPI_T event ompi.coll_hetcoll_call, where Open MPI has events: from 6.0 on. */
#include "coll_hetcoll.h"

#ifdef MPI_T_EVENT_REGISTRATION_NULL

#include <stddef.h>

#include "opal/mca/base/mca_base_event.h"
#include "opal/mca/base/mca_base_pvar.h"
#include "opal/mca/base/mca_base_var_enum.h"

/* The fields of an instance of it. */
struct ended {
    unsigned long long bytes, ns;
    int counter, path, failed;
};

static mca_base_event_t *event;

/* The first tool has come, or the last one has gone. */
static void notify(void *context, bool active)
{
    (void)context;
    struct hetcoll_process *process = mca_coll_hetcoll_component.process;
    if (NULL != process) {
        hetcoll_process_time_small(process, active ? 1 : -1);
    }
}

/* Calls end inside of MPI and of hetcoll's locks; with MPI_THREAD_MULTIPLE on any thread of the
 * program's, and on hetcoll's own. */
static void raise_ended(const struct hetcoll_ended_call *call)
{
    if (NULL == event || !mca_base_event_active(event)) {
        return;
    }
    const struct ended data = {
        .bytes = call->bytes,
        .ns = call->ns,
        .counter = mca_coll_hetcoll_counter_index(call->counter),
        .path = call->path,
        .failed = call->failed,
    };
    mca_base_event_raise_internal(event, NULL, NULL, &data,
                                  mca_coll_hetcoll_component.thread_multiple
                                      ? MCA_BASE_EVENT_CB_REQUIRE_THREAD_SAFE
                                      : MCA_BASE_EVENT_CB_REQUIRE_MPI_RESTRICTED);
}

void mca_coll_hetcoll_register_event(void)
{
    static const mca_base_var_type_t types[] = {
        MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG, MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG,
        MCA_BASE_VAR_TYPE_INT, MCA_BASE_VAR_TYPE_INT, MCA_BASE_VAR_TYPE_INT};
    static const ptrdiff_t offsets[] = {
        offsetof(struct ended, bytes), offsetof(struct ended, ns), offsetof(struct ended, counter),
        offsetof(struct ended, path), offsetof(struct ended, failed)};
    static const mca_base_var_enum_value_t names[] = {{0, "bytes"}, {1, "ns"},     {2, "counter"},
                                                      {3, "path"},  {4, "failed"}, {0, NULL}};
    mca_base_var_enum_t *elements = NULL;
    mca_base_event_source_t *source = NULL;
    const int source_index = mca_base_event_source_register(
        "ompi.coll_hetcoll", "Calls of collectives that hetcoll has to do with",
        MCA_BASE_EVENT_SOURCE_UNORDERED, 1000000000, INT64_MAX, NULL, false, NULL);
    if (0 > source_index ||
        OPAL_SUCCESS != mca_base_event_source_get_by_index(source_index, &source) ||
        OPAL_SUCCESS != mca_base_var_enum_create("coll_hetcoll_call", names, &elements)) {
        return;
    }
    const int index = mca_base_component_event_register(
        &mca_coll_hetcoll_component.super.collm_version, "call",
        "A collective call has ended on this rank. bytes: of its vector. ns: how long it took. "
        "counter: the index of the performance variable that counts calls like this one, -1: none. "
        "path: of the data, " HETCOLL_PATHS ". failed: 1, or 0",
        OPAL_INFO_LVL_4, (int)(sizeof types / sizeof *types), types, offsets, elements,
        MCA_BASE_VAR_BIND_NO_OBJECT, 0, source, NULL);
    OBJ_RELEASE(elements);
    if (0 <= index && OPAL_SUCCESS == mca_base_event_get_by_index(index, &event)) {
        source->activate_fn = notify;
        mca_coll_hetcoll_component.settings.ended = raise_ended;
    }
}

void mca_coll_hetcoll_begin_events(void)
{
    if (NULL != event && mca_base_event_active(event)) {
        notify(NULL, true);
    }
}

/* Open MPI keeps the source, and may unload what it would call. */
void mca_coll_hetcoll_end_events(void)
{
    if (NULL != event) {
        event->source->activate_fn = NULL;
        event = NULL;
    }
}

#else

void mca_coll_hetcoll_register_event(void) {}
void mca_coll_hetcoll_begin_events(void) {}
void mca_coll_hetcoll_end_events(void) {}

#endif
