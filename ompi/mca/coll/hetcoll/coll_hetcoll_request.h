/* Requests of hetcoll's nonblocking and persistent collectives. One is work that advances step by
 * step, from Open MPI's progress engine or from a thread of ours. */
#ifndef MCA_COLL_HETCOLL_REQUEST_H
#define MCA_COLL_HETCOLL_REQUEST_H

#include "coll_hetcoll.h"

#include "ompi/mca/coll/base/coll_base_util.h"

typedef struct mca_coll_hetcoll_request {
    ompi_coll_base_nbc_request_t super; /* first: Open MPI casts requests of collectives to it */
    struct ompi_communicator_t *comm;   /* held until the request is freed */
    struct mca_coll_hetcoll_request *next;
    bool outlives_error; /* free_request() */
    /* The owner's. step: nonzero when complete, with *error set to MPI_SUCCESS or an error; it must
     * not complete requests. start: of a persistent request, begins it anew. destroy: `work` is
     * needed no more. */
    int (*step)(struct mca_coll_hetcoll_request *request, int *error);
    int (*start)(struct mca_coll_hetcoll_request *request);
    void (*destroy)(struct mca_coll_hetcoll_request *request);
    void *work;
} mca_coll_hetcoll_request_t;

OBJ_CLASS_DECLARATION(mca_coll_hetcoll_request_t);

/* NULL: no memory. The caller sets the owner's fields. A persistent one is inactive at first. */
mca_coll_hetcoll_request_t *mca_coll_hetcoll_request_new(struct ompi_communicator_t *comm,
                                                         bool persistent);
/* From now on it is stepped until it is complete; MPI_Start does this after start(). */
void mca_coll_hetcoll_request_begin(mca_coll_hetcoll_request_t *request);
/* Destroys a request that was never begun, and its operation. */
void mca_coll_hetcoll_request_drop(mca_coll_hetcoll_request_t *request);

void mca_coll_hetcoll_stepper_add(mca_coll_hetcoll_stepper_t *stepper);
/* Requires that it has no work. It is not stepped any more when this returns. */
void mca_coll_hetcoll_stepper_remove(mca_coll_hetcoll_stepper_t *stepper);
void mca_coll_hetcoll_stepper_wake(void); /* one piece more */
/* A thread of ours makes progress, whatever coll_hetcoll_progress_thread says. False: it cannot. */
bool mca_coll_hetcoll_start_thread(void);

/* At the component's end. */
void mca_coll_hetcoll_stop_requests(void);

#endif
