// Times driver calls that hetcoll makes or avoids.
#include "emulated_gpu/conformance.h"
#include "emulated_gpu/least_time.h"

#include <atomic>
#include <cstdio>
#include <vector>

namespace hetcoll::conformance {
namespace {

template <class Call> void time_call(const char *what, int repetitions, Call call)
{
    std::printf("# %s: %.3f us\n", what, least_us(repetitions, call));
}

void measure_queries(CUdeviceptr memory)
{
    std::vector<char> heap(4096);
    const auto on_heap = reinterpret_cast<CUdeviceptr>(heap.data());
    unsigned type = 0, is_managed = 0;
    unsigned long long id = 0;
    CUdeviceptr start = 0;
    std::size_t bytes = 0;
    CUcontext context = nullptr;
    CUpointer_attribute attributes[] = {
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_BUFFER_ID,
        CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE,
        CU_POINTER_ATTRIBUTE_IS_MANAGED};
    void *answers[] = {&type, &id, &start, &bytes, &is_managed};
    const auto ask_type = [&](CUdeviceptr address) {
        cu().cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address);
    };
    const auto ask_five = [&](CUdeviceptr address) {
        cu().cuPointerGetAttributes(std::size(attributes), attributes, answers, address);
    };
    time_call("memory type of device memory", 20000, [&] { ask_type(memory + 64); });
    time_call("memory type of the heap", 20000, [&] { ask_type(on_heap); });
    time_call("five attributes of device memory", 20000, [&] { ask_five(memory + 64); });
    time_call("five attributes of the heap", 20000, [&] { ask_five(on_heap); });
    time_call("buffer id", 20000, [&] {
        cu().cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, memory + 64);
    });
    time_call("address range", 20000,
              [&] { cu().cuMemGetAddressRange(&start, &bytes, memory + 64); });
    time_call("current context", 20000, [&] { cu().cuCtxGetCurrent(&context); });
}

void measure_copies(CUdeviceptr memory, CUstream stream)
{
    std::vector<char> heap(4096);
    void *pinned = nullptr;
    require(cu().cuMemHostAlloc(&pinned, 4096, 0), "cuMemHostAlloc");
    const auto copy_and_wait = [&](void *to) {
        cu().cuMemcpyDtoHAsync(to, memory, 4, stream);
        cu().cuStreamSynchronize(stream);
    };
    time_call("4 B to pinned memory, and wait", 500, [&] { copy_and_wait(pinned); });
    time_call("4 B to the heap, and wait", 500, [&] { copy_and_wait(heap.data()); });
    time_call("4 B on the device, and wait", 500, [&] {
        cu().cuMemcpyDtoDAsync(memory, memory + 4096, 4, stream);
        cu().cuStreamSynchronize(stream);
    });
    const std::atomic_ref word(*static_cast<std::uint32_t *>(pinned));
    std::uint32_t written = 0;
    time_call("the stream writes a word that the host sees", 500, [&] {
        ++written;
        require(
            cu().cuStreamWriteValue32(stream, reinterpret_cast<CUdeviceptr>(pinned), written, 0),
            "cuStreamWriteValue32");
        while (word.load() != written) {
        }
    });
    require(cu().cuStreamSynchronize(stream), "cuStreamSynchronize");
    require(cu().cuMemFreeHost(pinned), "cuMemFreeHost");
}

// If there are only host-compiled kernels, this one is not among them.
void measure_launch(CUstream stream)
{
    CUmodule module = nullptr;
    CUfunction nothing = nullptr;
    if (cu().cuModuleLoadData(&module, kNothing) != CUDA_SUCCESS) {
        return;
    }
    if (cu().cuModuleGetFunction(&nothing, module, "hetcoll_nothing") == CUDA_SUCCESS) {
        const auto launch = [&] {
            require(cu().cuLaunchKernel(nothing, 1, 1, 1, 32, 1, 1, 0, stream, nullptr, nullptr),
                    "cuLaunchKernel");
        };
        time_call("launch", 500, launch);
        time_call("launch, and wait", 500, [&] {
            launch();
            cu().cuStreamSynchronize(stream);
        });
    }
    cu().cuModuleUnload(module);
}

void measure_events(CUstream stream)
{
    CUevent event = nullptr;
    require(cu().cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
    time_call("event record", 500, [&] { cu().cuEventRecord(event, stream); });
    require(cu().cuStreamSynchronize(stream), "cuStreamSynchronize");
    time_call("query of an event that happened", 5000, [&] { cu().cuEventQuery(event); });
    require(cu().cuEventDestroy(event), "cuEventDestroy");
}

void measure_ipc(Peer &peer, CUdeviceptr memory)
{
    time_call("IPC handle", 1000, [&] { static_cast<void>(handle_of(memory)); });
    const CUipcMemHandle handle = handle_of(memory);
    std::printf("# IPC, first open of 10 MiB: %.1f us\n", peer.open(handle).us);
    std::printf("# IPC, second open: %.1f us\n", peer.open(handle).us);
    peer.close_last();
    peer.close_last();
}

} // namespace

void measure(Peer &peer)
{
    const CUdeviceptr memory = allocate(kLarge);
    const CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
    measure_queries(memory);
    measure_copies(memory, stream);
    measure_launch(stream);
    measure_events(stream);
    measure_ipc(peer, memory);
    time_call("allocate and free 1 MiB", 100, [&] { cu().cuMemFree(allocate(1 << 20)); });
    time_call("allocate and free 64 MiB", 10, [&] { cu().cuMemFree(allocate(64 << 20)); });
    require(cu().cuStreamDestroy(stream), "cuStreamDestroy");
    require(cu().cuMemFree(memory), "cuMemFree");
}

} // namespace hetcoll::conformance
