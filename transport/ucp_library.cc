#include "hetcoll_config.h"

#if HETCOLL_WITH_UCX

#include "transport/ucp_library.h"

#include "base/library.h"

namespace hetcoll {

Result<UcpCalls> load_ucp(const char *library)
{
    UcpCalls calls;
    Status loaded = load_functions("UCX", library, [&](const auto &look_up) {
#define HETCOLL_LOOK_UP(name) look_up(#name, calls.name);
        HETCOLL_UCP_CALLS(HETCOLL_LOOK_UP) // that of libucs too, which libucp needs
#undef HETCOLL_LOOK_UP
    });
    if (!loaded.ok()) {
        return loaded;
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
