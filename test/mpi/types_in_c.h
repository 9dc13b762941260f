/* hetcoll_types.h as a C program has it, for types.cc. */
#ifndef HETCOLL_TEST_MPI_TYPES_IN_C_H
#define HETCOLL_TEST_MPI_TYPES_IN_C_H

#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hetcoll_types;

int types_in_c_create(struct hetcoll_types *types);
int types_in_c_free(struct hetcoll_types *types);
/* The functions behind the operations, in the order of struct hetcoll_types. */
MPI_User_function *types_in_c_function(int i);

#ifdef __cplusplus
}
#endif
#endif
