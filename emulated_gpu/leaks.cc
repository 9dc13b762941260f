#include "emulated_gpu/leaks.h"

#include "emulated_gpu/contexts.h"
#include "emulated_gpu/events.h"
#include "emulated_gpu/memory.h"
#include "emulated_gpu/modules.h"
#include "emulated_gpu/report.h"
#include "emulated_gpu/settings.h"
#include "emulated_gpu/streams.h"

#include <unistd.h>

#include <algorithm>
#include <mutex>

namespace hetcoll::emulated_gpu {
namespace {

std::string leaked_memory()
{
    const std::shared_lock lock(memory_mutex());
    std::string text;
    for (const auto &[start, allocation] : allocations()) {
        char line[160];
        std::snprintf(line, sizeof line, "%s memory %#zx, %zu bytes, buffer id %llu\n",
                      kind_name(allocation->kind), start, allocation->bytes,
                      static_cast<unsigned long long>(allocation->buffer_id));
        text += line;
    }
    return text;
}

std::string leaked_contexts()
{
    std::string text = retained_contexts();
    for (const auto &context : contexts().all()) {
        if (!context->primary) {
            text += "context of device " + std::to_string(context->device) + "\n";
        }
    }
    return text;
}

// In which nothing could be freed any more.
bool some_context_is_ruined()
{
    const auto all = contexts().all();
    return std::any_of(all.begin(), all.end(), [](const auto &context) {
        return context->sticky_error.load() != CUDA_SUCCESS;
    });
}

std::string counted(std::size_t count, const char *what)
{
    return count > 0 ? std::to_string(count) + " " + what + "\n" : "";
}

} // namespace

void report_leaks()
{
    if (some_context_is_ruined()) {
        return;
    }
    const std::string found = leaked_memory() + leaked_vmm() + leaked_pools() +
                              counted(streams().all().size(), "stream(s)") +
                              counted(events().all().size(), "event(s)") +
                              counted(loaded_modules(), "module(s)") + leaked_contexts();
    std::string text;
    const std::string prefix = "emulated_gpu " + std::to_string(getpid()) + " leaked ";
    for (std::size_t at = 0; at < found.size();) {
        const std::size_t end = found.find('\n', at) + 1;
        text += prefix + found.substr(at, end - at);
        at = end;
    }
    if (!text.empty()) {
        publish(settings().print_leaks, "EMU_LEAKS_FILE", text);
    }
}

} // namespace hetcoll::emulated_gpu
