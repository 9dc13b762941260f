// A program without MPI_Init: its communicator comes from a session, and there is no MPI_COMM_SELF.
// Needs an MPI that has sessions: Open MPI 5.0.
#include "measure/buffer.h"

#include <mpi.h>

#include <cstdio>
#include <vector>

#ifndef MPI_SESSION_NULL

int main()
{
    std::puts("skip sessions: this MPI has none");
    return 0;
}

#else

namespace hetcoll::test {
namespace {

constexpr int kCounts[] = {1, 1'000, 300'000}; // floats: small, a kernel, chunks

int check_round(const Gpu &gpu, MPI_Comm comm, int count)
{
    int rank = 0, ranks = 1, wrong = 0;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    const std::size_t bytes = sizeof(float) * static_cast<std::size_t>(count);
    std::vector<float> mine(static_cast<std::size_t>(count), static_cast<float>(rank + 1));
    auto first = Buffer::allocate(&gpu, Memory::kDevice, bytes);
    auto second = Buffer::allocate(&gpu, Memory::kDevice, bytes);
    if (!first.ok() || !second.ok() || !first->write(0, mine.data(), bytes).ok()) {
        std::puts("no device memory");
        return 1;
    }
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Allreduce(MPI_IN_PLACE, first->data(), count, MPI_FLOAT, MPI_SUM, comm);
    MPI_Iallreduce(first->data(), second->data(), count, MPI_FLOAT, MPI_SUM, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Bcast(second->data(), count, MPI_FLOAT, 0, comm);
    wrong += second->read(0, mine.data(), bytes).ok() ? 0 : 1;
    const auto expected = static_cast<float>(ranks * (ranks * (ranks + 1) / 2));
    for (const float value : mine) {
        wrong += value == expected ? 0 : 1;
    }
    if (wrong != 0) {
        std::printf("WRONG sessions, rank %d of %d: %d of %d elements\n", rank, ranks, wrong,
                    count);
    }
    return wrong;
}

int check_session()
{
    MPI_Session session = MPI_SESSION_NULL;
    MPI_Group group = MPI_GROUP_NULL;
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "hetcoll.sessions", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL,
                               &comm);
    MPI_Group_free(&group);
    int wrong = 0, rank = 0;
    MPI_Comm_rank(comm, &rank);
    {
        auto gpu = Gpu::open(rank);
        for (const int count : kCounts) {
            wrong += gpu.ok() ? check_round(**gpu, comm, count) : 1;
        }
    }
    MPI_Comm_free(&comm);
    MPI_Session_finalize(&session);
    if (rank == 0 && wrong == 0) {
        std::printf("ok sessions: %zu counts\n", std::size(kCounts));
    }
    return wrong == 0 ? 0 : 1;
}

} // namespace
} // namespace hetcoll::test

int main() { return hetcoll::test::check_session(); }

#endif
