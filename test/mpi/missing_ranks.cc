// A rank that comes late: what the others say meanwhile. missing_ranks WHO HOW WHERE COUNT WAY
// [CALL [SECONDS]]: in call CALL (3) rank WHO comes only when the others have waited for SECONDS
// (7); HOW: its "gpu" is busy, it is "stopped", "midway" through the call, or "sleeps" outside MPI,
// or "shown": stopped, and hetcoll_info --live says so. WHERE: "host" or "device". WAY: "blocking"
// or "nonblocking".
#include "test/mpi/check.h"

#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

namespace hetcoll::test {
namespace {

struct Late {
    int rank;
    std::string_view how;
    int call = 3;
    unsigned seconds = 7; // report_after is 2: one line, the next one after 8
};

// This process stops, now or after some microseconds, and goes on later.
void stop(unsigned after_us, unsigned seconds)
{
    const pid_t late = getpid();
    if (fork() == 0) {
        usleep(after_us);
        kill(late, SIGSTOP);
        sleep(seconds);
        kill(late, SIGCONT);
        _exit(0);
    }
    if (after_us == 0) {
        std::raise(SIGSTOP);
    }
}

// What hetcoll_info --live says of this process while it is stopped.
std::string show_stopped(const char *more)
{
    const std::string file = "/tmp/hetcoll_live." + std::to_string(getpid());
    const std::string command = std::string(std::getenv("HETCOLL_BUILDDIR")) +
                                "/hetcoll_info --live " + std::to_string(getpid()) + more + " >" +
                                file + " 2>&1; kill -CONT " + std::to_string(getpid());
    const pid_t late = getpid();
    if (fork() == 0) {
        sleep(1); // the others have come, and this one is stopped
        if (std::system(command.c_str()) != 0) {
            kill(late, SIGCONT);
        }
        _exit(0);
    }
    std::raise(SIGSTOP);
    std::ifstream shown(file);
    const std::string text{std::istreambuf_iterator<char>(shown), {}};
    unlink(file.c_str());
    return text;
}

void check_shown(Program &program)
{
    const std::string rank = std::to_string(program.rank()), pid = std::to_string(getpid());
    const auto check = [&](const std::string &text, const std::string &expected) {
        program.check(text.find(expected) != std::string::npos, "hetcoll_info shows '%s', not '%s'",
                      text.c_str(), expected.c_str());
    };
    const std::string json = show_stopped(" --json");
    check(json, "\"missing\":[" + rank + "],\"here\":[{\"rank\":0,");
    check(json, "{\"rank\":" + rank + ",\"pid\":" + pid + ",\"state\":\"stopped\",\"meeting\":");
    check(json, "\"call\":2,");
    check(json, "\"call\":3,");
    check(json, "\"collective\":\"allreduce\",\"bytes\":8,\"type\":\"float32\",\"op\":\"sum\",");
    const std::string table = show_stopped("");
    check(table, "; missing rank " + rank + "\n");
    check(table, pid + " stopped ");
    check(table, "MPI_Allreduce of 2 float32 (8 bytes), sum\n");
}

// The GPU of this rank does something else before what its next call starts there.
void occupy_gpu(Program &program, const unsigned &seconds)
{
    const Emulated emulated;
    const auto launch = reinterpret_cast<CUresult (*)(CUstream, void (*)(void *), void *)>(
        emulated.find("cuLaunchHostFunc"));
    const auto wait = [](void *given) { sleep(*static_cast<const unsigned *>(given)); };
    program.check(launch != nullptr &&
                      launch(nullptr, wait, const_cast<unsigned *>(&seconds)) == CUDA_SUCCESS,
                  "no work for the GPU");
}

void come_late(Program &program, const Late &late)
{
    if (late.how == "shown") {
        check_shown(program);
    } else if (late.how == "gpu") {
        occupy_gpu(program, late.seconds);
    } else if (late.how == "sleeps") {
        sleep(late.seconds);
    } else {
        stop(late.how == "midway" ? 400'000 : 0, late.seconds);
    }
}

void run(Program &program, const Late &late, Memory memory, std::size_t count, bool blocking)
{
    Buffers buffers(
        program, MPI_COMM_WORLD,
        {{ElementKind::kFloat32, ReduceOp::kSum, Values::kExact, 1}, count, memory, memory});
    for (int call = 1; call <= late.call + 1; ++call) {
        buffers.fill();
        if (call == late.call && program.rank() == late.rank) {
            come_late(program, late);
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
    if (argc < 6) {
        program.check(false, "usage: missing_ranks WHO HOW WHERE COUNT WAY [CALL [SECONDS]]");
        return program.finish();
    }
    const Memory memory = std::string_view(argv[3]) == "device" ? Memory::kDevice : Memory::kHost;
    const auto count = static_cast<std::size_t>(std::atol(argv[4]));
    const bool blocking = std::string_view(argv[5]) == "blocking";
    Late late{.rank = std::atoi(argv[1]), .how = argv[2]};
    late.call = argc > 6 ? std::atoi(argv[6]) : late.call;
    late.seconds = argc > 7 ? static_cast<unsigned>(std::atoi(argv[7])) : late.seconds;
    run(program, late, memory, count, blocking);
    return program.finish();
}
