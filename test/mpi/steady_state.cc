// R25: driver calls of one Allreduce on device memory once its shape is known, as the emulated
// driver counts them: one attribute query a distinct buffer, and nothing that allocates, maps,
// creates or copies through pageable memory.
#include "test/mpi/check.h"

#include <array>
#include <cstdio>
#include <string>

namespace hetcoll::test {
namespace {

constexpr std::array kNever = {
    "pageable_copies",
    "cuMemAlloc",
    "cuMemFree",
    "cuMemAllocManaged",
    "cuMemHostAlloc",
    "cuMemAllocHost",
    "cuMemFreeHost",
    "cuMemHostRegister",
    "cuMemAllocAsync",
    "cuIpcGetMemHandle",
    "cuIpcOpenMemHandle",
    "cuIpcCloseMemHandle",
    "cuMemRetainAllocationHandle",
    "cuMemExportToShareableHandle",
    "cuMemImportFromShareableHandle",
    "cuMemMap",
    "cuCtxCreate",
    "cuStreamCreate",
    "cuEventCreate",
    "cuStreamCreateWithPriority",
    "cuModuleLoadData",
    "cuModuleGetFunction",
    "cuDevicePrimaryCtxRetain",
    "cuCtxSynchronize",
    "cuStreamSynchronize",
    "cuEventSynchronize",
    "cuMemcpyHtoD",
    "cuMemcpyDtoH",
    "cuMemcpy",
    "cuInit",
};
constexpr std::array kQueries = {"cuPointerGetAttribute", "cuPointerGetAttributes"};
constexpr int kCalls = 20;

// All calls that hetcoll can make, for the report.
constexpr std::array kAll = {
#define HETCOLL_CALL_NAME(name) #name,
    HETCOLL_DRIVER_CALLS(HETCOLL_CALL_NAME)
#undef HETCOLL_CALL_NAME
};

std::array<std::uint64_t, kAll.size()> count_all(const Emulated &emulated)
{
    std::array<std::uint64_t, kAll.size()> counts{};
    for (std::size_t i = 0; i < kAll.size(); ++i) {
        counts[i] = emulated.calls(kAll[i]);
    }
    return counts;
}

void one_shape(Program &program, const Emulated &emulated, std::size_t count, bool in_place)
{
    const Call call{{ElementKind::kFloat32, ReduceOp::kSum, Values::kExact, 1},
                    count,
                    Memory::kDevice,
                    Memory::kDevice,
                    in_place};
    Buffers buffers(program, MPI_COMM_WORLD, call);
    buffers.fill();
    buffers.reduce(); // learns the buffers, makes what the shape needs
    std::array<std::uint64_t, kNever.size()> never{};
    std::uint64_t queries = 0;
    for (std::size_t i = 0; i < kNever.size(); ++i) {
        never[i] = emulated.calls(kNever[i]);
    }
    for (const char *name : kQueries) {
        queries += emulated.calls(name);
    }
    const auto all = count_all(emulated);
    const CounterValues before = program.counters().read();
    for (int i = 0; i < kCalls; ++i) {
        program.check(buffers.reduce() == MPI_SUCCESS, "MPI failed");
    }
    const CounterValues used = program.counters().read() - before;
    const auto all_after = count_all(emulated);
    std::uint64_t queries_used = 0;
    for (const char *name : kQueries) {
        queries_used += emulated.calls(name);
    }
    queries_used -= queries;
    for (std::size_t i = 0; i < kNever.size(); ++i) {
        const std::uint64_t calls = emulated.calls(kNever[i]) - never[i];
        program.check(calls == 0, "%s: %llu in %d calls of %zu floats", kNever[i],
                      static_cast<unsigned long long>(calls), kCalls, count);
    }
    const std::uint64_t wanted = static_cast<std::uint64_t>(kCalls) * (in_place ? 1 : 2);
    program.check(queries_used == wanted, "%llu attribute queries in %d calls of %zu floats%s",
                  static_cast<unsigned long long>(queries_used), kCalls, count,
                  in_place ? " in place" : "");
    program.check(used[Counter::kAllocations] == 0, "hetcoll allocated in %d calls of %zu floats",
                  kCalls, count);
    if (program.rank() == 0) {
        const Route route = name_route(program.counters(), used);
        std::printf("note steady_state: %zu floats%s, %s %s:", count, in_place ? " in place" : "",
                    route.algorithm.c_str(), route.path.c_str());
        for (std::size_t i = 0; i < kAll.size(); ++i) {
            if (all_after[i] != all[i]) {
                std::printf(" %s %.4g", kAll[i],
                            static_cast<double>(all_after[i] - all[i]) / kCalls);
            }
        }
        std::printf("\n");
        std::fflush(stdout);
    }
}

} // namespace
} // namespace hetcoll::test

int main(int argc, char **argv)
{
    using namespace hetcoll::test;
    Program program(argc, argv, "steady_state");
    program.gpu();
    const Emulated emulated;
    if (!emulated.present()) {
        std::printf("skip steady_state: only the emulated driver counts\n");
        return program.finish();
    }
    // The communicator finds out whose memory is within reach.
    check_allreduce(
        program, MPI_COMM_WORLD,
        {{hetcoll::ElementKind::kFloat32, hetcoll::ReduceOp::kSum, hetcoll::Values::kExact, 1},
         2'000'000});
    for (const std::size_t count : {2, 1'000, 30'000, 1'000'000}) {
        one_shape(program, emulated, count, false);
        one_shape(program, emulated, count, true);
    }
    return program.finish();
}
