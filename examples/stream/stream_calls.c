/* hetcoll_stream.h as a library, for languages that call C by its names (Python's ctypes).
 *
 *     mpicc -shared -fPIC stream_calls.c -ldl -o libstream_calls.so */
#include <hetcoll_stream.h>

int stream_attach(MPI_Comm comm, void *stream, size_t most_bytes)
{
    return hetcoll_stream_attach(comm, (hetcoll_stream_t)stream, most_bytes);
}

int stream_check(MPI_Comm comm, void *stream)
{
    return hetcoll_stream_check(comm, (hetcoll_stream_t)stream);
}

int stream_detach(MPI_Comm comm, void *stream)
{
    return hetcoll_stream_detach(comm, (hetcoll_stream_t)stream);
}

/* The sum of floats, in place. */
int stream_sum(void *vector, int count, MPI_Comm comm, void *stream)
{
    return hetcoll_allreduce_enqueue(MPI_IN_PLACE, vector, count, MPI_FLOAT, MPI_SUM, comm,
                                     (hetcoll_stream_t)stream);
}
