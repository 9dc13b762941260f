// Beginnings and ends. The argument chooses:
//   many        communicators made, used and freed by the hundred
//   leaked      communicators never freed: MPI_Finalize destroys them
//   reset       the device is reset before MPI_Finalize
//   anew        the device is reset, and used again
//   after       buffers and context outlive MPI
//   side        MPI_Init, calls and MPI_Finalize on a thread that is not the main one
//   before      context and buffers exist before MPI_Init
#include "test/mpi/check.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace hetcoll::test {
namespace {

Call call_of(std::size_t count, std::uint32_t seed)
{
    return {{ElementKind::kFloat32, ReduceOp::kSum, Values::kExact, seed}, count};
}

int many(int argc, char **argv)
{
    Program program(argc, argv, "lifecycle many");
    const Emulated emulated;
    for (int i = 0; i < 300; ++i) {
        MPI_Comm comm = MPI_COMM_NULL;
        const std::uint64_t before = emulated.calls("all_calls");
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        program.check(emulated.calls("all_calls") == before,
                      "making a communicator called the driver");
        if (i % 10 == 0) {
            check_allreduce(program, comm, call_of(std::size_t{1} << i % 18, 1));
        }
        MPI_Comm_free(&comm);
    }
    return program.finish();
}

int leaked(int argc, char **argv)
{
    Program program(argc, argv, "lifecycle leaked");
    for (int i = 0; i < 5; ++i) {
        MPI_Comm comm = MPI_COMM_NULL;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        check_allreduce(program, comm, call_of(50'000, 2));
    }
    return program.finish();
}

// As OSU's benchmarks end with cudaDeviceReset and many programs with less.
int reset(int argc, char **argv)
{
    Program program(argc, argv, "lifecycle reset");
    check_allreduce(program, MPI_COMM_WORLD, call_of(10, 3));
    check_allreduce(program, MPI_COMM_WORLD, call_of(100'000, 3));
    const Emulated emulated;
    const auto reset_context =
        reinterpret_cast<CUresult (*)(CUdevice)>(emulated.find("cuDevicePrimaryCtxReset_v2"));
    if (program.check(reset_context != nullptr, "the driver lacks cuDevicePrimaryCtxReset")) {
        reset_context(program.gpu().ordinal());
    }
    const int exit_code = program.summarise();
    MPI_Finalize();
    std::quick_exit(exit_code); // the test's own handle of the context is stale
}

// Work goes on after a reset: the context and what the application makes in it have the handles and
// addresses that ours had before.
int anew(int argc, char **argv)
{
    Program program(argc, argv, "lifecycle anew");
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
        {"many", many},   {"leaked", leaked}, {"reset", reset},   {"anew", anew},
        {"after", after}, {"side", side},     {"before", before},
    };
    const auto found = tests.find(argc > 1 ? argv[1] : "");
    if (found == tests.end()) {
        std::printf("BROKEN lifecycle: which test?\n");
        return 2;
    }
    return found->second(argc, argv);
}
