// Shared by the parts of the conformance program: the driver's entry points, how an answer is
// printed, and the peer process that opens what this one exports.
#pragma once

#include <cuda.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

namespace hetcoll::conformance {

// clang-format off
#define HETCOLL_CONFORMANCE_CALLS(X)                                                               \
    X(cuInit) X(cuDriverGetVersion) X(cuDeviceGetCount) X(cuDeviceGetName) X(cuDeviceGetAttribute) \
    X(cuDevicePrimaryCtxRetain) X(cuDevicePrimaryCtxRelease) X(cuDevicePrimaryCtxReset)            \
    X(cuDevicePrimaryCtxGetState) X(cuCtxSetCurrent) X(cuCtxGetCurrent) X(cuCtxPushCurrent)        \
    X(cuCtxPopCurrent) X(cuCtxGetDevice) X(cuCtxDestroy) X(cuCtxSynchronize)                       \
    X(cuCtxGetStreamPriorityRange) X(cuMemAlloc) X(cuMemFree) X(cuMemAllocManaged)                 \
    X(cuMemHostAlloc) X(cuMemFreeHost) X(cuMemHostRegister) X(cuMemHostUnregister)                 \
    X(cuMemHostGetDevicePointer) X(cuMemAllocAsync) X(cuMemFreeAsync) X(cuMemGetAddressRange)      \
    X(cuMemcpy) X(cuMemcpyHtoD) X(cuMemcpyDtoH) X(cuMemcpyDtoD) X(cuMemcpyAsync)                   \
    X(cuMemcpyDtoHAsync) X(cuMemcpyDtoDAsync) X(cuMemsetD8) X(cuMemsetD32) X(cuMemsetD32Async)     \
    X(cuPointerGetAttribute) X(cuPointerGetAttributes) X(cuPointerSetAttribute) X(cuStreamCreate)  \
    X(cuStreamCreateWithPriority) X(cuStreamGetPriority) X(cuStreamDestroy) X(cuStreamQuery)       \
    X(cuStreamSynchronize) X(cuStreamWaitEvent) X(cuStreamWaitValue32) X(cuStreamBeginCapture)     \
    X(cuStreamEndCapture) X(cuStreamIsCapturing) X(cuThreadExchangeStreamCaptureMode)              \
    X(cuGraphDestroy) X(cuEventCreate) X(cuEventDestroy) X(cuEventRecord) X(cuEventQuery)          \
    X(cuIpcGetMemHandle) X(cuIpcOpenMemHandle) X(cuIpcCloseMemHandle) X(cuIpcGetEventHandle)       \
    X(cuIpcOpenEventHandle) X(cuModuleLoadData) X(cuModuleGetFunction) X(cuModuleUnload)           \
    X(cuGetErrorName) X(cuMemAddressReserve) X(cuMemAddressFree) X(cuMemCreate) X(cuMemRelease)    \
    X(cuMemMap) X(cuMemSetAccess) X(cuMemUnmap) X(cuMemGetAllocationGranularity)                   \
    X(cuMemRetainAllocationHandle) X(cuMemExportToShareableHandle) X(cuGetProcAddress)             \
    X(cuLaunchKernel) X(cuStreamWriteValue32)
// clang-format on

struct Calls {
#define HETCOLL_CONFORMANCE_FIELD(name) decltype(&::name) name = nullptr;
    HETCOLL_CONFORMANCE_CALLS(HETCOLL_CONFORMANCE_FIELD)
#undef HETCOLL_CONFORMANCE_FIELD
    // cuda.h 12 calls it cuCtxCreate, cuda.h 13 no longer does.
    CUresult (*cuCtxCreate_v2)(CUcontext *, unsigned, CUdevice) = nullptr;
    decltype(&::cuCtxGetId) cuCtxGetId = nullptr; // drivers of CUDA 11 have none
    bool is_emulated = false;
};

// The loaded driver. Exits if there is none.
[[nodiscard]] const Calls &cu();
// Makes the primary context of device 0 current; exits if that fails.
void use_primary_context();

// Prints "question: answer".
void answer(const std::string &question, CUresult result);
void answer(const std::string &question, bool yes);
void answer(const std::string &question, const std::string &text);

// Exits with a message if a call that no question is about fails.
void require(CUresult result, const char *what);

inline constexpr std::size_t kLarge = std::size_t{10} << 20;
[[nodiscard]] CUdeviceptr allocate(std::size_t bytes);
void fill(CUdeviceptr memory, unsigned value);
[[nodiscard]] unsigned long long buffer_id(CUdeviceptr memory);
[[nodiscard]] CUipcMemHandle handle_of(CUdeviceptr memory);
[[nodiscard]] CUstream new_stream(unsigned flags);
[[nodiscard]] unsigned long long id_of(CUcontext context); // which must live; 0 if drivers lack ids

struct VmmMemory {
    CUdeviceptr start = 0;
    std::size_t bytes = 0;
    CUmemGenericAllocationHandle handle = 0;
    CUmemAllocationProp properties{};
};
// The properties and the least size of VMM memory that processes can share. False if there is none.
[[nodiscard]] bool find_vmm(VmmMemory &memory);
// Makes memory and maps it at the start, which is reserved.
void map(VmmMemory &memory);

// A kernel that does nothing, as PTX.
inline constexpr char kNothing[] = ".version 7.0\n.target sm_60\n.address_size 64\n"
                                   ".visible .entry hetcoll_nothing() { ret; }\n";

// Keeps a stream busy while it lives: the stream waits for a word in pinned memory. It opens by
// itself after a while, so that a call that unexpectedly waits for the stream comes back.
class Gate {
public:
    static constexpr std::chrono::milliseconds kLongest{2000}, kShortest{600};

