#include "emulated_gpu/faults.h"

#include "emulated_gpu/calls.h"
#include "emulated_gpu/emulated_gpu.h"
#include "emulated_gpu/report.h"
#include "emulated_gpu/settings.h"

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace hetcoll::emulated_gpu {
namespace {

constexpr int kDies = -1; // instead of a code

struct Fault {
    std::string call; // without the version, as in the CUDA documentation
    unsigned long nth = 0;
    bool onwards = false;
    int code = 0;
    unsigned long seen = 0;
};

constinit std::mutex mutex; // of fault_list() and refusals()
enum class Known { kNo, kNone, kSome };
constinit std::atomic<Known> known{Known::kNo};
constinit std::atomic<void (*)(const char *, int)> listener{nullptr};

// Never destroyed: driver calls may come while the process ends.
std::vector<Fault> &fault_list()
{
    static std::vector<Fault> &list = *new std::vector<Fault>;
    return list;
}

std::map<std::string, std::size_t, std::less<>> &refusals() // by call
{
    static auto &the = *new std::map<std::string, std::size_t, std::less<>>;
    return the;
}

// cuMemAlloc for cuMemAlloc_v2.
std::string_view without_version(std::string_view name)
{
    const auto at = name.rfind("_v");
    return at != name.npos && at + 3 == name.size() ? name.substr(0, at) : name;
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
    fault.call = without_version(text.substr(0, first));
    std::string_view nth = text.substr(first + 1, second - first - 1);
    if (nth == "*") {
        nth = "+1";
    }
    fault.onwards = nth.starts_with('+');
    const std::string_view answer = text.substr(second + 1);
    unsigned long code = 0;
    const bool ok = parse_number(nth.substr(fault.onwards), fault.nth) && fault.nth > 0 &&
                    (answer == "dies" || parse_number(answer, code));
    fault.code = answer == "dies" ? kDies : static_cast<int>(code);
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

// A fault with a misspelt name would never come.
void name_what_never_fails(const std::vector<Fault> &list)
{
    for (const Fault &fault : list) {
        const char *code_name = nullptr;
        if (!is_entry_point(fault.call)) {
            say("EMU_FAIL: there is no driver call %s, that fault never comes", fault.call.c_str());
        }
        if (fault.code != kDies &&
            cuGetErrorName(static_cast<CUresult>(fault.code), &code_name) != CUDA_SUCCESS) {
            say("EMU_FAIL: %d is not an error code of CUDA, %s answers it all the same", fault.code,
                fault.call.c_str());
        }
    }
}

// Requires the lock.
void replace_faults(const char *text)
{
    std::vector<Fault> list;
    if (text != nullptr && !parse_list(text, list)) {
        say("EMU_FAIL='%s' is not call:nth:code[,...] with a number or 'dies' for the code, no "
            "fault is injected",
            text);
        list.clear();
    }
    name_what_never_fails(list);
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
    unsigned long nth = 0;
    const std::string_view call = without_version(name);
    for (Fault &fault : fault_list()) {
        if (fault.call == call) {
            ++fault.seen;
            if (fault.seen == fault.nth || (fault.onwards && fault.seen > fault.nth)) {
                code = fault.code;
                nth = fault.seen;
            }
        }
    }
    if (code == kDies) {
        say("dies in call %lu of %s, as EMU_FAIL wants", nth, std::string(call).c_str());
        std::raise(SIGKILL);
    }
    if (code != CUDA_SUCCESS) {
        ++refusals()[std::string(call)];
    }
    return static_cast<CUresult>(code);
}

std::size_t refused_calls(const char *name)
{
    const std::lock_guard lock(mutex);
    const auto found = refusals().find(std::string_view(name));
    return found == refusals().end() ? 0 : found->second;
}

void tell_failure(const char *name, CUresult code)
{
    if (const auto told = listener.load(std::memory_order_acquire); told != nullptr) {
        told(std::string(without_version(name)).c_str(), code);
    }
}

} // namespace hetcoll::emulated_gpu

EMULATED_GPU_EXPORT void emulated_gpu_set_faults(const char *text)
{
    using namespace hetcoll::emulated_gpu;
    const std::lock_guard lock(mutex);
    replace_faults(text);
}

EMULATED_GPU_EXPORT void emulated_gpu_tell_failures(void (*told)(const char *call, int code))
{
    hetcoll::emulated_gpu::listener.store(told, std::memory_order_release);
}
