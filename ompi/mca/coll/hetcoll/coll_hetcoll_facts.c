/* Publishes every process's facts when it starts, through Open MPI's modex: no message, no CUDA
 * call. Read when a communicator has its first MPI_Allreduce, and remembered by process. */
#include "coll_hetcoll.h"

#include <string.h>

#include "ompi/proc/proc.h"
#include "opal/class/opal_hash_table.h"
#include "opal/util/error.h"
#include "opal/util/output.h"
#if defined(MCA_COLL_BASE_VERSION_2_4_0) || defined(MCA_COLL_BASE_VERSION_3_0_0)
#include "ompi/runtime/ompi_rte.h"
#include "opal/mca/pmix/pmix-internal.h"
#include "opal/mca/threads/mutex.h"
#define HETCOLL_MODEX_SCOPE PMIX_GLOBAL
#else
#include "ompi/mca/rte/rte.h"
#include "opal/mca/pmix/pmix.h"
#include "opal/threads/mutex.h"
#define HETCOLL_MODEX_SCOPE OPAL_PMIX_GLOBAL
#endif

#define HETCOLL_FETCH_TRIES 3 /* a runtime's server that is slow or just starts answers then */

static const struct hetcoll_facts no_facts = {.protocol = 0};

static opal_mutex_t lock = OPAL_MUTEX_STATIC_INIT;
static opal_hash_table_t *known = NULL; /* process name -> struct hetcoll_facts, ours to free */

int mca_coll_hetcoll_publish_facts(void)
{
    struct hetcoll_facts facts = no_facts;
    int rc;
    if (NULL != mca_coll_hetcoll_component.process) {
        hetcoll_process_facts(mca_coll_hetcoll_component.process, &facts);
    }
    OPAL_MODEX_SEND(rc, HETCOLL_MODEX_SCOPE, &mca_coll_hetcoll_component.super.collm_version,
                    &facts, sizeof facts);
    return rc;
}

/* Reads the bytes that the process has published as `key`; *bytes 0: nothing. `here`: only what
 * the runtime has brought already. OPAL_MODEX_RECV calls every failure "not found". */
#if defined(MCA_COLL_BASE_VERSION_2_4_0) || defined(MCA_COLL_BASE_VERSION_3_0_0)
typedef pmix_status_t fetched_t;
#define HETCOLL_FETCHED PMIX_SUCCESS
#define HETCOLL_NOT_FOUND PMIX_ERR_NOT_FOUND
#define HETCOLL_HOST_NAME PMIX_HOSTNAME
#define HETCOLL_ERROR_TEXT(rc) PMIx_Error_string(rc)

static fetched_t fetch(const ompi_proc_t *proc, const char *key, bool here, void **published,
                       size_t *bytes)
{
    pmix_proc_t name;
    pmix_info_t optional;
    pmix_value_t *value = NULL;
    OPAL_PMIX_CONVERT_NAME(&name, &proc->super.proc_name);
    PMIX_INFO_CONSTRUCT(&optional);
    PMIX_INFO_LOAD(&optional, PMIX_OPTIONAL, NULL, PMIX_BOOL);
    const pmix_status_t rc = PMIx_Get(&name, key, here ? &optional : NULL, here ? 1 : 0, &value);
    if (PMIX_SUCCESS == rc && NULL != value && PMIX_BYTE_OBJECT == value->type) {
        *published = value->data.bo.bytes;
        *bytes = value->data.bo.size;
        value->data.bo.bytes = NULL;
    }
    if (NULL != value) {
        PMIX_VALUE_RELEASE(value);
    }
    PMIX_INFO_DESTRUCT(&optional);
    return rc;
}
#else
typedef int fetched_t;
#define HETCOLL_FETCHED OPAL_SUCCESS
#define HETCOLL_NOT_FOUND OPAL_ERR_NOT_FOUND
#define HETCOLL_HOST_NAME OPAL_PMIX_HOSTNAME
#define HETCOLL_ERROR_TEXT(rc) opal_strerror(rc)

static fetched_t fetch(const ompi_proc_t *proc, const char *key, bool here, void **published,
                       size_t *bytes)
{
    opal_value_t *value = NULL, optional;
    opal_list_t list;
    OBJ_CONSTRUCT(&list, opal_list_t);
    OBJ_CONSTRUCT(&optional, opal_value_t);
    optional.key = (char *)(uintptr_t)OPAL_PMIX_OPTIONAL; /* constant, so that it needs no memory */
    optional.type = OPAL_BOOL;
    optional.data.flag = true;
    opal_list_append(&list, &optional.super);
    const int rc = opal_pmix.get(&proc->super.proc_name, key, here ? &list : NULL, &value);
    if (OPAL_SUCCESS == rc && NULL != value) {
        if (OPAL_BYTE_OBJECT == value->type) {
            *published = value->data.bo.bytes;
            *bytes = value->data.bo.size;
            value->data.bo.bytes = NULL;
        }
        OBJ_RELEASE(value);
    }
    opal_list_remove_first(&list);
    optional.key = NULL;
    OBJ_DESTRUCT(&optional);
    OBJ_DESTRUCT(&list);
    return rc;
}
#endif

