// A rank that comes late: what the others say meanwhile. missing_ranks WHO HOW WHERE COUNT WAY
// [CALL [LINES]]: in call CALL (3) rank WHO comes only when the others have said LINES (1) lines of
// it; without lines after 3 s. HOW: its "gpu" is busy, it is "stopped", "midway" through the call,
// or "sleeps" outside MPI, or "shown": stopped, and hetcoll_info --live says so, or "unseen": it
// sleeps, and the others have no descriptor left to look at it. WHERE: "host" or "device". WAY:
// "blocking" or "nonblocking", or in call CALL alone: "made", a persistent request; "barrier".
#include "measure/persistent.h"
#include "test/mpi/check.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace hetcoll::test {
namespace {

struct Late {
    int rank;
    std::string_view how;
    int call = 3;
    int lines = 1;             // of the others, before the rank comes
    std::string_view way = ""; // of the others' call
};

// How many lines the job has printed that say who waits in the call: case.sh says where they are.
int lines_said(const Late &late)
{
    std::ifstream output(std::getenv("HETCOLL_TEST_OUTPUT"));
    const std::string of_call = late.way == "barrier"
                                    ? " s in MPI_Barrier on "
                                    : " s in call number " + std::to_string(late.call) + " on ";
    int said = 0;
    for (std::string line; std::getline(output, line);) {
        said += line.find(of_call) != std::string::npos ? 1 : 0;
    }
    return said;
}

// However slow the machine is; but two minutes without them are enough to see that they are
// missing.
void wait_for_lines(const Late &late)
{
    if (late.lines == 0) {
        sleep(3);
    }
    const double end = MPI_Wtime() + 120;
    while (lines_said(late) < late.lines && MPI_Wtime() < end) {
        usleep(50'000);
    }
}

// Another process does that to this one, which waits for its end meanwhile: then nothing can stop
// it after it was to go on.
template <class Function> void wait_for_child(Function does)
{
    const pid_t child = fork();
    if (child == 0) {
        does();
        _exit(0);
    }
    waitpid(child, nullptr, 0);
}

// This process stops, now or after some microseconds, and goes on when the lines are there.
void stop(const Late &late)
{
    const auto stop = [pid = getpid(), &late](unsigned after_us) {
        usleep(after_us);
        kill(pid, SIGSTOP);
        wait_for_lines(late);
        kill(pid, SIGCONT);
    };
    if (late.how != "midway") {
        wait_for_child([&] { stop(0); });
    } else if (fork() == 0) {
        stop(400'000);
        _exit(0);
    }
}

// The output of hetcoll_info --live about this process once it has stopped, which a busy machine
// takes a while to do, and the others have come, which is when it says `missing`.
std::string show_stopped(const char *more, const std::string &missing)
{
    const std::string pid = std::to_string(getpid()), file = "/tmp/hetcoll_live." + pid;
    const std::string command =
        "kill -STOP " + pid + "; for try in $(seq 300); do " + std::getenv("HETCOLL_BUILDDIR") +
        "/hetcoll_info --live " + pid + more + " >" + file + " 2>&1; grep -qF '" + missing + "' " +
        file + " && grep -q stopped " + file + " && break; sleep 0.1; done; kill -CONT " + pid;
    wait_for_child([&] { (void)!std::system(command.c_str()); });
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
    const std::string json = show_stopped(" --json", "\"missing\":[" + rank + "]");
    check(json, "\"missing\":[" + rank + "],\"here\":[{\"rank\":0,");
    check(json, "{\"rank\":" + rank + ",\"pid\":" + pid + ",\"state\":\"stopped\",\"meeting\":");
    check(json, "\"call\":2,");
    check(json, "\"call\":3,");
    check(json, "\"collective\":\"allreduce\",\"bytes\":8,\"type\":\"float32\",\"op\":\"sum\",");
    const std::string table = show_stopped("", "; missing rank " + rank);
    check(table, "; missing rank " + rank + "\n");
    check(table, pid + " stopped ");
    check(table, "MPI_Allreduce of 2 float32 (8 bytes), sum\n");
}

// The GPU of this rank does something else before what its next call starts there.
void occupy_gpu(Program &program, const Late &late)
{
    const Emulated emulated;
    const auto launch = reinterpret_cast<CUresult (*)(CUstream, void (*)(void *), void *)>(
        emulated.find("cuLaunchHostFunc"));
    const auto wait = [](void *given) { wait_for_lines(*static_cast<const Late *>(given)); };
    program.check(launch != nullptr &&
                      launch(nullptr, wait, const_cast<Late *>(&late)) == CUDA_SUCCESS,
                  "no work for the GPU");
}

void come_late(Program &program, const Late &late)
{
    if (late.how == "shown") {
        check_shown(program);
    } else if (late.how == "gpu") {
        occupy_gpu(program, late);
    } else if (late.how == "sleeps" || late.how == "unseen") {
        wait_for_child([&] { wait_for_lines(late); }); // which looks often, and runs then
    } else {
        stop(late);
    }
}

// While it lives this process has no descriptor left.
class NoDescriptors {
public:
    explicit NoDescriptors(bool wanted)
    {
        getrlimit(RLIMIT_NOFILE, &before_);
        const rlimit few{.rlim_cur = 256, .rlim_max = before_.rlim_max};
        setrlimit(RLIMIT_NOFILE, wanted ? &few : &before_);
        for (int file = 0; wanted && (file = dup(0)) >= 0;) {
            taken_.push_back(file);
        }
    }
    ~NoDescriptors()
    {
        for (const int file : taken_) {
            close(file);
        }
        setrlimit(RLIMIT_NOFILE, &before_);
    }
    NoDescriptors(const NoDescriptors &) = delete;
    NoDescriptors &operator=(const NoDescriptors &) = delete;

private:
    rlimit before_{};
    std::vector<int> taken_;
};

void run(Program &program, const Late &late, Memory memory, std::size_t count)
{
    Buffers buffers(
        program, MPI_COMM_WORLD,
        {{ElementKind::kFloat32, ReduceOp::kSum, Values::kExact, 1}, count, memory, memory});
    for (int call = 1; call <= late.call + 1; ++call) {
        buffers.fill();
        if (call == late.call && program.rank() == late.rank) {
            come_late(program, late);
        }
        const NoDescriptors used_up(call == late.call && late.how == "unseen");
        MPI_Request request;
        if (late.way == "barrier" && call == late.call) {
            MPI_Barrier(MPI_COMM_WORLD);
            continue;
        }
        if (late.way == "made" && call == late.call) {
            HETCOLL_ALLREDUCE_INIT(buffers.send(), buffers.recv(), static_cast<int>(count),
                                   MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
            MPI_Start(&request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            MPI_Request_free(&request);
        } else if (late.way != "nonblocking") {
            buffers.reduce();
        } else {
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
        program.check(false, "usage: missing_ranks WHO HOW WHERE COUNT WAY [CALL [LINES]]");
        return program.finish();
    }
    const Memory memory = std::string_view(argv[3]) == "device" ? Memory::kDevice : Memory::kHost;
    const auto count = static_cast<std::size_t>(std::atol(argv[4]));
    Late late{.rank = std::atoi(argv[1]), .how = argv[2]};
    late.call = argc > 6 ? std::atoi(argv[6]) : late.call;
    late.lines = argc > 7 ? std::atoi(argv[7]) : late.lines;
    late.way = argv[5];
    run(program, late, memory, count);
    return program.finish();
}
