// Contexts that end, and what a driver says of VMM memory.
#include "test/gpu/probe.h"

#include <cstdio>

namespace hetcoll::probe {
namespace {

constexpr int kPieces = 64, kFirst = 8, kMapped = 3; // of one reservation

CUmemAllocationProp piece_properties()
{
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    return properties;
}

// A reservation with mappings in its middle.
struct Reservation {
    std::size_t piece_bytes = 0;
    CUdeviceptr start = 0;
    CUmemGenericAllocationHandle handles[kMapped] = {};

    [[nodiscard]] CUdeviceptr piece(int i) const
    {
        return start + static_cast<std::size_t>(i) * piece_bytes;
    }
    CUmemGenericAllocationHandle map(int i) const
    {
        const CUmemAllocationProp properties = piece_properties();
        const CUmemAccessDesc access{properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
        CUmemGenericAllocationHandle handle = 0;
        must(cuMemCreate(&handle, piece_bytes, &properties, 0), "cuMemCreate");
        must(cuMemMap(piece(i), piece_bytes, 0, handle, 0), "cuMemMap");
        must(cuMemSetAccess(piece(i), piece_bytes, &access, 1), "cuMemSetAccess");
        return handle;
    }
};

Reservation reserve()
{
    Reservation made;
    const CUmemAllocationProp properties = piece_properties();
    must(cuMemGetAllocationGranularity(&made.piece_bytes, &properties,
                                       CU_MEM_ALLOC_GRANULARITY_MINIMUM),
         "cuMemGetAllocationGranularity");
    must(cuMemAddressReserve(&made.start, kPieces * made.piece_bytes, 0, 0, 0),
         "cuMemAddressReserve");
    for (int i = 0; i < kMapped; ++i) {
        made.handles[i] = made.map(kFirst + i);
    }
    return made;
}

unsigned long long buffer_id(CUdeviceptr at)
{
    unsigned long long id = 0;
    must(cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, at), "BUFFER_ID");
    return id;
}

void print_range(const char *question, const Reservation &in, CUdeviceptr start, std::size_t bytes,
                 CUresult result)
{
    answer(question, "%s, from piece %ld on, %zu pieces", name_of(result).c_str(),
           static_cast<long>(start - in.start) / static_cast<long>(in.piece_bytes),
           bytes / in.piece_bytes);
}

void ask_about_ranges(const Reservation &in, CUdeviceptr at)
{
    CUdeviceptr start = in.start;
    std::size_t bytes = 0;
    CUresult result = cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, at);
    cuPointerGetAttribute(&bytes, CU_POINTER_ATTRIBUTE_RANGE_SIZE, at);
    print_range("RANGE_START_ADDR, RANGE_SIZE", in, start, bytes, result);
    result = cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, at);
    cuPointerGetAttribute(&bytes, CU_POINTER_ATTRIBUTE_MAPPING_SIZE, at);
    print_range("MAPPING_BASE_ADDR, MAPPING_SIZE", in, start, bytes, result);
    result = cuMemGetAddressRange(&start, &bytes, at);
    print_range("cuMemGetAddressRange", in, start, bytes, result);
}

CUresult retain(CUmemGenericAllocationHandle &handle, CUdeviceptr at)
{
    return cuMemRetainAllocationHandle(&handle, reinterpret_cast<void *>(at));
}

} // namespace

void ask_about_contexts()
{
    const CUcontext context = use_primary_context();
    unsigned long long before = 0, after = 0;
    must(cuCtxGetId(context, &before), "cuCtxGetId");
    must(cuDevicePrimaryCtxReset(0), "cuDevicePrimaryCtxReset");
    CUcontext again = nullptr;
    must(cuDevicePrimaryCtxRetain(&again, 0), "cuDevicePrimaryCtxRetain");
    must(cuCtxGetId(again, &after), "cuCtxGetId");
    answer("retained again, the same handle", "%s", yes_or_no(again == context));
    answer("retained again, a new id", "%s", yes_or_no(after != before));
}

void ask_about_reset_context()
{
    const CUcontext context = use_primary_context();
    unsigned long long id = 0;
    must(cuDevicePrimaryCtxReset(0), "cuDevicePrimaryCtxReset");
    answer("cuCtxGetId of the handle", cuCtxGetId(context, &id));
}

void ask_about_destroyed_context()
{
    const CUcontext primary = use_primary_context();
    CUcontext context = nullptr;
    must(cuCtxCreate_v2(&context, 0, 0), "cuCtxCreate");
    const CUdeviceptr memory = allocate(4096);
    must(cuCtxDestroy(context), "cuCtxDestroy");
    must(cuCtxSetCurrent(primary), "cuCtxSetCurrent");
    unsigned long long id = 0;
    answer("BUFFER_ID of its memory, which is safe to ask",
           cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, memory));
    for (int made = 1; made <= 20; ++made) {
        CUcontext next = nullptr;
        must(cuCtxCreate_v2(&next, 0, 0), "cuCtxCreate");
        const bool reused = next == context;
        must(cuCtxDestroy(next), "cuCtxDestroy");
        if (reused) {
            answer("its handle is another context's after", "%d more", made);
            break;
        }
    }
    answer("cuCtxGetId of the handle", cuCtxGetId(context, &id));
    answer("cuCtxPushCurrent of the handle", cuCtxPushCurrent(context));
}

void ask_about_mappings()
{
    use_primary_context();
    const Reservation reserved = reserve();
    const CUdeviceptr at = reserved.piece(kFirst + 1) + 4096;
    answer("the granularity", "%zu KiB; of %d pieces those from %d on are mapped, %d",
           reserved.piece_bytes >> 10, kPieces, kFirst, kMapped);
    ask_about_ranges(reserved, at);
    CUmemGenericAllocationHandle first = 0, second = 0;
    answer("cuMemRetainAllocationHandle", retain(first, at));
    answer("cuMemRetainAllocationHandle again", retain(second, at));
    answer("both are the same handle", "%s", yes_or_no(first == second));
    answer("it is the handle of cuMemCreate", "%s", yes_or_no(first == reserved.handles[1]));
    answer("cuMemRetainAllocationHandle where nothing is mapped", retain(first, reserved.start));
    const unsigned long long before = buffer_id(at);
    answer("two mappings have different buffer ids", "%s",
           yes_or_no(before != buffer_id(reserved.piece(kFirst))));
    must(cuMemUnmap(reserved.piece(kFirst + 1), reserved.piece_bytes), "cuMemUnmap");
    reserved.map(kFirst + 1);
    answer("mapped again, a new buffer id", "%s", yes_or_no(before != buffer_id(at)));
    answer("cuMemRetainAllocationHandle of cuMemAlloc's", retain(first, allocate(8 << 20)));
    CUdeviceptr pooled = 0;
    if (cuMemAllocAsync(&pooled, 8 << 20, nullptr) == CUDA_SUCCESS) {
        must(cuCtxSynchronize(), "cuCtxSynchronize");
        answer("cuMemRetainAllocationHandle of a pool's", retain(first, pooled));
    }
}

} // namespace hetcoll::probe
