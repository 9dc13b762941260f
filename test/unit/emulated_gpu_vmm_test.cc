// Virtual memory management and stream-ordered pools, with both answers to whether a buffer id
// survives.
#include "test/unit/emulated_gpu_driver.h"

#include <unistd.h>

#include <gtest/gtest.h>

namespace hetcoll::test {
namespace {

constexpr std::size_t kGranule = std::size_t{2} << 20;

CUmemAllocationProp on_device_0()
{
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    return properties;
}

// One granule of physical memory, mapped at an address.
class Mapping {
public:
    explicit Mapping(CUdeviceptr at) : at_(at)
    {
        const CUmemAllocationProp properties = on_device_0();
        EXPECT_EQ(cu().cuMemCreate(&handle_, kGranule, &properties, 0), CUDA_SUCCESS);
        EXPECT_EQ(cu().cuMemMap(at, kGranule, 0, handle_, 0), CUDA_SUCCESS);
        CUmemAccessDesc access{};
        access.location = properties.location;
        access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        EXPECT_EQ(cu().cuMemSetAccess(at, kGranule, &access, 1), CUDA_SUCCESS);
    }
    ~Mapping()
    {
        EXPECT_EQ(cu().cuMemUnmap(at_, kGranule), CUDA_SUCCESS);
        EXPECT_EQ(cu().cuMemRelease(handle_), CUDA_SUCCESS);
    }
    Mapping(const Mapping &) = delete;
    Mapping &operator=(const Mapping &) = delete;

    [[nodiscard]] CUmemGenericAllocationHandle handle() const { return handle_; }

private:
    CUdeviceptr at_;
    CUmemGenericAllocationHandle handle_ = 0;
};

class Reservation {
public:
    explicit Reservation(std::size_t bytes) : bytes_(bytes)
    {
        EXPECT_EQ(cu().cuMemAddressReserve(&start_, bytes, 0, 0, 0), CUDA_SUCCESS);
    }
    ~Reservation() { EXPECT_EQ(cu().cuMemAddressFree(start_, bytes_), CUDA_SUCCESS); }
    Reservation(const Reservation &) = delete;
    Reservation &operator=(const Reservation &) = delete;

