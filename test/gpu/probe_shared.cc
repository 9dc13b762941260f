// Shared by the programs that ask a driver: a question in a process of its own, its answer, and
// what a question needs first.
#include "test/gpu/probe.h"

#include "emulated_gpu/kernel_abi.h"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstring>

// The program's kernels for the emulated driver, in its own *_kernels.cc.
extern "C" const emulated_gpu_kernel_table *emulated_gpu_kernels(void);

namespace hetcoll::probe {
namespace {

using AddKernels = int (*)(const emulated_gpu_kernel_table *);

// Null if the driver is not the emulated one.
AddKernels find_add_kernels()
{
    return reinterpret_cast<AddKernels>(dlsym(RTLD_DEFAULT, "emulated_gpu_add_kernels"));
}

} // namespace

void ask(const char *title, int most_seconds, void (*questions)())
{
    std::printf("\n== %s\n", title);
    wait_for(start_child(most_seconds, questions));
}

pid_t start_child(int most_seconds, const std::function<void()> &questions)
{
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        alarm(static_cast<unsigned>(most_seconds));
        questions();
        std::fflush(stdout);
        _exit(0);
    }
    return child;
}

void wait_for(pid_t child)
{
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) {
        std::printf("not asked: there is no process for it\n");
    } else if (WIFSIGNALED(status)) {
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

bool is_emulated() { return find_add_kernels() != nullptr; }

CUmodule load_module(const char *ptx)
{
    if (const AddKernels add = find_add_kernels()) {
        add(emulated_gpu_kernels());
    }
    CUmodule module = nullptr;
    must(cuModuleLoadData(&module, ptx), "cuModuleLoadData");
    return module;
}

CUfunction find_kernel(CUmodule module, const char *name)
{
    CUfunction kernel = nullptr;
    must(cuModuleGetFunction(&kernel, module, name), "cuModuleGetFunction");
    return kernel;
}

} // namespace hetcoll::probe
