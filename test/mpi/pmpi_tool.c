// A PMPI tool, preloaded: it makes collectives of its own inside the program's, keeps a
// communicator and gathers at MPI_Finalize. A rank whose calls it has not seen ends with an error.
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>

static MPI_Comm own;
static double calls;

int MPI_Init_thread(int *argc, char ***argv, int wanted, int *given)
{
    const int error = PMPI_Init_thread(argc, argv, wanted, given);
    PMPI_Comm_dup(MPI_COMM_WORLD, &own);
    return error;
}

int MPI_Allreduce(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op,
                  MPI_Comm comm)
{
    double before = PMPI_Wtime(), longest = 0;
    PMPI_Barrier(comm);
    const int error = PMPI_Allreduce(send, recv, count, type, op, comm);
    before = PMPI_Wtime() - before;
    PMPI_Allreduce(&before, &longest, 1, MPI_DOUBLE, MPI_MAX, comm);
    ++calls;
    return error;
}

int MPI_Finalize(void)
{
    int rank = 0, ranks = 0;
    PMPI_Comm_rank(own, &rank);
    PMPI_Comm_size(own, &ranks);
    double *all = calloc((size_t)ranks, sizeof *all);
    PMPI_Gather(&calls, 1, MPI_DOUBLE, all, 1, MPI_DOUBLE, 0, own);
    int missing = 0;
    for (int i = 0; rank == 0 && i < ranks; ++i) {
        missing += all[i] < 1;
    }
    free(all);
    PMPI_Comm_free(&own);
    if (missing > 0) {
        printf("WRONG pmpi_tool: %d ranks made no call that it saw\n", missing);
        fflush(stdout);
    }
    return PMPI_Finalize();
}
