// R25: driver calls of one Allreduce on device memory once its shape is known, as the emulated
// driver counts them: one attribute query per distinct buffer, and nothing that allocates, maps,
// creates or copies through pageable memory.
#include "test/mpi/check.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>

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
constexpr int kCallsToLearn = 9; // the processor has views of a small call's buffers then
constexpr std::size_t kDocumentedCount = 2; // floats

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

// The columns of docs/internals/latency.md that are counted: what the work of a call takes. The
// other calls wait, and are more or fewer.
constexpr std::array kWork = {"cuPointerGetAttribute", "cuMemcpyAsync", "cuLaunchKernel",
                              "cuEventRecord"};
using WorkCalls = std::array<double, kWork.size()>;

// The page's row of a way: it begins "| WAY | 2 | 0 | 1 | 0 |". All zero without such a
// row.
WorkCalls documented(const std::string &way)
{
    const char *const source = std::getenv("HETCOLL_SRCDIR");
    std::ifstream page(std::string(source != nullptr ? source : ".") +
                       "/docs/internals/latency.md");
    for (std::string line; std::getline(page, line);) {
        if (!line.starts_with("| " + way + " |")) {
            continue;
        }
        std::istringstream cells(line.substr(way.size() + 4));
        WorkCalls calls{};
        for (double &count : calls) {
            std::string bar;
            cells >> count >> bar;
        }
        return calls;
    }
    return {};
}

// Until the legacy stream is known to be idle, which may be a while after a call has its result. A
// call that finds it busy needs a marker. Returns how often the driver was asked.
std::uint64_t wait_until_idle(Program &program)
{
    const Driver &driver = program.gpu().driver();
    for (std::uint64_t queries = 1;; ++queries) {
        const CUresult result = driver.cuStreamQuery(CU_STREAM_LEGACY);
        if (result != CUDA_ERROR_NOT_READY) {
            program.require(driver_status(driver, result, "cuStreamQuery", "waiting"));
            return queries;
        }
        std::this_thread::yield();
    }
}

void one_shape(Program &program, const Emulated &emulated, std::size_t count, bool in_place)
{
    const Call call{{ElementKind::kFloat32, ReduceOp::kSum, Values::kExact, 1},
                    count,
                    Memory::kDevice,
                    Memory::kDevice,
                    in_place};
    Buffers buffers(program, MPI_COMM_WORLD, call);
    for (int i = 0; i < kCallsToLearn; ++i) { // the buffers, and what the shape needs
        buffers.fill();
        buffers.reduce();
    }
    std::array<std::uint64_t, kNever.size()> never{};
    std::uint64_t queries = 0;
    for (std::size_t i = 0; i < kNever.size(); ++i) {
        never[i] = emulated.calls(kNever[i]);
    }
    for (const char *name : kQueries) {
        queries += emulated.calls(name);
    }
    const auto all = count_all(emulated);
    const std::uint64_t all_calls_before = emulated.calls("all_calls");
    const CounterValues before = program.counters().read();
    std::uint64_t own_queries = 0;
    for (int i = 0; i < kCalls; ++i) {
        own_queries += wait_until_idle(program);
        program.check(buffers.reduce() == MPI_SUCCESS, "MPI failed");
    }
    const CounterValues used = program.counters().read() - before;
    const std::uint64_t all_calls = emulated.calls("all_calls") - all_calls_before - own_queries;
    const auto all_after = count_all(emulated);
    std::uint64_t queries_used = 0;
    for (const char *name : kQueries) {
        queries_used += emulated.calls(name);
    }
    queries_used -= queries;
    const auto count_of = [&](std::string_view name) {
        const auto at =
            static_cast<std::size_t>(std::find(kAll.begin(), kAll.end(), name) - kAll.begin());
        return all_after[at] - all[at] - (name == "cuStreamQuery" ? own_queries : 0);
    };
    for (std::size_t i = 0; i < kNever.size(); ++i) {
        const std::uint64_t calls = emulated.calls(kNever[i]) - never[i];
        program.check(calls == 0, "%s: %llu in %d calls of %zu floats", kNever[i],
                      static_cast<unsigned long long>(calls), kCalls, count);
    }
    const ServingRoute route = name_route(program.counters(), used);
    const bool copies = used[HETCOLL_CPU_READS] == 0 || used[HETCOLL_CPU_WRITES] == 0;
    // And one that tells whether the context of a bounce is still there.
    const std::uint64_t wanted =
        static_cast<std::uint64_t>(kCalls) * ((in_place ? 1 : 2) + (copies ? 1 : 0));
    program.check(queries_used == wanted, "%llu attribute queries in %d calls of %zu floats%s",
                  static_cast<unsigned long long>(queries_used), kCalls, count,
                  in_place ? " in place" : "");
    program.check(used[HETCOLL_ALLOCATIONS] == 0, "hetcoll allocated in %d calls of %zu floats",
                  kCalls, count);
    if (!copies) {
        program.check(all_calls == static_cast<std::uint64_t>(kCalls) * (in_place ? 5 : 6),
                      "%llu driver calls in %d calls of %zu floats%s by the processor",
                      static_cast<unsigned long long>(all_calls), kCalls, count,
                      in_place ? " in place" : "");
    }
    if (route.algorithm == "leader" && route.path == "mapped" && count_of("cuMemcpyAsync") == 0) {
        // One kernel behind a legacy stream that is idle: nothing is marked.
        program.check(count_of("cuEventRecord") == 0, "%s %s of %zu floats: a marker",
                      route.algorithm.c_str(), route.path.c_str(), count);
    }
    const bool on_host = route.path == "small" || route.path == "cpu";
    const std::string way = on_host ? route.path : route.algorithm + " " + route.path;
    if (program.rank() == 0 && count == kDocumentedCount && !in_place) {
        const WorkCalls said = documented(way);
        for (std::size_t i = 0; i < kWork.size(); ++i) {
            const double calls = static_cast<double>(count_of(kWork[i])) / kCalls;
            program.check(calls == said[i], "%s: %s %g times, docs/internals/latency.md says %g",
                          way.c_str(), kWork[i], calls, said[i]);
        }
    }
    if (program.rank() == 0) {
        std::printf("note steady_state: %zu floats%s, %s %s:", count, in_place ? " in place" : "",
                    route.algorithm.c_str(), route.path.c_str());
        for (const char *name : kAll) {
            if (const std::uint64_t calls = count_of(name); calls != 0) {
                std::printf(" %s %.4g", name, static_cast<double>(calls) / kCalls);
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
    for (const char *name : kNever) { // a name that does not exist would be called never
        program.check(name == std::string_view("pageable_copies") || emulated.find(name) != nullptr,
                      "no driver call %s", name);
    }
    // The communicator finds out whose memory is within reach.
    check_allreduce(
        program, MPI_COMM_WORLD,
        {{hetcoll::ElementKind::kFloat32, hetcoll::ReduceOp::kSum, hetcoll::Values::kExact, 1},
         2'000'000});
    for (const std::size_t count : {2, 64, 1'000, 30'000, 1'000'000}) {
        one_shape(program, emulated, count, false);
        one_shape(program, emulated, count, true);
    }
    return program.finish();
}
