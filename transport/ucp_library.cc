#include "hetcoll_config.h"

#if HETCOLL_WITH_UCX

#include "transport/ucp_library.h"

#include <dlfcn.h>

namespace hetcoll {

Result<UcpCalls> load_ucp(const char *library)
{
    void *const opened = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (opened == nullptr) {
        return error(Errc::kUnsupported, "UCX cannot be loaded: %s", dlerror());
    }
    UcpCalls calls;
    const char *missing = nullptr;
#define HETCOLL_LOOK_UP(name)                                                  \
    calls.name = reinterpret_cast<decltype(calls.name)>(dlsym(opened, #name)); \
    missing = calls.name == nullptr ? #name : missing;
    HETCOLL_UCP_CALLS(HETCOLL_LOOK_UP) // that of libucs too, which libucp needs
#undef HETCOLL_LOOK_UP
    if (missing != nullptr) {
        return error(Errc::kUnsupported, "UCX (%s) lacks %s", library, missing);
    }
    unsigned major = 0, minor = 0, release = 0;
    calls.ucp_get_version(&major, &minor, &release);
    if (major != UCP_API_MAJOR || minor < UCP_API_MINOR) {
        return error(Errc::kUnsupported,
                     "UCX is %u.%u, and hetcoll was built for %d.%d or a newer %d: build it with "
                     "the headers of this UCX",
                     major, minor, UCP_API_MAJOR, UCP_API_MINOR, UCP_API_MAJOR);
    }
    return calls;
}

} // namespace hetcoll

#endif
