// R11: order with the application's streams: MPI is called while earlier work on the legacy default
// stream still runs, and neither this rank nor a peer may use the buffer before that work is done.
// On return the result is complete for every stream. docs/streams.md is the contract.
//
//   streams          legacy stream; the send buffer in the context of another device, if any
//   streams context  under coll_hetcoll_pre_sync context: a stream that is ordered with nothing
#include "test/mpi/check.h"

#include <chrono>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace hetcoll::test {
namespace {

CUdeviceptr address(const void *pointer)
{
    return static_cast<CUdeviceptr>(reinterpret_cast<std::uintptr_t>(pointer));
}

// The device stands still while the copy that makes the input waits on the legacy stream; it goes
// on while MPI_Allreduce runs. All ranks together, or one slow rank whose peers must wait for it.
void input_still_being_made(Program &program, const Emulated &emulated, std::size_t count,
                            bool in_place, bool all_slow)
{
    const Call call{{ElementKind::kFloat32, ReduceOp::kSum, Values::kExact, 5},
                    count,
                    Memory::kDevice,
                    Memory::kDevice,
                    in_place};
    Buffers buffers(program, MPI_COMM_WORLD, call);
    buffers.fill();
    const Driver &driver = program.gpu().driver();
    void *input = in_place ? buffers.recv() : const_cast<void *>(buffers.send());
    const std::size_t bytes = count * sizeof(float);
    Result<Buffer> shelf = Buffer::allocate(&program.gpu(), Memory::kDevice, bytes);
    if (!shelf.ok()) {
        program.require(shelf.status());
    }
    program.require(driver_status(driver,
                                  driver.cuMemcpy(address(shelf->data()), address(input), bytes),
                                  "cuMemcpy", "putting the input aside"));
    program.require(driver_status(driver, driver.cuMemsetD8(address(input), 0xff, bytes),
                                  "cuMemsetD8", "spoiling the input"));
    program.require(
        driver_status(driver, driver.cuCtxSynchronize(), "cuCtxSynchronize", "waiting"));
    const bool slow = all_slow || program.rank() == program.ranks() - 1;
    MPI_Barrier(MPI_COMM_WORLD);
    emulated.hold_devices(slow);
    program.require(driver_status(
        driver, driver.cuMemcpyDtoDAsync(address(input), address(shelf->data()), bytes, nullptr),
        "cuMemcpyDtoDAsync", "making the input"));
    std::thread release([&emulated, slow] {
        if (slow) {
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
            emulated.hold_devices(false);
        }
    });
    const int result = buffers.reduce();
    release.join();
    program.check(result == MPI_SUCCESS, "MPI error %d", result);
    buffers.check();
}

// The same with a send buffer of `sender`, which is made on a stream of its context.
void input_made_elsewhere(Program &program, const Emulated &emulated, std::size_t count,
                          const Gpu &sender, CUstream stream, const char *what)
{
    const Pattern pattern{ElementKind::kFloat32, ReduceOp::kSum, Values::kExact, 7};
    const Driver &driver = sender.driver();
    std::vector<char> image(count * sizeof(float));
    const auto allocate = [&](const Gpu &gpu) {
        Result<Buffer> buffer = Buffer::allocate(&gpu, Memory::kDevice, image.size());
        if (!buffer.ok()) {
            program.require(buffer.status());
        }
        return std::move(*buffer);
    };
    const Buffer send = allocate(sender), shelf = allocate(sender), recv = allocate(program.gpu());
    program.require(send.write(0, image.data(), image.size()));
    fill_input(pattern, program.rank(), count, image.data());
    program.require(shelf.write(0, image.data(), image.size()));

    MPI_Barrier(MPI_COMM_WORLD);
    emulated.hold_devices(true);
    program.require(driver_status(driver, driver.cuCtxPushCurrent(sender.context()),
                                  "cuCtxPushCurrent", "making the input"));
    program.require(driver_status(
        driver,
        driver.cuMemcpyDtoDAsync(address(send.data()), address(shelf.data()), image.size(), stream),
        "cuMemcpyDtoDAsync", "making the input"));
    driver.cuCtxPopCurrent(nullptr);
    std::thread release([&emulated] {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        emulated.hold_devices(false);
    });
    const int result = MPI_Allreduce(send.data(), recv.data(), static_cast<int>(count), MPI_FLOAT,
                                     MPI_SUM, MPI_COMM_WORLD);
    release.join();
    program.require(recv.read(0, image.data(), image.size()));
    const Mismatch mismatch = compare_result(pattern, program.ranks(), count, image.data());
    program.check(result == MPI_SUCCESS && mismatch.wrong == 0,
                  "input made %s: MPI error %d, %zu of %zu elements wrong", what, result,
                  mismatch.wrong, count);
}

void second_device(Program &program, const Emulated &emulated)
{
    Result<std::unique_ptr<Gpu>> other = Gpu::open(program.gpu().ordinal() + 1);
    if (!other.ok()) {
        program.require(other.status());
    }
    const Driver &driver = program.gpu().driver();
    driver.cuCtxSetCurrent(program.gpu().context());
    if ((*other)->ordinal() != program.gpu().ordinal()) {
        for (const std::size_t count : {2, 1'000, 20'000, 600'000}) {
            input_made_elsewhere(program, emulated, count, **other, nullptr, "on another device");
        }
    }
}

void unordered_stream(Program &program, const Emulated &emulated)
{
    const Driver &driver = program.gpu().driver();
    CUstream stream = nullptr;
    program.require(driver_status(driver, driver.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING),
                                  "cuStreamCreate", "making inputs"));
    for (const std::size_t count : {2, 1'000, 20'000, 600'000}) {
        input_made_elsewhere(program, emulated, count, program.gpu(), stream,
                             "on a stream of its own");
    }
    driver.cuStreamDestroy(stream);
}

// R12: the first thing after MPI_Allreduce is a copy on a stream that is ordered with nothing.
void result_complete_for_every_stream(Program &program, std::size_t count)
{
    const Call call{{ElementKind::kFloat32, ReduceOp::kSum, Values::kExact, 6}, count};
    Buffers buffers(program, MPI_COMM_WORLD, call);
    buffers.fill();
    const Driver &driver = program.gpu().driver();
    const std::size_t bytes = count * sizeof(float);
    Result<Buffer> seen = Buffer::allocate(&program.gpu(), Memory::kPinned, bytes);
    if (!seen.ok()) {
        program.require(seen.status());
    }
    CUstream stream = nullptr;
    program.require(driver_status(driver, driver.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING),
                                  "cuStreamCreate", "reading the result"));
    program.check(buffers.reduce() == MPI_SUCCESS, "MPI failed");
    driver.cuMemcpyDtoHAsync(seen->data(), address(buffers.recv()), bytes, stream);
    program.require(driver_status(driver, driver.cuStreamSynchronize(stream), "cuStreamSynchronize",
                                  "reading the result"));
    const Mismatch mismatch = compare_result(call.pattern, program.ranks(), count, seen->data());
    program.check(mismatch.wrong == 0, "%zu of %zu elements not there yet on another stream",
                  mismatch.wrong, count);
    driver.cuStreamDestroy(stream);
}

} // namespace
} // namespace hetcoll::test

int main(int argc, char **argv)
{
    using namespace hetcoll::test;
    Program program(argc, argv, "streams");
    program.gpu();
    const Emulated emulated;
    if (!emulated.present()) {
        std::printf("note streams: a real GPU cannot be held, its own pace has to do\n");
    }
    if (argc > 1 && std::string_view(argv[1]) == "context") {
        unordered_stream(program, emulated);
        return program.finish();
    }
    for (const std::size_t count : {2, 1'000, 20'000, 600'000}) {
        for (const bool all_slow : {false, true}) {
            input_still_being_made(program, emulated, count, false, all_slow);
            input_still_being_made(program, emulated, count, true, all_slow);
        }
        for (int i = 0; i < 5; ++i) {
            result_complete_for_every_stream(program, count);
        }
    }
    second_device(program, emulated);
    return program.finish();
}
