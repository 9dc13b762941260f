// A program with many communicators where /dev/shm is small: all of them work, and others still
// find room there.
//   small_shm [COUNT [MIB]]   COUNT duplicates at the same time; what a file there can have then
#include "test/mpi/check.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <vector>

namespace hetcoll::test {
namespace {

void check_sum(Program &program, MPI_Comm comm, int count)
{
    const std::vector<int> ones(static_cast<std::size_t>(count), 1);
    std::vector<int> sums(ones.size(), -1);
    MPI_Allreduce(ones.data(), sums.data(), count, MPI_INT, MPI_SUM, comm);
    const std::vector<int> right(ones.size(), program.ranks());
    program.check(sums == right, "a wrong sum of %d ints", count);
}

// As other libraries do, but with an error in place of a SIGBUS.
void check_room(Program &program, int mib)
{
    constexpr const char *kName = "/small_shm_other";
    const int fd = shm_open(kName, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    program.check(fd >= 0, "no file in /dev/shm");
    const int code = posix_fallocate(fd, 0, static_cast<off_t>(mib) << 20);
    program.check(code == 0, "no %d MiB in /dev/shm: error %d", mib, code);
    shm_unlink(kName);
    close(fd);
}

} // namespace
} // namespace hetcoll::test

int main(int argc, char **argv)
{
    hetcoll::test::Program program(argc, argv, "small_shm");
    std::vector<MPI_Comm> comms(argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 1000);
    for (std::size_t i = 0; i < comms.size(); ++i) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
        hetcoll::test::check_sum(program, comms[i], 1);
        if (i % 10 == 9) { // larger vectors need more
            hetcoll::test::check_sum(program, comms[i], 1000);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (program.rank() == 0 && argc > 2) {
        hetcoll::test::check_room(program, std::atoi(argv[2]));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (MPI_Comm &comm : comms) {
        hetcoll::test::check_sum(program, comm, 1);
        hetcoll::test::check_sum(program, comm, 257);
        MPI_Comm_free(&comm);
    }
    return program.finish();
}
