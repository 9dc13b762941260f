#include "emulated_gpu/copies.h"

#include "emulated_gpu/calls.h"
#include "emulated_gpu/capture.h"
#include "emulated_gpu/contexts.h"
#include "emulated_gpu/footprint.h"
#include "emulated_gpu/hostile_waits.h"
#include "emulated_gpu/hostility.h"
#include "emulated_gpu/lateness.h"
#include "emulated_gpu/links.h"
#include "emulated_gpu/settings.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace hetcoll::emulated_gpu {
namespace {

enum class Direction { kAny, kToDevice, kToHost, kOnDevice };

bool is_device(Place place) { return place == Place::kDevice || place == Place::kManaged; }

Place place_of(const Allocation &allocation)
{
    switch (allocation.kind) {
    case Kind::kManaged: return Place::kManaged;
    case Kind::kHost:
    case Kind::kHostRegistered: return Place::kPinned;
    default: return Place::kDevice;
    }
}

// Whether VMM mappings follow each other from `address` to `end`. Requires the lock.
bool is_mapped_through(Address address, Address end)
{
    while (address < end) {
        const Allocation *next = find_allocation(address);
        if (next == nullptr || next->kind != Kind::kVmm) {
            return false;
        }
        address = next->start + next->bytes;
    }
    return true;
}

bool is_allowed(Place to, Place from, Direction direction)
{
    if (to == Place::kNowhere || from == Place::kNowhere) {
        return false;
    }
    const bool device_to = direction == Direction::kToDevice || direction == Direction::kOnDevice;
    const bool device_from = direction == Direction::kToHost || direction == Direction::kOnDevice;
    return (!device_to || to != Place::kPageable) && (!device_from || from != Place::kPageable);
}

void count_copy(Place to, Place from, std::size_t bytes)
{
    count(is_device(to) ? (is_device(from) ? Counter::kDtodBytes : Counter::kHtodBytes)
                        : (is_device(from) ? Counter::kDtohBytes : Counter::kHtohBytes),
          bytes);
    if (to == Place::kPageable || from == Place::kPageable) {
        count(Counter::kPageableCopies, 1);
        count(Counter::kPageableBytes, bytes);
    }
}

template <class Body> void carry_accessing(const std::vector<Crossing> &crossings, Body body)
{
    carry(crossings, [&] {
        const DeviceAccess access;
        body();
    });
}

// The bytes that a copy moves from one place to another: none within a device or within the host.
std::vector<Crossing> crossing_between(int from, int to, std::size_t bytes)
{
    return from != to ? std::vector<Crossing>{{from, to, bytes}} : std::vector<Crossing>{};
}

Work copy_work(Address to, Address from, std::size_t bytes, std::vector<Crossing> crossings)
{
    return {[to = reachable_as<void>(to), from = reachable_as<void>(from), bytes,
             crossings = std::move(crossings)] {
                carry_accessing(crossings, [&] { move_bytes(to, from, bytes); });
            },
            WorkKind::kDevice};
}

// An asynchronous copy from pageable memory is staged while it is small: the source may change as
// soon as the call returns.
constexpr std::size_t kStagedBytes = std::size_t{64} << 10;

Work staged_work(Address to, Address from, std::size_t bytes, std::vector<Crossing> crossings)
{
    const char *source = reinterpret_cast<const char *>(from);
    auto staged = std::make_shared<std::vector<char>>(source, source + bytes);
    return {[to = reachable_as<void>(to), staged, crossings = std::move(crossings)] {
                carry_accessing(crossings,
                                [&] { std::memcpy(to, staged->data(), staged->size()); });
            },
            WorkKind::kDevice};
}

// The work that a synchronous copy or fill waits for.
CUresult wait_holding(const StreamPointer &stream, std::uint64_t number)
{
    const SubmissionsHeld held(*stream->context);
    return wait_for(stream, number);
}

CUresult copy(Address to, Address from, std::size_t bytes, CUstream handle, bool async,
              Direction direction)
{
    StreamPointer stream;
    EMULATED_TRY(find_stream_for_work(handle, stream));
    if (bytes == 0) {
        return CUDA_SUCCESS;
    }
    const Span target = look_up(to, bytes), source = look_up(from, bytes);
    if (!is_allowed(target.place, source.place, direction)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    count_copy(target.place, source.place, bytes);
    std::vector<Crossing> crossings =
        crossing_between(source.physical_device, target.physical_device, bytes);
    std::uint64_t number = 0;
    if (async && source.place == Place::kPageable && target.place != Place::kPageable &&
        bytes <= kStagedBytes) {
        return submit(stream, staged_work(to, from, bytes, std::move(crossings)));
    }
    EMULATED_TRY(submit(stream, copy_work(to, from, bytes, std::move(crossings)), &number));
    const bool pageable = target.place == Place::kPageable || source.place == Place::kPageable;
    const bool sync_memops = target.sync_memops || source.sync_memops;
    // cuMemcpyDtoD does not wait for the device, and pageable copies always do.
    const bool returns_early =
        async ? !pageable : is_device(target.place) && is_device(source.place) && !sync_memops;
    return returns_early ? CUDA_SUCCESS : wait_holding(stream, number);
}

// One side of a two-dimensional copy of linear memory; zero: it is an array.
Address side_of(CUmemorytype type, CUdeviceptr device, const void *host, std::size_t x,
                std::size_t y, std::size_t pitch)
{
    switch (type) {
    case CU_MEMORYTYPE_HOST: return reinterpret_cast<Address>(host) + y * pitch + x;
    case CU_MEMORYTYPE_DEVICE:
    case CU_MEMORYTYPE_UNIFIED: return device + y * pitch + x;
    default: return 0;
    }
}

// Waits, as drivers may, if a side is pageable. Refuses pitches within a device that are not those
// of cuMemAllocPitch if the driver is hostile, as documented.
CUresult copy_rows(const CUDA_MEMCPY2D &copy, CUstream handle)
{
    StreamPointer stream;
    EMULATED_TRY(find_stream_for_work(handle, stream));
    const std::size_t bytes = copy.WidthInBytes, rows = copy.Height;
    if (bytes == 0 || rows == 0) {
        return CUDA_SUCCESS;
    }
    constexpr std::size_t kMostPitch = 0x7fffffff, kPitchUnit = 512;
    const std::size_t to_pitch = copy.dstPitch, from_pitch = copy.srcPitch;
    const Address to = side_of(copy.dstMemoryType, copy.dstDevice, copy.dstHost, copy.dstXInBytes,
                               copy.dstY, to_pitch),
                  from = side_of(copy.srcMemoryType, copy.srcDevice, copy.srcHost, copy.srcXInBytes,
                                 copy.srcY, from_pitch);
    if (to == 0 || from == 0) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    if (std::min(to_pitch, from_pitch) < bytes || std::max(to_pitch, from_pitch) > kMostPitch) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const Span target = look_up(to, (rows - 1) * to_pitch + bytes),
               source = look_up(from, (rows - 1) * from_pitch + bytes);
    const bool within = is_device(target.place) && is_device(source.place);
    if (!is_allowed(target.place, source.place, Direction::kAny) ||
        (within && is_hostile(Hostility::kLimits) && (to_pitch | from_pitch) % kPitchUnit != 0)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    count_copy(target.place, source.place, bytes * rows);
    const Work work = {
        [first = reachable_as<char>(to), source = reachable_as<char>(from), to_pitch, from_pitch,
         bytes, rows,
         crossings =
             crossing_between(source.physical_device, target.physical_device, bytes * rows)] {
            carry_accessing(crossings, [&] {
                for (std::size_t row = 0; row < rows; ++row) {
                    std::memmove(first + row * to_pitch, source + row * from_pitch, bytes);
                }
            });
        },
        WorkKind::kDevice};
    std::uint64_t number = 0;
    EMULATED_TRY(submit(stream, work, &number));
    const bool pageable = target.place == Place::kPageable || source.place == Place::kPageable;
    return pageable ? wait_holding(stream, number) : CUDA_SUCCESS;
}

// Synchronous copies and fills wait, and use the legacy stream.
CUresult copy_now(Address to, Address from, std::size_t bytes, Direction direction)
{
    EMULATED_TRY(refuse_unsafe_call());
    return copy(to, from, bytes, nullptr, false, direction);
}

template <class T>
CUresult fill(CUdeviceptr to, T value, std::size_t count, CUstream handle, bool async)
{
    StreamPointer stream;
    EMULATED_TRY(find_stream_for_work(handle, stream));
    if (count == 0) {
        return CUDA_SUCCESS;
    }
    const Span target = look_up(to, count * sizeof(T));
    if (target.place == Place::kNowhere || target.place == Place::kPageable ||
        to % sizeof(T) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    std::uint64_t number = 0;
    const int filler = settings().physical_device[stream->context->device];
    const Work work = {
        [first = reachable_as<T>(to), value, count,
         crossings = crossing_between(filler, target.physical_device, count * sizeof(T))] {
            carry_accessing(crossings, [&] { std::fill_n(first, count, value); });
        },
        WorkKind::kDevice};
    EMULATED_TRY(submit(stream, work, &number));
    // cuMemset of device memory does not wait.
    const bool returns_early = async || (target.place == Place::kDevice && !target.sync_memops);
    return returns_early ? CUDA_SUCCESS : wait_holding(stream, number);
}

template <class T> CUresult fill_now(CUdeviceptr to, T value, std::size_t count)
{
    EMULATED_TRY(refuse_unsafe_call());
    return fill(to, value, count, nullptr, false);
}

Address address_of(const void *pointer) { return reinterpret_cast<Address>(pointer); }

} // namespace

Span look_up(Address address, std::size_t bytes)
{
    const std::shared_lock lock(memory_mutex());
    const Allocation *found = find_allocation(address);
    if (found == nullptr) {
        return {in_window(address) ? Place::kNowhere : Place::kPageable,
                -1,
                false,
                kHostMemory,
                0,
                false};
    }
    Span span{place_of(*found),
              found->device,
              found->sync_memops.load(),
              found->block != nullptr ? found->block->physical_device : kHostMemory,
              found->open_to,
              found->kind != Kind::kVmm};
    const Address end = address + bytes, found_end = found->start + found->bytes;
    if (end > found_end) {
        if (found->kind == Kind::kHostRegistered) {
            span.place = Place::kPageable;
        } else if (found->kind != Kind::kVmm || !is_mapped_through(found_end, end)) {
            span.place = Place::kNowhere;
        }
    }
    if (span.place == Place::kPinned || span.place == Place::kPageable) {
        span.device = -1;
        span.physical_device = kHostMemory;
    }
    return span;
}

const char *why_unusable(const Span &span, const Context &context)
{
    switch (span.place) {
    case Place::kNowhere: return "not (or no longer) allocated, or beyond its end";
    case Place::kPageable: return "pageable host memory";
    case Place::kDevice: break;
    default: return nullptr;
    }
    const bool is_peer = span.takes_peers && (context.peers.load() & (1u << span.device)) != 0;
    if ((span.open_to & (1u << context.device)) != 0 || is_peer) {
        return nullptr;
    }
    return span.takes_peers ? "memory of another device, without cuCtxEnablePeerAccess"
                            : "mapped without cuMemSetAccess for this device";
}

bool is_device_reachable(Address address, std::size_t bytes)
{
    const Place place = look_up(address, bytes).place;
    return place != Place::kNowhere && place != Place::kPageable;
}

} // namespace hetcoll::emulated_gpu

using namespace hetcoll::emulated_gpu;

EMULATED_GPU_EXPORT CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    EMULATED_CALL(cuMemcpy);
    return copy_now(to, from, bytes, Direction::kAny);
}

EMULATED_GPU_EXPORT CUresult cuMemcpyHtoD(CUdeviceptr to, const void *from, size_t bytes)
{
    EMULATED_CALL(cuMemcpyHtoD);
    return copy_now(to, address_of(from), bytes, Direction::kToDevice);
}

EMULATED_GPU_EXPORT CUresult cuMemcpyDtoH(void *to, CUdeviceptr from, size_t bytes)
{
    EMULATED_CALL(cuMemcpyDtoH);
    return copy_now(address_of(to), from, bytes, Direction::kToHost);
}

EMULATED_GPU_EXPORT CUresult cuMemcpyDtoD(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    EMULATED_CALL(cuMemcpyDtoD);
    return copy_now(to, from, bytes, Direction::kOnDevice);
}

EMULATED_GPU_EXPORT CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext,
                                          size_t bytes)
{
    EMULATED_CALL(cuMemcpyPeer);
    return copy_now(to, from, bytes, Direction::kOnDevice);
}

