// Which calls wait while a kernel of another library spins on a non-blocking stream, as NCCL's do
// while they wait for another process.
#include "test/gpu/probe.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace hetcoll::probe {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kLongest{1}; // a call that takes longer waits
constexpr std::size_t kMiB = 1 << 20;

// Waits until that is true, but no longer than `most`.
template <class IsOver> void wait_until(const IsOver &is_over, Clock::duration most)
{
    for (const auto end = Clock::now() + most; !is_over() && Clock::now() < end;) {
        std::this_thread::yield();
    }
}

// A module, and a word that ends its spinning kernel.
class Spinner {
public:
    explicit Spinner(CUcontext context)
        : context_(context), kernels_(load_kernels()),
          word_(static_cast<volatile unsigned *>(allocate_host(sizeof(unsigned))))
    {
    }

    // Makes the call in another thread while a kernel spins.
    void ask(const char *call, const std::function<CUresult()> &make) const
    {
        CUstream stream = spin();
        std::atomic<bool> done{false};
        CUresult result = CUDA_SUCCESS;
        double us = 0;
        std::thread caller([&] {
            cuCtxSetCurrent(context_);
            const auto start = Clock::now();
            result = make();
            us = std::chrono::duration<double, std::micro>(Clock::now() - start).count();
            done = true;
        });
        wait_until([&] { return done.load(); }, kLongest);
        const bool waits = !done;
        *word_ = 1;
        caller.join();
        end(stream);
        if (waits) {
            answer(call, "waits, %s", name_of(result).c_str());
        } else {
            answer(call, "returns, %s, %.0f us", name_of(result).c_str(), us);
        }
    }

    // The same while yet another thread waits in cuMemFree for that kernel.
    void ask_beside_free(const char *call, const std::function<CUresult()> &make) const
    {
        const CUdeviceptr memory = allocate(kMiB);
        CUstream stream = spin();
        std::atomic<bool> ready{false}, go{false}, freed{false}, made{false};
        CUresult result = CUDA_SUCCESS;
        std::thread caller([&] { // its context is current before others are held
            cuCtxSetCurrent(context_);
            ready = true;
            wait_until([&] { return go.load(); }, kLongest);
            result = make();
            made = true;
        });
        wait_until([&] { return ready.load(); }, kLongest);
        std::thread other([&] {
            cuCtxSetCurrent(context_);
            cuMemFree(memory);
            freed = true;
        });
        wait_until([&] { return freed.load(); }, std::chrono::milliseconds(50));
        const bool held = !freed;
        go = true;
        wait_until([&] { return made.load(); }, std::chrono::milliseconds(200));
        const bool waits = !made;
        *word_ = 1;
        other.join();
        caller.join();
        end(stream);
        answer(call, "%s, %s%s", waits ? "waits" : "returns", name_of(result).c_str(),
               held ? "" : "; cuMemFree did not wait");
    }

private:
    // A kernel spins on a new stream, until the word is not zero.
    [[nodiscard]] CUstream spin() const
    {
        CUstream stream = nullptr;
        must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
        *word_ = 0;
        start_spin(kernels_, word_, stream);
        return stream;
    }
    static void end(CUstream stream)
    {
        must(cuStreamSynchronize(stream), "cuStreamSynchronize");
        must(cuStreamDestroy(stream), "cuStreamDestroy");
    }

    CUcontext context_;
    Kernels kernels_;
    volatile unsigned *word_;
};

