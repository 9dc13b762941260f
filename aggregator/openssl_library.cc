#include "hetcoll_config.h"

#if HETCOLL_WITH_OPENSSL

#include "aggregator/openssl_library.h"

#include <dlfcn.h>

namespace hetcoll {

Result<OpensslCalls> load_openssl()
{
    // The release whose headers hetcoll was built with: the prototypes are that release's.
#if OPENSSL_VERSION_NUMBER >= 0x30000000L
    constexpr const char *kLibrary = "libssl.so.3";
#else
    constexpr const char *kLibrary = "libssl.so.1.1";
#endif
    void *const library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        return error(Errc::kUnsupported,
                     "OpenSSL cannot be loaded: %s; hetcoll needs it to reach aggregators",
                     dlerror());
    }
    OpensslCalls calls;
    const char *missing = nullptr;
#define HETCOLL_LOOK_UP(name)                                                   \
    calls.name = reinterpret_cast<decltype(calls.name)>(dlsym(library, #name)); \
    missing = calls.name == nullptr ? #name : missing;
    HETCOLL_OPENSSL_CALLS(HETCOLL_LOOK_UP) // those of libcrypto too, which libssl needs
#undef HETCOLL_LOOK_UP
    if (missing != nullptr) {
        return error(Errc::kUnsupported,
                     "OpenSSL (%s) lacks %s, which hetcoll needs to reach aggregators", kLibrary,
                     missing);
    }
    return calls;
}

} // namespace hetcoll

#endif
