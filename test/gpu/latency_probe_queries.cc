// Identifies the device, and measures what it costs to ask whether a stream is idle: a blocking
// call asks the legacy stream, whose answer depends on every blocking stream of the context.
#include "test/gpu/latency_probe.h"

namespace hetcoll::probe {
namespace {

constexpr int kMoreStreams = 30;

struct Attribute {
    const char *name;
    int number; // of CUdevice_attribute; older cuda.h lack some
};

constexpr Attribute kAttributes[] = {
    {"MPS_ENABLED", 133},
    {"MULTICAST_SUPPORTED", 132},
    {"HANDLE_TYPE_FABRIC_SUPPORTED", 128},
    {"DMA_BUF_SUPPORTED", 124},
    {"GPU_DIRECT_RDMA_WRITES_ORDERING", 118},
    {"GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS", 117},
    {"PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES", 100},
    {"PAGEABLE_MEMORY_ACCESS", 88},
    {"ASYNC_ENGINE_COUNT", 40},
    {"MEMORY_CLOCK_RATE", 36},
    {"GLOBAL_MEMORY_BUS_WIDTH", 37},
    {"HOST_NUMA_ID", 134},
};

void time_query(const char *what, CUstream stream)
{
    time_calls(what, [stream] { return cuStreamQuery(stream); });
}

} // namespace

void ask_about_attributes()
{
    use_primary_context();
    for (const auto &[name, number] : kAttributes) {
        int value = 0;
        const CUresult result =
            cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(number), 0);
        if (result == CUDA_SUCCESS) {
            answer(name, "%d", value);
        } else {
            answer(name, result);
        }
    }
}

void measure_stream_queries()
{
    use_primary_context();
    const FlagKernels kernels = load_flag_kernels();
    Flag flag;
    const CUstream blocking = make_stream(CU_STREAM_DEFAULT);
    const CUstream non_blocking = make_stream(CU_STREAM_NON_BLOCKING);
    const auto use = [&](CUstream stream) {
        must(launch_and_see(kernels, flag, stream), "a launch");
        must(cuStreamSynchronize(stream), "cuStreamSynchronize");
    };
    use(blocking);
    use(non_blocking);
    time_query("own non-blocking stream", non_blocking);
    time_query("own blocking stream", blocking);
    time_query("legacy stream, 1 blocking stream made and used", CU_STREAM_LEGACY);
    std::vector<CUstream> more(kMoreStreams);
    for (CUstream &stream : more) {
        stream = make_stream(CU_STREAM_DEFAULT);
        use(stream);
    }
    time_query("legacy stream, 31 blocking streams made and used", CU_STREAM_LEGACY);
    time_calls("no query: launch to flag on one of these 31",
               [&] { return launch_and_see(kernels, flag, blocking); });
    for (CUstream stream : more) {
        must(cuStreamDestroy(stream), "cuStreamDestroy");
    }
    must(cuStreamSynchronize(blocking), "cuStreamSynchronize");
    time_query("legacy stream, 30 of them destroyed", CU_STREAM_LEGACY);
    time_query("per-thread stream", CU_STREAM_PER_THREAD);
}

} // namespace hetcoll::probe
