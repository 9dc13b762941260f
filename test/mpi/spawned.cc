// Processes that MPI_Comm_spawn starts are a job of their own. Its ranks reduce device memory among
// themselves, and with their parents on a merged communicator. The parents' communicators go on as
// before.
#include "measure/persistent.h"
#include "test/mpi/check.h"

#include <vector>

namespace hetcoll::test {
namespace {

constexpr int kChildren = 2;

Call sum_of(std::size_t count, std::uint32_t seed, Memory memory = Memory::kDevice)
{
    return {{ElementKind::kFloat32, ReduceOp::kSum, Values::kExact, seed}, count, memory, memory};
}

// Small and large, blocking, nonblocking and persistent, with host memory on one rank.
void use(Program &program, MPI_Comm comm)
{
    int rank = 0;
    MPI_Comm_rank(comm, &rank);
    for (const std::size_t count : {5, 3'000, 200'000}) {
        check_allreduce(program, comm, sum_of(count, 1));
        check_allreduce(program, comm,
                        sum_of(count, 2, rank == 0 ? Memory::kHost : Memory::kDevice));
        const Call call = sum_of(count, 3);
        Buffers buffers(program, comm, call);
        buffers.fill();
        MPI_Request request = MPI_REQUEST_NULL;
        MPI_Iallreduce(buffers.send(), buffers.recv(), static_cast<int>(count), MPI_FLOAT, MPI_SUM,
                       comm, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        buffers.check();
        buffers.fill();
        HETCOLL_ALLREDUCE_INIT(buffers.send(), buffers.recv(), static_cast<int>(count), MPI_FLOAT,
                               MPI_SUM, comm, MPI_INFO_NULL, &request);
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Request_free(&request);
        buffers.check();
    }
    auto made = Buffer::allocate(&program.gpu(), Memory::kDevice, 1u << 20);
    program.require(made.status());
    const std::vector<char> mine(1u << 20, static_cast<char>('a' + rank));
    std::vector<char> got(mine.size());
    program.require(made->write(0, mine.data(), mine.size()));
    MPI_Bcast(made->data(), static_cast<int>(mine.size()), MPI_CHAR, 1, comm);
    program.require(made->read(0, got.data(), got.size()));
    program.check(got == std::vector<char>(mine.size(), 'b'), "a broadcast brought something else");
}

void child(Program &program, MPI_Comm parents)
{
    use(program, MPI_COMM_WORLD);
    MPI_Comm all = MPI_COMM_NULL;
    MPI_Intercomm_merge(parents, 1, &all);
    use(program, all);
    MPI_Comm_free(&all);
    MPI_Comm_disconnect(&parents);
}

void parent(Program &program, char *self)
{
    check_allreduce(program, MPI_COMM_WORLD, sum_of(100'000, 4));
    MPI_Comm children = MPI_COMM_NULL, all = MPI_COMM_NULL;
    const int result = MPI_Comm_spawn(self, MPI_ARGV_NULL, kChildren, MPI_INFO_NULL, 0,
                                      MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
    program.check(result == MPI_SUCCESS, "MPI_Comm_spawn: error %d", result);
    MPI_Intercomm_merge(children, 0, &all);
    int size = 0;
    MPI_Comm_size(all, &size);
    program.check(size == program.ranks() + kChildren, "%d ranks after the merge", size);
    use(program, all);
    MPI_Comm_free(&all);
    MPI_Comm_disconnect(&children);
    check_allreduce(program, MPI_COMM_WORLD, sum_of(100'000, 5));
}

} // namespace
} // namespace hetcoll::test

int main(int argc, char **argv)
{
    using namespace hetcoll::test;
    Program program(argc, argv, "spawned");
    MPI_Comm parents = MPI_COMM_NULL;
    MPI_Comm_get_parent(&parents);
    if (parents == MPI_COMM_NULL) {
        parent(program, argv[0]);
    } else {
        child(program, parents);
    }
    program.close_gpu();
    return program.finish();
}
