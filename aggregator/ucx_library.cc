#include "hetcoll_config.h"

#if HETCOLL_WITH_UCX

#include "aggregator/ucx_library.h"

#include <dlfcn.h>

namespace hetcoll {

Result<UcxCalls> load_ucx()
{
    constexpr const char *kLibrary = "libucp.so.0";
    void *const library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        return error(Errc::kUnsupported,
                     "UCX cannot be loaded: %s; hetcoll needs it to reach aggregators", dlerror());
    }
    UcxCalls calls;
    const char *missing = nullptr;
#define HETCOLL_LOOK_UP(name)                                                   \
    calls.name = reinterpret_cast<decltype(calls.name)>(dlsym(library, #name)); \
    missing = calls.name == nullptr ? #name : missing;
    HETCOLL_UCX_CALLS(HETCOLL_LOOK_UP) // ucs_status_string is found in libucs, which libucp needs
#undef HETCOLL_LOOK_UP
    if (missing != nullptr) {
        return error(Errc::kUnsupported,
                     "UCX (%s) lacks %s, which hetcoll needs to reach aggregators: install UCX "
                     "1.11 or newer",
                     kLibrary, missing);
    }
    return calls;
}

} // namespace hetcoll

#endif
