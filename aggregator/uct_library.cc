#include "hetcoll_config.h"

#if HETCOLL_WITH_UCX

#include "aggregator/uct_library.h"

#include "base/library.h"

namespace hetcoll {

Result<UctCalls> load_uct(const char *library)
{
    UctCalls calls;
    Status loaded = load_functions("UCX", library, [&](const auto &look_up) {
#define HETCOLL_LOOK_UP(name) look_up(#name, calls.name);
        HETCOLL_UCT_CALLS(HETCOLL_LOOK_UP) // those of libuct and libucs too, which libucp needs
#undef HETCOLL_LOOK_UP
    });
    if (!loaded.ok()) {
        return loaded;
    }
    unsigned major = 0, minor = 0, release = 0;
    calls.ucp_get_version(&major, &minor, &release);
    if (major != UCP_API_MAJOR || minor != UCP_API_MINOR) {
        return error(Errc::kUnsupported,
                     "UCX is %u.%u, and hetcoll was built for %d.%d: build it with the headers of "
                     "this UCX",
                     major, minor, UCP_API_MAJOR, UCP_API_MINOR);
    }
    return calls;
}

} // namespace hetcoll

#endif
