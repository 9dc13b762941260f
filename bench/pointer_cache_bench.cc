// Times a question about a pointer: the cache's answers in every mode, and the driver's own.
// Processor time of the asking thread, the least and the middle of several repetitions, which
// alternate between the questions. On the emulated GPU the driver's time is no GPU's: its query is
// a look-up in a table of its own.
#include "measure/micro.h"
#include "pointer_cache/pointer_cache.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <sys/mman.h>
#include <utility>
#include <vector>

// libucm for the hooked mode, in case the installed one does not report CUDA's events: the program
// plays it (a null library name), and wraps the two calls that prove the events.
namespace {

using Callback = void (*)(int type, void *event, void *argument);
Callback handler;
void *handler_argument;

} // namespace

extern "C" {
[[gnu::visibility("default")]] int ucm_set_event_handler(int events, int priority,
                                                         Callback callback, void *argument);
[[gnu::visibility("default")]] void ucm_unset_event_handler(int events, Callback callback,
                                                            void *argument);

int ucm_set_event_handler(int /*events*/, int /*priority*/, Callback callback, void *argument)
{
    handler = callback;
    handler_argument = argument;
    return 0;
}

void ucm_unset_event_handler(int /*events*/, Callback /*callback*/, void * /*argument*/)
{
    handler = nullptr;
}
}

namespace hetcoll {
namespace {

using benchmark::State;

void require_that(bool holds, const char *what)
{
    require(holds ? Status() : error(Errc::kInvalid, "pointer_cache_bench: %s", what));
}

decltype(Driver::cuMemAlloc) original_alloc;
decltype(Driver::cuMemFree) original_free;

void announce(int type, CUdeviceptr first, std::size_t bytes)
{
    struct {
        void *address;
        std::size_t size;
    } event{reinterpret_cast<void *>(first), bytes};
    if (handler != nullptr) {
        handler(type, &event, handler_argument);
    }
}

// UCX, src/ucm/api/ucm.h: UCM_EVENT_MEM_TYPE_ALLOC and _FREE.
CUresult announced_alloc(CUdeviceptr *out, std::size_t bytes)
{
    const CUresult result = original_alloc(out, bytes);
    announce(1 << 20, *out, bytes);
    return result;
}

CUresult announced_free(CUdeviceptr address)
{
    announce(1 << 21, address, 0);
    return original_free(address);
}

// Device allocations, and pointers into them to be asked for in turn.
class Allocations {
public:
    Allocations(const Driver &driver, std::size_t count, std::size_t bytes) : driver_(driver)
    {
        for (std::size_t i = 0; i < count; ++i) {
            CUdeviceptr memory = 0;
            require(driver.cuMemAlloc(&memory, bytes), "cuMemAlloc");
            memory_.push_back(memory);
        }
        std::mt19937 random(1);
        for (std::size_t i = 0; i < kPointers; ++i) {
            const CUdeviceptr base = memory_[i % count];
            pointers_[i] = reinterpret_cast<const void *>(base + random() % bytes);
        }
        if (count < kPointers) {
            std::shuffle(pointers_.begin(), pointers_.end(), random);
        }
    }
    ~Allocations()
    {
        for (const CUdeviceptr memory : memory_) {
            driver_.cuMemFree(memory);
        }
    }
    Allocations(const Allocations &) = delete;
    Allocations &operator=(const Allocations &) = delete;
    [[nodiscard]] const void *next() { return pointers_[++at_ % kPointers]; }

