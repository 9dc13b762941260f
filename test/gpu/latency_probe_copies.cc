// The driver's copies between the device and page-locked memory, seen by an event or by a word.
#include "test/gpu/latency_probe.h"

namespace hetcoll::probe {
namespace {

constexpr std::size_t kKiB = 1 << 10;
constexpr std::size_t kMostBytes = 64 * kKiB;

CUresult wait_for_event(CUevent event)
{
    CUresult result = CUDA_ERROR_NOT_READY;
    while (result == CUDA_ERROR_NOT_READY) {
        result = cuEventQuery(event);
    }
    return result;
}

// Times a copy, which `copy` queues.
template <class Copy>
void measure_copy(const std::string &what, CUstream stream, CUevent event, const Copy &copy)
{
    Flag flag;
    time_calls(what + " and an event", [&] {
        HETCOLL_PROBE_TRY(copy());
        HETCOLL_PROBE_TRY(cuEventRecord(event, stream));
        return wait_for_event(event);
    });
    time_calls(what + " and a word", [&] {
        HETCOLL_PROBE_TRY(copy());
        HETCOLL_PROBE_TRY(cuStreamWriteValue32(stream, flag.address(), flag.next(), 0));
        return flag.wait(stream);
    });
}

} // namespace

void measure_copies()
{
    use_primary_context();
    const CUstream stream = make_stream(CU_STREAM_NON_BLOCKING);
    const CUdeviceptr memory = allocate(kMostBytes);
    void *pinned = allocate_host(kMostBytes);
    CUevent event = nullptr;
    must(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
    for (const std::size_t bytes : {std::size_t{8}, 8 * kKiB, kMostBytes}) {
        const std::string size = std::to_string(bytes) + " B";
        measure_copy("DtoH " + size, stream, event,
                     [&] { return cuMemcpyDtoHAsync(pinned, memory, bytes, stream); });
        measure_copy("HtoD " + size, stream, event,
                     [&] { return cuMemcpyHtoDAsync(memory, pinned, bytes, stream); });
    }
}

} // namespace hetcoll::probe
