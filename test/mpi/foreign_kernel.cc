// A kernel of another library waits on rank 0's GPU for what the other ranks start after their
// MPI_Allreduce, as NCCL's kernels wait for each other. No call of a process that has reduced
// before may wait for such a kernel, nor may what a program does around its calls. docs/clients.md
// names the calls that may.
//
//   foreign_kernel STREAM [new|contexts]   STREAM that it runs on: blocking, nonblocking, legacy;
//   new: buffers that are new too; contexts: only buffers in two contexts
#include "device/device.h"
#include "test/mpi/check.h"

#include <chrono>
#include <cstdlib>
#include <functional>
#include <string_view>
#include <thread>

namespace hetcoll::test {
namespace {

constexpr std::size_t kCount = 1'000'000;

// Stands for the kernel: work on a stream of rank 0 that ends when all others have arrived.
class ForeignKernel {
public:
    ForeignKernel(Program &program, const Emulated &emulated, std::string_view stream)
        : program_(program),
          launch_(reinterpret_cast<decltype(launch_)>(emulated.find("cuLaunchHostFunc")))
    {
        MPI_Win_allocate_shared(program.rank() == 0 ? sizeof(int) : 0, 1, MPI_INFO_NULL,
                                MPI_COMM_WORLD, &mine_, &window_);
        MPI_Aint bytes = 0;
        int unit = 0;
        MPI_Win_shared_query(window_, 0, &bytes, &unit, &arrived_);
        if (stream != "legacy") {
            program.require(driver_status(
                driver(),
                driver().cuStreamCreate(&stream_, stream == "blocking" ? CU_STREAM_DEFAULT
                                                                       : CU_STREAM_NON_BLOCKING),
                "cuStreamCreate", "making another library's stream"));
        }
    }
    ~ForeignKernel()
    {
        if (stream_ != nullptr) {
            driver().cuStreamDestroy(stream_);
        }
        MPI_Win_free(&window_);
    }
    ForeignKernel(const ForeignKernel &) = delete;
    ForeignKernel &operator=(const ForeignKernel &) = delete;

    // Collective.
    void launch()
    {
        gave_up_ = false;
        if (program_.rank() == 0) {
            __atomic_store_n(arrived_, 0, __ATOMIC_SEQ_CST);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        if (program_.rank() == 0) {
            program_.require(driver_status(driver(), launch_(stream_, &wait, this),
                                           "cuLaunchHostFunc", "starting a foreign kernel"));
        }
    }
    // The other ranks' half of it.
    void arrive()
    {
        if (program_.rank() != 0) {
            __atomic_add_fetch(arrived_, 1, __ATOMIC_SEQ_CST);
        }
    }
    // Whether all arrived while it waited.
    [[nodiscard]] bool finish()
    {
        program_.require(driver_status(driver(), driver().cuStreamSynchronize(stream_),
                                       "cuStreamSynchronize", "waiting for a foreign kernel"));
        return !gave_up_;
    }

private:
    [[nodiscard]] const Driver &driver() const { return program_.gpu().driver(); }

    static void CUDA_CB wait(void *kernel)
    {
        auto *self = static_cast<ForeignKernel *>(kernel);
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        const int others = self->program_.ranks() - 1;
        while (__atomic_load_n(self->arrived_, __ATOMIC_SEQ_CST) < others && !self->gave_up_) {
            std::this_thread::sleep_for(std::chrono::microseconds(200));
            self->gave_up_ = std::chrono::steady_clock::now() > end; // else nobody would end
        }
    }

    Program &program_;
    CUresult (*launch_)(CUstream, CUhostFn, void *);
    MPI_Win window_ = MPI_WIN_NULL;
    int *mine_ = nullptr, *arrived_ = nullptr; // the latter in rank 0's part of the window
    CUstream stream_ = nullptr;
    std::atomic<bool> gave_up_{false};
};

// Memory of virtual memory management that peers can map.
class VmmMemory {
public:
    VmmMemory(Program &program, const Emulated &emulated, std::size_t bytes)
        : driver_(program.gpu().driver())
    {
        const auto must = [&](CUresult result, const char *call) {
            program.require(driver_status(driver_, result, call, "making virtual memory"));
        };
        const auto create =
            reinterpret_cast<decltype(&::cuMemCreate)>(emulated.find("cuMemCreate"));
        CUmemAllocationProp prop{};
        prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
        prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
        prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        prop.location.id = program.gpu().ordinal();
        std::size_t granule = 0;
        must(driver_.cuMemGetAllocationGranularity(&granule, &prop,
                                                   CU_MEM_ALLOC_GRANULARITY_MINIMUM),
             "cuMemGetAllocationGranularity");
        bytes_ = (bytes + granule - 1) / granule * granule;
        must(driver_.cuMemAddressReserve(&at_, bytes_, 0, 0, 0), "cuMemAddressReserve");
        must(create(&handle_, bytes_, &prop, 0), "cuMemCreate");
        must(driver_.cuMemMap(at_, bytes_, 0, handle_, 0), "cuMemMap");
        CUmemAccessDesc access{};
        access.location = prop.location;
        access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        must(driver_.cuMemSetAccess(at_, bytes_, &access, 1), "cuMemSetAccess");
        must(driver_.cuMemsetD8(at_, 0, bytes_), "cuMemsetD8");
        must(driver_.cuCtxSynchronize(), "cuCtxSynchronize");
    }
    ~VmmMemory()
    {
        driver_.cuMemUnmap(at_, bytes_);
        driver_.cuMemRelease(handle_);
        driver_.cuMemAddressFree(at_, bytes_);
    }
    VmmMemory(const VmmMemory &) = delete;
    VmmMemory &operator=(const VmmMemory &) = delete;

