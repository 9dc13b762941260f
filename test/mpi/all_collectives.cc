// Every collective of MPI on host memory, whatever list of components was given: blocking,
// nonblocking, persistent, of neighbours, on inter-communicators and on MPI_COMM_SELF. hetcoll
// serves one of them and must not be in the way of the others.
#include "test/mpi/check.h"

#include <mpi-ext.h>

#include <numeric>
#include <vector>

namespace hetcoll::test {
namespace {

struct Ranks {
    int rank, size, sum; // sum of all ranks
};

Ranks ranks_of(MPI_Comm comm)
{
    Ranks r{};
    MPI_Comm_rank(comm, &r.rank);
    MPI_Comm_size(comm, &r.size);
    r.sum = r.size * (r.size - 1) / 2;
    return r;
}

std::vector<int> iota(int size, int first)
{
    std::vector<int> values(static_cast<std::size_t>(size));
    std::iota(values.begin(), values.end(), first);
    return values;
}

void rooted(Program &p, MPI_Comm comm)
{
    const auto [rank, size, sum] = ranks_of(comm);
    MPI_Barrier(comm);
    int value = rank == size - 1 ? 42 : 0;
    MPI_Bcast(&value, 1, MPI_INT, size - 1, comm);
    p.check(value == 42, "Bcast: %d", value);
    int reduced = -1;
    MPI_Reduce(&rank, &reduced, 1, MPI_INT, MPI_SUM, 0, comm);
    p.check(rank != 0 || reduced == sum, "Reduce: %d", reduced);

    const std::vector<int> want = iota(size, 0), one(static_cast<std::size_t>(size), 1);
    std::vector<int> all(static_cast<std::size_t>(size), -1);
    MPI_Gather(&rank, 1, MPI_INT, all.data(), 1, MPI_INT, 0, comm);
    p.check(rank != 0 || all == want, "Gather");
    MPI_Gatherv(&rank, 1, MPI_INT, all.data(), one.data(), want.data(), MPI_INT, 0, comm);
    p.check(rank != 0 || all == want, "Gatherv");
    int mine = -1;
    MPI_Scatter(want.data(), 1, MPI_INT, &mine, 1, MPI_INT, 0, comm);
    p.check(mine == rank, "Scatter: %d", mine);
    MPI_Scatterv(want.data(), one.data(), want.data(), MPI_INT, &mine, 1, MPI_INT, 0, comm);
    p.check(mine == rank, "Scatterv: %d", mine);
}

void all_to_all(Program &p, MPI_Comm comm)
{
    const auto [rank, size, sum] = ranks_of(comm);
    const std::vector<int> want = iota(size, 0), one(static_cast<std::size_t>(size), 1);
    std::vector<int> all(static_cast<std::size_t>(size), -1);
    MPI_Allgather(&rank, 1, MPI_INT, all.data(), 1, MPI_INT, comm);
    p.check(all == want, "Allgather");
    all.assign(all.size(), -1);
    MPI_Allgatherv(&rank, 1, MPI_INT, all.data(), one.data(), want.data(), MPI_INT, comm);
    p.check(all == want, "Allgatherv");
    const std::vector<int> send(static_cast<std::size_t>(size), rank);
    MPI_Alltoall(send.data(), 1, MPI_INT, all.data(), 1, MPI_INT, comm);
    p.check(all == want, "Alltoall");
    all.assign(all.size(), -1);
    MPI_Alltoallv(send.data(), one.data(), want.data(), MPI_INT, all.data(), one.data(),
                  want.data(), MPI_INT, comm);
    p.check(all == want, "Alltoallv");
    const std::vector<MPI_Datatype> types(static_cast<std::size_t>(size), MPI_INT);
    std::vector<int> bytes = want;
    for (int &offset : bytes) {
        offset *= static_cast<int>(sizeof(int));
    }
    all.assign(all.size(), -1);
    MPI_Alltoallw(send.data(), one.data(), bytes.data(), types.data(), all.data(), one.data(),
                  bytes.data(), types.data(), comm);
    p.check(all == want, "Alltoallw");
    int out = -1;
    MPI_Scan(&rank, &out, 1, MPI_INT, MPI_SUM, comm);
    p.check(out == rank * (rank + 1) / 2, "Scan: %d", out);
    MPI_Exscan(&rank, &out, 1, MPI_INT, MPI_SUM, comm);
    p.check(rank == 0 || out == rank * (rank - 1) / 2, "Exscan: %d", out);
    MPI_Reduce_scatter_block(one.data(), &out, 1, MPI_INT, MPI_SUM, comm);
    p.check(out == size, "Reduce_scatter_block: %d", out);
    MPI_Reduce_scatter(one.data(), &out, one.data(), MPI_INT, MPI_SUM, comm);
    p.check(out == size, "Reduce_scatter: %d", out);
    MPI_Allreduce(&rank, &out, 1, MPI_INT, MPI_SUM, comm);
    p.check(out == sum, "Allreduce: %d", out);
}

void nonblocking(Program &p, MPI_Comm comm)
{
    const auto [rank, size, sum] = ranks_of(comm);
    const std::vector<int> want = iota(size, 0);
    const std::vector<int> send(static_cast<std::size_t>(size), rank);
    std::vector<int> gathered(send.size(), -1), exchanged(send.size(), -1);
    int value = rank == 0 ? 17 : 0, total = -1, largest = rank, scanned = -1, block = -1, root = -1;
    std::vector<MPI_Request> requests(8);
    MPI_Ibarrier(comm, &requests[0]);
    MPI_Ibcast(&value, 1, MPI_INT, 0, comm, &requests[1]);
    MPI_Iallreduce(&rank, &total, 1, MPI_INT, MPI_SUM, comm, &requests[2]);
    MPI_Iallreduce(MPI_IN_PLACE, &largest, 1, MPI_INT, MPI_MAX, comm, &requests[3]);
    MPI_Iallgather(&rank, 1, MPI_INT, gathered.data(), 1, MPI_INT, comm, &requests[4]);
    MPI_Ialltoall(send.data(), 1, MPI_INT, exchanged.data(), 1, MPI_INT, comm, &requests[5]);
    MPI_Iscan(&rank, &scanned, 1, MPI_INT, MPI_SUM, comm, &requests[6]);
    MPI_Ireduce(&rank, &root, 1, MPI_INT, MPI_SUM, 0, comm, &requests[7]);
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    p.check(value == 17, "Ibcast: %d", value);
    p.check(total == sum && largest == size - 1, "Iallreduce: %d %d", total, largest);
    p.check(gathered == want, "Iallgather");
    p.check(exchanged == want, "Ialltoall");
    p.check(scanned == rank * (rank + 1) / 2, "Iscan: %d", scanned);
    p.check(rank != 0 || root == sum, "Ireduce: %d", root);
    MPI_Request request = MPI_REQUEST_NULL;
    const std::vector<int> ones(send.size(), 1);
    MPI_Ireduce_scatter_block(ones.data(), &block, 1, MPI_INT, MPI_SUM, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    p.check(block == size, "Ireduce_scatter_block: %d", block);
}

void persistent(Program &p, MPI_Comm comm)
{
    const auto [rank, size, sum] = ranks_of(comm);
    int in = 0, out = 0, value = 0;
    MPI_Request reduce = MPI_REQUEST_NULL, bcast = MPI_REQUEST_NULL;
#if MPI_VERSION >= 4 || OMPI_MAJOR_VERSION >= 5 // which has them and says 3.1
    MPI_Allreduce_init(&in, &out, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &reduce);
    MPI_Bcast_init(&value, 1, MPI_INT, 0, comm, MPI_INFO_NULL, &bcast);
#elif defined(OMPI_HAVE_MPI_EXT_PCOLLREQ)
    MPIX_Allreduce_init(&in, &out, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &reduce);
    MPIX_Bcast_init(&value, 1, MPI_INT, 0, comm, MPI_INFO_NULL, &bcast);
#else
    return;
#endif
    for (int round = 0; round < 3; ++round) {
        in = rank + round;
        value = rank == 0 ? round + 5 : 0;
        MPI_Start(&reduce);
        MPI_Wait(&reduce, MPI_STATUS_IGNORE);
        MPI_Start(&bcast);
        MPI_Wait(&bcast, MPI_STATUS_IGNORE);
        p.check(out == sum + size * round, "persistent Allreduce: %d", out);
        p.check(value == round + 5, "persistent Bcast: %d", value);
    }
    MPI_Request_free(&reduce);
    MPI_Request_free(&bcast);
}

void neighbours(Program &p, MPI_Comm comm)
{
    const auto [rank, size, sum] = ranks_of(comm);
    const int dims[1] = {size}, periods[1] = {1};
    MPI_Comm ring = MPI_COMM_NULL;
    MPI_Cart_create(comm, 1, dims, periods, 0, &ring);
    const int left = (rank + size - 1) % size, right = (rank + 1) % size;
    int got[2] = {-1, -1};
    MPI_Neighbor_allgather(&rank, 1, MPI_INT, got, 1, MPI_INT, ring);
    p.check(got[0] == left && got[1] == right, "Neighbor_allgather: %d %d", got[0], got[1]);
    MPI_Request request = MPI_REQUEST_NULL;
    got[0] = got[1] = -1;
    MPI_Ineighbor_allgather(&rank, 1, MPI_INT, got, 1, MPI_INT, ring, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    p.check(got[0] == left && got[1] == right, "Ineighbor_allgather: %d %d", got[0], got[1]);
    const int send[2] = {rank, rank};
    MPI_Neighbor_alltoall(send, 1, MPI_INT, got, 1, MPI_INT, ring);
    p.check(got[0] == left && got[1] == right, "Neighbor_alltoall: %d %d", got[0], got[1]);
    int total = -1;
    MPI_Allreduce(&rank, &total, 1, MPI_INT, MPI_SUM, ring);
    p.check(total == sum, "Allreduce on a ring: %d", total);
    MPI_Comm_free(&ring);
}

void between_groups(Program &p, MPI_Comm comm)
{
    const auto [rank, size, sum] = ranks_of(comm);
    if (size < 2) {
        return;
    }
    const bool low = rank < size / 2;
    MPI_Comm half = MPI_COMM_NULL, inter = MPI_COMM_NULL;
    MPI_Comm_split(comm, low ? 0 : 1, rank, &half);
    MPI_Intercomm_create(half, 0, comm, low ? size / 2 : 0, 7, &inter);
    int out = -1;
    MPI_Allreduce(&rank, &out, 1, MPI_INT, MPI_MAX, inter); // the other group's
    p.check(out == (low ? size - 1 : size / 2 - 1), "Allreduce between groups: %d", out);
    MPI_Barrier(inter);
    MPI_Comm merged = MPI_COMM_NULL;
    MPI_Intercomm_merge(inter, low ? 0 : 1, &merged);
    MPI_Allreduce(&rank, &out, 1, MPI_INT, MPI_SUM, merged);
    p.check(out == sum, "Allreduce on merged groups: %d", out);
    MPI_Comm_free(&merged);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
}

void many_sizes_of_allreduce(Program &p, MPI_Comm comm)
{
    for (std::size_t count = 1; count <= 200'000; count = count * 7 + 1) {
        for (const bool in_place : {false, true}) {
            check_allreduce(p, comm,
                            {{ElementKind::kFloat32, ReduceOp::kSum, Values::kExact, 3},
                             count,
                             Memory::kHost,
                             Memory::kHost,
                             in_place});
            check_allreduce(p, comm,
                            {{ElementKind::kFloat64Int32, ReduceOp::kMaxloc, Values::kExact, 4},
                             count,
                             Memory::kHost,
                             Memory::kHost,
                             in_place});
        }
    }
}

void on_one(Program &p, MPI_Comm comm)
{
    rooted(p, comm);
    all_to_all(p, comm);
    nonblocking(p, comm);
    persistent(p, comm);
    neighbours(p, comm);
    between_groups(p, comm);
    many_sizes_of_allreduce(p, comm);
}

// Open MPI 4.1.4's MPI_Ialltoallv takes a tag on the ranks alone that have something to exchange:
// afterwards the ranks' counters of such tags differ.
void after_tags_differ(Program &p)
{
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    const auto [rank, size, sum] = ranks_of(comm);
    std::vector<int> counts(static_cast<std::size_t>(size)), places(counts), data(counts);
    for (int i = 0; i < size; ++i) {
        places[static_cast<std::size_t>(i)] = i;
    }
    if (rank < 2 && size > 2) {
        counts[static_cast<std::size_t>(1 - rank)] = 1;
    }
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ialltoallv(MPI_IN_PLACE, nullptr, nullptr, MPI_INT, data.data(), counts.data(),
                   places.data(), MPI_INT, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    int all = 0;
    MPI_Allreduce(&rank, &all, 1, MPI_INT, MPI_SUM, comm);
    p.check(all == size * (size - 1) / 2, "Allreduce after Ialltoallv: %d", all);
    MPI_Comm_free(&comm);
}

} // namespace
} // namespace hetcoll::test

int main(int argc, char **argv)
{
    using namespace hetcoll::test;
    Program program(argc, argv, "all_collectives");
    MPI_Comm copy = MPI_COMM_NULL, half = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Comm_split(MPI_COMM_WORLD, program.rank() % 2, program.rank(), &half);
    for (const MPI_Comm comm : {MPI_COMM_WORLD, copy, half, MPI_COMM_SELF}) {
        on_one(program, comm);
    }
    after_tags_differ(program);
    MPI_Comm_free(&half);
    MPI_Comm_free(&copy);
    return program.finish();
}
