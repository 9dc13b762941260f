/* Records which MPI calls a program makes, for horovod_replay: preloaded, it counts communicators
 * and collectives by kind, type, operation and size, and rank 0 writes a CSV file
 * (traces/README.md) when MPI_Finalize is called. MPI_TRACE names the file. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { kMaxRows = 4096, kMaxOps = 256, kNameLength = 160 };

typedef struct {
    const char *call; /* a literal */
    char type[kNameLength], op[kNameLength];
    int comm_size, in_place, main_thread;
    long long bytes;
    long calls;
    double total_us, least_us;
} Row;

typedef struct {
    MPI_Op op;
    MPI_User_function *function;
} UserOp;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Row rows[kMaxRows];
static int row_count, lost_rows;
static UserOp user_ops[kMaxOps];
static int user_op_count;

static int find_user_op(MPI_Op op)
{
    int i = 0;
    while (i < user_op_count && user_ops[i].op != op) {
        ++i;
    }
    return i;
}

static void name_op(MPI_Op op, char *name)
{
    static const struct {
        MPI_Op op;
        const char *name;
    } predefined[] = {{MPI_SUM, "SUM"},   {MPI_PROD, "PROD"},     {MPI_MIN, "MIN"},
                      {MPI_MAX, "MAX"},   {MPI_LAND, "LAND"},     {MPI_LOR, "LOR"},
                      {MPI_LXOR, "LXOR"}, {MPI_BAND, "BAND"},     {MPI_BOR, "BOR"},
                      {MPI_BXOR, "BXOR"}, {MPI_MINLOC, "MINLOC"}, {MPI_MAXLOC, "MAXLOC"},
                      {MPI_OP_NULL, ""}};
    for (size_t i = 0; i < sizeof predefined / sizeof *predefined; ++i) {
        if (predefined[i].op == op) {
            strcpy(name, predefined[i].name);
            return;
        }
    }
    const int i = find_user_op(op);
    Dl_info info;
    if (i < user_op_count && dladdr((void *)user_ops[i].function, &info) != 0 &&
        info.dli_sname != NULL && info.dli_saddr == (void *)user_ops[i].function) {
        snprintf(name, kNameLength, "user:%s", info.dli_sname);
    } else {
        strcpy(name, "user:unknown");
    }
}

static int size_of(MPI_Datatype type)
{
    int size = 0;
    if (type != MPI_DATATYPE_NULL) {
        PMPI_Type_size(type, &size);
    }
    return size;
}

static void name_type(MPI_Datatype type, char *name)
{
    char known[MPI_MAX_OBJECT_NAME] = "";
    int length = 0;
    if (type != MPI_DATATYPE_NULL) {
        PMPI_Type_get_name(type, known, &length);
    }
    if (length > 0) {
        snprintf(name, kNameLength, "%s", known);
    } else {
        snprintf(name, kNameLength, "unnamed(%d)", size_of(type));
    }
}

/* The row of this kind of call, made if it is the first. */
static Row *find_row(const Row *kind)
{
    for (int i = 0; i < row_count; ++i) {
        const Row *row = &rows[i];
        if (row->bytes == kind->bytes && row->in_place == kind->in_place &&
            row->comm_size == kind->comm_size && row->main_thread == kind->main_thread &&
            strcmp(row->call, kind->call) == 0 && strcmp(row->type, kind->type) == 0 &&
            strcmp(row->op, kind->op) == 0) {
            return &rows[i];
        }
    }
    if (row_count == kMaxRows) {
        ++lost_rows;
        return NULL;
    }
    rows[row_count] = *kind;
    return &rows[row_count++];
}

static void count(const char *call, MPI_Comm comm, MPI_Datatype type, MPI_Op op, int in_place,
                  long long elements, double start)
{
    const double us = (PMPI_Wtime() - start) * 1e6;
    Row kind = {.call = call, .in_place = in_place, .least_us = us};
    kind.main_thread = syscall(SYS_gettid) == getpid();
    kind.bytes = elements * size_of(type);
    if (comm != MPI_COMM_NULL) {
        PMPI_Comm_size(comm, &kind.comm_size);
    }
    name_type(type, kind.type);
    pthread_mutex_lock(&lock);
    name_op(op, kind.op);
    Row *row = find_row(&kind);
    if (row != NULL) {
        ++row->calls;
        row->total_us += us;
        row->least_us = us < row->least_us ? us : row->least_us;
    }
    pthread_mutex_unlock(&lock);
}

