#include "emulated_gpu/faults.h"

#include "emulated_gpu/calls.h"
#include "emulated_gpu/emulated_gpu.h"
#include "emulated_gpu/report.h"
#include "emulated_gpu/settings.h"

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace hetcoll::emulated_gpu {
namespace {

struct Fault {
    std::string call;
    unsigned long nth = 0;
    bool onwards = false;
    int code = 0;
    unsigned long seen = 0;
};

constinit std::mutex mutex; // of fault_list()
enum class Known { kNo, kNone, kSome };
constinit std::atomic<Known> known{Known::kNo};

// Never destroyed: driver calls may come while the process ends.
std::vector<Fault> &fault_list()
{
    static std::vector<Fault> &list = *new std::vector<Fault>;
    return list;
}

bool parse_number(std::string_view text, unsigned long &number)
{
    const std::string copy(text);
    char *end = nullptr;
    number = std::strtoul(copy.c_str(), &end, 10);
    return !copy.empty() && *end == '\0';
}

bool parse_fault(std::string_view text, Fault &fault)
{
    const auto first = text.find(':');
    const auto second = text.find(':', first == text.npos ? first : first + 1);
    if (second == text.npos) {
        return false;
    }
    fault.call = text.substr(0, first);
    std::string_view nth = text.substr(first + 1, second - first - 1);
    if (nth == "*") {
        nth = "+1";
    }
    fault.onwards = nth.starts_with('+');
    unsigned long code = 0;
    const bool ok = parse_number(nth.substr(fault.onwards), fault.nth) && fault.nth > 0 &&
                    parse_number(text.substr(second + 1), code);
    fault.code = static_cast<int>(code);
    return ok && !fault.call.empty();
}

bool parse_list(std::string_view text, std::vector<Fault> &list)
{
    while (!text.empty()) {
        const auto comma = text.find(',');
        Fault fault;
        if (!parse_fault(text.substr(0, comma), fault)) {
            return false;
        }
        list.push_back(fault);
        text = comma == text.npos ? std::string_view{} : text.substr(comma + 1);
    }
    return true;
}

// Requires the lock.
void replace_faults(const char *text)
{
    std::vector<Fault> list;
    if (text != nullptr && !parse_list(text, list)) {
        say("fault list '%s' is not call:nth:code[,...], no fault is injected", text);
        list.clear();
    }
    known.store(list.empty() ? Known::kNone : Known::kSome, std::memory_order_release);
    fault_list() = std::move(list);
}

} // namespace

CUresult injected_fault(const char *name)
{
    if (known.load(std::memory_order_acquire) == Known::kNone) [[likely]] {
        return CUDA_SUCCESS;
    }
    const std::lock_guard lock(mutex);
    if (known.load(std::memory_order_relaxed) == Known::kNo) {
        replace_faults(settings().faults);
    }
    int code = CUDA_SUCCESS;
    for (Fault &fault : fault_list()) {
        if (fault.call == name) {
            ++fault.seen;
            if (fault.seen == fault.nth || (fault.onwards && fault.seen > fault.nth)) {
                code = fault.code;
            }
        }
    }
    return static_cast<CUresult>(code);
}

} // namespace hetcoll::emulated_gpu

EMULATED_GPU_EXPORT void emulated_gpu_set_faults(const char *text)
{
    using namespace hetcoll::emulated_gpu;
    const std::lock_guard lock(mutex);
    replace_faults(text);
}
