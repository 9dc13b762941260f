// Questions about an error that ruins a context, in a process of its own: what it answers from then
// on, and whether a reset helps.
#include "emulated_gpu/conformance.h"
#include "emulated_gpu/cuda_on_host.h"
#include "emulated_gpu/emulated_gpu.h"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

namespace hetcoll::conformance {
namespace {

constexpr char kBadStore[] = ".version 7.0\n.target sm_60\n.address_size 64\n"
                             ".visible .entry hetcoll_bad_store(.param .u64 to)\n"
                             "{ .reg .b64 %rd<2>; .reg .b32 %r<2>; ld.param.u64 %rd1, [to];\n"
                             "  mov.u32 %r1, 1; st.global.u32 [%rd1], %r1; ret; }\n";

// The same for the emulated GPU.
__global__ void hetcoll_bad_store(unsigned *to) { *to = 1; }
constexpr emulated_gpu_kernel kKernels[] = {EMULATED_GPU_KERNEL(hetcoll_bad_store, 0)};
constexpr emulated_gpu_kernel_table kTable = {EMULATED_GPU_KERNEL_ABI, 1, kKernels};

void add_host_kernel()
{
    using AddKernels = decltype(emulated_gpu_add_kernels);
    void *const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (auto *const add =
            reinterpret_cast<AddKernels *>(dlsym(library, "emulated_gpu_add_kernels"));
        add != nullptr) {
        add(&kTable);
    }
}

void store_to_null()
{
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    require(cu().cuModuleLoadData(&module, kBadStore), "cuModuleLoadData");
    require(cu().cuModuleGetFunction(&function, module, "hetcoll_bad_store"),
            "cuModuleGetFunction");
    CUdeviceptr null = 0;
    void *parameters[] = {&null};
    require(cu().cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr),
            "cuLaunchKernel");
}

void ask_about_ruined_context()
{
    use_primary_context();
    add_host_kernel();
    const CUdeviceptr memory = allocate(kLarge);
    const CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
    CUevent event = nullptr;
    CUcontext context = nullptr;
    require(cu().cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
    require(cu().cuCtxGetCurrent(&context), "cuCtxGetCurrent");
    store_to_null();
    const std::string after = "after a store to null, ";
    unsigned long long id = 0;
    CUdeviceptr start = 0, other = 0;
    std::size_t bytes = 0;
    CUipcMemHandle handle;
    answer(after + "cuCtxSynchronize", cu().cuCtxSynchronize());
    answer(after + "cuStreamQuery", cu().cuStreamQuery(stream));
    answer(after + "cuEventQuery", cu().cuEventQuery(event));
    answer(after + "cuMemAlloc", cu().cuMemAlloc(&other, 4));
    answer(after + "cuPointerGetAttribute",
           cu().cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, memory));
    answer(after + "cuMemGetAddressRange", cu().cuMemGetAddressRange(&start, &bytes, memory));
    answer(after + "cuIpcGetMemHandle", cu().cuIpcGetMemHandle(&handle, memory));
    if (cu().cuCtxGetId != nullptr) {
        answer(after + "cuCtxGetId", cu().cuCtxGetId(context, &id));
    }
    answer(after + "cuEventDestroy", cu().cuEventDestroy(event));
    answer(after + "cuStreamDestroy", cu().cuStreamDestroy(stream));
    answer(after + "cuMemFree", cu().cuMemFree(memory));
    answer(after + "cuCtxPushCurrent", cu().cuCtxPushCurrent(context));
    answer(after + "cuDevicePrimaryCtxReset", cu().cuDevicePrimaryCtxReset(0));
    answer(after + "and a reset, cuDevicePrimaryCtxRetain",
           cu().cuDevicePrimaryCtxRetain(&context, 0));
    answer(after + "and a reset, cuMemAlloc", cu().cuMemAlloc(&other, 4));
}

} // namespace

Victim::Victim()
{
    int ends[2];
    if (pipe(ends) != 0) {
        _exit(1);
    }
    std::fflush(stdout);
    process_ = fork();
    if (process_ == 0) {
        close(ends[1]);
        char word = 0;
        if (read(ends[0], &word, 1) == 1) { // else the parent has ended
            constexpr unsigned kMostSeconds = 60;
            alarm(kMostSeconds);
            ask_about_ruined_context();
            std::fflush(stdout);
        }
        _exit(0);
    }
    close(ends[0]);
    start_ = ends[1];
}

Victim::~Victim()
{
    close(start_);
    waitpid(process_, nullptr, 0);
}

void Victim::ask()
{
    std::fflush(stdout);
    int status = 0;
    if (write(start_, "x", 1) != 1 || waitpid(process_, &status, 0) != process_ || status != 0) {
        std::fprintf(stderr, "the questions about a ruined context did not end well\n");
    }
}

} // namespace hetcoll::conformance
