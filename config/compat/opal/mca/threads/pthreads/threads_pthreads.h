/* Stands in for a header that Open MPI 5 and later include everywhere but do not install, not even
 * with --with-devel-headers. On the include path by -idirafter: an installed one wins. Valid only
 * where Open MPI uses pthreads, which configure checks. */
#ifndef OPAL_MCA_THREADS_PTHREADS_THREADS_PTHREADS_H
#define OPAL_MCA_THREADS_PTHREADS_THREADS_PTHREADS_H

typedef void(opal_threads_pthreads_yield_fn_t)(void);
extern opal_threads_pthreads_yield_fn_t *opal_threads_pthreads_yield_fn;

#endif
