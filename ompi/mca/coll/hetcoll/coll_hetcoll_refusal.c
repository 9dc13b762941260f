/* Calls that this rank has no memory to begin, or whose stream is being captured. The other ranks
 * wait for it in theirs, so it says so whenever Open MPI makes progress; then all have an error,
 * and are in the same call again. The module has all that it takes. */
#include "coll_hetcoll_request.h"

#include "ompi/runtime/mpiruntime.h"
#include "opal/runtime/opal_progress.h"

static mca_coll_hetcoll_module_t *module_of(mca_coll_hetcoll_stepper_t *stepper)
{
    char *const refusals = (char *)stepper - offsetof(struct mca_coll_hetcoll_refusals, stepper);
    return (mca_coll_hetcoll_module_t *)(refusals - offsetof(mca_coll_hetcoll_module_t, refusals));
}

static int left_of(mca_coll_hetcoll_module_t *module)
{
    return __atomic_load_n(&module->refusals.left, __ATOMIC_ACQUIRE);
}

/* Without a communicator in the core: the other ranks call the roll once for each call. */
static int step_first(mca_coll_hetcoll_module_t *module)
{
    struct mca_coll_hetcoll_refusals *refusals = &module->refusals;
    if (!refusals->runs) {
        struct hetcoll_p2p p2p;
        mca_coll_hetcoll_fill_p2p(&p2p, module->comm);
        hetcoll_refusal_start(&refusals->first, &p2p, MCA_COLL_HETCOLL_TAG);
        refusals->runs = true;
    }
    if (!hetcoll_refusal_step(&refusals->first)) {
        return 0;
    }
    refusals->runs = false;
    return 1;
}

static int step(mca_coll_hetcoll_stepper_t *stepper)
{
    mca_coll_hetcoll_module_t *module = module_of(stepper);
    const int left = left_of(module); /* before it is known that none is */
    if (0 == left) {
        return 0;
    }
    const int said = NULL == module->core                       ? step_first(module)
                     : hetcoll_comm_step_refusals(module->core) ? left
                                                                : 0;
    (void)__atomic_sub_fetch(&module->refusals.left, said, __ATOMIC_ACQ_REL);
    return said;
}

static void refuse(mca_coll_hetcoll_module_t *module, unsigned number, enum hetcoll_why_refused why)
{
    if (!module->refusals.added) {
        module->refusals.stepper.step = step;
        mca_coll_hetcoll_stepper_add(&module->refusals.stepper);
        module->refusals.added = true;
    }
    if (NULL != module->core) {
        hetcoll_comm_refuse(module->core, number, why, MCA_COLL_HETCOLL_TAG);
    }
    (void)__atomic_add_fetch(&module->refusals.left, 1, __ATOMIC_ACQ_REL);
    mca_coll_hetcoll_stepper_wake();
}

void mca_coll_hetcoll_refuse_call(mca_coll_hetcoll_module_t *module, unsigned number)
{
    refuse(module, number, HETCOLL_HAS_NO_MEMORY);
}

void mca_coll_hetcoll_refuse_captured(mca_coll_hetcoll_module_t *module, unsigned number)
{
    refuse(module, number, HETCOLL_CAPTURES);
}

void mca_coll_hetcoll_end_refusals(mca_coll_hetcoll_module_t *module)
{
    while (0 != left_of(module)) {
        opal_progress();
    }
}

void mca_coll_hetcoll_release_refusals(mca_coll_hetcoll_module_t *module)
{
    if (module->refusals.added) {
        mca_coll_hetcoll_end_refusals(module);
        mca_coll_hetcoll_stepper_remove(&module->refusals.stepper);
    }
}
