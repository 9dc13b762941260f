// Asks the CUDA driver questions whose answers hetcoll relies on, and prints them one a line, so
// that the emulated driver and a real one can be compared with diff. Nothing here needs the
// emulated one.
//
//   conformance             the answers; exit status 77 without a driver or a device
//   conformance --timings   and what the calls cost, which no two machines share
//   conformance --gpu       not on the emulated GPU: exit status 77 there too
#include "emulated_gpu/conformance.h"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

#define HETCOLL_CONFORMANCE_STRING(name) HETCOLL_CONFORMANCE_STRING_OF(name)
#define HETCOLL_CONFORMANCE_STRING_OF(name) #name

namespace hetcoll::conformance {
namespace {

constexpr int kNoDriver = 77; // what Automake takes for a skipped test

void *symbol(void *library, const char *name)
{
    void *found = library != nullptr ? dlsym(library, name) : nullptr;
    if (found == nullptr) {
        std::fprintf(stderr, "no CUDA driver: %s\n", dlerror());
        std::exit(kNoDriver);
    }
    return found;
}

Calls load()
{
    Calls calls;
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
#define HETCOLL_CONFORMANCE_LOAD(name) \
    calls.name =                       \
        reinterpret_cast<decltype(calls.name)>(symbol(library, HETCOLL_CONFORMANCE_STRING(name)));
    HETCOLL_CONFORMANCE_CALLS(HETCOLL_CONFORMANCE_LOAD)
    HETCOLL_CONFORMANCE_LOAD(cuCtxCreate_v2)
    calls.cuCtxGetId = reinterpret_cast<decltype(calls.cuCtxGetId)>(dlsym(library, "cuCtxGetId"));
    calls.is_emulated = dlsym(library, "emulated_gpu_version") != nullptr;
#undef HETCOLL_CONFORMANCE_LOAD
    return calls;
}

template <class T> void send(int fd, const T &value)
{
    if (write(fd, &value, sizeof value) != static_cast<ssize_t>(sizeof value)) {
        _exit(1);
    }
}

template <class T> T receive(int fd)
{
    T value;
    if (read(fd, &value, sizeof value) != static_cast<ssize_t>(sizeof value)) {
        _exit(1);
    }
    return value;
}

// The peer's side of Ask::kOpen.
Peer::Reply open_here(const CUipcMemHandle &handle)
{
    Peer::Reply reply{};
    const auto start = std::chrono::steady_clock::now();
    reply.result =
        cu().cuIpcOpenMemHandle(&reply.address, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
    const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - start;
    reply.us = time.count();
    if (reply.result == CUDA_SUCCESS) {
        cu().cuMemcpyDtoH(&reply.word, reply.address, sizeof reply.word);
    }
    return reply;
}

} // namespace

const Calls &cu()
{
    static const Calls calls = load();
    return calls;
}

void use_primary_context()
{
    CUcontext context = nullptr;
    if (const CUresult result = cu().cuInit(0); result != CUDA_SUCCESS) {
        std::fprintf(stderr, "no GPU: cuInit fails with %d\n", static_cast<int>(result));
        std::exit(kNoDriver);
    }
    require(cu().cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
    require(cu().cuCtxSetCurrent(context), "cuCtxSetCurrent");
}

void answer(const std::string &question, CUresult result)
{
    const char *name = nullptr;
    cu().cuGetErrorName(result, &name);
    answer(question, std::string(name != nullptr ? name : "no name for this code"));
}

void answer(const std::string &question, bool yes)
{
    answer(question, std::string(yes ? "yes" : "no"));
}

void answer(const std::string &question, const std::string &text)
{
    std::printf("%s: %s\n", question.c_str(), text.c_str());
}

void require(CUresult result, const char *what)
{
    if (result != CUDA_SUCCESS) {
        std::fprintf(stderr, "%s fails with %d\n", what, static_cast<int>(result));
        _exit(1);
    }
}

CUdeviceptr allocate(std::size_t bytes)
{
    CUdeviceptr memory = 0;
    require(cu().cuMemAlloc(&memory, bytes), "cuMemAlloc");
    return memory;
}

void fill(CUdeviceptr memory, unsigned value)
{
    require(cu().cuMemsetD32(memory, value, 1), "cuMemsetD32");
    require(cu().cuCtxSynchronize(), "cuCtxSynchronize");
}

unsigned long long buffer_id(CUdeviceptr memory)
{
    unsigned long long id = 0;
    cu().cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, memory);
    return id;
}

CUipcMemHandle handle_of(CUdeviceptr memory)
{
    CUipcMemHandle handle;
    require(cu().cuIpcGetMemHandle(&handle, memory), "cuIpcGetMemHandle");
    return handle;
}

CUstream new_stream(unsigned flags)
{
    CUstream stream = nullptr;
    require(cu().cuStreamCreate(&stream, flags), "cuStreamCreate");
    return stream;
}

unsigned long long id_of(CUcontext context)
{
    unsigned long long id = 0;
    if (cu().cuCtxGetId != nullptr) {
        cu().cuCtxGetId(context, &id);
    }
    return id;
}

Gate::Gate(CUstream stream, std::chrono::milliseconds longest)
{
    void *pinned = nullptr;
    require(cu().cuMemHostAlloc(&pinned, sizeof *word_, 0), "cuMemHostAlloc");
    word_ = static_cast<std::uint32_t *>(pinned);
    const std::atomic_ref word(*word_);
    word.store(0);
    require(cu().cuStreamWaitValue32(stream, reinterpret_cast<CUdeviceptr>(word_), 1,
                                     CU_STREAM_WAIT_VALUE_EQ),
            "cuStreamWaitValue32");
    opener_ = std::thread([this, word, longest] {
        std::unique_lock lock(mutex_);
        ended_.wait_for(lock, longest, [this] { return has_ended_; });
        word.store(1);
    });
}

Gate::~Gate()
{
    {
        const std::lock_guard lock(mutex_);
        has_ended_ = true;
    }
    ended_.notify_one();
    opener_.join();
    require(cu().cuCtxSynchronize(), "cuCtxSynchronize");
    require(cu().cuMemFreeHost(word_), "cuMemFreeHost");
}

Peer::Peer()
{
    int to[2], from[2];
    if (pipe(to) != 0 || pipe(from) != 0) {
        _exit(1);
    }
    std::fflush(stdout);
    process_ = fork();
    if (process_ == 0) {
        close(to[1]); // so that the end of this process ends the peer
        serve(to[0], from[1]);
    }
    close(to[0]);
    close(from[1]);
    out_ = to[1];
    in_ = from[0];
}

Peer::~Peer()
{
    send(out_, Question{Ask::kStop, {}, {}});
    waitpid(process_, nullptr, 0);
}

void Peer::serve(int in, int out)
{
    std::vector<CUdeviceptr> opened{0};
    CUevent event = nullptr;
    for (bool is_first = true;; is_first = false) {
        const auto question = receive<Question>(in);
        if (is_first) { // without a device the parent has ended, and said why
            use_primary_context();
        }
        Reply reply{};
        switch (question.ask) {
        case Ask::kOpen:
            reply = open_here(question.memory);
            if (reply.result == CUDA_SUCCESS) {
                opened.push_back(reply.address);
            }
            break;
        case Ask::kClose:
            reply.result = cu().cuIpcCloseMemHandle(opened.back());
            opened.pop_back();
            break;
        case Ask::kOpenBusy:
        case Ask::kCloseBusy:
            reply = ask_while_busy(question, opened.back());
            if (reply.result == CUDA_SUCCESS) {
                question.ask == Ask::kOpenBusy ? opened.push_back(reply.address)
                                               : opened.pop_back();
            }
            break;
        case Ask::kRead:
            reply.result = cu().cuMemcpyDtoH(&reply.word, opened.back(), sizeof reply.word);
            break;
        case Ask::kOpenEvent:
            reply.result = cu().cuIpcOpenEventHandle(&event, question.event);
            break;
        case Ask::kQueryEvent: reply.result = cu().cuEventQuery(event); break;
        case Ask::kWaitEvent:
            reply.result = cu().cuStreamWaitEvent(nullptr, event, 0);
            if (reply.result == CUDA_SUCCESS) {
                reply.result = cu().cuStreamSynchronize(nullptr);
            }
            break;
        case Ask::kStop: _exit(0);
        }
        send(out, reply);
    }
}

// In the peer.
Peer::Reply Peer::ask_while_busy(const Question &question, CUdeviceptr last)
{
    Reply reply{};
    const CUstream others = new_stream(CU_STREAM_NON_BLOCKING);
    {
        const Gate gate(others, Gate::kShortest);
        reply.result = question.ask == Ask::kCloseBusy
                           ? cu().cuIpcCloseMemHandle(last)
                           : cu().cuIpcOpenMemHandle(&reply.address, question.memory,
                                                     CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
        reply.waited = cu().cuStreamQuery(others) == CUDA_SUCCESS;
    }
    require(cu().cuStreamDestroy(others), "cuStreamDestroy");
    return reply;
}

Peer::Reply Peer::ask(const Question &question)
{
    send(out_, question);
    return receive<Reply>(in_);
}

Peer::Reply Peer::open(const CUipcMemHandle &handle) { return ask({Ask::kOpen, handle, {}}); }

Peer::Reply Peer::close_last() { return ask({Ask::kClose, {}, {}}); }

Peer::Reply Peer::open_while_busy(const CUipcMemHandle &handle)
{
    return ask({Ask::kOpenBusy, handle, {}});
}

Peer::Reply Peer::close_while_busy() { return ask({Ask::kCloseBusy, {}, {}}); }

Peer::Reply Peer::read_last() { return ask({Ask::kRead, {}, {}}); }

Peer::Reply Peer::open_event(const CUipcEventHandle &handle)
{
    return ask({Ask::kOpenEvent, {}, handle});
}

Peer::Reply Peer::query_event() { return ask({Ask::kQueryEvent, {}, {}}); }

Peer::Reply Peer::wait_for_event() { return ask({Ask::kWaitEvent, {}, {}}); }

} // namespace hetcoll::conformance

int main(int count, char **arguments)
{
    std::setvbuf(stdout, nullptr, _IOLBF, 0); // what was answered before a crash stays
    using namespace hetcoll::conformance;
    bool with_timings = false, needs_gpu = false;
    for (int i = 1; i < count; ++i) {
        const std::string_view argument = arguments[i];
        with_timings |= argument == "--timings";
        needs_gpu |= argument == "--gpu";
        if (argument != "--timings" && argument != "--gpu") {
            std::fprintf(stderr, "%s: no such option, there are --timings and --gpu\n",
                         arguments[i]);
            return 2;
        }
    }
    if (const bool is_emulated = cu().is_emulated; needs_gpu && is_emulated) {
        std::fprintf(stderr, "no GPU: the libcuda.so.1 found is the emulated GPU\n");
        return kNoDriver;
    }
    Victim victim;
    Peer peer;
    use_primary_context();
    char name[128];
    int version = 0;
    require(cu().cuDeviceGetName(name, sizeof name, 0), "cuDeviceGetName");
    require(cu().cuDriverGetVersion(&version), "cuDriverGetVersion");
    std::printf("# device %s\n# driver API %d\n", name, version);
    ask_about_pointers();
    ask_about_reuse();
    ask_about_streams();
    ask_about_capture();
    ask_about_ipc(peer);
    ask_about_modules();
    ask_about_waits(peer);
    ask_about_handles();
    victim.ask();
    ask_about_contexts(); // last: it resets the primary context
    if (with_timings) {
        use_primary_context();
        measure(peer);
    }
    return 0;
}
