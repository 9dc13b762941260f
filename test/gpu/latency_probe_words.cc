// Words that a stream writes and waits for, without a kernel and before one.
#include "test/gpu/latency_probe.h"

namespace hetcoll::probe {
namespace {

// Enough for the GPU to reach a wait that was queued.
constexpr double kReachesWaitUs = 20;

CUresult wait_for_gate(const Flag &gate, CUstream stream)
{
    return cuStreamWaitValue32(stream, gate.address(), gate.value(), CU_STREAM_WAIT_VALUE_GEQ);
}

// One batch: 8 bytes to the device, then a word to the host, as a scalar's result would go.
CUresult write_batch(CUdeviceptr memory, Flag &flag, CUstream stream)
{
    CUstreamBatchMemOpParams operations[2] = {};
    const std::uint32_t value = flag.next();
    operations[0].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
    operations[0].writeValue.address = memory;
    operations[0].writeValue.value64 = value;
    operations[1].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    operations[1].writeValue.address = flag.address();
    operations[1].writeValue.value = value;
    HETCOLL_PROBE_TRY(cuStreamBatchMemOp(stream, 2, operations, 0));
    return flag.wait(stream);
}

// From the host's store, which opens the gate, to the flag.
CUresult open_gate(const FlagKernels &kernels, Flag &gate, Flag &flag, CUstream stream, double &us)
{
    gate.next();
    HETCOLL_PROBE_TRY(wait_for_gate(gate, stream));
    const CUresult launched = launch(kernels.fence, flag, stream, 32);
    for (const auto queued = Clock::now(); us_since(queued) < kReachesWaitUs;) {
    }
    const auto start = Clock::now();
    gate.set(); // after an error too: nothing may wait for it then
    HETCOLL_PROBE_TRY(launched);
    const CUresult seen = flag.wait(stream);
    us = us_since(start);
    return seen;
}

} // namespace

void measure_memory_operations()
{
    use_primary_context();
    const CUstream stream = make_stream(CU_STREAM_NON_BLOCKING);
    const CUdeviceptr memory = allocate(4096);
    Flag flag;
    time_calls("cuStreamWriteValue32 to the host, until seen", [&] {
        HETCOLL_PROBE_TRY(cuStreamWriteValue32(stream, flag.address(), flag.next(), 0));
        return flag.wait(stream);
    });
    time_calls("cuStreamBatchMemOp: 8 B to the device and a word to the host, until seen",
               [&] { return write_batch(memory, flag, stream); });
}

void measure_gated_launches()
{
    use_primary_context();
    const FlagKernels kernels = load_flag_kernels();
    const CUstream stream = make_stream(CU_STREAM_NON_BLOCKING);
    Flag gate, flag;
    time_parts("from the host's store to the flag", repetitions(),
               [&](double &us) { return open_gate(kernels, gate, flag, stream, us); });
    time_calls("a wait that is true already and a kernel, until its flag", [&] {
        gate.next();
        gate.set();
        HETCOLL_PROBE_TRY(wait_for_gate(gate, stream));
        return launch_and_see(kernels, flag, stream);
    });
}

} // namespace hetcoll::probe