    explicit Gate(CUstream stream, std::chrono::milliseconds longest = kLongest);
    ~Gate();
    Gate(const Gate &) = delete;
    Gate &operator=(const Gate &) = delete;

private:
    std::uint32_t *word_ = nullptr;
    std::mutex mutex_;
    std::condition_variable ended_;
    bool has_ended_ = false;
    std::thread opener_;
};

// Forked before cuInit: the other process, which opens what this one exports.
class Peer {
public:
    struct Reply {
        CUresult result;
        CUdeviceptr address;
        unsigned word; // read through the mapping that was opened last
        double us;     // that opening took
        bool waited;   // for a stream that was busy
    };

    Peer(); // forks
    ~Peer();
    Peer(const Peer &) = delete;
    Peer &operator=(const Peer &) = delete;

    Reply open(const CUipcMemHandle &handle);
    Reply close_last();
    Reply open_while_busy(const CUipcMemHandle &handle); // a stream of the peer's is
    Reply close_while_busy();
    Reply read_last();
    Reply open_event(const CUipcEventHandle &handle);
    Reply query_event();
    Reply wait_for_event(); // by a stream, and for the stream

private:
    enum class Ask {
        kOpen,
        kClose,
        kOpenBusy,
        kCloseBusy,
        kRead,
        kOpenEvent,
        kQueryEvent,
        kWaitEvent,
        kStop
    };
    struct Question {
        Ask ask;
        CUipcMemHandle memory;
        CUipcEventHandle event;
    };
    Reply ask(const Question &question);
    static Reply ask_while_busy(const Question &question, CUdeviceptr last);
    [[noreturn]] static void serve(int in, int out);

    int process_;
    int in_ = -1, out_ = -1;
};

// Forked before cuInit: a process whose context a kernel ruins.
class Victim {
public:
    Victim(); // forks
    ~Victim();
    Victim(const Victim &) = delete;
    Victim &operator=(const Victim &) = delete;

    void ask(); // once

private:
    int process_;
    int start_ = -1;
};

void ask_about_pointers();
void ask_about_reuse();
void ask_about_handles();
void ask_about_waits(Peer &peer);
void ask_about_contexts();
void ask_about_streams();
void ask_about_capture();
void ask_about_ipc(Peer &peer);
void ask_about_modules();
void measure(Peer &peer); // timings, which no two machines share

} // namespace hetcoll::conformance
