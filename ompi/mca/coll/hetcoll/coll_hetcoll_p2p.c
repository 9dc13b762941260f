/* Open MPI's PML as the core's table of point-to-point functions. */
#include "coll_hetcoll.h"

#include <string.h>

#include "ompi/mca/pml/base/base.h"
#include "ompi/mca/pml/pml.h"
#include "ompi/request/request.h"
#include "ompi/runtime/mpiruntime.h"
#include "ompi/runtime/params.h"
#include "opal/runtime/opal_progress.h"
#include "opal/sys/atomic.h"

/* mpi-ext.h declares it, but cannot be included inside Open MPI's source tree. Weak: an Open MPI
 * may be built without its extensions. */
extern int MPIX_Query_cuda_support(void) __attribute__((weak));

static int p2p_isend(void *context, const void *buffer, size_t bytes, int peer, int tag,
                     void **request)
{
    ompi_request_t *started;
    const int rc =
        MCA_PML_CALL(isend((void *)buffer, bytes, MPI_BYTE, peer, tag, MCA_PML_BASE_SEND_STANDARD,
                           (ompi_communicator_t *)context, &started));
    if (OMPI_SUCCESS == rc) {
        *request = started;
    }
    return mca_coll_hetcoll_error_to_core(rc);
}

static int p2p_irecv(void *context, void *buffer, size_t bytes, int peer, int tag, void **request)
{
    ompi_request_t *started;
    const int rc = MCA_PML_CALL(
        irecv(buffer, bytes, MPI_BYTE, peer, tag, (ompi_communicator_t *)context, &started));
    if (OMPI_SUCCESS == rc) {
        *request = started;
    }
    return mca_coll_hetcoll_error_to_core(rc);
}

typedef int broken_t(void *context);

/* Failures of ranks are told under mpirun --with-ft ulfm, by Open MPI 5.0 and later. */
#if defined(OPAL_ENABLE_FT_MPI) && OPAL_ENABLE_FT_MPI
/* Not ompi_comm_iface_coll_check(), which calls opal_progress(). */
static int p2p_broken(void *context)
{
    ompi_communicator_t *comm = context;
    if (OPAL_UNLIKELY(ompi_comm_is_revoked(comm))) {
        return mca_coll_hetcoll_error_to_core(MPI_ERR_REVOKED);
    }
    return OPAL_UNLIKELY(ompi_comm_coll_revoked(comm))
               ? mca_coll_hetcoll_error_to_core(MPI_ERR_PROC_FAILED)
               : 0;
}

/* A pending request of such a communicator completes only where somebody asks this. */
static bool is_failed(ompi_request_t *request) { return ompi_request_is_failed(request); }

static broken_t *find_broken(void) { return ompi_ftmpi_enabled ? p2p_broken : NULL; }
#else
static bool is_failed(ompi_request_t *request)
{
    (void)request;
    return false;
}

static broken_t *find_broken(void) { return NULL; }
#endif

int mca_coll_hetcoll_broken(struct ompi_communicator_t *comm)
{
    broken_t *const broken = find_broken();
    return NULL == broken ? MPI_SUCCESS : mca_coll_hetcoll_error_from_core(broken(comm));
}

/* Not ompi_request_test(): that one calls opal_progress(), which may call us. */
static int p2p_test(void *context, void **request)
{
    ompi_request_t *started = *request;
    (void)context;
    if (!REQUEST_COMPLETE(started) && !is_failed(started)) {
        return 0;
    }
    opal_atomic_rmb();
    const int rc = started->req_status.MPI_ERROR;
    ompi_request_free(&started);
    *request = NULL;
    return OMPI_SUCCESS == rc ? 1 : mca_coll_hetcoll_error_to_core(rc);
}

static void p2p_progress(void *context)
{
    (void)context;
    opal_progress();
}

static void p2p_end_job(void *context, int code)
{
    (void)ompi_mpi_abort(context, mca_coll_hetcoll_error_from_core(code));
}

void mca_coll_hetcoll_fill_p2p(struct hetcoll_p2p *p2p, struct ompi_communicator_t *comm)
{
    *p2p = (struct hetcoll_p2p){
        .context = comm,
        .rank = ompi_comm_rank(comm),
        .size = ompi_comm_size(comm),
        .isend = p2p_isend,
        .irecv = p2p_irecv,
        .test = p2p_test,
        .progress = p2p_progress,
        .shares_processor = opal_progress_yield_when_idle,
        .comm_id = mca_coll_hetcoll_comm_id(comm),
        .broken = find_broken(),
        .end_job = p2p_end_job,
    };
}

/* pml ucx takes device memory only if UCX was built for it, which it does not tell: there the user
 * has to say so (coll_hetcoll_pml_device always). */
bool mca_coll_hetcoll_pml_claims_device(void)
{
    const int setting = mca_coll_hetcoll_component.settings.pml_device;
    if (HETCOLL_PML_DEVICE_AUTO != setting) {
        return HETCOLL_PML_DEVICE_ALWAYS == setting;
    }
    const char *pml = mca_pml_base_selected_component.pmlm_version.mca_component_name;
    return 0 == strcmp(pml, "ob1") && NULL != MPIX_Query_cuda_support &&
           0 != MPIX_Query_cuda_support();
}