    [[nodiscard]] void *data() const noexcept
    {
        return reinterpret_cast<void *>(static_cast<std::uintptr_t>(at_));
    }

private:
    const Driver &driver_;
    std::size_t bytes_ = 0;
    CUdeviceptr at_ = 0;
    CUmemGenericAllocationHandle handle_ = 0;
};

class Scenarios {
public:
    Scenarios(Program &program, const Emulated &emulated, ForeignKernel &kernel)
        : program_(program), emulated_(emulated), kernel_(kernel)
    {
    }

    // `act` while the kernel runs; what it leaves in the buffers is then checked.
    void run(const char *what, Buffers &buffers, const std::function<int()> &act)
    {
        buffers.fill();
        kernel_.launch();
        const int result = act();
        kernel_.arrive();
        program_.check(kernel_.finish(), "%s: waits for another library's kernel", what);
        program_.check(result == MPI_SUCCESS, "%s: MPI error %d", what, result);
        buffers.check();
    }

    void known_buffers();
    void new_buffers();
    void communicators();
    void two_contexts();

private:
    // In virtual memory, and then in `sums`. The former holds zeros.
    int reduce_vmm(const VmmMemory &memory, Buffers &sums)
    {
        const int result = MPI_Allreduce(MPI_IN_PLACE, memory.data(), static_cast<int>(kCount),
                                         MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        return result == MPI_SUCCESS ? sums.reduce() : result;
    }

    Program &program_;
    const Emulated &emulated_;
    ForeignKernel &kernel_;
};

Call call_of(ElementKind kind, ReduceOp op, std::size_t count, bool in_place = false)
{
    return {{kind, op, Values::kExact, 3}, count, Memory::kDevice, Memory::kDevice, in_place};
}

void Scenarios::known_buffers()
{
    for (const std::size_t count : {std::size_t{2}, std::size_t{10'000}, kCount}) {
        Buffers sums(program_, MPI_COMM_WORLD,
                     call_of(ElementKind::kFloat32, ReduceOp::kSum, count));
        sums.fill();
        sums.reduce();
        run("a call as before", sums, [&] { return sums.reduce(); });
    }
    Call managed = call_of(ElementKind::kFloat32, ReduceOp::kSum, kCount);
    managed.send = managed.recv = Memory::kManaged;
    Buffers others(program_, MPI_COMM_WORLD, managed);
    others.fill();
    others.reduce();
    run("managed memory as before", others, [&] { return others.reduce(); });

    Buffers sums(program_, MPI_COMM_WORLD, call_of(ElementKind::kFloat32, ReduceOp::kSum, kCount));
    const VmmMemory memory(program_, emulated_, kCount * sizeof(float));
    sums.fill();
    reduce_vmm(memory, sums);
    run("virtual memory as before", sums, [&] { return reduce_vmm(memory, sums); });
    // The same buffers hold doubles, half as many.
    const auto twice = [&](MPI_Datatype type, MPI_Op op) {
        const int halves = static_cast<int>(kCount / 2);
        const int result =
            MPI_Allreduce(sums.send(), sums.recv(), halves, type, op, MPI_COMM_WORLD);
        return result == MPI_SUCCESS ? sums.reduce() : result;
    };
    run("a type that is new", sums, [&] { return twice(MPI_INT64_T, MPI_BXOR); });
    run("an op that is new", sums, [&] { return twice(MPI_INT16_T, MPI_MAX); });
    run("a smaller vector", sums, [&] {
        const int result =
            MPI_Allreduce(sums.send(), sums.recv(), 50'000, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        return result == MPI_SUCCESS ? sums.reduce() : result;
    });
}

void Scenarios::communicators()
{
    MPI_Comm copy = MPI_COMM_NULL, other = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -program_.rank(), &other);
    Buffers sums(program_, MPI_COMM_WORLD, call_of(ElementKind::kFloat32, ReduceOp::kSum, kCount));
    sums.fill();
    sums.reduce();
    for (MPI_Comm *comm : {&copy, &other}) {
        const auto reduce = [&] {
            return MPI_Allreduce(sums.send(), sums.recv(), static_cast<int>(kCount), MPI_FLOAT,
                                 MPI_SUM, *comm);
        };
        run("a communicator that is new", sums, reduce);
        run("freeing a communicator", sums, [&] {
            int result = reduce();
            if (result == MPI_SUCCESS) {
                result = MPI_Comm_free(comm);
            }
            return result == MPI_SUCCESS ? sums.reduce() : result;
        });
    }
}

// The kernel is in the context of the send buffer, the result in another.
void Scenarios::two_contexts()
{
    const Driver &driver = program_.gpu().driver();
    const auto must = [&](CUresult result, const char *call) {
        program_.require(driver_status(driver, result, call, "making a context"));
    };
    const auto create = reinterpret_cast<CUresult (*)(CUcontext *, unsigned, CUdevice)>(
        emulated_.find("cuCtxCreate_v2"));
    const auto destroy =
        reinterpret_cast<decltype(&::cuCtxDestroy)>(emulated_.find("cuCtxDestroy_v2"));
    CUcontext other = nullptr;
    CUdeviceptr result = 0;
    must(create(&other, 0, program_.gpu().ordinal()), "cuCtxCreate");
    must(driver.cuMemAlloc(&result, kCount * sizeof(float)), "cuMemAlloc");
    must(driver.cuCtxPopCurrent(&other), "cuCtxPopCurrent");
    for (const std::size_t count : {std::size_t{2}, kCount}) {
        Buffers sums(program_, MPI_COMM_WORLD,
                     call_of(ElementKind::kFloat32, ReduceOp::kSum, count));
        const auto reduce = [&] {
            const int code =
                MPI_Allreduce(sums.send(), reinterpret_cast<void *>(result),
                              static_cast<int>(count), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
            const ContextScope scope(driver, other); // its streams do not wait for the kernel
            must(driver.cuMemcpy(reinterpret_cast<CUdeviceptr>(sums.recv()), result,
                                 count * sizeof(float)),
                 "cuMemcpy");
            must(driver.cuCtxSynchronize(), "cuCtxSynchronize");
            return code;
        };
        sums.fill();
        reduce();
        run("buffers in two contexts", sums, reduce);
    }
    must(destroy(other), "cuCtxDestroy");
}

void Scenarios::new_buffers()
{
    for (const std::size_t count : {std::size_t{2}, std::size_t{10'000}, kCount}) {
        for (const bool in_place : {false, true}) {
            Buffers sums(program_, MPI_COMM_WORLD,
                         call_of(ElementKind::kFloat32, ReduceOp::kSum, count, in_place));
            run("buffers that are new", sums, [&] { return sums.reduce(); });
        }
    }
    Buffers sums(program_, MPI_COMM_WORLD, call_of(ElementKind::kFloat32, ReduceOp::kSum, kCount));
    const VmmMemory memory(program_, emulated_, kCount * sizeof(float));
    run("virtual memory that is new", sums, [&] { return reduce_vmm(memory, sums); });
}

void run_all(Program &program, const Emulated &emulated, int argc, char **argv)
{
    const std::string_view stream = argc > 1 ? argv[1] : "nonblocking";
    const std::string_view what = argc > 2 ? argv[2] : "";
    check_allreduce(program, MPI_COMM_WORLD, // the first call of a process may wait
                    call_of(ElementKind::kFloat32, ReduceOp::kSum, kCount));
    ForeignKernel kernel(program, emulated, stream);
    Scenarios scenarios(program, emulated, kernel);
    if (what != "contexts") {
        scenarios.known_buffers();
        scenarios.communicators();
    }
    if (what == "new") {
        scenarios.new_buffers();
    }
    scenarios.two_contexts(); // last: what a context takes along is noticed by a call that may wait
}

} // namespace
} // namespace hetcoll::test

int main(int argc, char **argv)
{
    using namespace hetcoll::test;
    Program program(argc, argv, "foreign_kernel");
    program.gpu();
    const Emulated emulated;
    if (emulated.find("cuLaunchHostFunc") == nullptr) {
        std::printf("skip foreign_kernel: the driver has no cuLaunchHostFunc\n");
        return program.finish();
    }
    run_all(program, emulated, argc, argv);
    return program.finish();
}
