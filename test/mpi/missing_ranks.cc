// A rank that comes late: what the others say meanwhile. missing_ranks WHO HOW WHERE COUNT WAY: in
// the third call rank WHO comes only when the others have waited for some seconds; HOW: it is
// "stopped", or "sleeps" outside MPI. WHERE: "host" or "device". WAY: "blocking" or "nonblocking".
#include "test/mpi/check.h"

#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string_view>

namespace hetcoll::test {
namespace {

constexpr unsigned kSeconds = 7; // report_after is 2: one line, the next one after 8

void come_late(std::string_view how)
{
    if (how == "sleeps") {
        sleep(kSeconds);
        return;
    }
    const pid_t late = getpid();
    if (fork() == 0) {
        sleep(kSeconds);
        kill(late, SIGCONT);
        _exit(0);
    }
    std::raise(SIGSTOP);
}

void run(Program &program, const char *who, const char *how, Memory memory, std::size_t count,
         bool blocking)
{
    Buffers buffers(
        program, MPI_COMM_WORLD,
        {{ElementKind::kFloat32, ReduceOp::kSum, Values::kExact, 1}, count, memory, memory});
    for (int call = 1; call <= 4; ++call) {
        buffers.fill();
        if (call == 3 && program.rank() == std::atoi(who)) {
            come_late(how);
        }
        if (blocking) {
            buffers.reduce();
        } else {
            MPI_Request request;
            MPI_Iallreduce(buffers.send(), buffers.recv(), static_cast<int>(count), MPI_FLOAT,
                           MPI_SUM, MPI_COMM_WORLD, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        buffers.check(false);
    }
}

} // namespace
} // namespace hetcoll::test

int main(int argc, char **argv)
{
    using namespace hetcoll;
    using namespace hetcoll::test;
    Program program(argc, argv, "missing_ranks");
    if (argc != 6) {
        program.check(false, "usage: missing_ranks WHO HOW WHERE COUNT WAY");
        return program.finish();
    }
    const Memory memory = std::string_view(argv[3]) == "device" ? Memory::kDevice : Memory::kHost;
    const auto count = static_cast<std::size_t>(std::atol(argv[4]));
    const bool blocking = std::string_view(argv[5]) == "blocking";
    run(program, argv[1], argv[2], memory, count, blocking);
    return program.finish();
}