EMULATED_GPU_EXPORT CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes,
                                           CUstream stream)
{
    EMULATED_CALL(cuMemcpyAsync);
    return copy(to, from, bytes, stream, true, Direction::kAny);
}

EMULATED_GPU_EXPORT CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t bytes,
                                               CUstream stream)
{
    EMULATED_CALL(cuMemcpyHtoDAsync);
    return copy(to, address_of(from), bytes, stream, true, Direction::kToDevice);
}

EMULATED_GPU_EXPORT CUresult cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t bytes,
                                               CUstream stream)
{
    EMULATED_CALL(cuMemcpyDtoHAsync);
    return copy(address_of(to), from, bytes, stream, true, Direction::kToHost);
}

EMULATED_GPU_EXPORT CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes,
                                               CUstream stream)
{
    EMULATED_CALL(cuMemcpyDtoDAsync);
    return copy(to, from, bytes, stream, true, Direction::kOnDevice);
}

EMULATED_GPU_EXPORT CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext, CUdeviceptr from,
                                               CUcontext, size_t bytes, CUstream stream)
{
    EMULATED_CALL(cuMemcpyPeerAsync);
    return copy(to, from, bytes, stream, true, Direction::kOnDevice);
}

EMULATED_GPU_EXPORT CUresult cuMemcpy2DAsync(const CUDA_MEMCPY2D *copy, CUstream stream)
{
    EMULATED_CALL(cuMemcpy2DAsync);
    return copy == nullptr ? CUDA_ERROR_INVALID_VALUE : copy_rows(*copy, stream);
}

