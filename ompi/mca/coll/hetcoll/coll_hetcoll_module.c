/* The module: one a communicator. It takes MPI_Allreduce, and keeps the module that had it before.
 */
#include "coll_hetcoll.h"

static void construct(mca_coll_hetcoll_module_t *module)
{
    module->comm = NULL;
    module->state = HETCOLL_STATE_NEW;
    module->engine = NULL;
    module->last.dtype = NULL;
    module->last.op = NULL;
    module->previous_allreduce = NULL;
    module->previous_allreduce_module = NULL;
}

static void destruct(mca_coll_hetcoll_module_t *module)
{
    if (NULL != module->engine) {
        hetcoll_engine_destroy(module->engine);
    }
#if !HETCOLL_MODULE_INSTALLS_ITSELF
    if (NULL != module->previous_allreduce_module) {
        OBJ_RELEASE(module->previous_allreduce_module);
    }
#endif
}

OBJ_CLASS_INSTANCE(mca_coll_hetcoll_module_t, mca_coll_base_module_t, construct, destruct);

/* Nothing to fall back to happens: another component may have emptied the slot (Open MPI issue
 * 9885). Then the slot stays empty. 4.1 and 5.0 copy our slots after this and count references;
 * main lets the module write the slot, without counting. */
static int enable(mca_coll_base_module_t *base, struct ompi_communicator_t *comm)
{
    mca_coll_hetcoll_module_t *module = (mca_coll_hetcoll_module_t *)base;
    if (NULL == comm->c_coll->coll_allreduce || NULL == comm->c_coll->coll_allreduce_module) {
        base->coll_allreduce = NULL;
        return OMPI_SUCCESS;
    }
    module->previous_allreduce = comm->c_coll->coll_allreduce;
    module->previous_allreduce_module = comm->c_coll->coll_allreduce_module;
#if HETCOLL_MODULE_INSTALLS_ITSELF
    MCA_COLL_INSTALL_API(comm, allreduce, mca_coll_hetcoll_allreduce, base, "hetcoll");
#else
    OBJ_RETAIN(module->previous_allreduce_module);
#endif
    return OMPI_SUCCESS;
}

void mca_coll_hetcoll_leave(mca_coll_hetcoll_module_t *module)
{
    struct ompi_communicator_t *comm = module->comm;
    if (comm->c_coll->coll_allreduce_module != &module->super ||
        comm->c_coll->coll_allreduce != mca_coll_hetcoll_allreduce) {
        return; /* another module came after us */
    }
#if HETCOLL_MODULE_INSTALLS_ITSELF
    MCA_COLL_INSTALL_API(comm, allreduce, module->previous_allreduce,
                         module->previous_allreduce_module, "hetcoll");
#else
    OBJ_RETAIN(module->previous_allreduce_module);
    comm->c_coll->coll_allreduce = module->previous_allreduce;
    comm->c_coll->coll_allreduce_module = module->previous_allreduce_module;
    OBJ_RELEASE(module); /* the slot's; the communicator's list of modules has another */
#endif
}

/* 4.1 and 5.0 call this once for every slot that we own, so it may run more than once. */
static int disable(mca_coll_base_module_t *base, struct ompi_communicator_t *comm)
{
#if HETCOLL_MODULE_INSTALLS_ITSELF
    mca_coll_hetcoll_module_t *module = (mca_coll_hetcoll_module_t *)base;
    if (comm->c_coll->coll_allreduce_module == base) {
        MCA_COLL_INSTALL_API(comm, allreduce, module->previous_allreduce,
                             module->previous_allreduce_module, "hetcoll");
    }
    module->previous_allreduce = NULL;
    module->previous_allreduce_module = NULL;
#else
    (void)base;
    (void)comm;
#endif
    return OMPI_SUCCESS;
}

/* Runs while the communicator is being made: decides from local facts alone. A communicator of one
 * rank is taken too, because the component that serves it copies with the host. */
mca_coll_base_module_t *mca_coll_hetcoll_comm_query(struct ompi_communicator_t *comm, int *priority)
{
    if (NULL == mca_coll_hetcoll_component.process || OMPI_COMM_IS_INTER(comm)) {
        return NULL;
    }
    mca_coll_hetcoll_module_t *module = OBJ_NEW(mca_coll_hetcoll_module_t);
    if (NULL == module) {
        return NULL;
    }
    module->comm = comm;
    module->super.coll_module_enable = enable;
    module->super.coll_module_disable = disable;
    module->super.coll_allreduce = mca_coll_hetcoll_allreduce;
    *priority = mca_coll_hetcoll_component.priority;
    return &module->super;
}
