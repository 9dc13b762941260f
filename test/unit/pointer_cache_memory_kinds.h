// Memory of every kind that a program may hand to MPI, to be made and released at will.
#pragma once

#include "pointer_cache/pointer_cache.h"
#include "test/unit/device_cuda.h"

#include <sys/mman.h>

namespace hetcoll::test {

enum class TestMemory { kDevice, kManaged, kVmm, kRegistered, kPool, kPinned, kHost };

inline MemoryKind expected_kind(TestMemory memory)
{
    switch (memory) {
    case TestMemory::kDevice:
    case TestMemory::kVmm:
    case TestMemory::kPool: return MemoryKind::kDevice;
    case TestMemory::kManaged: return MemoryKind::kManaged;
    default: return MemoryKind::kHost;
    }
}

struct TestBuffer {
    TestMemory memory;
    std::uintptr_t base;
    std::size_t bytes;
    CUmemGenericAllocationHandle handle; // of kVmm
};

inline constexpr std::size_t kVmmGranularity = std::size_t{2} << 20;

inline CUdeviceptr map_vmm(CUdeviceptr at, std::size_t bytes, CUmemGenericAllocationHandle *handle)
{
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    const CUmemAccessDesc access{properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    HETCOLL_REQUIRE(cuda().cuMemCreate(handle, bytes, &properties, 0));
    HETCOLL_REQUIRE(cuda().cuMemMap(at, bytes, 0, *handle, 0));
    HETCOLL_REQUIRE(cuda().cuMemSetAccess(at, bytes, &access, 1));
    return at;
}

inline TestBuffer make_buffer(TestMemory memory, std::size_t bytes)
{
    Cuda &c = cuda();
    CUdeviceptr at = 0;
    void *host = nullptr;
    TestBuffer buffer{memory, 0, bytes, 0};
    switch (memory) {
    case TestMemory::kDevice: HETCOLL_REQUIRE(c.driver->cuMemAlloc(&at, bytes)); break;
    case TestMemory::kManaged:
        HETCOLL_REQUIRE(c.driver->cuMemAllocManaged(&at, bytes, CU_MEM_ATTACH_GLOBAL));
        break;
    case TestMemory::kVmm:
        buffer.bytes = (bytes + kVmmGranularity - 1) / kVmmGranularity * kVmmGranularity;
        HETCOLL_REQUIRE(c.cuMemAddressReserve(&at, buffer.bytes, 0, 0, 0));
        map_vmm(at, buffer.bytes, &buffer.handle);
        break;
    case TestMemory::kPool:
        HETCOLL_REQUIRE(c.cuMemAllocAsync(&at, bytes, nullptr));
        HETCOLL_REQUIRE(c.driver->cuStreamSynchronize(nullptr));
        break;
    case TestMemory::kPinned: HETCOLL_REQUIRE(c.driver->cuMemHostAlloc(&host, bytes, 0)); break;
    case TestMemory::kRegistered:
    case TestMemory::kHost:
        host = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == TestMemory::kRegistered) {
            HETCOLL_REQUIRE(c.driver->cuMemHostRegister(host, bytes, 0));
        }
        break;
    }
    buffer.base = host != nullptr ? reinterpret_cast<std::uintptr_t>(host) : at;
    return buffer;
}

inline void release_buffer(const TestBuffer &buffer)
{
    Cuda &c = cuda();
    void *const host = reinterpret_cast<void *>(buffer.base);
    switch (buffer.memory) {
    case TestMemory::kDevice:
    case TestMemory::kManaged: HETCOLL_REQUIRE(c.driver->cuMemFree(buffer.base)); break;
    case TestMemory::kVmm:
        HETCOLL_REQUIRE(c.cuMemUnmap(buffer.base, buffer.bytes));
        HETCOLL_REQUIRE(c.cuMemRelease(buffer.handle));
        HETCOLL_REQUIRE(c.cuMemAddressFree(buffer.base, buffer.bytes));
        break;
    case TestMemory::kPool:
        HETCOLL_REQUIRE(c.cuMemFreeAsync(buffer.base, nullptr));
        HETCOLL_REQUIRE(c.driver->cuStreamSynchronize(nullptr));
        break;
    case TestMemory::kPinned: HETCOLL_REQUIRE(c.driver->cuMemFreeHost(host)); break;
    case TestMemory::kRegistered:
        HETCOLL_REQUIRE(c.driver->cuMemHostUnregister(host));
        [[fallthrough]];
    case TestMemory::kHost: munmap(host, buffer.bytes); break;
    }
}

// A buffer for the length of a scope.
class ScopedBuffer {
public:
    ScopedBuffer(TestMemory memory, std::size_t bytes) : buffer_(make_buffer(memory, bytes)) {}
    ~ScopedBuffer() { release_buffer(buffer_); }
    ScopedBuffer(const ScopedBuffer &) = delete;
    ScopedBuffer &operator=(const ScopedBuffer &) = delete;

    [[nodiscard]] std::uintptr_t base() const { return buffer_.base; }
    [[nodiscard]] const void *at(std::size_t offset) const
    {
        return reinterpret_cast<const void *>(buffer_.base + offset);
    }

private:
    TestBuffer buffer_;
};

} // namespace hetcoll::test
