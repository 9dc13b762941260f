#include "topology_probe/nvml.h"

#include <dlfcn.h>

#include <string_view>
#include <utility>

namespace hetcoll {
namespace {

template <class Call> struct Absent;
template <class... Args> struct Absent<NvmlResult (*)(Args...)> {
    static NvmlResult call(Args...) noexcept { return kNvmlNotSupported; }
};

template <class Call> bool look_up(void *library, const char *name, Call &call)
{
    call = reinterpret_cast<Call>(dlsym(library, name));
    if (call == nullptr) {
        call = &Absent<Call>::call;
        return false;
    }
    return true;
}

} // namespace

Result<Nvml> Nvml::open(const std::string &name)
{
    void *const library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        return error(Errc::kUnsupported, "%s", dlerror());
    }
    Nvml nvml(library);
    if (Status status = nvml.initialize(name); !status.ok()) {
        return status;
    }
    return nvml;
}

Status Nvml::initialize(const std::string &name)
{
    const char *missing = nullptr;
#define HETCOLL_LOOK_UP(call, ...)                \
    if (!look_up(library_, #call, calls_.call)) { \
        missing = #call;                          \
    }
    HETCOLL_OPTIONAL_NVML_CALLS(HETCOLL_LOOK_UP)
    missing = nullptr;
    HETCOLL_NEEDED_NVML_CALLS(HETCOLL_LOOK_UP)
#undef HETCOLL_LOOK_UP
    if (missing != nullptr) {
        return error(Errc::kUnsupported, "%s lacks %s", name.c_str(), missing);
    }
    if (const NvmlResult result = calls_.nvmlInit_v2(); result != kNvmlSuccess) {
        return error(Errc::kDriver, "nvmlInit_v2 answers %d", result);
    }
    initialized_ = true;
    return {};
}

BusId Nvml::bus_of(const NvmlPciInfo &pci)
{
    const std::string_view text(pci.bus_id, sizeof pci.bus_id);
    return parse_bus_id(text.substr(0, text.find('\0'))).value_or(BusId{});
}

Nvml::Nvml(Nvml &&other) noexcept
    : library_(std::exchange(other.library_, nullptr)),
      initialized_(std::exchange(other.initialized_, false)), calls_(other.calls_)
{
}

Nvml::~Nvml()
{
    if (initialized_) {
        calls_.nvmlShutdown();
    }
    if (library_ != nullptr) {
        dlclose(library_);
    }
}

} // namespace hetcoll
