// The order of blocking streams, and what the calls on a small MPI_Allreduce's way cost.
#include "emulated_gpu/least_time.h"
#include "test/gpu/probe.h"

#include <chrono>
#include <thread>

namespace hetcoll::probe {
namespace {

constexpr std::size_t kMiB = 1 << 20;

struct Streams {
    CUstream own = nullptr, other = nullptr; // blocking, both
    CUevent event = nullptr;
};

Streams make_streams()
{
    Streams made;
    must(cuStreamCreateWithPriority(&made.own, CU_STREAM_DEFAULT, -5), "cuStreamCreate");
    must(cuStreamCreate(&made.other, CU_STREAM_DEFAULT), "cuStreamCreate");
    must(cuEventCreate(&made.event, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
    return made;
}

void wait_for(CUevent event)
{
    while (cuEventQuery(event) == CUDA_ERROR_NOT_READY) {
    }
}

template <class Call> void time_call(const char *what, int repetitions, Call call)
{
    answer(what, "%.3f us", conformance::least_us(repetitions, call));
}

void ask_while_busy(const Streams &streams, const Kernels &kernels, CUstream busy,
                    const char *question)
{
    auto *word = static_cast<volatile unsigned *>(allocate_host(sizeof(unsigned)));
    *word = 0;
    start_spin(kernels, word, busy);
    must(cuEventRecord(streams.event, streams.own), "cuEventRecord");
    std::this_thread::sleep_for(std::chrono::milliseconds(20)); // what could be done is done
    answer(question, "event %s, cuStreamQuery(CU_STREAM_LEGACY) %s",
           name_of(cuEventQuery(streams.event)).c_str(),
           name_of(cuStreamQuery(CU_STREAM_LEGACY)).c_str());
    *word = 1;
    must(cuCtxSynchronize(), "cuCtxSynchronize");
}

void measure_queries(CUcontext context, CUdeviceptr memory)
{
    unsigned long long id = 0;
    CUcontext popped = nullptr;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    time_call("BUFFER_ID of a pointer", 20000,
              [&] { cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, memory + 64); });
    time_call("cuCtxGetId", 20000, [&] { cuCtxGetId(context, &id); });
    time_call("cuCtxPushCurrent and cuCtxPopCurrent", 20000, [&] {
        cuCtxPushCurrent(context);
        cuCtxPopCurrent(&popped);
    });
    time_call("cuThreadExchangeStreamCaptureMode", 20000,
              [&] { cuThreadExchangeStreamCaptureMode(&mode); });
    time_call("cuStreamQuery(CU_STREAM_LEGACY), idle", 20000,
              [&] { cuStreamQuery(CU_STREAM_LEGACY); });
}

} // namespace

void ask_about_order()
{
    use_primary_context();
    const Streams streams = make_streams();
    const Kernels kernels = load_kernels();
    ask_while_busy(streams, kernels, CU_STREAM_LEGACY,
                   "a kernel on the legacy stream; on an empty blocking stream");
    ask_while_busy(streams, kernels, streams.other,
                   "a kernel on a blocking stream; on another, empty one");
}

void measure_costs()
{
    const CUcontext context = use_primary_context();
    const Streams streams = make_streams();
    const Kernels kernels = load_kernels();
    const CUdeviceptr memory = allocate(kMiB);
    void *pinned = allocate_host(8192);
    auto *word = static_cast<volatile unsigned *>(allocate_host(sizeof(unsigned)));
    measure_queries(context, memory);
    time_call("event on the legacy stream, until done", 1000, [&] {
        cuEventRecord(streams.event, CU_STREAM_LEGACY);
        wait_for(streams.event);
    });
    time_call("event on an own blocking stream, until done", 1000, [&] {
        cuEventRecord(streams.event, streams.own);
        wait_for(streams.event);
    });
    time_call("8 KiB to page-locked memory and an event, until done", 1000, [&] {
        cuMemcpyDtoHAsync(pinned, memory, 8192, streams.own);
        cuEventRecord(streams.event, streams.own);
        wait_for(streams.event);
    });
    unsigned value = 0;
    *word = 0;
    time_call("kernel, until the host sees its flag", 1000, [&] {
        start_flag(kernels, word, ++value, streams.own);
        while (*word != value) {
        }
    });
    time_call("kernel and an event, until done", 1000, [&] {
        start_flag(kernels, word, ++value, streams.own);
        cuEventRecord(streams.event, streams.own);
        wait_for(streams.event);
    });
    must(cuCtxSynchronize(), "cuCtxSynchronize");
}

} // namespace hetcoll::probe
