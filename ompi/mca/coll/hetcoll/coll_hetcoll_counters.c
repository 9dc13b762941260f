/* The core's counters as MPI_T performance variables coll_hetcoll_*. */
#include "coll_hetcoll.h"

#include "opal/mca/base/mca_base_pvar.h"

#define HETCOLL_COUNTER(constant, name, kind, help) {#name, help, MPI_T_PVAR_CLASS_##kind},
static const struct {
    const char *name, *help;
    int kind;
} counters[] = {HETCOLL_COUNTERS};
#undef HETCOLL_COUNTER

static int read_counter(const struct mca_base_pvar_t *pvar, void *value, void *object)
{
    (void)object;
    const struct hetcoll_process *process = mca_coll_hetcoll_component.process;
    if (NULL == process) {
        *(unsigned long long *)value = 0;
        return OMPI_ERR_NOT_AVAILABLE;
    }
    *(unsigned long long *)value =
        hetcoll_process_counter(process, (enum hetcoll_counter)(intptr_t)pvar->ctx);
    return OMPI_SUCCESS;
}

/* If hetcoll is off in this process a handle can be had, as Open MPI 4.1 crashes where it is
 * refused, but not read. One on the time of small calls asks for their clock to be read. */
static int notify(struct mca_base_pvar_t *pvar, mca_base_pvar_event_t event, void *object,
                  int *count)
{
    struct hetcoll_process *process = mca_coll_hetcoll_component.process;
    (void)object;
    if (MCA_BASE_PVAR_HANDLE_BIND == event) {
        *count = 1;
    }
    if (NULL != process && HETCOLL_NS_HOST == (intptr_t)pvar->ctx) {
        hetcoll_process_time_small(process, MCA_BASE_PVAR_HANDLE_BIND == event     ? 1
                                            : MCA_BASE_PVAR_HANDLE_UNBIND == event ? -1
                                                                                   : 0);
    }
    return OMPI_SUCCESS;
}

static int indices[HETCOLL_COUNTER_COUNT]; /* of MPI_T's */

int mca_coll_hetcoll_counter_index(int counter) { return 0 > counter ? -1 : indices[counter]; }

void mca_coll_hetcoll_register_counters(void)
{
    for (intptr_t i = 0; i < HETCOLL_COUNTER_COUNT; ++i) {
        indices[i] = mca_base_component_pvar_register(
            &mca_coll_hetcoll_component.super.collm_version, counters[i].name, counters[i].help,
            OPAL_INFO_LVL_4, counters[i].kind, MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG, NULL,
            MCA_BASE_VAR_BIND_NO_OBJECT,
            MCA_BASE_PVAR_FLAG_READONLY | MCA_BASE_PVAR_FLAG_CONTINUOUS, read_counter, NULL, notify,
            (void *)i);
    }
}
