// What only a real driver can tell, where a wrong guess hangs or crashes a job: which calls wait
// for another library's kernel, what a stale context's handle answers, what a VMM range is, and
// what the calls of a small MPI_Allreduce cost. docs/architecture.md, decisions 5 and 11, build on
// it.
#include "test/gpu/probe.h"

#include "emulated_gpu/kernel_abi.h"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

extern "C" const emulated_gpu_kernel_table *emulated_gpu_kernels(void); // probe_kernels.cc

namespace hetcoll::probe {
namespace {

constexpr char kKernels[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry hetcoll_probe_spin(.param .u64 word)\n"
    "{ .reg .pred %done; .reg .b64 %at; .reg .b32 %value;\n"
    "  ld.param.u64 %at, [word];\n"
    "again: ld.volatile.global.u32 %value, [%at]; setp.eq.u32 %done, %value, 0; @%done bra again; "
    "ret; }\n"
    ".visible .entry hetcoll_probe_flag(.param .u64 word, .param .u32 value)\n"
    "{ .reg .b64 %at; .reg .b32 %value;\n"
    "  ld.param.u64 %at, [word]; ld.param.u32 %value, [value];\n"
    "  membar.sys; st.volatile.global.u32 [%at], %value; ret; }\n";

// The emulated driver runs the host versions, if it is that one.
void offer_host_kernels()
{
    using Add = int (*)(const emulated_gpu_kernel_table *);
    if (const auto add = reinterpret_cast<Add>(dlsym(RTLD_DEFAULT, "emulated_gpu_add_kernels"))) {
        add(emulated_gpu_kernels());
    }
}

void launch(CUfunction kernel, void **arguments, CUstream stream)
{
    must(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr), "cuLaunchKernel");
}

} // namespace

void ask(const char *title, int most_seconds, void (*questions)())
{
    std::printf("\n== %s\n", title);
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        alarm(static_cast<unsigned>(most_seconds));
        questions();
        std::fflush(stdout);
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status)) {
        std::printf("ended by signal %d, %s\n", WTERMSIG(status),
                    WTERMSIG(status) == SIGALRM ? "a hang" : strsignal(WTERMSIG(status)));
    }
    std::fflush(stdout);
}

void answer(const char *question, const char *format, ...)
{
    std::printf("%s: ", question);
    va_list arguments;
    va_start(arguments, format);
    std::vprintf(format, arguments);
    va_end(arguments);
    std::printf("\n");
    std::fflush(stdout); // what comes next may crash
}

void answer(const char *question, CUresult result)
{
    answer(question, "%s", name_of(result).c_str());
}

const char *yes_or_no(bool yes) { return yes ? "yes" : "no"; }

std::string name_of(CUresult result)
{
    const char *name = nullptr;
    return cuGetErrorName(result, &name) == CUDA_SUCCESS ? name : "?";
}

void must(CUresult result, const char *what)
{
    if (result != CUDA_SUCCESS) {
        std::printf("not asked: %s is %s\n", what, name_of(result).c_str());
        std::fflush(stdout);
        _exit(1);
    }
}

CUcontext use_primary_context()
{
    CUdevice device = 0;
    CUcontext context = nullptr;
    must(cuInit(0), "cuInit");
    must(cuDeviceGet(&device, 0), "cuDeviceGet");
    must(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
    must(cuCtxSetCurrent(context), "cuCtxSetCurrent");
    return context;
}

CUdeviceptr allocate(std::size_t bytes)
{
    CUdeviceptr memory = 0;
    must(cuMemAlloc(&memory, bytes), "cuMemAlloc");
    return memory;
}

void *allocate_host(std::size_t bytes)
{
    void *memory = nullptr;
    must(cuMemHostAlloc(&memory, bytes, CU_MEMHOSTALLOC_PORTABLE), "cuMemHostAlloc");
    return memory;
}

Kernels load_kernels()
{
    offer_host_kernels();
    Kernels loaded;
    must(cuModuleLoadData(&loaded.module, kKernels), "cuModuleLoadData");
    must(cuModuleGetFunction(&loaded.spin, loaded.module, "hetcoll_probe_spin"),
         "cuModuleGetFunction");
    must(cuModuleGetFunction(&loaded.flag, loaded.module, "hetcoll_probe_flag"),
         "cuModuleGetFunction");
    return loaded;
}

void start_spin(const Kernels &kernels, volatile unsigned *word, CUstream stream)
{
    void *arguments[] = {&word};
    launch(kernels.spin, arguments, stream);
}

void start_flag(const Kernels &kernels, volatile unsigned *word, unsigned value, CUstream stream)
{
    void *arguments[] = {&word, &value};
    launch(kernels.flag, arguments, stream);
}

} // namespace hetcoll::probe

int main()
{
    using namespace hetcoll::probe;
    int version = 0;
    cuDriverGetVersion(&version);
    std::printf("driver API: %d\n", version);
    ask("the id of the primary context, over a reset", 30, ask_about_contexts);
    ask("the handle of a primary context that was reset", 30, ask_about_reset_context);
    ask("the handle of a destroyed context", 30, ask_about_destroyed_context);
    ask("VMM: reservations and mappings", 30, ask_about_mappings);
    ask("what waits for another library's kernel on a non-blocking stream", 90, ask_what_waits);
    ask("whether a launch goes on while another call waits for a stream that waits", 100,
        ask_what_holds_launches);
    ask("which calls wait while another thread is in cuMemFree, which waits for a kernel", 60,
        ask_what_a_free_holds);
    ask("whether opening and closing a peer's memory waits for it", 60, ask_what_opening_waits);
    ask("what an event on a stream of ours waits for", 30, ask_about_order);
    ask("costs, the least of five means", 60, measure_costs);
    return 0;
}
