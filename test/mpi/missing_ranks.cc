// A rank that comes late: what the others say meanwhile. missing_ranks WHO HOW WHERE COUNT WAY: in
// the third call rank WHO comes only when the others have waited for some seconds; HOW: it is
// "stopped", or "sleeps" outside MPI, or "shown": stopped, and hetcoll_info --live says so. WHERE:
// "host" or "device". WAY: "blocking" or "nonblocking".
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

void run(Program &program, const char *who, const char *how, Memory memory, std::size_t count,
         bool blocking)
{
    Buffers buffers(
        program, MPI_COMM_WORLD,
        {{ElementKind::kFloat32, ReduceOp::kSum, Values::kExact, 1}, count, memory, memory});
    for (int call = 1; call <= 4; ++call) {
        buffers.fill();
        if (call == 3 && program.rank() == std::atoi(who)) {
            if (std::string_view(how) == "shown") {
                check_shown(program);
            } else {
                come_late(how);
            }
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
