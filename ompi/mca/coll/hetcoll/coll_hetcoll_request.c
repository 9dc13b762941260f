/* Open MPI's progress engine is entered by many threads concurrently and calls us back without a
 * lock, also from within messages that our own steps start. So one thread at a time steps the
 * requests, and what has become complete is told to Open MPI only after that: its callbacks may
 * begin other collectives. */
#include "coll_hetcoll_request.h"

#include <pthread.h>
#include <stdio.h>

#include "opal/runtime/opal_progress.h"
#include "opal/util/proc.h"

/* Errors free persistent requests, see free_request(). */
#define ERRORS_FREE_PERSISTENT \
    (5 > OMPI_MAJOR_VERSION || \
     (5 == OMPI_MAJOR_VERSION && 0 == OMPI_MINOR_VERSION && 10 > OMPI_RELEASE_VERSION))

static void construct(mca_coll_hetcoll_request_t *request)
{
    request->comm = NULL;
    request->next = NULL;
    request->outlives_error = false;
    request->step = NULL;
    request->start = NULL;
    request->destroy = NULL;
    request->work = NULL;
}

OBJ_CLASS_INSTANCE(mca_coll_hetcoll_request_t, ompi_coll_base_nbc_request_t, construct, NULL);

/* Taken by who steps. Real mutexes: Open MPI's own do nothing where it was not asked for threads,
 * but trying this one must also fail further down the same stack. */
static pthread_mutex_t stepping = PTHREAD_MUTEX_INITIALIZER;
static mca_coll_hetcoll_request_t *active;   /* of `stepping`; in the order in which they began */
static mca_coll_hetcoll_stepper_t *steppers; /* of `stepping` */

static pthread_mutex_t arriving = PTHREAD_MUTEX_INITIALIZER;
static mca_coll_hetcoll_request_t *arrived, **arrived_end = &arrived; /* of `arriving` */
static bool registered;                                               /* likewise */
static int unfinished; /* requests and other work that have begun and are not complete; atomic */

static bool is_busy(void) { return 0 != __atomic_load_n(&unfinished, __ATOMIC_RELAXED); }

static struct {
    pthread_t thread;
    pthread_cond_t wake; /* with `arriving` */
    bool runs, stops;    /* of `arriving` */
} helper = {.wake = PTHREAD_COND_INITIALIZER};

static void take_arrived(void)
{
    pthread_mutex_lock(&arriving);
    mca_coll_hetcoll_request_t **end = &active;
    while (NULL != *end) {
        end = &(*end)->next;
    }
    *end = arrived;
    arrived = NULL;
    arrived_end = &arrived;
    pthread_mutex_unlock(&arriving);
}

static int progress(void)
{
    if (OPAL_LIKELY(!is_busy()) || 0 != pthread_mutex_trylock(&stepping)) {
        return 0;
    }
    take_arrived();
    mca_coll_hetcoll_request_t *complete = NULL, **complete_end = &complete, **link = &active;
    while (NULL != *link) {
        mca_coll_hetcoll_request_t *request = *link;
        int error = MPI_SUCCESS;
        if (0 == request->step(request, &error)) {
            link = &request->next;
            continue;
        }
        request->super.super.req_status.MPI_ERROR = error;
        request->outlives_error =
            ERRORS_FREE_PERSISTENT && MPI_SUCCESS != error && request->super.super.req_persistent;
        *link = request->next;
        request->next = NULL;
        *complete_end = request;
        complete_end = &request->next;
    }
    int count = 0;
    for (mca_coll_hetcoll_stepper_t *at = steppers; NULL != at; at = at->next) {
        count += at->step(at);
    }
    (void)__atomic_sub_fetch(&unfinished, count, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&stepping);

    while (NULL != complete) {
        mca_coll_hetcoll_request_t *request = complete;
        complete = request->next;
        request->next = NULL;
        (void)__atomic_sub_fetch(&unfinished, 1, __ATOMIC_RELAXED);
        (void)ompi_request_complete(&request->super.super, true); /* it may be freed right away */
        ++count;
    }
    return count;
}