    static constexpr std::size_t kPointers = 1024;

private:
    const Driver &driver_;
    std::vector<CUdeviceptr> memory_;
    std::array<const void *, kPointers> pointers_;
    std::size_t at_ = 0;
};

void report_calls(State &state, std::uint64_t calls)
{
    state.counters["driver_calls"] =
        benchmark::Counter(static_cast<double>(calls), benchmark::Counter::kAvgIterations);
}

// A megabyte each, so that two share a page; the cache knows all of them.
void time_hits(State &state, const Gpu &gpu, PointerCacheMode mode)
{
    Allocations allocations(gpu.driver(), static_cast<std::size_t>(state.range(0)), 1 << 20);
    const auto cache = PointerCache::create(gpu.library(), mode, {}, nullptr);
    for (int i = 0; i < 10000; ++i) {
        auto info = cache->find(allocations.next());
        require_that(info.ok() && info->kind == MemoryKind::kDevice, "wrong answer");
    }
    require_that(cache->mode() == mode, "the mode is not in force");
    const std::uint64_t before = cache->counters().queries;
    for ([[maybe_unused]] auto _ : state) {
        auto info = cache->find(allocations.next());
        benchmark::DoNotOptimize(info->device);
    }
    report_calls(state, cache->counters().queries - before);
}

// Small allocations asked for in a circle, so densely in a page that each was displaced meanwhile.
void time_misses(State &state, const Gpu &gpu, PointerCacheMode mode)
{
    Allocations allocations(gpu.driver(), static_cast<std::size_t>(state.range(0)), 4096);
    const auto cache = PointerCache::create(gpu.library(), mode, {}, nullptr);
    for (int i = 0; i < 10000; ++i) {
        benchmark::DoNotOptimize(cache->find(allocations.next()).ok());
    }
    const PointerCacheCounters before = cache->counters();
    for ([[maybe_unused]] auto _ : state) {
        auto info = cache->find(allocations.next());
        benchmark::DoNotOptimize(info->device);
    }
    require_that(cache->counters().hits == before.hits, "a miss was a hit");
    report_calls(state, cache->counters().queries - before.queries);
}

void time_loop_alone(State &state, const Gpu &gpu)
{
    Allocations allocations(gpu.driver(), static_cast<std::size_t>(state.range(0)), 1 << 20);
    for ([[maybe_unused]] auto _ : state) {
        benchmark::DoNotOptimize(allocations.next());
    }
}

void time_id_query(State &state, const Gpu &gpu)
{
    Allocations allocations(gpu.driver(), static_cast<std::size_t>(state.range(0)), 1 << 20);
    unsigned long long id = 0;
    for ([[maybe_unused]] auto _ : state) {
        gpu.driver().cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID,
                                           reinterpret_cast<CUdeviceptr>(allocations.next()));
        benchmark::DoNotOptimize(id);
    }
    report_calls(state, state.iterations());
}

// The questions of a library without a cache: kind, device, context, allocation.
void time_full_query(State &state, const Gpu &gpu)
{
    Allocations allocations(gpu.driver(), static_cast<std::size_t>(state.range(0)), 1 << 20);
    CUpointer_attribute attributes[] = {
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE,    CU_POINTER_ATTRIBUTE_IS_MANAGED,
        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_CONTEXT,
        CU_POINTER_ATTRIBUTE_BUFFER_ID,      CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
        CU_POINTER_ATTRIBUTE_RANGE_SIZE,     CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE};
    std::uint64_t value[std::size(attributes)];
    void *values[std::size(attributes)];
    for (std::size_t i = 0; i < std::size(attributes); ++i) {
        values[i] = &value[i];
    }
    for ([[maybe_unused]] auto _ : state) {
        gpu.driver().cuPointerGetAttributes(std::size(attributes), attributes, values,
                                            reinterpret_cast<CUdeviceptr>(allocations.next()));
        benchmark::DoNotOptimize(value[0]);
    }
    report_calls(state, state.iterations());
}

void time_host(State &state, const DriverLibrary &library, const void *pointer)
{
    const auto cache = PointerCache::create(library, PointerCacheMode::kValidated, {});
    require_that(cache->find(pointer)->kind == MemoryKind::kHost, "wrong answer");
    for ([[maybe_unused]] auto _ : state) {
        auto info = cache->find(pointer);
        benchmark::DoNotOptimize(info->device);
    }
    report_calls(state, cache->counters().queries);
}

// Makes a line a question.
class Table : public benchmark::BenchmarkReporter {
public:
    bool ReportContext(const Context & /*context*/) override { return true; }
    void ReportRuns(const std::vector<Run> &runs) override
    {
        std::vector<double> ns;
        for (const Run &run : runs) {
            if (run.run_type == Run::RT_Iteration) {
                ns.push_back(run.GetAdjustedCPUTime());
            }
        }
        if (ns.empty()) {
            return;
        }
        const auto calls = runs[0].counters.find("driver_calls");
        const std::string name = runs[0].run_name.function_name, of = runs[0].run_name.args;
        medians[name + '/' + of] = median(ns);
        char line[120];
        std::snprintf(line, sizeof line, "%-42s %5s %6.0f %8.1f %9.1f\n", name.c_str(), of.c_str(),
                      calls == runs[0].counters.end() ? 0.0 : double{calls->second},
                      *std::min_element(ns.begin(), ns.end()), median(ns));
        lines += line;
    }