/* A runtime waits for what a process may still publish, so for what nobody publishes it may say
 * that the time is out: the same as when it fails. It brings all that a process has published
 * together. So once it has brought something else, what is not there was not published. */
static fetched_t ask(const ompi_proc_t *proc, const char *key, void **published, size_t *bytes)
{
    void *other = NULL;
    size_t other_bytes = 0;
    fetched_t rc = fetch(proc, key, false, published, bytes);
    if (HETCOLL_FETCHED == rc || HETCOLL_NOT_FOUND == rc) {
        return HETCOLL_FETCHED;
    }
    if (HETCOLL_FETCHED == fetch(proc, HETCOLL_HOST_NAME, false, &other, &other_bytes)) {
        rc = fetch(proc, key, true, published, bytes);
    }
    free(other);
    return HETCOLL_NOT_FOUND == rc ? HETCOLL_FETCHED : rc;
}

/* Whether the process takes part is not known, and this rank may not guess: the others would go
 * another way. */
static void give_up(struct ompi_communicator_t *comm, int rank, fetched_t rc)
{
    opal_output(0,
                "hetcoll: the job ends: rank %d of communicator %u cannot be told what rank %d has "
                "published when it started, PMIx_Get failed %d times: %s (%d). Look whether that "
                "rank and the runtime's server on its node live; without hetcoll (--mca "
                "coll_hetcoll_enable 0) nobody asks",
                ompi_comm_rank(comm), mca_coll_hetcoll_comm_id(comm), rank, HETCOLL_FETCH_TRIES,
                HETCOLL_ERROR_TEXT(rc), (int)rc);
    ompi_rte_abort(1, NULL);
}

static struct hetcoll_facts receive(struct ompi_communicator_t *comm, int rank,
                                    const ompi_proc_t *proc)
{
    struct hetcoll_facts facts = no_facts;
    void *published = NULL;
    size_t bytes = 0;
    char *key = mca_base_component_to_string(&mca_coll_hetcoll_component.super.collm_version);
    fetched_t rc = HETCOLL_FETCHED;
    for (int tries = 0; tries < HETCOLL_FETCH_TRIES; ++tries) {
        rc = ask(proc, key, &published, &bytes);
        if (HETCOLL_FETCHED == rc) {
            break;
        }
    }
    free(key);
    if (HETCOLL_FETCHED != rc) {
        give_up(comm, rank, rc);
    }
    if (sizeof facts == bytes) {
        memcpy(&facts, published, sizeof facts);
    }
    free(published);
    return facts;
}

/* NULL without memory: a table that could not be made divides by zero when it is used. */
static opal_hash_table_t *new_table(void)
{
    opal_hash_table_t *table = OBJ_NEW(opal_hash_table_t);
    if (NULL != table && OPAL_SUCCESS != opal_hash_table_init(table, 128)) {
        OBJ_RELEASE(table);
        return NULL;
    }
    return table;
}

/* Requires the lock. */
static struct hetcoll_facts facts_of(struct ompi_communicator_t *comm, int rank)
{
    const ompi_proc_t *proc = ompi_comm_peer_lookup(comm, rank);
    const uint64_t key = (uint64_t)proc->super.proc_name.jobid << 32 | proc->super.proc_name.vpid;
    void *found = NULL;
    if (NULL == known) {
        known = new_table();
    }
    if (NULL == known) {
        return receive(comm, rank, proc); /* not remembered */
    }
    if (OPAL_SUCCESS == opal_hash_table_get_value_uint64(known, key, &found)) {
        return *(struct hetcoll_facts *)found;
    }
    const struct hetcoll_facts facts = receive(comm, rank, proc);
    struct hetcoll_facts *kept = malloc(sizeof facts);
    if (NULL != kept) {
        *kept = facts;
        if (OPAL_SUCCESS != opal_hash_table_set_value_uint64(known, key, kept)) {
            free(kept);
        }
    }
    return facts;
}

struct hetcoll_facts *mca_coll_hetcoll_collect_facts(struct ompi_communicator_t *comm,
                                                     struct hetcoll_facts *merged)
{
    const int size = ompi_comm_size(comm), self = ompi_comm_rank(comm);
    struct hetcoll_facts *all = hetcoll_allocate((size_t)size * sizeof *all);
    hetcoll_process_facts(mca_coll_hetcoll_component.process, merged);
    if (NULL != all) {
        all[self] = *merged;
    }
    opal_mutex_lock(&lock);
    for (int rank = 0; rank < size; ++rank) {
        if (rank == self) {
            continue;
        }
        const struct hetcoll_facts facts = facts_of(comm, rank);
        hetcoll_facts_merge(merged, &facts);
        if (NULL != all) {
            all[rank] = facts;
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
