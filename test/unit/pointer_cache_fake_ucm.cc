#include "test/unit/pointer_cache_fake_ucm.h"

#include <algorithm>
#include <array>
#include <cstdlib>

namespace {

using Callback = void (*)(int type, void *event, void *argument);
struct Handler {
    int events;
    Callback callback;
    void *argument;
};
std::mutex handlers_mutex; // held while handlers run, as libucm's lock is
std::vector<Handler> handlers;
int status_to_answer = 0;

} // namespace

extern "C" {
[[gnu::visibility("default")]] int ucm_set_event_handler(int events, int priority,
                                                         Callback callback, void *argument);
[[gnu::visibility("default")]] void ucm_unset_event_handler(int events, Callback callback,
                                                            void *argument);

int ucm_set_event_handler(int events, int /*priority*/, Callback callback, void *argument)
{
    const std::lock_guard lock(handlers_mutex);
    if (status_to_answer == 0) {
        handlers.push_back({events, callback, argument});
    }
    return status_to_answer;
}

void ucm_unset_event_handler(int /*events*/, Callback callback, void *argument)
{
    const std::lock_guard lock(handlers_mutex);
    std::erase_if(handlers, [&](const Handler &handler) {
        return handler.callback == callback && handler.argument == argument;
    });
}
}

namespace hetcoll::test {
namespace {

// The driver's own calls while they are patched.
decltype(Driver::cuMemAlloc) original_alloc;
decltype(Driver::cuMemAllocManaged) original_alloc_managed;
decltype(Driver::cuMemFree) original_free;

CUresult announced_alloc(CUdeviceptr *out, std::size_t bytes)
{
    const CUresult result = original_alloc(out, bytes);
    if (result == CUDA_SUCCESS) {
        emit_memory_event(kUcmMemTypeAlloc, *out, bytes);
    }
    return result;
}

CUresult announced_alloc_managed(CUdeviceptr *out, std::size_t bytes, unsigned flags)
{
    const CUresult result = original_alloc_managed(out, bytes, flags);
    if (result == CUDA_SUCCESS) {
        emit_memory_event(kUcmMemTypeAlloc, *out, bytes);
    }
    return result;
}

CUresult announced_free(CUdeviceptr address)
{
    emit_memory_event(kUcmMemTypeFree, address, 0); // libucm does not always know the size
    return original_free(address);
}

Driver &patchable() { return *const_cast<Driver *>(cuda().driver); }

} // namespace

const char *ucm_library() { return std::getenv("HETCOLL_TEST_LIBUCS"); }

void emit_memory_event(int type, std::uintptr_t first, std::size_t bytes)
{
    struct {
        void *address;
        std::size_t size;
        int memory_type;
    } event{reinterpret_cast<void *>(first), bytes, 1};
    const std::lock_guard lock(handlers_mutex);
    for (const Handler &handler : handlers) {
        if ((handler.events & type) != 0) {
            handler.callback(type, &event, handler.argument);
        }
    }
}

std::size_t memory_event_handlers()
{
    const std::lock_guard lock(handlers_mutex);
    return handlers.size();
}

void set_ucm_status(int status) { status_to_answer = status; }

PatchedDriver::PatchedDriver()
{
    Driver &driver = patchable();
    original_alloc = std::exchange(driver.cuMemAlloc, &announced_alloc);
    original_alloc_managed = std::exchange(driver.cuMemAllocManaged, &announced_alloc_managed);
    original_free = std::exchange(driver.cuMemFree, &announced_free);
}

PatchedDriver::~PatchedDriver()
{
    Driver &driver = patchable();
    driver.cuMemAlloc = original_alloc;
    driver.cuMemAllocManaged = original_alloc_managed;
    driver.cuMemFree = original_free;
}

std::vector<std::string> &LogLines::all()
{
    static std::vector<std::string> lines;
    return lines;
}

Log LogLines::to_here()
{
    all().clear();
    return {.write = [](int, const char *line) { all().emplace_back(line); }, .verbose = 0};
}

} // namespace hetcoll::test
