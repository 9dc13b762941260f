// The flag, and the kernels that write it as PTX: one text for every GPU since sm_70, and no nvcc.
#include "test/gpu/latency_probe.h"

#include <sched.h>

namespace hetcoll::probe {
namespace {

// A kernel whose first thread stores the value.
#define HETCOLL_FLAG_KERNEL(name, before, store)                                           \
    ".visible .entry hetcoll_latency_" name "(.param .u64 word, .param .u32 value)\n"      \
    "{ .reg .pred %other; .reg .b64 %at; .reg .b32 %thread, %value;\n"                     \
    "  ld.param.u64 %at, [word]; ld.param.u32 %value, [value];\n"                          \
    "  " before " mov.u32 %thread, %tid.x; setp.ne.u32 %other, %thread, 0; @%other ret;\n" \
    "  " store " [%at], %value; ret; }\n"

constexpr char kKernels[] = ".version 7.0\n.target sm_70\n.address_size 64\n" HETCOLL_FLAG_KERNEL(
    "bare", "", "st.volatile.global.u32")
    HETCOLL_FLAG_KERNEL("fence", "bar.sync 0;", "membar.sys; st.volatile.global.u32")
        HETCOLL_FLAG_KERNEL("release", "bar.sync 0;", "st.release.sys.global.u32")
    // Element i of out[0] and out[1], at 128 and 136 in the arguments, is the sum of in[0] and
    // in[1]. %i, %step and %end are bytes.
    ".visible .entry hetcoll_latency_sum(.param .align 8 .b8 arguments[288], .param .u64 count,\n"
    "  .param .u64 word, .param .u32 value)\n"
    "{ .reg .pred %is; .reg .b64 %a, %b, %c, %d, %i, %step, %end, %at; .reg .b32 %n, %value;\n"
    "  .reg .f32 %x, %y;\n"
    "  ld.param.u64 %a, [arguments]; ld.param.u64 %b, [arguments+8];\n"
    "  ld.param.u64 %c, [arguments+128]; ld.param.u64 %d, [arguments+136];\n"
    "  ld.param.u64 %end, [count]; shl.b64 %end, %end, 2;\n"
    "  mov.u32 %n, %tid.x; mul.wide.u32 %i, %n, 4; mov.u32 %n, %ntid.x; mul.wide.u32 %step, %n, "
    "4;\n"
    "next: setp.ge.u64 %is, %i, %end; @%is bra done;\n"
    "  add.u64 %at, %a, %i; ld.global.f32 %x, [%at]; add.u64 %at, %b, %i; ld.global.f32 %y, "
    "[%at];\n"
    "  add.f32 %x, %x, %y;\n"
    "  add.u64 %at, %c, %i; st.global.f32 [%at], %x; add.u64 %at, %d, %i; st.global.f32 [%at], "
    "%x;\n"
    "  add.u64 %i, %i, %step; bra next;\n"
    "done: ld.param.u64 %at, [word]; ld.param.u32 %value, [value];\n"
    "  bar.sync 0; mov.u32 %n, %tid.x; setp.ne.u32 %is, %n, 0; @%is ret;\n"
    "  membar.sys; st.volatile.global.u32 [%at], %value; ret; }\n";

constexpr int kPollsPerLook = 1 << 16; // at the clock: far more than a launch takes on a GPU
constexpr std::chrono::seconds kLongest{2};

CUresult launch_block(CUfunction kernel, CUstream stream, unsigned threads, void **arguments)
{
    return cuLaunchKernel(kernel, 1, 1, 1, threads, 1, 1, 0, stream, arguments, nullptr);
}

} // namespace

Flag::Flag() : word_(static_cast<volatile std::uint32_t *>(allocate_host(4096))) { *word_ = 0; }

CUresult Flag::wait(CUstream stream) const
{
    const auto end = Clock::now() + kLongest;
    for (unsigned polls = 1; *word_ != value_; ++polls) {
        if (polls % kPollsPerLook != 0) {
            continue;
        }
        if (Clock::now() > end) {
            const CUresult result = cuStreamQuery(stream);
            return result != CUDA_SUCCESS ? result : CUDA_ERROR_NOT_READY;
        }
        sched_yield(); // to the emulated driver's threads
    }
    return CUDA_SUCCESS;
}

FlagKernels load_flag_kernels()
{
    const CUmodule module = load_module(kKernels);
    return {
        find_kernel(module, "hetcoll_latency_bare"), find_kernel(module, "hetcoll_latency_fence"),
        find_kernel(module, "hetcoll_latency_release"), find_kernel(module, "hetcoll_latency_sum")};
}

CUresult launch(CUfunction kernel, Flag &flag, CUstream stream, unsigned threads)
{
    auto *word = flag.word();
    std::uint32_t value = flag.next();
    void *arguments[] = {&word, &value};
    return launch_block(kernel, stream, threads, arguments);
}

CUresult launch_sum(const FlagKernels &kernels, SumArguments &arguments, std::uint64_t count,
                    Flag &flag, CUstream stream, unsigned threads)
{
    auto *word = flag.word();
    std::uint32_t value = flag.next();
    void *all[] = {&arguments, &count, &word, &value};
    return launch_block(kernels.sum, stream, threads, all);
}

CUresult launch_and_see(const FlagKernels &kernels, Flag &flag, CUstream stream)
{
    HETCOLL_PROBE_TRY(launch(kernels.fence, flag, stream, 32));
    return flag.wait(stream);
}

CUstream make_stream(unsigned flags)
{
    int least = 0, greatest = 0;
    CUstream stream = nullptr;
    must(cuCtxGetStreamPriorityRange(&least, &greatest), "cuCtxGetStreamPriorityRange");
    must(cuStreamCreateWithPriority(&stream, flags, greatest), "cuStreamCreateWithPriority");
    return stream;
}

} // namespace hetcoll::probe