void ask_about_memory(const Spinner &spinner)
{
    CUdeviceptr little = 0, large = 0;
    void *host = nullptr;
    void *mapped = mmap(nullptr, kMiB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CUipcMemHandle handle{};
    spinner.ask("cuMemAlloc, 512 B", [&] { return cuMemAlloc(&little, 512); });
    spinner.ask("cuMemAlloc, 64 MiB", [&] { return cuMemAlloc(&large, 64 * kMiB); });
    spinner.ask("cuIpcGetMemHandle", [&] { return cuIpcGetMemHandle(&handle, large); });
    spinner.ask("cuMemHostAlloc", [&] { return cuMemHostAlloc(&host, 4 * kMiB, 0); });
    spinner.ask("cuMemHostRegister", [&] { return cuMemHostRegister(mapped, kMiB, 0); });
    spinner.ask("cuMemHostUnregister", [&] { return cuMemHostUnregister(mapped); });
    spinner.ask("cuMemFreeHost", [&] { return cuMemFreeHost(host); });
    spinner.ask("cuMemFree, 512 B", [&] { return cuMemFree(little); });
    spinner.ask("cuMemFree, 64 MiB", [&] { return cuMemFree(large); });
}

void ask_about_mapping(const Spinner &spinner)
{
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    const CUmemAccessDesc access{properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle handle = 0;
    CUdeviceptr at = 0;
    const std::size_t bytes = 2 * kMiB;
    spinner.ask("cuMemAddressReserve", [&] { return cuMemAddressReserve(&at, bytes, 0, 0, 0); });
    spinner.ask("cuMemCreate", [&] { return cuMemCreate(&handle, bytes, &properties, 0); });
    spinner.ask("cuMemMap", [&] { return cuMemMap(at, bytes, 0, handle, 0); });
    spinner.ask("cuMemSetAccess", [&] { return cuMemSetAccess(at, bytes, &access, 1); });
    spinner.ask("cuMemUnmap", [&] { return cuMemUnmap(at, bytes); });
    spinner.ask("cuMemRelease", [&] { return cuMemRelease(handle); });
}

// While a stream waits for a number, as the program's stream does behind a queued call, one thread
// makes a call of the driver, and another makes those by which hetcoll's thread ends that wait, on
// a stream of its own. Where one of these waits for the call, both wait forever.
class Beside {
public:
    Beside(CUcontext context, CUstream waiting, const char *kind)
        : context_(context), waiting_(waiting), kind_(kind), kernels_(load_kernels()),
          word_(static_cast<volatile unsigned *>(allocate_host(sizeof(unsigned)))),
          flag_(static_cast<volatile unsigned *>(allocate_host(sizeof(unsigned)))),
          memory_(allocate(2 * kMiB))
    {
        must(cuStreamCreateWithPriority(&ours_, CU_STREAM_NON_BLOCKING, -5), "cuStreamCreate");
        must(cuEventCreate(&before_, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
        must(cuEventCreate(&behind_, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
        start_flag(kernels_, flag_, 0, ours_); // loads it
        must(cuCtxSynchronize(), "cuCtxSynchronize");
    }

    void ask(const char *call, const std::function<CUresult()> &make)
    {
        *word_ = 0;
        *flag_ = 0;
        step_ = "nothing";
        std::atomic<bool> queued{false}, made{false}, ended{false};
        std::thread caller([&] { // the per-thread stream is this thread's
            cuCtxSetCurrent(context_);
            queue_wait();
            queued = true;
            make();
            made = true;
        });
        wait_until([&] { return queued.load(); }, kLongest);
        wait_until([&] { return made.load(); }, std::chrono::milliseconds(50));
        const bool waits = !made;
        std::thread ours([&] {
            cuCtxSetCurrent(context_);
            make_ours();
            ended = true;
        });
        wait_until([&] { return ended.load(); }, kLongest);
        const char *held = ended ? nullptr : step_.load();
        *word_ = 1;
        caller.join();
        ours.join();
        must(cuCtxSynchronize(), "cuCtxSynchronize");
        answer((std::string(kind_) + " waits; " + call).c_str(), "%s; meanwhile %s%s",
               waits ? "waits" : "returns",
               held == nullptr ? "our work ends" : "waits too: ", held == nullptr ? "" : held);
    }

private:
    // Work that the program did before: a mark, the wait, and something on the legacy stream.
    void queue_wait()
    {
        CUdeviceptr at = 0;
        must(cuMemHostGetDevicePointer(&at, const_cast<unsigned *>(word_), 0),
             "cuMemHostGetDevicePointer");
        must(cuEventRecord(before_, waiting_), "cuEventRecord");
        must(cuStreamWaitValue32(waiting_, at, 1, CU_STREAM_WAIT_VALUE_GEQ), "cuStreamWaitValue32");
        must(cuMemsetD8Async(memory_, 0, 4, CU_STREAM_LEGACY), "cuMemsetD8Async");
    }

    // Ends when all of it has been done on the GPU.
    void make_ours()
    {
        const auto until_done = [&](const char *step, CUevent event) {
            step_ = step;
            while (cuEventQuery(event) == CUDA_ERROR_NOT_READY && *word_ == 0) {
                std::this_thread::yield();
            }
        };
        until_done("an event before the wait", before_);
        step_ = "cuMemcpyAsync";
        must(cuMemcpyAsync(memory_ + kMiB, memory_ + kMiB + kMiB / 2, kMiB / 2, ours_),
             "cuMemcpyAsync");
        step_ = "cuLaunchKernel";
        start_flag(kernels_, flag_, 1, ours_);
        step_ = "cuEventRecord";
        must(cuEventRecord(behind_, ours_), "cuEventRecord");
        until_done("an event behind our copy and kernel", behind_);
    }

    CUcontext context_;
    CUstream waiting_, ours_ = nullptr;
    CUevent before_ = nullptr, behind_ = nullptr;
    const char *kind_;
    Kernels kernels_;
    volatile unsigned *word_, *flag_;
    CUdeviceptr memory_;
    std::atomic<const char *> step_{nullptr};
};

void ask_beside(CUcontext context, CUstream waiting, const char *kind)
{
    Beside beside(context, waiting, kind);
    std::vector<char> host(kMiB);
    const CUdeviceptr memory = allocate(kMiB);
    CUdeviceptr little = 0, large = 0;
    void *locked = nullptr;
    CUstream stream = nullptr;
    must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    beside.ask("cuMemsetD8Async, legacy stream",
               [&] { return cuMemsetD8Async(memory, 0, 4, nullptr); });
    beside.ask("a module and its first launch", [&] {
        start_flag(load_kernels(), static_cast<volatile unsigned *>(allocate_host(4)), 1, stream);
        return CUDA_SUCCESS;
    });
    beside.ask("cuMemAlloc, 4 KiB", [&] { return cuMemAlloc(&little, 4096); });
    beside.ask("cuMemAlloc, 64 MiB", [&] { return cuMemAlloc(&large, 64 * kMiB); });
    beside.ask("cuMemHostAlloc", [&] { return cuMemHostAlloc(&locked, 4 * kMiB, 0); });
    beside.ask("cuMemcpyHtoD, 8 B", [&] { return cuMemcpyHtoD(memory, host.data(), 8); });
    beside.ask("cuMemcpyHtoD, 1 MiB", [&] { return cuMemcpyHtoD(memory, host.data(), kMiB); });
    beside.ask("cuMemcpyDtoH, 8 B", [&] { return cuMemcpyDtoH(host.data(), memory, 8); });
    beside.ask("cuMemcpyDtoH, 1 MiB", [&] { return cuMemcpyDtoH(host.data(), memory, kMiB); });
    beside.ask("cuStreamSynchronize, legacy stream", [&] { return cuStreamSynchronize(nullptr); });
    beside.ask("cuStreamSynchronize, that stream", [&] { return cuStreamSynchronize(waiting); });
    beside.ask("cuCtxSynchronize", [&] { return cuCtxSynchronize(); });
    beside.ask("cuMemFreeHost", [&] { return cuMemFreeHost(locked); });
    beside.ask("cuMemFree, 4 KiB", [&] { return cuMemFree(little); });
    beside.ask("cuMemFree, 64 MiB", [&] { return cuMemFree(large); });
}

void ask_about_streams(const Spinner &spinner, CUdeviceptr memory)
{
    CUstream stream = nullptr;
    CUevent event = nullptr;
    Kernels kernels;
    spinner.ask("cuStreamCreateWithPriority",
                [&] { return cuStreamCreateWithPriority(&stream, CU_STREAM_DEFAULT, -5); });
    spinner.ask("cuEventCreate", [&] { return cuEventCreate(&event, CU_EVENT_DISABLE_TIMING); });
    spinner.ask("cuMemsetD8Async", [&] { return cuMemsetD8Async(memory, 0, 4, stream); });
    spinner.ask("cuEventRecord, legacy stream",
                [&] { return cuEventRecord(event, CU_STREAM_LEGACY); });
    spinner.ask("cuStreamSynchronize, own stream", [&] { return cuStreamSynchronize(stream); });
    spinner.ask("a module and its first launch", [&] {
        kernels = load_kernels();
        start_flag(kernels, static_cast<volatile unsigned *>(allocate_host(4)), 1, stream);
        return CUDA_SUCCESS;
    });
    spinner.ask("cuModuleUnload", [&] { return cuModuleUnload(kernels.module); });
    spinner.ask("cuEventDestroy", [&] { return cuEventDestroy(event); });
    spinner.ask("cuStreamDestroy", [&] { return cuStreamDestroy(stream); });
}

} // namespace

void ask_what_waits()
{
    const Spinner spinner(use_primary_context());
    ask_about_memory(spinner);
    ask_about_mapping(spinner);
    ask_about_streams(spinner, allocate(4096));
}

void ask_what_holds_launches()
{
    const CUcontext context = use_primary_context();
    CUstream blocking = nullptr, other = nullptr;
    must(cuStreamCreate(&blocking, CU_STREAM_DEFAULT), "cuStreamCreate");
    must(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    ask_beside(context, CU_STREAM_LEGACY, "the legacy stream");
    ask_beside(context, CU_STREAM_PER_THREAD, "the per-thread stream");
    ask_beside(context, blocking, "a blocking stream");
    ask_beside(context, other, "a non-blocking stream");
}

void ask_what_a_free_holds()
{
    const CUcontext context = use_primary_context();
    const Spinner spinner(context);
    const Kernels kernels = load_kernels();
    auto *const flag = static_cast<volatile unsigned *>(allocate_host(sizeof(unsigned)));
    const CUdeviceptr memory = allocate(2 * kMiB);
    std::vector<char> pageable(kMiB);
    CUdeviceptr at = 0, little = 0, base = 0;
    CUstream stream = nullptr, created = nullptr;
    CUevent recorded = nullptr, fresh = nullptr;
    must(cuMemHostGetDevicePointer(&at, const_cast<unsigned *>(flag), 0),
         "cuMemHostGetDevicePointer");
    must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    must(cuEventCreate(&recorded, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
    must(cuEventRecord(recorded, stream), "cuEventRecord");
    start_flag(kernels, flag, 1, stream); // loads it
    must(cuCtxSynchronize(), "cuCtxSynchronize");
    const auto beside = [&](const char *call, const std::function<CUresult()> &make) {
        spinner.ask_beside_free(call, make);
    };
    beside("cuLaunchKernel", [&] {
        start_flag(kernels, flag, 1, stream);
        return CUDA_SUCCESS;
    });
    beside("cuMemcpyAsync on the device",
           [&] { return cuMemcpyAsync(memory, memory + kMiB, kMiB, stream); });
    beside("cuMemcpyAsync to page-locked memory",
           [&] { return cuMemcpyDtoHAsync(const_cast<unsigned *>(flag), memory, 4, stream); });
    beside("cuMemsetD8Async", [&] { return cuMemsetD8Async(memory, 0, 4, stream); });
    beside("cuStreamWriteValue32", [&] { return cuStreamWriteValue32(stream, at, 2, 0); });
    beside("cuStreamWaitValue32",
           [&] { return cuStreamWaitValue32(stream, at, 0, CU_STREAM_WAIT_VALUE_GEQ); });
    beside("cuLaunchHostFunc", [&] {
        return cuLaunchHostFunc(
            stream, [](void *) {}, nullptr);
    });
    beside("cuEventRecord", [&] { return cuEventRecord(recorded, stream); });
    beside("cuStreamWaitEvent", [&] { return cuStreamWaitEvent(stream, recorded, 0); });
    beside("cuEventQuery", [&] { return cuEventQuery(recorded); });
    beside("cuEventSynchronize", [&] { return cuEventSynchronize(recorded); });
    beside("cuStreamQuery", [&] { return cuStreamQuery(stream); });
    beside("cuStreamSynchronize", [&] { return cuStreamSynchronize(stream); });
    beside("cuEventCreate", [&] { return cuEventCreate(&fresh, CU_EVENT_DISABLE_TIMING); });
    beside("cuStreamCreate", [&] { return cuStreamCreate(&created, CU_STREAM_NON_BLOCKING); });
    beside("cuMemAlloc", [&] { return cuMemAlloc(&little, 512); });
    beside("cuMemcpyHtoD", [&] { return cuMemcpyHtoD(memory, pageable.data(), kMiB); });
    beside("cuPointerGetAttribute, BUFFER_ID", [&] {
        unsigned long long id = 0;
        return cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, memory);
    });
    beside("cuMemGetAddressRange", [&] {
        std::size_t bytes = 0;
        return cuMemGetAddressRange(&base, &bytes, memory);
    });
    beside("cuIpcGetMemHandle", [&] {
        CUipcMemHandle handle{};
        return cuIpcGetMemHandle(&handle, memory);
    });
    beside("cuStreamIsCapturing", [&] {
        CUstreamCaptureStatus status{};
        return cuStreamIsCapturing(stream, &status);
    });
    beside("cuCtxPushCurrent and cuCtxPopCurrent", [&] {
        CUcontext popped = nullptr;
        const CUresult pushed = cuCtxPushCurrent(context);
        return pushed == CUDA_SUCCESS ? cuCtxPopCurrent(&popped) : pushed;
    });
}

// The exporter is another process, which ends when this one does.
void ask_what_opening_waits()
{
    int handles[2], ends[2];
    if (pipe(handles) != 0 || pipe(ends) != 0) {
        answer("not asked", "no pipe");
        return;
    }
    CUipcMemHandle handle{};
    const pid_t exporter = fork();
    if (exporter == 0) {
        close(ends[1]);
        use_primary_context();
        must(cuIpcGetMemHandle(&handle, allocate(16 * kMiB)), "cuIpcGetMemHandle");
        char end = 0;
        const bool told = write(handles[1], &handle, sizeof handle) == sizeof handle;
        _exit(told && read(ends[0], &end, 1) == 0 ? 0 : 1);
    }
    close(ends[0]);
    close(handles[1]);
    if (read(handles[0], &handle, sizeof handle) == sizeof handle) {
        const Spinner spinner(use_primary_context());
        CUdeviceptr opened = 0;
        spinner.ask("cuIpcOpenMemHandle", [&] {
            return cuIpcOpenMemHandle(&opened, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
        });
        spinner.ask("cuIpcCloseMemHandle", [&] { return cuIpcCloseMemHandle(opened); });
    }
    close(ends[1]);
    waitpid(exporter, nullptr, 0);
}

} // namespace hetcoll::probe
