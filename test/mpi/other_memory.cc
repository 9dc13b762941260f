// Memory that does not come from cuMemAlloc, as PyTorch's allocators and CUDA programs use it:
// virtual memory management, pools, page-locked memory of the application; and addresses that
// change owner between two calls, which is how pointer caches go wrong.
#include "test/mpi/check.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

namespace hetcoll::test {
namespace {

constexpr std::size_t kBytes = std::size_t{2} << 20; // a whole number of VMM granules

// The entry points that device/driver.h does not list.
struct More {
#define HETCOLL_ENTRY(name) decltype(&::name) name = nullptr;
    HETCOLL_ENTRY(cuMemAddressReserve)
    HETCOLL_ENTRY(cuMemAddressFree)
    HETCOLL_ENTRY(cuMemCreate)
    HETCOLL_ENTRY(cuMemRelease)
    HETCOLL_ENTRY(cuMemMap)
    HETCOLL_ENTRY(cuMemUnmap)
    HETCOLL_ENTRY(cuMemSetAccess)
    HETCOLL_ENTRY(cuMemAllocAsync)
    HETCOLL_ENTRY(cuMemFreeAsync)
#undef HETCOLL_ENTRY

    [[nodiscard]] bool load(const Emulated &library)
    {
        bool all = true;
        const auto find = [&](auto &entry, const char *name) {
            entry = reinterpret_cast<std::remove_reference_t<decltype(entry)>>(library.find(name));
            all = all && entry != nullptr;
        };
        find(cuMemAddressReserve, "cuMemAddressReserve");
        find(cuMemAddressFree, "cuMemAddressFree");
        find(cuMemCreate, "cuMemCreate");
        find(cuMemRelease, "cuMemRelease");
        find(cuMemMap, "cuMemMap");
        find(cuMemUnmap, "cuMemUnmap");
        find(cuMemSetAccess, "cuMemSetAccess");
        find(cuMemAllocAsync, "cuMemAllocAsync");
        find(cuMemFreeAsync, "cuMemFreeAsync");
        return all;
    }
};

class Test {
public:
    explicit Test(Program &program) : program_(program), driver_(program.gpu().driver())
    {
        program.check(more_.load(Emulated()), "the driver lacks an entry point");
    }

    void run()
    {
        virtual_memory();
        pools();
        registered();
        addresses_that_change_owner();
        virtual_memory_mapped_anew();
    }

private:
    void must(CUresult result, const char *call)
    {
        program_.require(driver_status(driver_, result, call, "preparing a test"));
    }
    static CUdeviceptr address(const void *pointer)
    {
        return static_cast<CUdeviceptr>(reinterpret_cast<std::uintptr_t>(pointer));
    }
    static void *pointer(CUdeviceptr at)
    {
        return reinterpret_cast<void *>(static_cast<std::uintptr_t>(at));
    }

