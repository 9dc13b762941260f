// Asks what only a real driver can tell, where a wrong guess hangs or crashes a job: which calls
// wait for another library's kernel, what a stale context's handle answers, what a VMM range is,
// and what the calls of a small MPI_Allreduce cost. docs/internals/architecture.md, decisions 5 and
// 11, build on it.
#include "test/gpu/probe.h"

#include <cstdio>

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

void launch(CUfunction kernel, void **arguments, CUstream stream)
{
    must(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr), "cuLaunchKernel");
}

} // namespace

Kernels load_kernels()
{
    const CUmodule module = load_module(kKernels);
    return {module, find_kernel(module, "hetcoll_probe_spin"),
            find_kernel(module, "hetcoll_probe_flag")};
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
