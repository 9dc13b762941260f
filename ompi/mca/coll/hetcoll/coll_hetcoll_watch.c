/* Ranks that wait in calls that Open MPI serves: its progress engine asks the core now and then to
 * say for whom. */
#include "coll_hetcoll.h"

#include "opal/runtime/opal_progress.h"

struct hetcoll_comm *mca_coll_hetcoll_serving;
static bool watches;

static int look(void)
{
    struct hetcoll_comm *const core = __atomic_load_n(&mca_coll_hetcoll_serving, __ATOMIC_RELAXED);
    if (OPAL_UNLIKELY(NULL != core)) {
        hetcoll_look_in_open_mpi(core);
    }
    return 0;
}

/* At every eighth poll. With MPI_THREAD_MULTIPLE several threads wait in calls, and any of them
 * may poll while another one's call ends and its communicator goes. */
void mca_coll_hetcoll_watch(void)
{
    const mca_coll_hetcoll_component_t *const component = &mca_coll_hetcoll_component;
    if (!watches && !component->thread_multiple && 0 < component->settings.report_after) {
        watches = OPAL_SUCCESS == opal_progress_register_lp(look);
    }
}

void mca_coll_hetcoll_watch_no_more(void)
{
    if (watches) {
        (void)opal_progress_unregister(look);
        watches = false;
    }
}