    // Reduces at `memory` in place, several sizes, and checks all elements.
    void reduce_there(void *memory, const char *what)
    {
        for (const std::size_t count : {std::size_t{3}, std::size_t{5'000}, kBytes / 4}) {
            const Pattern pattern{ElementKind::kFloat32, ReduceOp::kSum, Values::kExact, ++seed_};
            std::vector<char> image(count * sizeof(float));
            fill_input(pattern, program_.rank(), count, image.data());
            must(driver_.cuMemcpy(address(memory), address(image.data()), image.size()),
                 "cuMemcpy");
            must(driver_.cuCtxSynchronize(), "cuCtxSynchronize");
            const int result = MPI_Allreduce(MPI_IN_PLACE, memory, static_cast<int>(count),
                                             MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
            must(driver_.cuMemcpy(address(image.data()), address(memory), image.size()),
                 "cuMemcpy");
            const Mismatch mismatch =
                compare_result(pattern, program_.ranks(), count, image.data());
            program_.check(result == MPI_SUCCESS && mismatch.wrong == 0,
                           "%s: MPI error %d, %zu of %zu elements wrong", what, result,
                           mismatch.wrong, count);
        }
    }

    [[nodiscard]] CUmemAllocationProp properties(CUmemAllocationHandleType exported) const
    {
        CUmemAllocationProp prop{};
        prop.requestedHandleTypes = exported;
        prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
        prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        prop.location.id = program_.gpu().ordinal();
        return prop;
    }

    // Maps new physical memory at `at`, uses it, and takes it away.
    void map_use_unmap(CUdeviceptr at, CUmemAllocationHandleType exported, const char *what)
    {
        const CUmemAllocationProp prop = properties(exported);
        CUmemGenericAllocationHandle handle = 0;
        must(more_.cuMemCreate(&handle, kBytes, &prop, 0), "cuMemCreate");
        must(more_.cuMemMap(at, kBytes, 0, handle, 0), "cuMemMap");
        CUmemAccessDesc access{};
        access.location = prop.location;
        access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        must(more_.cuMemSetAccess(at, kBytes, &access, 1), "cuMemSetAccess");
        reduce_there(pointer(at), what);
        must(more_.cuMemUnmap(at, kBytes), "cuMemUnmap");
        must(more_.cuMemRelease(handle), "cuMemRelease");
    }

    void virtual_memory()
    {
        CUdeviceptr at = 0;
        must(more_.cuMemAddressReserve(&at, kBytes, 0, 0, 0), "cuMemAddressReserve");
        map_use_unmap(at, CU_MEM_HANDLE_TYPE_NONE, "virtual memory");
        map_use_unmap(at, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, "virtual memory with handles");
        // Some ranks can share theirs, others cannot.
        map_use_unmap(at,
                      program_.rank() == 0 ? CU_MEM_HANDLE_TYPE_NONE
                                           : CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                      "virtual memory of both kinds");
        must(more_.cuMemAddressFree(at, kBytes), "cuMemAddressFree");
    }

    void virtual_memory_mapped_anew()
    {
        CUdeviceptr at = 0;
        must(more_.cuMemAddressReserve(&at, kBytes, 0, 0, 0), "cuMemAddressReserve");
        for (int i = 0; i < 6; ++i) {
            map_use_unmap(
                at, i % 2 == 0 ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : CU_MEM_HANDLE_TYPE_NONE,
                "virtual memory mapped again");
        }
        must(more_.cuMemAddressFree(at, kBytes), "cuMemAddressFree");
    }

    void pools()
    {
        for (int i = 0; i < 4; ++i) { // the pool hands out the same memory again
            CUdeviceptr at = 0;
            must(more_.cuMemAllocAsync(&at, kBytes, nullptr), "cuMemAllocAsync");
            must(driver_.cuCtxSynchronize(), "cuCtxSynchronize");
            reduce_there(pointer(at), "memory of a pool");
            must(more_.cuMemFreeAsync(at, nullptr), "cuMemFreeAsync");
        }
    }

    void registered()
    {
        void *memory = std::aligned_alloc(4096, kBytes);
        must(driver_.cuMemHostRegister(memory, kBytes, 0), "cuMemHostRegister");
        reduce_there(memory, "page-locked memory of the application");
        must(driver_.cuMemHostUnregister(memory), "cuMemHostUnregister");
        reduce_there(memory, "memory that was page-locked");
        std::free(memory);
    }

    // R19: the emulated driver gives a freed address out again first, as real ones often do. Each
    // rank goes through the kinds in another order, so that they mix within a call.
    void addresses_that_change_owner()
    {
        const std::vector<Memory> kinds = {Memory::kDevice, Memory::kManaged, Memory::kHost,
                                           Memory::kDevice, Memory::kPinned};
        for (std::size_t i = 0; i < 30; ++i) {
            const Memory memory =
                kinds[(i + static_cast<std::size_t>(program_.rank())) % kinds.size()];
            Result<Buffer> buffer = Buffer::allocate(&program_.gpu(), memory, kBytes);
            if (!buffer.ok()) {
                program_.require(buffer.status());
            }
            reduce_there(buffer->data(), memory_name(memory));
        }
        // The same page as plain host memory after the driver gave it up, and back.
        for (int i = 0; i < 5; ++i) {
            void *memory =
                mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            reduce_there(memory, "mapped host memory");
            munmap(memory, kBytes);
        }
    }

    Program &program_;
    const Driver &driver_;
    More more_;
    std::uint32_t seed_ = 0;
};

} // namespace
} // namespace hetcoll::test

int main(int argc, char **argv)
{
    using namespace hetcoll::test;
    Program program(argc, argv, "other_memory");
    Test(program).run();
    return program.finish();
}