/* Sleeps while there is nothing to do. Else it keeps a processor busy, as a program that waits
 * does: that is what the user asked for. */
static void *help(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&arriving);
    while (!helper.stops) {
        if (!is_busy()) {
            pthread_cond_wait(&helper.wake, &arriving);
            continue;
        }
        pthread_mutex_unlock(&arriving);
        opal_progress();
        pthread_mutex_lock(&arriving);
    }
    pthread_mutex_unlock(&arriving);
    return NULL;
}

/* Requires `arriving`. */
static void start_helper(void)
{
    if (!mca_coll_hetcoll_component.settings.progress_thread || helper.runs) {
        return;
    }
    const char *obstacle = NULL;
    if (!mca_coll_hetcoll_component.thread_multiple) {
        obstacle = "MPI was not initialised with MPI_THREAD_MULTIPLE";
    } else if (0 != pthread_create(&helper.thread, NULL, help, NULL)) {
        obstacle = "no thread can be made";
    } else {
        helper.runs = true;
    }
    if (NULL != obstacle && 0 == opal_process_info.my_local_rank) {
        char line[256];
        snprintf(
            line, sizeof line,
            "hetcoll: coll_hetcoll_progress_thread is off, nonblocking operations advance in MPI "
            "calls only: %s",
            obstacle);
        mca_coll_hetcoll_log(0, line);
    }
}

/* False without memory for that: no request would ever end. Requires `arriving`. */
static bool register_progress(void)
{
    if (!registered && OPAL_SUCCESS == opal_progress_register(progress)) {
        registered = true;
        start_helper();
    }
    return registered;
}

static bool can_progress(void)
{
    pthread_mutex_lock(&arriving);
    const bool can = register_progress();
    pthread_mutex_unlock(&arriving);
    return can;
}

void mca_coll_hetcoll_request_begin(mca_coll_hetcoll_request_t *request)
{
    request->next = NULL;
    pthread_mutex_lock(&arriving);
    (void)register_progress(); /* it is, since the request was made */
    *arrived_end = request;
    arrived_end = &request->next;
    (void)__atomic_add_fetch(&unfinished, 1, __ATOMIC_RELAXED);
    if (helper.runs) {
        pthread_cond_signal(&helper.wake);
    }
    pthread_mutex_unlock(&arriving);
}

bool mca_coll_hetcoll_start_thread(void)
{
    pthread_mutex_lock(&arriving);
    if (register_progress() && !helper.runs &&
        0 == pthread_create(&helper.thread, NULL, help, NULL)) {
        helper.runs = true;
    }
    const bool runs = helper.runs;
    pthread_mutex_unlock(&arriving);
    return runs;
}

void mca_coll_hetcoll_stepper_add(mca_coll_hetcoll_stepper_t *stepper)
{
    (void)can_progress();
    pthread_mutex_lock(&stepping);
    stepper->next = steppers;
    steppers = stepper;
    pthread_mutex_unlock(&stepping);
}

void mca_coll_hetcoll_stepper_remove(mca_coll_hetcoll_stepper_t *stepper)
{
    pthread_mutex_lock(&stepping);
    mca_coll_hetcoll_stepper_t **link = &steppers;
    while (NULL != *link && *link != stepper) {
        link = &(*link)->next;
    }
    if (NULL != *link) {
        *link = stepper->next;
    }
    pthread_mutex_unlock(&stepping);
}

/* The thread sleeps only where there was nothing to do. */
void mca_coll_hetcoll_stepper_wake(void)
{
    if (0 == __atomic_fetch_add(&unfinished, 1, __ATOMIC_SEQ_CST)) {
        pthread_mutex_lock(&arriving);
        pthread_cond_signal(&helper.wake);
        pthread_mutex_unlock(&arriving);
    }
}

