// What a question about a pointer costs: the cache's answers in every mode, and the driver's own.
// The number after the slash is how many allocations live and are asked for in turn. On the
// emulated GPU the driver's own time is no GPU's: a real driver takes 200 to 500 ns.
#include "device/device.h"
#include "pointer_cache/pointer_cache.h"

#include <benchmark/benchmark.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <sys/mman.h>
#include <utility>
#include <vector>

// libucm for the cache in hooked mode, in case the installed one does not report CUDA's events: the
// program itself plays it (a null library name), and wraps the two calls that prove the events.
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

void require(CUresult result, const char *what)
{
    if (result != CUDA_SUCCESS) {
        std::fprintf(stderr, "pointer_cache_bench: %s answers %d\n", what,
                     static_cast<int>(result));
        std::exit(1);
    }
}

DriverLibrary &library()
{
    static DriverLibrary opened;
    return opened;
}

const Driver &driver()
{
    return *library().get();
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

std::unique_ptr<PointerCache> make_cache(PointerCacheMode mode)
{
    return PointerCache::create(library(), mode, {}, nullptr);
}

// `count` allocations of 1 MiB; a pointer into each, in random order.
class Allocations {
public:
    explicit Allocations(std::int64_t count)
    {
        constexpr std::size_t kBytes = 1 << 20;
        std::mt19937 random(1);
        for (std::int64_t i = 0; i < count; ++i) {
            CUdeviceptr memory = 0;
            require(driver().cuMemAlloc(&memory, kBytes), "cuMemAlloc");
            memory_.push_back(memory);
        }
        for (const void *&pointer : pointers_) {
            const CUdeviceptr base = memory_[random() % memory_.size()];
            pointer = reinterpret_cast<const void *>(base + random() % kBytes);
        }
    }
    ~Allocations()
    {
        for (const CUdeviceptr memory : memory_) {
            driver().cuMemFree(memory);
        }
    }
    Allocations(const Allocations &) = delete;
    Allocations &operator=(const Allocations &) = delete;
    [[nodiscard]] const void *next() { return pointers_[++at_ % kPointers]; }

private:
    static constexpr std::size_t kPointers = 1024;

    std::vector<CUdeviceptr> memory_;
    std::array<const void *, kPointers> pointers_;
    std::size_t at_ = 0;
};

void find_all(benchmark::State &state, PointerCacheMode mode)
{
    Allocations allocations(state.range(0));
    const auto cache = make_cache(mode);
    for (int i = 0; i < 10000; ++i) {
        benchmark::DoNotOptimize(cache->find(allocations.next()).ok());
    }
    if (cache->mode() != mode) {
        state.SkipWithError("the mode is not in force");
        return;
    }
    const std::uint64_t before = cache->counters().queries;
    for (auto _ : state) {
        auto info = cache->find(allocations.next());
        benchmark::DoNotOptimize(info->device);
    }
    state.counters["driver_calls"] =
        benchmark::Counter(static_cast<double>(cache->counters().queries - before),
                           benchmark::Counter::kAvgIterations);
}

void hit_hooked(benchmark::State &state)
{
    find_all(state, PointerCacheMode::kHooked);
}
void hit_validated(benchmark::State &state)
{
    find_all(state, PointerCacheMode::kValidated);
}
void off(benchmark::State &state)
{
    find_all(state, PointerCacheMode::kOff);
}

void miss(benchmark::State &state, PointerCacheMode mode)
{
    Allocations allocations(state.range(0));
    const auto cache = make_cache(mode);
    for (auto _ : state) {
        cache->flush();
        auto info = cache->find(allocations.next());
        benchmark::DoNotOptimize(info->device);
    }
}

void miss_hooked(benchmark::State &state)
{
    miss(state, PointerCacheMode::kHooked);
}
void miss_validated(benchmark::State &state)
{
    miss(state, PointerCacheMode::kValidated);
}

void loop_alone(benchmark::State &state) // part of every time above and below
{
    Allocations allocations(state.range(0));
    for (auto _ : state) {
        benchmark::DoNotOptimize(allocations.next());
    }
}

void driver_buffer_id(benchmark::State &state)
{
    Allocations allocations(state.range(0));
    unsigned long long id = 0;
    for (auto _ : state) {
        driver().cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID,
                                       reinterpret_cast<CUdeviceptr>(allocations.next()));
        benchmark::DoNotOptimize(id);
    }
}

// What a library without a cache asks: kind, device, context, allocation.
void driver_eight_attributes(benchmark::State &state)
{
    Allocations allocations(state.range(0));
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
    for (auto _ : state) {
        driver().cuPointerGetAttributes(std::size(attributes), attributes, values,
                                        reinterpret_cast<CUdeviceptr>(allocations.next()));
        benchmark::DoNotOptimize(value[0]);
    }
}

void host(benchmark::State &state, const void *pointer)
{
    const auto cache = make_cache(PointerCacheMode::kValidated);
    for (auto _ : state) {
        auto info = cache->find(pointer);
        benchmark::DoNotOptimize(info->device);
    }
    state.counters["driver_calls"] = benchmark::Counter(
        static_cast<double>(cache->counters().queries), benchmark::Counter::kAvgIterations);
}

void host_stack(benchmark::State &state)
{
    const int local = 0;
    host(state, &local);
}

void host_heap(benchmark::State &state)
{
    const std::unique_ptr<char[]> small(new char[64]);
    host(state, small.get());
}

void host_static(benchmark::State &state)
{
    static int data;
    host(state, &data);
}

void host_mapping(benchmark::State &state) // a large malloc(): only the driver can tell
{
    constexpr std::size_t kBytes = 1 << 20;
    void *const mapped =
        mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    host(state, mapped);
    munmap(mapped, kBytes);
}

BENCHMARK(hit_hooked)->Arg(1)->Arg(16)->Arg(256);
BENCHMARK(hit_validated)->Arg(1)->Arg(16)->Arg(256);
BENCHMARK(off)->Arg(1)->Arg(16)->Arg(256);
BENCHMARK(loop_alone)->Arg(16);
BENCHMARK(driver_buffer_id)->Arg(1)->Arg(16)->Arg(256);
BENCHMARK(driver_eight_attributes)->Arg(1)->Arg(16)->Arg(256);
BENCHMARK(miss_hooked)->Arg(16);
BENCHMARK(miss_validated)->Arg(16);
BENCHMARK(host_stack);
BENCHMARK(host_heap);
BENCHMARK(host_static);
BENCHMARK(host_mapping);

} // namespace
} // namespace hetcoll

int main(int argc, char **argv)
{
    using namespace hetcoll;
    benchmark::Initialize(&argc, argv);
    if (library().get() == nullptr) {
        std::fprintf(stderr, "pointer_cache_bench: %s\n", library().load_error().message().c_str());
        return 1;
    }
    CUcontext context = nullptr;
    require(driver().cuInit(0), "cuInit");
    require(driver().cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
    require(driver().cuCtxSetCurrent(context), "cuCtxSetCurrent");
    char name[100] = "";
    driver().cuDeviceGetName(name, sizeof name, 0);
    benchmark::AddCustomContext("device", name);
    benchmark::AddCustomContext("driver",
                                library().is_emulated() ? "emulated: no GPU speed" : "real");

    Driver &patched = const_cast<Driver &>(driver());
    original_alloc = std::exchange(patched.cuMemAlloc, &announced_alloc);
    original_free = std::exchange(patched.cuMemFree, &announced_free);
    benchmark::RunSpecifiedBenchmarks();
}