    std::map<std::string, double> medians; // by question/of
    std::string lines;
};

template <class Call> benchmark::internal::Benchmark *add(const char *name, Call call)
{
    return benchmark::RegisterBenchmark(name, call)->Repetitions(9)->MinTime(0.02);
}

void run_registered(Table &table)
{
    benchmark::RunSpecifiedBenchmarks(&table);
    benchmark::ClearRegisteredBenchmarks();
}

void add_host_questions(const DriverLibrary &library, const void *mapped, const void *heap)
{
    static int data;
    add("host: stack", [&library](State &state) {
        const int local = 0;
        time_host(state, library, &local);
    });
    add("host: brk heap", [&library, heap](State &state) { time_host(state, library, heap); });
    add("host: the program's data", [&library](State &state) { time_host(state, library, &data); });
    add("host: a mapping (large malloc)",
        [&library, mapped](State &state) { time_host(state, library, mapped); });
}

void add_device_questions(const Gpu &gpu)
{
    const auto hits = [&gpu](const char *name, PointerCacheMode mode) {
        add(name, [&gpu, mode](State &state) { time_hits(state, gpu, mode); })
            ->Arg(1)
            ->Arg(16)
            ->Arg(256);
    };
    hits("device: hit, hooked", PointerCacheMode::kHooked);
    hits("device: hit, validated", PointerCacheMode::kValidated);
    hits("device: off (always asks everything)", PointerCacheMode::kOff);
    add("device: miss, hooked", [&gpu](State &state) {
        time_misses(state, gpu, PointerCacheMode::kHooked);
    })->Arg(Allocations::kPointers);
    add("device: miss, validated", [&gpu](State &state) {
        time_misses(state, gpu, PointerCacheMode::kValidated);
    })->Arg(Allocations::kPointers);
    add("driver: BUFFER_ID", [&gpu](State &state) { time_id_query(state, gpu); })
        ->Arg(1)
        ->Arg(16)
        ->Arg(256);
    add("driver: eight attributes", [&gpu](State &state) { time_full_query(state, gpu); })
        ->Arg(1)
        ->Arg(16)
        ->Arg(256);
    add("(the loop itself)", [&gpu](State &state) { time_loop_alone(state, gpu); })->Arg(16);
}

// The measure: a hit in hooked mode costs at most a twentieth of the driver's query.
void print_verdict(Table &table, const Gpu &gpu)
{
    const double hit = table.medians["device: hit, hooked/16"];
    const double query = table.medians["driver: eight attributes/16"];
    if (hit == 0 || query == 0) {
        return; // filtered out
    }
    std::printf("# a hooked hit is %.0f times cheaper than this driver's full query%s\n",
                query / hit, gpu.is_emulated() ? " (a table look-up, no GPU driver's)" : "");
    std::printf("# and 20 times cheaper than any query of %.0f ns or more\n", 20 * hit);
}

} // namespace
} // namespace hetcoll

int main(int argc, char **argv)
{
    using namespace hetcoll;
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) {
        return 1;
    }
    constexpr std::size_t kBytes = 1 << 20;
    void *const mapped =
        mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const std::unique_ptr<char[]> heap(new char[64]);
    Table table;

    // While the process knows nothing of CUDA, then the library alone, then a context.
    const DriverLibrary closed;
    if (!closed.is_loaded_in_process()) {
        add("host: a mapping, no driver in the process",
            [&](State &state) { time_host(state, closed, mapped); });
        run_registered(table);
    }
    const DriverLibrary opened;
    if (opened.get() != nullptr) {
        add("host: a mapping, no cuInit yet",
            [&](State &state) { time_host(state, opened, mapped); });
        run_registered(table);
    }

    const std::unique_ptr<Gpu> held = require(Gpu::open(0));
    const Gpu &gpu = *held;
    Driver &patched = const_cast<Driver &>(gpu.driver());
    original_alloc = std::exchange(patched.cuMemAlloc, &announced_alloc);
    original_free = std::exchange(patched.cuMemFree, &announced_free);
    add_host_questions(gpu.library(), mapped, heap.get());
    add_device_questions(gpu);
    print_header(gpu, "pointer_cache_bench: what a question about a pointer costs");
    run_registered(table);
    std::printf("# method      processor time, 9 repetitions of at least 20 ms; `of` allocations, "
                "asked for in turn\n%-42s %5s %6s %8s %9s\n%s",
                "question", "of", "calls", "min_ns", "median_ns", table.lines.c_str());
    print_verdict(table, gpu);
    munmap(mapped, kBytes);
    return 0;
}