void mca_coll_hetcoll_stop_requests(void)
{
    pthread_mutex_lock(&arriving);
    const bool was_registered = registered, runs = helper.runs;
    registered = helper.runs = false;
    helper.stops = true;
    pthread_cond_signal(&helper.wake);
    pthread_mutex_unlock(&arriving);
    if (runs) {
        (void)pthread_join(helper.thread, NULL);
    }
    helper.stops = false;
    if (was_registered) {
        (void)opal_progress_unregister(progress);
    }
}

/* Before Open MPI tells a program of a request's error it frees the request; before 5.0.10 a
 * persistent one too. The error may be this rank's alone: then the others would start theirs again
 * and wait for this rank forever. Therefore that one free does nothing, and the program starts the
 * request again or frees it. Open MPI has made the request inactive then, unlike a program that
 * frees one without having waited for it. */
static int free_request(struct ompi_request_t **handle)
{
    mca_coll_hetcoll_request_t *request = (mca_coll_hetcoll_request_t *)*handle;
    if (!REQUEST_COMPLETE(*handle)) {
        return MPI_ERR_REQUEST; /* MPI does not let programs free an active one */
    }
    if (request->outlives_error && OMPI_REQUEST_INACTIVE == (*handle)->req_state) {
        request->outlives_error = false;
        (*handle)->req_status.MPI_ERROR = MPI_SUCCESS; /* it has been told */
        return OMPI_SUCCESS;
    }
    *handle = MPI_REQUEST_NULL;
    mca_coll_hetcoll_request_drop(request);
    return OMPI_SUCCESS;
}

/* MPI has no cancelled collectives. */
static int cancel(struct ompi_request_t *request, int flag)
{
    (void)request;
    (void)flag;
    return MPI_ERR_REQUEST;
}

static int start(size_t count, struct ompi_request_t **requests)
{
    for (size_t i = 0; i < count; ++i) {
        mca_coll_hetcoll_request_t *request = (mca_coll_hetcoll_request_t *)requests[i];
        request->super.super.req_complete = REQUEST_PENDING;
        request->super.super.req_state = OMPI_REQUEST_ACTIVE;
        request->super.super.req_status.MPI_ERROR = MPI_SUCCESS;
        request->outlives_error = false;
        const int rc = request->start(request);
        if (OMPI_SUCCESS != rc) {
            request->super.super.req_complete = REQUEST_COMPLETED;
            request->super.super.req_state = OMPI_REQUEST_INACTIVE;
            return rc;
        }
        mca_coll_hetcoll_request_begin(request);
    }
    return OMPI_SUCCESS;
}

mca_coll_hetcoll_request_t *mca_coll_hetcoll_request_new(struct ompi_communicator_t *comm,
                                                         bool persistent)
{
    mca_coll_hetcoll_request_t *request = NULL;
    if (can_progress()) {
        HETCOLL_NEW(request, mca_coll_hetcoll_request_t);
    }
    if (NULL == request) {
        return NULL;
    }
    ompi_request_t *base = &request->super.super;
    OMPI_REQUEST_INIT(base, persistent);
    base->req_type = OMPI_REQUEST_COLL;
    base->req_mpi_object.comm = comm;
    base->req_free = free_request;
    base->req_cancel = cancel;
    base->req_start = start;
    base->req_status._cancelled = 0;
    base->req_status.MPI_ERROR = MPI_SUCCESS;
    if (persistent) {
        base->req_complete = REQUEST_COMPLETED;
    } else {
        base->req_state = OMPI_REQUEST_ACTIVE;
    }
    request->comm = comm;
    OBJ_RETAIN(comm);
    return request;
}

void mca_coll_hetcoll_request_drop(mca_coll_hetcoll_request_t *request)
{
    struct ompi_communicator_t *comm = request->comm;
    if (NULL != request->destroy) {
        request->destroy(request);
    }
    OMPI_REQUEST_FINI(&request->super.super);
    OBJ_RELEASE(request);
    OBJ_RELEASE(comm);
}
