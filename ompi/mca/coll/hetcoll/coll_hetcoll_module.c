/* The module: one a communicator. It takes some slots, and keeps the modules that had them before.
 */
#include "coll_hetcoll.h"
#include "coll_hetcoll_staged.h"

#include "ompi/mca/coll/base/coll_base_util.h"
#include "ompi/runtime/mpiruntime.h"

static void construct(mca_coll_hetcoll_module_t *module)
{
    module->comm = NULL;
    module->state = HETCOLL_STATE_NEW;
    module->calls = module->collective_calls = 0;
    module->core = module->told = NULL;
    module->user_ops = false;
    module->collectives = false;
    module->delegates = false;
    module->last.dtype = NULL;
    module->last.op = NULL;
#define HETCOLL_CLEAR(slot)         \
    module->previous_##slot = NULL; \
    module->previous_##slot##_module = NULL;
    HETCOLL_SLOTS(HETCOLL_CLEAR)
#undef HETCOLL_CLEAR
    module->names_stream = false;
    module->named_stream = NULL;
    module->algorithm = module->reproducible = -1;
    module->tag[0] = '\0';
    module->attached = NULL;
    module->stages = false;
    memset(&module->staged, 0, sizeof module->staged);
    memset(&module->refusals, 0, sizeof module->refusals);
}

