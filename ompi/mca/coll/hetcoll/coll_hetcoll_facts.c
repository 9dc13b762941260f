/* What every process tells all others when it starts, through Open MPI's modex: no message, no CUDA
 * call. Read when a communicator has its first MPI_Allreduce, and remembered by process. */
#include "coll_hetcoll.h"

#include <string.h>

#include "ompi/proc/proc.h"
#include "opal/class/opal_hash_table.h"
#if defined(MCA_COLL_BASE_VERSION_2_4_0) || defined(MCA_COLL_BASE_VERSION_3_0_0)
#include "opal/mca/pmix/pmix-internal.h"
#include "opal/mca/threads/mutex.h"
#define HETCOLL_MODEX_SCOPE PMIX_GLOBAL
#else
#include "opal/mca/pmix/pmix.h"
#include "opal/threads/mutex.h"
#define HETCOLL_MODEX_SCOPE OPAL_PMIX_GLOBAL
#endif

static const struct hetcoll_facts no_facts = {.protocol = 0};

static opal_mutex_t lock = OPAL_MUTEX_STATIC_INIT;
static opal_hash_table_t *known = NULL; /* process name -> struct hetcoll_facts, ours to free */

int mca_coll_hetcoll_publish_facts(void)
{
    struct hetcoll_facts facts;
    int rc;
    hetcoll_process_facts(mca_coll_hetcoll_component.process, &facts);
    OPAL_MODEX_SEND(rc, HETCOLL_MODEX_SCOPE, &mca_coll_hetcoll_component.super.collm_version,
                    &facts, sizeof facts);
    return rc;
}

static struct hetcoll_facts receive(const ompi_proc_t *proc)
{
    struct hetcoll_facts facts = no_facts;
    struct hetcoll_facts *published = NULL;
    size_t bytes = 0;
    int rc;
    OPAL_MODEX_RECV(rc, &mca_coll_hetcoll_component.super.collm_version,
                    (opal_process_name_t *)&proc->super.proc_name, (void **)&published, &bytes);
    if (OPAL_SUCCESS == rc && NULL != published && sizeof facts == bytes) {
        memcpy(&facts, published, sizeof facts);
    }
    free(published);
    return facts;
}

/* Requires the lock. */
static struct hetcoll_facts facts_of(const ompi_proc_t *proc)
{
    const uint64_t key = (uint64_t)proc->super.proc_name.jobid << 32 | proc->super.proc_name.vpid;
    void *found = NULL;
    if (NULL == known) {
        known = OBJ_NEW(opal_hash_table_t);
        opal_hash_table_init(known, 128);
    }
    if (OPAL_SUCCESS == opal_hash_table_get_value_uint64(known, key, &found)) {
        return *(struct hetcoll_facts *)found;
    }
    const struct hetcoll_facts facts = receive(proc);
    struct hetcoll_facts *kept = malloc(sizeof facts);
    if (NULL != kept) {
        *kept = facts;
        opal_hash_table_set_value_uint64(known, key, kept);
    }
    return facts;
}

struct hetcoll_facts *mca_coll_hetcoll_collect_facts(struct ompi_communicator_t *comm,
                                                     struct hetcoll_facts *merged)
{
    const int size = ompi_comm_size(comm), self = ompi_comm_rank(comm);
    struct hetcoll_facts *all = malloc((size_t)size * sizeof *all);
    if (NULL == all) {
        return NULL;
    }
    hetcoll_process_facts(mca_coll_hetcoll_component.process, &all[self]);
    *merged = all[self];
    opal_mutex_lock(&lock);
    for (int rank = 0; rank < size; ++rank) {
        if (rank != self) {
            all[rank] = facts_of(ompi_comm_peer_lookup(comm, rank));
            hetcoll_facts_merge(merged, &all[rank]);
        }
    }
    opal_mutex_unlock(&lock);
    return all;
}

void mca_coll_hetcoll_forget_facts(void)
{
    if (NULL == known) {
        return;
    }
    uint64_t key;
    void *facts;
    OPAL_HASH_TABLE_FOREACH(key, uint64, facts, known) { free(facts); }
    OBJ_RELEASE(known);
    known = NULL;
}
