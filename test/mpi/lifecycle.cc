// Beginnings and ends. The argument chooses:
//   many        communicators made, used and freed by the hundred
//   leaked      communicators never freed: MPI_Finalize destroys them
//   reset       the device is reset before MPI_Finalize
//   requests    and nonblocking and persistent operations ran before that
//   destroyed   the application's own context is destroyed while hetcoll holds things in it
//   ended       MPI_Finalize comes when the CUDA driver has ended
//   forked      the program forks, and goes on
//   untouched   no GPU is used: nothing of ours is made
//   reused      the device is reset, and used again
//   after       buffers and context outlive MPI
//   side        MPI_Init, calls and MPI_Finalize on a thread that is not the main one
//   before      context and buffers exist before MPI_Init
#include "measure/persistent.h"
#include "test/mpi/check.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace hetcoll::test {
namespace {

Call call_of(std::size_t count, std::uint32_t seed)
{
    return {{ElementKind::kFloat32, ReduceOp::kSum, Values::kExact, seed}, count};
}

// R16.
int many(int argc, char **argv)
{
    Program program(argc, argv, "lifecycle many");
    const Emulated emulated;
    for (int i = 0; i < 300; ++i) {
        MPI_Comm comm = MPI_COMM_NULL;
        const std::uint64_t before = emulated.calls("all_calls");
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
#ifdef __SANITIZE_ADDRESS__ // whose heap, where Open MPI sums, is not the program's
        static_cast<void>(before);
#else
        program.check(emulated.calls("all_calls") == before,
                      "making a communicator called the driver");
#endif
        if (i % 10 == 0) {
            check_allreduce(program, comm, call_of(std::size_t{1} << i % 18, 1));
        }
        MPI_Comm_free(&comm);
    }
    return program.finish();
}

// R17, as Horovod's Adasum leaves them.
int leaked(int argc, char **argv)
{
    Program program(argc, argv, "lifecycle leaked");
    for (int i = 0; i < 5; ++i) {
        MPI_Comm comm = MPI_COMM_NULL;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        const Call call = call_of(50'000, 2);
        check_allreduce(program, comm, call);
        Buffers buffers(program, comm, call);
        buffers.fill();
        MPI_Request request = MPI_REQUEST_NULL; // never freed either
        HETCOLL_ALLREDUCE_INIT(buffers.send(), buffers.recv(), static_cast<int>(call.count),
                               MPI_FLOAT, MPI_SUM, comm, MPI_INFO_NULL, &request);
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        buffers.check();
    }
    return program.finish();
}

// That some rank reads or writes others' memory in such a call.
void check_mapped(Program &program, const Call &call)
{
    const CounterValues before = program.counters().read();
    check_allreduce(program, MPI_COMM_WORLD, call);
    const CounterValues used = program.counters().read() - before;
    int mapped = used[HETCOLL_BYTES_MAPPED] != 0 ? 1 : 0;
    MPI_Allreduce(MPI_IN_PLACE, &mapped, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    program.check(mapped != 0, "nothing was mapped");
}

void reset_device(Program &program)
{
    const auto reset_context =
        reinterpret_cast<CUresult (*)(CUdevice)>(Emulated().find("cuDevicePrimaryCtxReset_v2"));
    if (program.check(reset_context != nullptr, "the driver lacks cuDevicePrimaryCtxReset")) {
        reset_context(program.gpu().ordinal());
    }
}

int end_after_reset(Program &program)
{
    const int exit_code = program.summarise();
    MPI_Finalize();
    std::quick_exit(exit_code); // the test's own handle of the context is stale
}

// R17: as OSU's benchmarks end with cudaDeviceReset and many programs with less.
int reset(int argc, char **argv)
{
    Program program(argc, argv, "lifecycle reset");
    check_allreduce(program, MPI_COMM_WORLD, call_of(10, 3));
    check_allreduce(program, MPI_COMM_WORLD, call_of(100'000, 3));
    reset_device(program);
    return end_after_reset(program);
}

// Persistent requests keep what they have found in the context: one of each size is freed after the
// reset, one never.
int requests(int argc, char **argv)
{
    Program program(argc, argv, "lifecycle requests");
    std::array<MPI_Request, 6> made{};
    std::vector<Buffers> buffers;
    buffers.reserve(made.size());
    const std::size_t counts[] = {10, 3'000, 200'000};
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (std::size_t i = 0; i < made.size(); ++i) {
        const Call call = call_of(counts[i / 2], 7);
        Buffers &mine = buffers.emplace_back(program, comm, call);
        mine.fill();
        MPI_Request request = MPI_REQUEST_NULL;
        MPI_Iallreduce(mine.send(), mine.recv(), static_cast<int>(call.count), MPI_FLOAT, MPI_SUM,
                       comm, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        mine.check();
        HETCOLL_ALLREDUCE_INIT(mine.send(), mine.recv(), static_cast<int>(call.count), MPI_FLOAT,
                               MPI_SUM, comm, MPI_INFO_NULL, &made[i]);
        mine.fill();
        MPI_Start(&made[i]);
        MPI_Wait(&made[i], MPI_STATUS_IGNORE);
        mine.check();
    }
    reset_device(program);
    for (std::size_t i = 0; i < made.size(); i += 2) {
        MPI_Request_free(&made[i]);
    }
    MPI_Comm_free(&comm);
    return end_after_reset(program);
}

// R17: a context that cuCtxCreate made, with a persistent request in it, destroyed; twice, as its
// handle comes again.
int destroyed(int argc, char **argv)
{
    Program program(argc, argv, "lifecycle destroyed");
    const Driver &driver = program.gpu().driver();
    const Emulated emulated;
    const auto create = reinterpret_cast<CUresult (*)(CUcontext *, unsigned, CUdevice)>(
        emulated.find("cuCtxCreate_v2"));
    const auto destroy =
        reinterpret_cast<CUresult (*)(CUcontext)>(emulated.find("cuCtxDestroy_v2"));
    if (!program.check(create != nullptr && destroy != nullptr, "the driver lacks cuCtxCreate")) {
        return program.finish();
    }
    constexpr std::size_t kCount = 60'000;
    const Pattern pattern{ElementKind::kFloat32, ReduceOp::kSum, Values::kExact, 12};
    std::vector<char> image(kCount * sizeof(float));
    for (int round = 0; round < 2; ++round) {
        CUcontext context = nullptr;
        CUdeviceptr vector = 0;
        create(&context, 0, program.gpu().ordinal());
        driver.cuMemAlloc(&vector, image.size());
        void *data = reinterpret_cast<void *>(static_cast<std::uintptr_t>(vector));
        MPI_Request request = MPI_REQUEST_NULL;
        HETCOLL_ALLREDUCE_INIT(MPI_IN_PLACE, data, kCount, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD,
                               MPI_INFO_NULL, &request);
        for (const bool persistent : {false, true}) {
            fill_input(pattern, program.rank(), kCount, image.data());
            driver.cuMemcpyHtoD(vector, image.data(), image.size());
            if (persistent) {
                MPI_Start(&request);
                MPI_Wait(&request, MPI_STATUS_IGNORE);
            } else {
                MPI_Allreduce(MPI_IN_PLACE, data, kCount, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
            }
            driver.cuMemcpyDtoH(image.data(), vector, image.size());
            const Mismatch mismatch =
                compare_result(pattern, program.ranks(), kCount, image.data());
            program.check(mismatch.wrong == 0, "%zu elements wrong in round %d", mismatch.wrong,
                          round);
        }
        destroy(context);
        MPI_Request_free(&request);
        driver.cuCtxSetCurrent(program.gpu().context());
        check_mapped(program, call_of(kCount, 13)); // in the other context
    }
    return program.finish();
}

// R17: Horovod ends MPI in a static destructor where Python did not. The driver's may have been
// before: then each call answers that it is shutting down, and does nothing.
int ended(int argc, char **argv)
{
    Program program(argc, argv, "lifecycle ended");
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm); // never freed
    check_allreduce(program, comm, call_of(10, 14));
    check_allreduce(program, comm, call_of(100'000, 14));
    const int exit_code = program.summarise();
    program.close_gpu();
    std::string faults;
    for (const char *call : {
#define HETCOLL_CALL_NAME(name) #name,
             HETCOLL_DRIVER_CALLS(HETCOLL_CALL_NAME)
#undef HETCOLL_CALL_NAME
         }) {
        faults += std::string(faults.empty() ? "" : ",") + call +
                  ":+1:" + std::to_string(CUDA_ERROR_DEINITIALIZED);
    }
    Emulated().set_faults(faults.c_str());
    MPI_Finalize();
    std::quick_exit(exit_code); // nothing could be freed
}

// The child does nothing with MPI or CUDA, as what Python's subprocess or a data loader forks.
int forked(int argc, char **argv)
{
    Program program(argc, argv, "lifecycle forked");
    check_allreduce(program, MPI_COMM_WORLD, call_of(100'000, 8));
    for (int i = 0; i < 5; ++i) {
        Buffers buffers(program, MPI_COMM_WORLD, call_of(100'000, 9));
        buffers.fill();
        MPI_Request request = MPI_REQUEST_NULL;
        MPI_Iallreduce(buffers.send(), buffers.recv(), 100'000, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD,
                       &request);
        const pid_t child = fork(); // in the middle of an operation
        if (child == 0) {
            _exit(7);
        }
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        int status = 0;
        waitpid(child, &status, 0);
        program.check(WIFEXITED(status) && WEXITSTATUS(status) == 7, "the child ended with %d",
                      status);
        buffers.check();
        check_allreduce(program, MPI_COMM_WORLD, call_of(std::size_t{1} << 3 * (i + 1), 10));
    }
    return program.finish();
}

std::ptrdiff_t count_threads()
{
    const std::filesystem::directory_iterator tasks("/proc/self/task");
    return std::distance(begin(tasks), end(tasks));
}

void reduce_nonblocking(Program &program, const Call &call)
{
    Buffers buffers(program, MPI_COMM_WORLD, call);
    buffers.fill();
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Iallreduce(buffers.send(), buffers.recv(), static_cast<int>(call.count), MPI_FLOAT, MPI_SUM,
                   MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    buffers.check();
    HETCOLL_ALLREDUCE_INIT(buffers.send(), buffers.recv(), static_cast<int>(call.count), MPI_FLOAT,
                           MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
    buffers.check();
}

// R13: a program in a job with GPUs that uses none of them, in any of the calls that hetcoll
// serves: no context, no page-locked or device memory, no stream and no thread is made. Blocking
// calls allocate nothing at all; nonblocking ones of large vectors send from ordinary memory of
// ours.
int untouched(int argc, char **argv)
{
    Program program(argc, argv, "lifecycle untouched");
    const std::ptrdiff_t threads = count_threads();
    std::vector<Call> calls;
    for (const std::size_t count : {1, 1'000, 5'000, 300'000}) {
        calls.push_back(call_of(count, 11));
        calls.back().send = calls.back().recv = Memory::kHost;
    }
    for (const Call &call : calls) {
        check_allreduce(program, MPI_COMM_WORLD, call);
        std::vector<float> values(call.count * static_cast<std::size_t>(program.ranks()), 1.0F);
        const int count = static_cast<int>(call.count);
        MPI_Bcast(values.data(), count, MPI_FLOAT, 0, MPI_COMM_WORLD);
        MPI_Allgather(MPI_IN_PLACE, count, MPI_FLOAT, values.data(), count, MPI_FLOAT,
                      MPI_COMM_WORLD);
        MPI_Reduce_scatter_block(MPI_IN_PLACE, values.data(), count, MPI_FLOAT, MPI_SUM,
                                 MPI_COMM_WORLD);
    }
    const CounterValues used = program.counters().read();
    program.check(used[HETCOLL_ALLOCATIONS] == 0, "hetcoll says that it allocated");
    for (const Call &call : calls) {
        reduce_nonblocking(program, call);
    }
    program.check(count_threads() == threads, "%td threads, there were %td", count_threads(),
                  threads);
    const Emulated emulated;
    for (const char *call : {"cuMemAlloc", "cuMemAllocManaged", "cuMemHostAlloc", "cuMemAllocHost",
                             "cuMemHostRegister", "cuStreamCreate", "cuStreamCreateWithPriority",
                             "cuEventCreate", "cuModuleLoadData", "cuDevicePrimaryCtxRetain",
                             "cuCtxCreate", "cuMemcpy", "cuMemcpyAsync", "cuLaunchKernel"}) {
        const auto made = static_cast<unsigned long long>(emulated.calls(call));
        program.check(made == 0, "%llu calls of %s", made, call);
    }
    return program.finish();
}

// Work goes on after a reset: the context and what the application makes in it have the handles and
// addresses that ours had before.
int reused(int argc, char **argv)
{
    Program program(argc, argv, "lifecycle reused");
    const Gpu &gpu = program.gpu();
    const Driver &driver = gpu.driver();
    const Emulated emulated;
    const auto reset_context =
        reinterpret_cast<CUresult (*)(CUdevice)>(emulated.find("cuDevicePrimaryCtxReset_v2"));
    check_allreduce(program, MPI_COMM_WORLD, call_of(10, 3));
    check_allreduce(program, MPI_COMM_WORLD, call_of(100'000, 3));
    CUcontext context = nullptr;
    reset_context(gpu.ordinal());
    driver.cuDevicePrimaryCtxRelease(gpu.ordinal());
    driver.cuDevicePrimaryCtxRetain(&context, gpu.ordinal());
    driver.cuCtxSetCurrent(context);
    program.check(context == gpu.context(), "the new context has another handle");

    constexpr std::size_t kBytes = std::size_t{4} << 20;
    std::array<CUevent, 20> events{};
    std::array<unsigned char *, 3> pinned{};
    for (CUevent &event : events) {
        driver.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
    }
    for (unsigned char *&memory : pinned) {
        void *made = nullptr;
        driver.cuMemHostAlloc(&made, kBytes, 0);
        memory = static_cast<unsigned char *>(made);
        std::memset(memory, 0x5a, kBytes);
    }
    for (const std::size_t count : {10, 100'000, 500'000}) {
        check_allreduce(program, MPI_COMM_WORLD, call_of(count, 4));
    }
    check_mapped(program, call_of(500'000, 5));
    for (CUevent event : events) {
        program.check(driver.cuEventQuery(event) == CUDA_SUCCESS, "an event was destroyed");
        driver.cuEventDestroy(event);
    }
    for (unsigned char *memory : pinned) {
        const auto other =
            std::count_if(memory, memory + kBytes, [](unsigned char byte) { return byte != 0x5a; });
        program.check(other == 0, "%ld bytes of pinned memory were overwritten",
                      static_cast<long>(other));
        driver.cuMemFreeHost(memory);
    }
    return program.finish();
}

int after(int argc, char **argv)
{
    Program program(argc, argv, "lifecycle after");
    const Call call = call_of(70'000, 4);
    Buffers buffers(program, MPI_COMM_WORLD, call);
    buffers.fill();
    buffers.reduce();
    const int exit_code = program.summarise();
    MPI_Finalize();
    program.check(buffers.is_right(), "the result is gone after MPI_Finalize");
    return exit_code;
}

// R14.
int side(int argc, char **argv)
{
    int exit_code = 1;
    std::thread thread([&] {
        Program program(argc, argv, "lifecycle side");
        check_allreduce(program, MPI_COMM_WORLD, call_of(3, 5));
        check_allreduce(program, MPI_COMM_WORLD, call_of(200'000, 5));
        exit_code = program.finish();
    });
    thread.join();
    return exit_code;
}

int before(int argc, char **argv)
{
    const char *local = std::getenv("OMPI_COMM_WORLD_LOCAL_RANK");
    Result<std::unique_ptr<Gpu>> gpu = Gpu::open(local != nullptr ? std::atoi(local) : 0);
    if (!gpu.ok()) {
        std::printf("BROKEN lifecycle before: %s\n", gpu.status().message().c_str());
        return 1;
    }
    const Pattern pattern{ElementKind::kFloat32, ReduceOp::kSum, Values::kExact, 6};
    constexpr std::size_t kCount = 40'000;
    Result<Buffer> buffer = Buffer::allocate(gpu->get(), Memory::kDevice, kCount * sizeof(float));
    if (!buffer.ok()) {
        return 1;
    }
    Program program(argc, argv, "lifecycle before");
    std::vector<char> image(kCount * sizeof(float));
    fill_input(pattern, program.rank(), kCount, image.data());
    program.require(buffer->write(0, image.data(), image.size()));
    MPI_Allreduce(MPI_IN_PLACE, buffer->data(), kCount, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    program.require(buffer->read(0, image.data(), image.size()));
    const Mismatch mismatch = compare_result(pattern, program.ranks(), kCount, image.data());
    program.check(mismatch.wrong == 0, "%zu elements wrong", mismatch.wrong);
    return program.finish();
}

} // namespace
} // namespace hetcoll::test

int main(int argc, char **argv)
{
    using namespace hetcoll::test;
    const std::map<std::string, std::function<int(int, char **)>> tests = {
        {"many", many},           {"leaked", leaked}, {"reset", reset},   {"requests", requests},
        {"destroyed", destroyed}, {"ended", ended},   {"reused", reused}, {"after", after},
        {"side", side},           {"before", before}, {"forked", forked}, {"untouched", untouched},
    };
    const auto found = tests.find(argc > 1 ? argv[1] : "");
    if (found == tests.end()) {
        std::printf("BROKEN lifecycle: which test?\n");
        return 2;
    }
    return found->second(argc, argv);
}