EMULATED_GPU_EXPORT CUresult cuMemsetD8(CUdeviceptr to, unsigned char value, size_t count)
{
    EMULATED_CALL(cuMemsetD8);
    return fill_now<std::uint8_t>(to, value, count);
}

EMULATED_GPU_EXPORT CUresult cuMemsetD16(CUdeviceptr to, unsigned short value, size_t count)
{
    EMULATED_CALL(cuMemsetD16);
    return fill_now<std::uint16_t>(to, value, count);
}

EMULATED_GPU_EXPORT CUresult cuMemsetD32(CUdeviceptr to, unsigned value, size_t count)
{
    EMULATED_CALL(cuMemsetD32);
    return fill_now<std::uint32_t>(to, value, count);
}

EMULATED_GPU_EXPORT CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count,
                                             CUstream stream)
{
    EMULATED_CALL(cuMemsetD8Async);
    return fill<std::uint8_t>(to, value, count, stream, true);
}

EMULATED_GPU_EXPORT CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count,
                                              CUstream stream)
{
    EMULATED_CALL(cuMemsetD16Async);
    return fill<std::uint16_t>(to, value, count, stream, true);
}

EMULATED_GPU_EXPORT CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count,
                                              CUstream stream)
{
    EMULATED_CALL(cuMemsetD32Async);
    return fill<std::uint32_t>(to, value, count, stream, true);
}