static void count_communicator(const char *call, MPI_Comm comm)
{
    count(call, comm, MPI_DATATYPE_NULL, MPI_OP_NULL, 0, 0, PMPI_Wtime());
}

static void write_rows(const char *path)
{
    FILE *file = fopen(path, "w");
    if (file == NULL) {
        fprintf(stderr, "mpi_trace: cannot write %s (MPI_TRACE): nothing is recorded\n", path);
        return;
    }
    fprintf(file, "fn,type,op,comm_size,inplace,bytes,main_thread,calls,avg_us,min_us\n");
    for (int i = 0; i < row_count; ++i) {
        const Row *row = &rows[i];
        fprintf(file, "%s,%s,%s,%d,%d,%lld,%d,%ld,%.1f,%.1f\n", row->call, row->type, row->op,
                row->comm_size, row->in_place, row->bytes, row->main_thread, row->calls,
                row->total_us / (double)row->calls, row->least_us);
    }
    fclose(file);
    if (lost_rows > 0) {
        fprintf(stderr, "mpi_trace: more than %d kinds of calls: %d calls are not in %s\n",
                kMaxRows, lost_rows, path);
    }
}

static long long sum_of(const int *counts, MPI_Comm comm)
{
    int ranks = 0;
    PMPI_Comm_size(comm, &ranks);
    long long sum = 0;
    for (int i = 0; i < ranks; ++i) {
        sum += counts[i];
    }
    return sum;
}

static int count_of_this_rank(const int *counts, MPI_Comm comm)
{
    int rank = 0;
    PMPI_Comm_rank(comm, &rank);
    return counts[rank];
}

/* --- The calls --- */

int MPI_Finalize(void)
{
    int rank = 0;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const char *path = getenv("MPI_TRACE");
    if (rank == 0 && path != NULL) {
        pthread_mutex_lock(&lock);
        write_rows(path);
        pthread_mutex_unlock(&lock);
    }
    return PMPI_Finalize();
}

int MPI_Op_create(MPI_User_function *function, int commute, MPI_Op *op)
{
    const int status = PMPI_Op_create(function, commute, op);
    pthread_mutex_lock(&lock);
    const int i = find_user_op(*op); /* a handle may come again */
    if (status == MPI_SUCCESS && i < kMaxOps) {
        user_ops[i] = (UserOp){*op, function};
        user_op_count += i == user_op_count;
    }
    pthread_mutex_unlock(&lock);
    return status;
}

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *made)
{
    const int status = PMPI_Comm_dup(comm, made);
    count_communicator("Comm_dup", *made);
    return status;
}

int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *made)
{
    const int status = PMPI_Comm_split(comm, color, key, made);
    count_communicator("Comm_split", *made);
    return status;
}

int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *made)
{
    const int status = PMPI_Comm_split_type(comm, type, key, info, made);
    count_communicator("Comm_split_type", *made);
    return status;
}

int MPI_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *made)
{
    const int status = PMPI_Comm_create_group(comm, group, tag, made);
    count_communicator("Comm_create_group", *made);
    return status;
}

int MPI_Comm_free(MPI_Comm *comm)
{
    count_communicator("Comm_free", *comm);
    return PMPI_Comm_free(comm);
}

int MPI_Barrier(MPI_Comm comm)
{
    const double start = PMPI_Wtime();
    const int status = PMPI_Barrier(comm);
    count("Barrier", comm, MPI_DATATYPE_NULL, MPI_OP_NULL, 0, 0, start);
    return status;
}

int MPI_Allreduce(const void *send, void *recv, int elements, MPI_Datatype type, MPI_Op op,
                  MPI_Comm comm)
{
    const double start = PMPI_Wtime();
    const int status = PMPI_Allreduce(send, recv, elements, type, op, comm);
    count("Allreduce", comm, type, op, send == MPI_IN_PLACE, elements, start);
    return status;
}

