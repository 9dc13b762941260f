// Questions about CUDA IPC, which two processes answer together.
#include "emulated_gpu/conformance.h"

#include <cstring>

namespace hetcoll::conformance {
namespace {

bool is_same(const CUipcMemHandle &a, const CUipcMemHandle &b)
{
    return std::memcmp(&a, &b, sizeof a) == 0;
}

// A mapping is opened twice, closed once, and still there.
void ask_about_opening(Peer &peer, CUdeviceptr memory)
{
    const CUipcMemHandle handle = handle_of(memory);
    answer("IPC, handle of an inner address is the same",
           is_same(handle, handle_of(memory + 4096)));
    answer("IPC, handle is stable", is_same(handle, handle_of(memory)));
    CUdeviceptr own = 0;
    answer("IPC, open in the exporting process",
           cu().cuIpcOpenMemHandle(&own, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    answer("IPC, open with flags 0", cu().cuIpcOpenMemHandle(&own, handle, 0));
    const Peer::Reply first = peer.open(handle), second = peer.open(handle);
    answer("IPC, open in a peer", first.result);
    answer("IPC, the peer sees the memory", first.word == 111);
    answer("IPC, open again", second.result);
    answer("IPC, open again gives the same address", second.address == first.address);
    answer("IPC, close once", peer.close_last().result);
    answer("IPC, read after one close of two", peer.read_last().result);
}

void ask_about_small_memory(Peer &peer)
{
    const CUdeviceptr first = allocate(1000), second = allocate(5000);
    fill(first, 222);
    fill(second, 333);
    answer("IPC, two small ones have different handles",
           !is_same(handle_of(first), handle_of(second)));
    const Peer::Reply opened_first = peer.open(handle_of(first));
    const Peer::Reply opened_second = peer.open(handle_of(second));
    answer("IPC, open small memory", opened_first.result);
    answer("IPC, small memory is seen", opened_first.word == 222);
    answer("IPC, open its neighbour", opened_second.result);
    answer("IPC, its neighbour is seen", opened_second.word == 333);
    answer("IPC, small ones are as far apart as at home",
           opened_second.address - opened_first.address == second - first);
    answer("IPC, close its neighbour", peer.close_last().result);
    answer("IPC, close small memory", peer.close_last().result);
    require(cu().cuMemFree(first), "cuMemFree");
    require(cu().cuMemFree(second), "cuMemFree");
}

// The peer still maps `memory`, which is freed and allocated again.
void ask_about_stale_mappings(Peer &peer, CUdeviceptr memory)
{
    const CUipcMemHandle stale = handle_of(memory);
    require(cu().cuMemFree(memory), "cuMemFree");
    const CUdeviceptr again = allocate(kLarge);
    fill(again, 444);
    answer("IPC, allocated again at the same address", again == memory);
    answer("IPC, allocated again has a new handle", !is_same(stale, handle_of(again)));
    const Peer::Reply read = peer.read_last();
    answer("IPC, read a stale mapping", read.result);
    answer("IPC, a stale mapping shows the new memory", read.word == 444);
    Peer::Reply opened = peer.open(handle_of(again));
    answer("IPC, open the new memory over a stale mapping", opened.result);
    if (opened.result != CUDA_SUCCESS) {
        answer("IPC, close the stale mapping", peer.close_last().result);
        opened = peer.open(handle_of(again));
        answer("IPC, open the new memory then", opened.result);
    }
    answer("IPC, the new memory is seen", opened.word == 444);
    answer("IPC, a handle of freed memory opens", peer.open(stale).result == CUDA_SUCCESS);
    peer.close_last();
    require(cu().cuMemFree(again), "cuMemFree");
}

void ask_about_events(Peer &peer)
{
    CUevent event = nullptr;
    answer("IPC event with timing", cu().cuEventCreate(&event, CU_EVENT_INTERPROCESS));
    require(cu().cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING),
            "cuEventCreate");
    CUipcEventHandle handle;
    answer("IPC event, handle", cu().cuIpcGetEventHandle(&handle, event));
    answer("IPC event, open in a peer", peer.open_event(handle).result);
    answer("IPC event, unrecorded, query in the peer", peer.query_event().result);
    answer("IPC event, unrecorded, wait of a stream of the peer", peer.wait_for_event().result);
    {
        const Gate gate(nullptr);
        require(cu().cuEventRecord(event, nullptr), "cuEventRecord");
        answer("IPC event, pending, query in the peer", peer.query_event().result);
    }
    answer("IPC event, done, query in the peer", peer.query_event().result);
    answer("IPC event, done, wait of a stream of the peer", peer.wait_for_event().result);
    require(cu().cuEventDestroy(event), "cuEventDestroy");
}

} // namespace

void ask_about_ipc(Peer &peer)
{
    const CUdeviceptr memory = allocate(kLarge);
    fill(memory, 111);
    ask_about_opening(peer, memory);
    ask_about_small_memory(peer);
    ask_about_stale_mappings(peer, memory);
    ask_about_events(peer);
}

} // namespace hetcoll::conformance