    [[nodiscard]] CUdeviceptr start() const { return start_; }

private:
    std::size_t bytes_;
    CUdeviceptr start_ = 0;
};

TEST(EmulatedVmmTest, NeighbouringMappingsAreOneRangeForCopies)
{
    const PrimaryContext context;
    const Reservation range(2 * kGranule);
    const Mapping low(range.start()), high(range.start() + kGranule);
    fill(range.start() + kGranule - 400, 77, 200);
    EXPECT_EQ(read_word(range.start() + kGranule + 396), 77u);
}

// cuda.h: "not necessarily the address of the mapped region, but the address of the mappable
// address range".
TEST(EmulatedVmmTest, RangeIsWhatWasReservedAndMappingWhatWasMapped)
{
    const PrimaryContext context;
    const Reservation range(4 * kGranule);
    const Mapping low(range.start()), high(range.start() + kGranule);
    const CUdeviceptr at = range.start() + kGranule + 8;
    EXPECT_EQ(attribute<CUdeviceptr>(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, at), range.start());
    EXPECT_EQ(attribute<std::size_t>(CU_POINTER_ATTRIBUTE_RANGE_SIZE, at), 4 * kGranule);
    EXPECT_EQ(attribute<CUdeviceptr>(CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, at),
              range.start() + kGranule);
    EXPECT_EQ(attribute<std::size_t>(CU_POINTER_ATTRIBUTE_MAPPING_SIZE, at), kGranule);
    CUdeviceptr start = 0;
    std::size_t bytes = 0;
    EXPECT_EQ(cu().cuMemGetAddressRange(&start, &bytes, at), CUDA_SUCCESS);
    EXPECT_EQ(start, range.start() + kGranule);
    EXPECT_EQ(bytes, kGranule);
}

TEST(EmulatedVmmTest, MappedMemoryHasNoContextAndNoLegacyIpc)
{
    const PrimaryContext context;
    const Reservation range(kGranule);
    const Mapping mapping(range.start());
    EXPECT_EQ(attribute<CUcontext>(CU_POINTER_ATTRIBUTE_CONTEXT, range.start()), nullptr);
    EXPECT_EQ(attribute<unsigned>(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, range.start()),
              CU_MEMORYTYPE_DEVICE);
    CUipcMemHandle handle;
    EXPECT_EQ(cu().cuIpcGetMemHandle(&handle, range.start()), CUDA_ERROR_INVALID_VALUE);
}

TEST(EmulatedVmmTest, UnmappedMemoryIsGone)
{
    const PrimaryContext context;
    const Reservation range(kGranule);
    {
        const Mapping mapping(range.start());
    }
    unsigned word = 0;
    EXPECT_EQ(cu().cuMemcpyDtoH(&word, range.start(), sizeof word), CUDA_ERROR_INVALID_VALUE);
}

TEST(EmulatedVmmTest, FileDescriptorCarriesTheMemory)
{
    const PrimaryContext context;
    const Reservation range(2 * kGranule);
    const Mapping mapping(range.start());
    int fd = -1;
    ASSERT_EQ(cu().cuMemExportToShareableHandle(&fd, mapping.handle(),
                                                CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
              CUDA_SUCCESS);
    CUmemGenericAllocationHandle imported = 0;
    ASSERT_EQ(cu().cuMemImportFromShareableHandle(&imported,
                                                  reinterpret_cast<void *>(std::intptr_t{fd}),
                                                  CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
              CUDA_SUCCESS);
    close(fd);
    const CUdeviceptr second = range.start() + kGranule;
    CUmemAccessDesc access{};
    access.location = on_device_0().location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    ASSERT_EQ(cu().cuMemMap(second, kGranule, 0, imported, 0), CUDA_SUCCESS);
    ASSERT_EQ(cu().cuMemSetAccess(second, kGranule, &access, 1), CUDA_SUCCESS);
    fill(range.start(), 1234, 10);
    EXPECT_EQ(read_word(second), 1234u);
    EXPECT_EQ(cu().cuMemUnmap(second, kGranule), CUDA_SUCCESS);
    EXPECT_EQ(cu().cuMemRelease(imported), CUDA_SUCCESS);
}

// Ids of two mappings, one after the other, at one address; then of two pool allocations.
void expect_ids(bool stay)
{
    const PrimaryContext context;
    const Reservation range(kGranule);
    unsigned long long first = 0, second = 0;
    {
        const Mapping mapping(range.start());
        first = buffer_id(range.start());
    }
    {
        const Mapping mapping(range.start());
        second = buffer_id(range.start());
    }
    EXPECT_EQ(first == second, stay);
    CUdeviceptr pooled = 0, again = 0;
    ASSERT_EQ(cu().cuMemAllocAsync(&pooled, 1000, nullptr), CUDA_SUCCESS);
    first = buffer_id(pooled);
    EXPECT_EQ(cu().cuMemFreeAsync(pooled, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(cu().cuCtxSynchronize(), CUDA_SUCCESS);
    ASSERT_EQ(cu().cuMemAllocAsync(&again, 1000, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(again, pooled);
    EXPECT_EQ(buffer_id(again) == first, stay);
    EXPECT_EQ(cu().cuMemFreeAsync(again, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(cu().cuCtxSynchronize(), CUDA_SUCCESS);
}

TEST(EmulatedVmmTest, RemapAndPoolReuseGetNewIds) { expect_ids(false); }

TEST(EmulatedVmmChild, DISABLED_IdsStay) { expect_ids(true); }

TEST(EmulatedVmmTest, IdsStayWhenTheUnfavourableAnswerIsAskedFor)
{
    const ChildResult child = run_in_child("EmulatedVmmChild.DISABLED_IdsStay", {"EMU_ID_STAYS=1"});
    EXPECT_EQ(child.exit_status, 0) << child.errors;
}

} // namespace
} // namespace hetcoll::test
