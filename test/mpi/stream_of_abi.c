/* hetcoll_stream.h in a program of MPI's standard ABI, whose handles are others than Open MPI's:
 * hetcoll's functions would take a small number for a pointer. */
#include <mpi.h>

#undef MPI_ABI_VERSION /* -1 in Open MPI 6's own mpi.h, where stream_order shows that calls queue \
                        */
#define MPI_ABI_VERSION 1
#include "include/hetcoll_stream.h"

int finds_functions_of_abi(void);
int finds_functions_of_abi(void) { return hetcoll_stream_functions_() != NULL; }
