/* For LD_PRELOAD: MPI's collectives, whose results of floats have a wrong first element. */
#include <mpi.h>

static void spoil(void *result, MPI_Datatype type)
{
    if (MPI_FLOAT == type && MPI_IN_PLACE != result) {
        *(float *)result += 1;
    }
}

#define SPOILED(name, result, type, parameters, arguments) \
    int MPI_##name parameters                              \
    {                                                      \
        const int code = PMPI_##name arguments;            \
        spoil(result, type);                               \
        return code;                                       \
    }
#define REDUCTION(name)                                                                   \
    SPOILED(name, out, t,                                                                 \
            (const void *in, void *out, int n, MPI_Datatype t, MPI_Op op, MPI_Comm comm), \
            (in, out, n, t, op, comm))
#define MOVE(name)                                                                                \
    SPOILED(                                                                                      \
        name, out, t,                                                                             \
        (const void *in, int n, MPI_Datatype s, void *out, int m, MPI_Datatype t, MPI_Comm comm), \
        (in, n, s, out, m, t, comm))
#define ROOTED(name)                                                                            \
    SPOILED(name, out, t,                                                                       \
            (const void *in, int n, MPI_Datatype s, void *out, int m, MPI_Datatype t, int root, \
             MPI_Comm comm),                                                                    \
            (in, n, s, out, m, t, root, comm))
#define GATHERV(name)                                                                        \
    SPOILED(name, out, t,                                                                    \
            (const void *in, int n, MPI_Datatype s, void *out, const int m[], const int d[], \
             MPI_Datatype t, MPI_Comm comm),                                                 \
            (in, n, s, out, m, d, t, comm))
#define ALLTOALLV(name)                                                               \
    SPOILED(name, out, t,                                                             \
            (const void *in, const int n[], const int e[], MPI_Datatype s, void *out, \
             const int m[], const int d[], MPI_Datatype t, MPI_Comm comm),            \
            (in, n, e, s, out, m, d, t, comm))
#define ALLTOALLW(name, place)                                                                  \
    SPOILED(name, out, t[0],                                                                    \
            (const void *in, const int n[], const place e[], const MPI_Datatype s[], void *out, \
             const int m[], const place d[], const MPI_Datatype t[], MPI_Comm comm),            \
            (in, n, e, s, out, m, d, t, comm))

REDUCTION(Allreduce)
REDUCTION(Scan)
REDUCTION(Exscan)
REDUCTION(Reduce_scatter_block)
MOVE(Allgather)
MOVE(Alltoall)
MOVE(Neighbor_allgather)
MOVE(Neighbor_alltoall)
ROOTED(Gather)
ROOTED(Scatter)
SPOILED(Bcast, out, t, (void *out, int n, MPI_Datatype t, int root, MPI_Comm comm),
        (out, n, t, root, comm))
SPOILED(Reduce, out, t,
        (const void *in, void *out, int n, MPI_Datatype t, MPI_Op op, int root, MPI_Comm comm),
        (in, out, n, t, op, root, comm))
SPOILED(Reduce_scatter, out, t,
        (const void *in, void *out, const int n[], MPI_Datatype t, MPI_Op op, MPI_Comm comm),
        (in, out, n, t, op, comm))
GATHERV(Allgatherv)
GATHERV(Neighbor_allgatherv)
ALLTOALLV(Alltoallv)
ALLTOALLV(Neighbor_alltoallv)
ALLTOALLW(Alltoallw, int)
ALLTOALLW(Neighbor_alltoallw, MPI_Aint)
SPOILED(Gatherv, out, t,
        (const void *in, int n, MPI_Datatype s, void *out, const int m[], const int d[],
         MPI_Datatype t, int root, MPI_Comm comm),
        (in, n, s, out, m, d, t, root, comm))
SPOILED(Scatterv, out, t,
        (const void *in, const int n[], const int d[], MPI_Datatype s, void *out, int m,
         MPI_Datatype t, int root, MPI_Comm comm),
        (in, n, d, s, out, m, t, root, comm))
