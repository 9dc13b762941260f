// seeds FIRST COUNT [--say]: deterministic runs of whole communicators. Engines of all ranks live
// in one process, over messages in memory and the emulated driver without threads (EMU_STEPPED). A
// seed decides all else: how many ranks on how many nodes and GPUs, their settings and calls
// (plan.h), who goes on next, which message arrives, which copy or kernel runs (scheduler.h), which
// driver call, message or allocation fails, who dies, and whether ranks are told, as under
// --with-ft; which floating-point control register a rank has, and when the environment changes.
// Each call ends with the right result or with an error; after that its buffers are the program's
// again, and nobody reads or writes them (verdict.h). Where nobody is told of a death or a lost
// message, calls may also hang. A seed runs in a process of its own, so one that fails
// does so alone: seeds SEED 1 --say.
#include "test/seeds/report.h"
#include "test/seeds/scheduler.h"

#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <random>

namespace hetcoll::test {
namespace {

void run(unsigned seed)
{
    Random random(seed);
    const Plan plan = draw_plan(random);
    World world(plan, seed, Witness::hear_line);
    Verdict verdict(world);
    Scheduler scheduler(world, verdict, random);
    say("seed %u: %s", seed, plan.about.c_str());
    scheduler.run();
    verdict.of_all_calls();
    if (world.some_dead || !world.is_over()) { // with calls that never end
        std::_Exit(0);
    }
}

// True if the seed ends well.
bool run_alone(unsigned seed)
{
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        setenv("EMU_NODE", "seeds", 0);
        setenv("HWLOC_SYNTHETIC", "node:2 core:2 pu:1", 0); // the same on any machine
        // Whether a buffer lies in the heap, which the pointer cache sees, is not to depend on what
        // was freed before.
        mallopt(M_MMAP_THRESHOLD, 128 << 10);
        alarm(120);
        run(seed);
        if (says_everything()) {
            say("all right");
            print_log();
        }
        std::exit(0); // the emulated node goes with its last process
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (status != 0) {
        if (WIFSIGNALED(status)) {
            std::printf("signal %d\n", WTERMSIG(status));
        }
        std::printf("FAILED  seed %u\n", seed);
    }
    return status == 0;
}

} // namespace
} // namespace hetcoll::test

// In place of libc's: a run has no chance of its own. Only names are made of it, and those of two
// runs at the same time have to differ.
extern "C" ssize_t getrandom(void *buffer, std::size_t bytes, unsigned)
{
    static std::mt19937 bits(static_cast<unsigned>(getpid()));
    auto *const to = static_cast<unsigned char *>(buffer);
    std::generate_n(to, bytes, [] { return static_cast<unsigned char>(bits()); });
    return static_cast<ssize_t>(bytes);
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        std::fprintf(stderr, "usage: seeds FIRST COUNT [--say]\n");
        return 2;
    }
    const auto first = static_cast<unsigned>(std::strtoul(argv[1], nullptr, 10));
    const auto count = static_cast<unsigned>(std::strtoul(argv[2], nullptr, 10));
    if (argc > 3 && std::strcmp(argv[3], "--say") == 0) {
        hetcoll::test::say_everything();
    }
    unsigned failed = 0;
    for (unsigned seed = first; seed < first + count; ++seed) {
        failed += hetcoll::test::run_alone(seed) ? 0 : 1;
    }
    std::printf("%u passed, %u failed\n", count - failed, failed);
    return failed == 0 ? 0 : 1;
}
