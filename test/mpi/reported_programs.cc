// Things that programs do between calls that users of Open MPI, MPICH, UCX and NCCL's plugins have
// reported as broken there. The argument chooses:
//   captures     another thread captures graphs in the global mode, as PyTorch does
//   devices      another device for each communicator, buffers on two, a current context on a third
//   registered   host vectors of collectives that the program then registers with CUDA
//   signals      a profiler's timers interrupt every call, with handlers on a stack of their own
//   threads      threads that reduce while others make and free communicators
//   descriptors  a rank has no file descriptor left, from some call on
//   no_descriptors   or from its first one
//   children     processes forked while a call is under way, which exit or are killed
//   tool         a PMPI tool with calls of its own is preloaded (pmpi_tool.c)
#include "test/mpi/vector.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <thread>

namespace hetcoll::test {
namespace {

constexpr std::array<std::size_t, 5> kCounts = {1, 1'500, 9'000, 70'000, 600'000};

float value_of(int rank, std::size_t i)
{
    return static_cast<float>(rank) + static_cast<float>(i % 7);
}

std::vector<float> values_of(int rank, std::size_t count)
{
    std::vector<float> values(count);
    for (std::size_t i = 0; i < count; ++i) {
        values[i] = value_of(rank, i);
    }
    return values;
}

float sum_of(int ranks, std::size_t i)
{
    return static_cast<float>(ranks * (ranks - 1) / 2) +
           static_cast<float>(ranks) * static_cast<float>(i % 7);
}

int allreduce(const void *from, void *to, std::size_t count, MPI_Comm comm, bool blocking)
{
    const int elements = static_cast<int>(count);
    if (blocking) {
        return MPI_Allreduce(from, to, elements, MPI_FLOAT, MPI_SUM, comm);
    }
    MPI_Request request = MPI_REQUEST_NULL;
    const int error = MPI_Iallreduce(from, to, elements, MPI_FLOAT, MPI_SUM, comm, &request);
    return error == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : error;
}

// One call in place on device memory of its own.
void reduce_once(Program &program, MPI_Comm comm, std::size_t count, bool blocking)
{
    int rank = 0, ranks = 0;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    const Vector<float> vector(program, values_of(rank, count));
    const int error = allreduce(MPI_IN_PLACE, vector.data(), count, comm, blocking);
    program.check(error == MPI_SUCCESS, "a call: error %d", error);
    vector.check([&](std::size_t i) { return sum_of(ranks, i); }, "a call");
}

void reduce_all_sizes(Program &program, MPI_Comm comm = MPI_COMM_WORLD)
{
    for (const std::size_t count : kCounts) {
        reduce_once(program, comm, count, true);
        reduce_once(program, comm, count, false);
    }
}

// ---- captures ----

// Captures one copy again and again on a stream of its own, until it goes.
class Captures {
public:
    explicit Captures(Program &program)
        : program_(program), driver_(program.gpu().driver()),
          from_(program, std::vector<int>(1024, 7)), to_(program, std::vector<int>(1024, 0)),
          thread_([this] { run(); })
    {
        while (captured_ == 0 && !failed_) {
            std::this_thread::yield();
        }
    }
    ~Captures()
    {
        over_ = true;
        thread_.join();
        to_.check([](std::size_t) { return 7; }, "a graph's copy");
    }
    Captures(const Captures &) = delete;
    Captures &operator=(const Captures &) = delete;

private:
    template <class Function> Function *find(Function *, const char *name)
    {
        return reinterpret_cast<Function *>(emulated_.find(name));
    }
    bool must(CUresult result, const char *what)
    {
        failed_ = failed_ || result != CUDA_SUCCESS;
        return program_.check(result == CUDA_SUCCESS, "%s: CUDA error %d", what, result);
    }
    void run()
    {
        CUstream stream = nullptr;
        driver_.cuCtxSetCurrent(program_.gpu().context());
        if (must(driver_.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate")) {
            while (!over_ && !failed_) {
                capture(stream);
            }
            driver_.cuStreamDestroy(stream);
        }
    }
    void capture(CUstream stream)
    {
        const auto begin = find(&::cuStreamBeginCapture, "cuStreamBeginCapture_v2");
        const auto end = find(&::cuStreamEndCapture, "cuStreamEndCapture");
        const auto instantiate =
            find(&::cuGraphInstantiateWithFlags, "cuGraphInstantiateWithFlags");
        const auto launch = find(&::cuGraphLaunch, "cuGraphLaunch");
        const auto destroy = find(&::cuGraphDestroy, "cuGraphDestroy");
        const auto destroy_executable = find(&::cuGraphExecDestroy, "cuGraphExecDestroy");
        CUgraph graph = nullptr;
        CUgraphExec executable = nullptr;
        if (!must(begin(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), "cuStreamBeginCapture")) {
            return;
        }
        must(driver_.cuMemcpyAsync(reinterpret_cast<CUdeviceptr>(to_.data()),
                                   reinterpret_cast<CUdeviceptr>(from_.data()), 1024 * sizeof(int),
                                   stream),
             "a copy that is captured");
        for (int i = 0; i < 100; ++i) { // for the other thread's calls
            std::this_thread::yield();
        }
        if (must(end(stream, &graph), "cuStreamEndCapture") &&
            must(instantiate(&executable, graph, 0), "cuGraphInstantiate")) {
            must(launch(executable, stream), "cuGraphLaunch");
            must(driver_.cuStreamSynchronize(stream), "cuStreamSynchronize");
            destroy_executable(executable);
            destroy(graph);
            ++captured_;
        }
    }

    Program &program_;
    const Driver &driver_;
    Emulated emulated_;
    Vector<int> from_, to_;
    std::atomic<bool> over_{false}, failed_{false};
    std::atomic<int> captured_{0};
    std::thread thread_;
};

// The buffers are there before: to allocate while a capture is global is an error of the program's.
void captures(Program &program)
{
    std::vector<Vector<float>> in, out;
    for (const std::size_t count : kCounts) {
        in.emplace_back(program, values_of(program.rank(), count));
        out.emplace_back(program, count);
    }
    {
        const Captures beside(program);
        for (int round = 0; round < 4; ++round) {
            for (std::size_t i = 0; i < kCounts.size(); ++i) {
                const int count = static_cast<int>(kCounts[i]);
                for (const bool blocking : {true, false}) {
                    allreduce(in[i].data(), out[i].data(), kCounts[i], MPI_COMM_WORLD, blocking);
                }
                MPI_Scan(in[i].data(), out[i].data(), count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
                MPI_Bcast(out[i].data(), count, MPI_FLOAT, program.ranks() - 1, MPI_COMM_WORLD);
            }
        }
    }
    for (const Vector<float> &each : out) {
        each.check([&](std::size_t i) { return sum_of(program.ranks(), i); }, "during captures");
    }
}

// ---- devices ----

void devices(Program &program)
{
    const Driver &driver = program.gpu().driver();
    std::vector<std::unique_ptr<Gpu>> gpus;
    for (int device = 0; device < 2; ++device) {
        auto gpu = Gpu::open(device);
        program.require(gpu.status());
        gpus.push_back(std::move(*gpu));
    }
    const auto enter = [&](std::size_t device) { driver.cuCtxSetCurrent(gpus[device]->context()); };
    for (unsigned turn = 0; turn < 8; ++turn) {
        MPI_Comm comm = MPI_COMM_NULL;
        MPI_Comm_split(MPI_COMM_WORLD, 0, turn % 2 == 0 ? program.rank() : -program.rank(), &comm);
        int rank = 0;
        MPI_Comm_rank(comm, &rank);
        const unsigned place = static_cast<unsigned>(rank) + turn;
        const std::size_t of_input = place % 2, of_result = (place + turn / 3) % 2;
        const CUcontext current = turn % 3 == 2 ? nullptr : gpus[turn % 3]->context();
        for (const std::size_t count : kCounts) {
            for (const bool blocking : {true, false}) {
                enter(of_input);
                auto in = Buffer::allocate(gpus[of_input].get(), Memory::kDevice, count * 4);
                enter(of_result);
                auto out = Buffer::allocate(gpus[of_result].get(), Memory::kDevice, count * 4);
                program.require(in.status());
                program.require(out.status());
                std::vector<float> values = values_of(rank, count);
                program.require(in->write(0, values.data(), in->bytes()));
                driver.cuCtxSetCurrent(current);
                const int error = allreduce(in->data(), out->data(), count, comm, blocking);
                program.check(error == MPI_SUCCESS, "devices %zu and %zu: error %d", of_input,
                              of_result, error);
                CUcontext now = nullptr;
                driver.cuCtxGetCurrent(&now);
                program.check(now == current, "another context is current");
                enter(of_result);
                program.require(out->read(0, values.data(), out->bytes()));
                std::size_t wrong = 0;
                for (std::size_t i = 0; i < count; ++i) {
                    wrong += values[i] != sum_of(program.ranks(), i);
                }
                program.check(wrong == 0, "devices %zu and %zu: %zu of %zu sums are wrong",
                              of_input, of_result, wrong, count);
            }
        }
        MPI_Comm_free(&comm);
    }
    driver.cuCtxSetCurrent(program.gpu().context());
}

// ---- registered ----

void registered(Program &program)
{
    const Driver &driver = program.gpu().driver();
    for (const std::size_t count : kCounts) {
        for (const bool blocking : {true, false}) {
            const Vector<float> device(program, count), host(program, count, Memory::kHost);
            for (int turn = 0; turn < 4; ++turn) {
                const bool on_device = (program.rank() + turn) % 2 == 0;
                const Vector<float> &mine = on_device ? device : host;
                mine.write(values_of(program.rank(), count));
                const int error =
                    allreduce(MPI_IN_PLACE, mine.data(), count, MPI_COMM_WORLD, blocking);
                program.check(error == MPI_SUCCESS, "turn %d: error %d", turn, error);
                mine.check([&](std::size_t i) { return sum_of(program.ranks(), i); },
                           "host and device vectors");
                const CUresult result =
                    turn % 2 == 0 ? driver.cuMemHostRegister(host.data(), count * sizeof(float), 0)
                                  : driver.cuMemHostUnregister(host.data());
                program.check(result == CUDA_SUCCESS,
                              "turn %d: the program registers memory of "
                              "%zu elements: CUDA error %d",
                              turn, count, result);
            }
        }
    }
}

// ---- signals ----

void on_signal(int) {}

void set_timers(long microseconds)
{
    const itimerval timer{{0, microseconds}, {0, microseconds}};
    setitimer(ITIMER_REAL, &timer, nullptr);
    setitimer(ITIMER_PROF, &timer, nullptr);
}

void signals(Program &program)
{
    static std::array<char, 65536> stack;
    const stack_t own{.ss_sp = stack.data(), .ss_flags = 0, .ss_size = stack.size()};
    sigaltstack(&own, nullptr);
    struct sigaction action {};
    action.sa_handler = on_signal;
    action.sa_flags = SA_ONSTACK; // and no SA_RESTART
    sigaction(SIGALRM, &action, nullptr);
    sigaction(SIGPROF, &action, nullptr);
    program.gpu();
    set_timers(400);
    for (int round = 0; round < 12; ++round) {
        reduce_all_sizes(program);
        MPI_Comm copy = MPI_COMM_NULL;
        MPI_Comm_dup(MPI_COMM_WORLD, &copy);
        reduce_once(program, copy, kCounts[2], true);
        MPI_Comm_free(&copy);
    }
    set_timers(0);
}

// ---- threads ----

void reduce_among_changes(Program &program, MPI_Comm comm, int number)
{
    program.gpu().driver().cuCtxSetCurrent(program.gpu().context());
    for (int round = 0; round < 20; ++round) {
        const auto count = static_cast<std::size_t>(1 + (round * 977 + number * 131) % 40'000);
        MPI_Comm used = comm, half = MPI_COMM_NULL;
        if (number % 2 == 1) {
            MPI_Comm_split(comm, (program.rank() + round) % 2, program.rank(), &half);
            MPI_Comm_dup(comm, &used);
        }
        reduce_once(program, used, count, round % 2 == 0);
        if (number % 2 == 1) {
            reduce_once(program, half, count, round % 2 == 0);
            MPI_Comm_free(&half);
            MPI_Comm_free(&used);
        }
    }
}

void threads(Program &program)
{
    program.gpu();
    std::array<MPI_Comm, 4> comms{};
    std::vector<std::thread> threads;
    for (MPI_Comm &comm : comms) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    }
    for (std::size_t i = 0; i < comms.size(); ++i) {
        threads.emplace_back(
            [&, i] { reduce_among_changes(program, comms[i], static_cast<int>(i)); });
    }
    for (std::thread &thread : threads) {
        thread.join();
    }
    for (MPI_Comm &comm : comms) {
        MPI_Comm_free(&comm);
    }
}

// ---- descriptors ----

// Open MPI needs some to reach a rank for the first time: a Barrier comes before. MPI_Finalize
// needs some too.
void descriptors(Program &program, bool first)
{
    std::vector<Vector<float>> vectors;
    for (int round = 0; round < 3; ++round) {
        for (const std::size_t count : kCounts) {
            vectors.emplace_back(program, values_of(program.rank(), count));
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    std::vector<int> taken;
    rlimit before{};
    getrlimit(RLIMIT_NOFILE, &before);
    for (std::size_t i = 0; i < vectors.size(); ++i) {
        if (i == (first ? 0 : kCounts.size()) && program.rank() == program.ranks() - 1) {
            const rlimit few{.rlim_cur = 256, .rlim_max = before.rlim_max};
            setrlimit(RLIMIT_NOFILE, &few);
            for (int file = 0; (file = open("/dev/null", O_RDONLY)) >= 0;) {
                taken.push_back(file);
            }
        }
        const Vector<float> &vector = vectors[i];
        const std::size_t count = kCounts[i % kCounts.size()];
        const int error = allreduce(MPI_IN_PLACE, vector.data(), count, MPI_COMM_WORLD, i % 2 == 0);
        program.check(error == MPI_SUCCESS, "call %zu: error %d", i, error);
    }
    for (const int file : taken) {
        close(file);
    }
    setrlimit(RLIMIT_NOFILE, &before);
    for (const Vector<float> &vector : vectors) {
        vector.check([&](std::size_t i) { return sum_of(program.ranks(), i); },
                     "a rank without descriptors");
    }
}

// ---- children ----

void children(Program &program)
{
    reduce_all_sizes(program);
    for (int round = 0; round < 6; ++round) {
        const std::size_t count = kCounts.back();
        const Vector<float> vector(program, values_of(program.rank(), count));
        MPI_Request request = MPI_REQUEST_NULL;
        MPI_Iallreduce(MPI_IN_PLACE, vector.data(), static_cast<int>(count), MPI_FLOAT, MPI_SUM,
                       MPI_COMM_WORLD, &request);
        std::fflush(stdout);
        const pid_t child = fork();
        if (child == 0) {
            std::vector<char> own(std::size_t{1} << 20, 1); // its heap works
            if (round % 3 == 1) {
                raise(SIGKILL);
            }
            if (round % 3 == 0) {
                std::exit(own[0] - 1); // with all that the parent runs at its end
            }
            _exit(own[0] - 1);
        }
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        vector.check([&](std::size_t i) { return sum_of(program.ranks(), i); }, "with a fork");
        int status = 0;
        waitpid(child, &status, 0);
        program.check(round % 3 == 1 || status == 0, "child %d ends with %x", round, status);
        reduce_all_sizes(program);
    }
}

// ---- tool ----

// The tool's own line tells that it was there.
void tool(Program &program)
{
    MPI_Comm copy = MPI_COMM_NULL;
    reduce_all_sizes(program);
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    reduce_all_sizes(program, copy);
    MPI_Comm_free(&copy);
}

} // namespace
} // namespace hetcoll::test

int main(int argc, char **argv)
{
    using namespace hetcoll::test;
    const std::map<std::string, std::function<void(Program &)>> tests = {
        {"captures", captures},
        {"devices", devices},
        {"registered", registered},
        {"signals", signals},
        {"threads", threads},
        {"descriptors", [](Program &program) { descriptors(program, false); }},
        {"no_descriptors", [](Program &program) { descriptors(program, true); }},
        {"children", children},
        {"tool", tool},
    };
    const std::string what = argc > 1 ? argv[1] : "";
    const bool needs_threads = what == "threads" || what == "captures";
    Program program(argc, argv, "reported_programs",
                    needs_threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE);
    const auto found = tests.find(what);
    if (program.check(found != tests.end(), "which test?")) {
        found->second(program);
    }
    return program.finish();
}
