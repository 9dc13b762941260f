// Questions about calls that may wait for the device: which of them wait for a stream of others
// that is busy, and what comes back of handles and ids.
#include "emulated_gpu/conformance.h"

#include <array>
#include <cstdio>
#include <vector>

namespace hetcoll::conformance {
namespace {

// Prints whether a call waits while a stream that it does not name is busy.
template <class Call> void ask(CUstream others, const std::string &what, Call call)
{
    bool waited = false;
    {
        const Gate gate(others, Gate::kShortest);
        call();
        waited = cu().cuStreamQuery(others) == CUDA_SUCCESS;
    }
    answer("beside a busy stream, " + what + " waits", waited);
}

void ask_about_memory(CUstream others)
{
    CUdeviceptr small = 0, large = 0;
    void *pinned = nullptr;
    std::vector<char> heap(1 << 20);
    ask(others, "cuMemAlloc of 512 bytes", [&] { cu().cuMemAlloc(&small, 512); });
    ask(others, "cuMemAlloc of 64 MiB", [&] { cu().cuMemAlloc(&large, std::size_t{64} << 20); });
    ask(others, "cuIpcGetMemHandle", [&] { static_cast<void>(handle_of(large)); });
    ask(others, "cuMemFree of 512 bytes", [&] { cu().cuMemFree(small); });
    ask(others, "cuMemFree of 64 MiB", [&] { cu().cuMemFree(large); });
    ask(others, "cuMemHostAlloc", [&] { cu().cuMemHostAlloc(&pinned, 4 << 20, 0); });
    ask(others, "cuMemFreeHost", [&] { cu().cuMemFreeHost(pinned); });
    ask(others, "cuMemHostRegister", [&] { cu().cuMemHostRegister(heap.data(), heap.size(), 0); });
    ask(others, "cuMemHostUnregister", [&] { cu().cuMemHostUnregister(heap.data()); });
}

void ask_about_mappings(CUstream others)
{
    VmmMemory memory;
    if (!find_vmm(memory)) {
        return;
    }
    ask(others, "cuMemAddressReserve",
        [&] { cu().cuMemAddressReserve(&memory.start, memory.bytes, 0, 0, 0); });
    ask(others, "mapping VMM memory", [&] { map(memory); });
    ask(others, "cuMemUnmap", [&] { cu().cuMemUnmap(memory.start, memory.bytes); });
    ask(others, "cuMemRelease", [&] { cu().cuMemRelease(memory.handle); });
    ask(others, "cuMemAddressFree", [&] { cu().cuMemAddressFree(memory.start, memory.bytes); });
}

void ask_about_objects(CUstream others)
{
    CUstream stream = nullptr;
    CUevent event = nullptr;
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    ask(others, "cuStreamCreate", [&] { cu().cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING); });
    ask(others, "cuStreamDestroy", [&] { cu().cuStreamDestroy(stream); });
    ask(others, "cuEventCreate", [&] { cu().cuEventCreate(&event, CU_EVENT_DISABLE_TIMING); });
    ask(others, "cuEventDestroy", [&] { cu().cuEventDestroy(event); });
    ask(others, "cuModuleLoadData", [&] { cu().cuModuleLoadData(&module, kNothing); });
    ask(others, "cuModuleGetFunction",
        [&] { cu().cuModuleGetFunction(&function, module, "hetcoll_nothing"); });
    ask(others, "cuModuleUnload", [&] { cu().cuModuleUnload(module); });
}

} // namespace

void ask_about_waits(Peer &peer)
{
    const CUstream others = new_stream(CU_STREAM_NON_BLOCKING);
    ask_about_memory(others);
    ask_about_mappings(others);
    ask_about_objects(others);
    require(cu().cuStreamDestroy(others), "cuStreamDestroy");
    const CUdeviceptr memory = allocate(kLarge);
    const Peer::Reply opened = peer.open_while_busy(handle_of(memory));
    answer("beside a busy stream, cuIpcOpenMemHandle waits", opened.waited);
    answer("beside a busy stream, cuIpcCloseMemHandle waits", peer.close_while_busy().waited);
    require(cu().cuMemFree(memory), "cuMemFree");
}

void ask_about_handles()
{
    std::array<CUstream, 2> streams{};
    std::array<CUevent, 2> events{};
    std::array<CUcontext, 2> contexts{};
    std::array<unsigned long long, 2> ids{};
    for (std::size_t i = 0; i < 2; ++i) {
        streams[i] = new_stream(CU_STREAM_NON_BLOCKING);
        require(cu().cuStreamDestroy(streams[i]), "cuStreamDestroy");
        require(cu().cuEventCreate(&events[i], CU_EVENT_DISABLE_TIMING), "cuEventCreate");
        require(cu().cuEventDestroy(events[i]), "cuEventDestroy");
        require(cu().cuCtxCreate_v2(&contexts[i], 0, 0), "cuCtxCreate_v2");
        ids[i] = id_of(contexts[i]);
        require(cu().cuCtxDestroy(contexts[i]), "cuCtxDestroy");
    }
    // No answers to compare: H200s have answered both of events and contexts. Hostile, the emulated
    // driver does as well.
    const auto remark = [](const char *what, bool same) {
        std::printf("# %s, the next one has the handle of the last: %s\n", what,
                    same ? "yes" : "no");
    };
    remark("stream", streams[0] == streams[1]);
    remark("event", events[0] == events[1]);
    remark("context", contexts[0] == contexts[1]);
    if (ids[0] != 0) {
        answer("context, the next one has the id of the last", ids[0] == ids[1]);
    }
}

} // namespace hetcoll::conformance