static void destruct(mca_coll_hetcoll_module_t *module)
{
    mca_coll_hetcoll_detach_all(module);
    mca_coll_hetcoll_release_refusals(module);
    if (NULL != module->core) {
        hetcoll_comm_destroy(module->core);
    }
    mca_coll_hetcoll_staged_release(module);
#if !HETCOLL_MODULE_INSTALLS_ITSELF
#define HETCOLL_RELEASE(slot)                          \
    if (NULL != module->previous_##slot##_module) {    \
        OBJ_RELEASE(module->previous_##slot##_module); \
    }
    HETCOLL_SLOTS(HETCOLL_RELEASE)
#undef HETCOLL_RELEASE
#endif
}

OBJ_CLASS_INSTANCE(mca_coll_hetcoll_module_t, mca_coll_base_module_t, construct, destruct);

mca_coll_hetcoll_module_t *mca_coll_hetcoll_find_module(struct ompi_communicator_t *comm)
{
    mca_coll_base_avail_coll_t *item;
    OPAL_LIST_FOREACH (item, comm->c_coll->module_list, mca_coll_base_avail_coll_t) {
        opal_object_t *object = (opal_object_t *)item->ac_module;
        if (object->obj_class == OBJ_CLASS(mca_coll_hetcoll_module_t)) {
            return (mca_coll_hetcoll_module_t *)object;
        }
    }
    return NULL;
}

#if HETCOLL_MODULE_INSTALLS_ITSELF
#define HETCOLL_KEEP(slot) \
    MCA_COLL_INSTALL_API(comm, slot, mca_coll_hetcoll_##slot, base, "hetcoll");
#else
#define HETCOLL_KEEP(slot) OBJ_RETAIN(module->previous_##slot##_module);
#endif

/* Where a slot is empty there is nothing to fall back to, as happens where another component has
 * emptied it (Open MPI issue 9885): it stays empty. 4.1 and 5.0 copy our slots after this and count
 * references; main lets the module write the slot, without counting. */
static int enable(mca_coll_base_module_t *base, struct ompi_communicator_t *comm)
{
    mca_coll_hetcoll_module_t *module = (mca_coll_hetcoll_module_t *)base;
#define HETCOLL_ENABLE(slot)                                                               \
    if (NULL == comm->c_coll->coll_##slot || NULL == comm->c_coll->coll_##slot##_module) { \
        base->coll_##slot = NULL;                                                          \
    } else {                                                                               \
        module->previous_##slot = comm->c_coll->coll_##slot;                               \
        module->previous_##slot##_module = comm->c_coll->coll_##slot##_module;             \
        HETCOLL_KEEP(slot)                                                                 \
    }
    HETCOLL_SLOTS(HETCOLL_ENABLE)
#undef HETCOLL_ENABLE
    mca_coll_hetcoll_staged_enable(module, comm);
    return OMPI_SUCCESS;
}

/* Writes the previous module into a slot that is still ours: another module may have come after. */
#if HETCOLL_MODULE_INSTALLS_ITSELF
#define HETCOLL_RESTORE(slot)                                              \
    if (comm->c_coll->coll_##slot##_module == &module->super &&            \
        comm->c_coll->coll_##slot == mca_coll_hetcoll_##slot) {            \
        MCA_COLL_INSTALL_API(comm, slot, module->previous_##slot,          \
                             module->previous_##slot##_module, "hetcoll"); \
    }
#else /* the slot's reference to us goes; the communicator's list of modules has another */
#define HETCOLL_RESTORE(slot)                                                  \
    if (comm->c_coll->coll_##slot##_module == &module->super &&                \
        comm->c_coll->coll_##slot == mca_coll_hetcoll_##slot) {                \
        OBJ_RETAIN(module->previous_##slot##_module);                          \
        comm->c_coll->coll_##slot = module->previous_##slot;                   \
        comm->c_coll->coll_##slot##_module = module->previous_##slot##_module; \
        OBJ_RELEASE(module);                                                   \
    }
#endif

void mca_coll_hetcoll_leave(mca_coll_hetcoll_module_t *own)
{
    mca_coll_hetcoll_module_t *module = own; /* OBJ_RELEASE may write it */
    struct ompi_communicator_t *comm = module->comm;
    HETCOLL_SLOTS(HETCOLL_RESTORE)
}

/* 4.1 and 5.0 call this once for every slot that we own, so it may run more than once. */
static int disable(mca_coll_base_module_t *base, struct ompi_communicator_t *comm)
{
#if HETCOLL_MODULE_INSTALLS_ITSELF
    mca_coll_hetcoll_module_t *module = (mca_coll_hetcoll_module_t *)base;
    HETCOLL_SLOTS(HETCOLL_RESTORE)
#define HETCOLL_FORGET(slot)        \
    module->previous_##slot = NULL; \
    module->previous_##slot##_module = NULL;
    HETCOLL_SLOTS(HETCOLL_FORGET)
#undef HETCOLL_FORGET
    mca_coll_hetcoll_staged_disable(module, comm);
#else
    (void)base;
    (void)comm;
#endif
    return OMPI_SUCCESS;
}

/* The other ranks have their modules, so this one must. Threads may make communicators
 * concurrently. */
static mca_coll_hetcoll_module_t *spare;

static mca_coll_hetcoll_module_t *take_spare(void)
{
    return __atomic_exchange_n(&spare, NULL, __ATOMIC_ACQ_REL);
}

void mca_coll_hetcoll_keep_spare(void)
{
    if (NULL != __atomic_load_n(&spare, __ATOMIC_RELAXED)) {
        return;
    }
    mca_coll_hetcoll_module_t *made = OBJ_NEW(mca_coll_hetcoll_module_t), *none = NULL;
    if (NULL != made && !__atomic_compare_exchange_n(&spare, &none, made, false, __ATOMIC_ACQ_REL,
                                                     __ATOMIC_RELAXED)) {
        OBJ_RELEASE(made);
    }
}

static mca_coll_hetcoll_module_t *new_module(void)
{
    mca_coll_hetcoll_module_t *module;
    mca_coll_hetcoll_keep_spare();
    HETCOLL_NEW(module, mca_coll_hetcoll_module_t);
    if (NULL == module) {
        module = take_spare();
    }
    return module;
}

void mca_coll_hetcoll_drop_spare(void)
{
    mca_coll_hetcoll_module_t *module = take_spare();
    if (NULL != module) {
        OBJ_RELEASE(module);
    }
}

static void end_job(struct ompi_communicator_t *comm)
{
    mca_coll_hetcoll_log(0, "hetcoll ends the job: a rank has no host memory left for a "
                            "communicator, twice in a row, and the other ranks would wait for it");
    (void)ompi_mpi_abort(comm, MPI_ERR_NO_MEM);
}

/* Runs while the communicator is being made: decides from local facts alone. A communicator of one
 * rank is taken too, because the component that serves it copies with the host. */
mca_coll_base_module_t *mca_coll_hetcoll_comm_query(struct ompi_communicator_t *comm, int *priority)
{
    mca_coll_hetcoll_refuse();
    if (NULL == mca_coll_hetcoll_component.process || !mca_coll_hetcoll_has_fields() ||
        OMPI_COMM_IS_INTER(comm)) {
        return NULL;
    }
    mca_coll_hetcoll_module_t *module = new_module();
    if (NULL == module) {
        end_job(comm);
        return NULL;
    }
    module->comm = comm;
    module->super.coll_module_enable = enable;
    module->super.coll_module_disable = disable;
#define HETCOLL_OFFER(slot) module->super.coll_##slot = mca_coll_hetcoll_##slot;
    HETCOLL_SLOTS(HETCOLL_OFFER)
#undef HETCOLL_OFFER
    mca_coll_hetcoll_staged_offer(module);
    mca_coll_hetcoll_look_at_info(module);
    *priority = mca_coll_hetcoll_component.settings.priority;
    return &module->super;
}
