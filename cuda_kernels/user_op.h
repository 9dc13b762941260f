/* Which user-defined MPI operations hetcoll knows: those of include/hetcoll_types.h. C and C++. */
#ifndef HETCOLL_CUDA_KERNELS_USER_OP_H
#define HETCOLL_CUDA_KERNELS_USER_OP_H

#ifdef __cplusplus
extern "C" {
#endif

/* 1 if `function`, as given to MPI_Op_create, is an operation of hetcoll_types.h: then *op is the
 * hetcoll::ReduceOp and *kind the hetcoll::ElementKind that it reduces, whatever datatype it is
 * called with. Else 0. Never calls the function; reads at most the 256 bytes from its address
 * on, and none unless that is a multiple of 256. A function that differs in one byte is not
 * recognised. Costs less than a microsecond; the answer is good as long as the function's library
 * stays loaded. */
int hetcoll_user_op(void (*function)(void), int *op, int *kind);

#ifdef __cplusplus
}
#endif
#endif