int MPI_Reduce_scatter(const void *send, void *recv, const int *counts, MPI_Datatype type,
                       MPI_Op op, MPI_Comm comm)
{
    const double start = PMPI_Wtime();
    const int status = PMPI_Reduce_scatter(send, recv, counts, type, op, comm);
    count("Reduce_scatter", comm, type, op, send == MPI_IN_PLACE, sum_of(counts, comm), start);
    return status;
}

int MPI_Bcast(void *buffer, int elements, MPI_Datatype type, int root, MPI_Comm comm)
{
    const double start = PMPI_Wtime();
    const int status = PMPI_Bcast(buffer, elements, type, root, comm);
    count("Bcast", comm, type, MPI_OP_NULL, 0, elements, start);
    return status;
}

int MPI_Gather(const void *send, int elements, MPI_Datatype type, void *recv, int recv_elements,
               MPI_Datatype recv_type, int root, MPI_Comm comm)
{
    const double start = PMPI_Wtime();
    const int in_place = send == MPI_IN_PLACE;
    const int status =
        PMPI_Gather(send, elements, type, recv, recv_elements, recv_type, root, comm);
    count("Gather", comm, in_place ? recv_type : type, MPI_OP_NULL, in_place,
          in_place ? recv_elements : elements, start);
    return status;
}

int MPI_Gatherv(const void *send, int elements, MPI_Datatype type, void *recv, const int *counts,
                const int *first, MPI_Datatype recv_type, int root, MPI_Comm comm)
{
    const double start = PMPI_Wtime();
    const int in_place = send == MPI_IN_PLACE;
    const int status =
        PMPI_Gatherv(send, elements, type, recv, counts, first, recv_type, root, comm);
    count("Gatherv", comm, in_place ? recv_type : type, MPI_OP_NULL, in_place,
          in_place ? count_of_this_rank(counts, comm) : elements, start);
    return status;
}

int MPI_Allgather(const void *send, int elements, MPI_Datatype type, void *recv, int recv_elements,
                  MPI_Datatype recv_type, MPI_Comm comm)
{
    const double start = PMPI_Wtime();
    const int in_place = send == MPI_IN_PLACE;
    const int status = PMPI_Allgather(send, elements, type, recv, recv_elements, recv_type, comm);
    count("Allgather", comm, in_place ? recv_type : type, MPI_OP_NULL, in_place,
          in_place ? recv_elements : elements, start);
    return status;
}

int MPI_Allgatherv(const void *send, int elements, MPI_Datatype type, void *recv, const int *counts,
                   const int *first, MPI_Datatype recv_type, MPI_Comm comm)
{
    const double start = PMPI_Wtime();
    const int in_place = send == MPI_IN_PLACE;
    const int status = PMPI_Allgatherv(send, elements, type, recv, counts, first, recv_type, comm);
    count("Allgatherv", comm, in_place ? recv_type : type, MPI_OP_NULL, in_place,
          in_place ? count_of_this_rank(counts, comm) : elements, start);
    return status;
}

int MPI_Alltoall(const void *send, int elements, MPI_Datatype type, void *recv, int recv_elements,
                 MPI_Datatype recv_type, MPI_Comm comm)
{
    const double start = PMPI_Wtime();
    const int in_place = send == MPI_IN_PLACE;
    const int status = PMPI_Alltoall(send, elements, type, recv, recv_elements, recv_type, comm);
    count("Alltoall", comm, in_place ? recv_type : type, MPI_OP_NULL, in_place,
          in_place ? recv_elements : elements, start);
    return status;
}

int MPI_Alltoallv(const void *send, const int *counts, const int *first, MPI_Datatype type,
                  void *recv, const int *recv_counts, const int *recv_first, MPI_Datatype recv_type,
                  MPI_Comm comm)
{
    const double start = PMPI_Wtime();
    const int in_place = send == MPI_IN_PLACE;
    const int status =
        PMPI_Alltoallv(send, counts, first, type, recv, recv_counts, recv_first, recv_type, comm);
    count("Alltoallv", comm, in_place ? recv_type : type, MPI_OP_NULL, in_place,
          sum_of(in_place ? recv_counts : counts, comm), start);
    return status;
}
