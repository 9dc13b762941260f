// Libraries that are found at run time, by dlopen: nobody needs them unless what they serve is
// asked for.
#pragma once

#include "base/status.h"

#include <dlfcn.h>

#include <type_traits>

namespace hetcoll {

// Opens the library for good, and fills in its functions: fill(look_up) calls look_up(name,
// pointer) for each. `what` names it in errors: UCX.
template <class Fill>
[[nodiscard]] Status load_functions(const char *what, const char *library, const Fill &fill)
{
    void *const opened = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (opened == nullptr) {
        return error(Errc::kUnsupported, "%s cannot be loaded: %s", what, dlerror());
    }
    const char *missing = nullptr;
    fill([&](const char *name, auto &pointer) {
        pointer = reinterpret_cast<std::remove_reference_t<decltype(pointer)>>(dlsym(opened, name));
        missing = pointer == nullptr ? name : missing;
    });
    if (missing != nullptr) {
        return error(Errc::kUnsupported, "%s (%s) lacks %s", what, library, missing);
    }
    return {};
}

// Whoever closes the library that has this code or data does not unload it: a thread, or somebody
// who was given a pointer, may need it still.
inline void keep_loaded(void *part) noexcept
{
    Dl_info info;
    if (dladdr(part, &info) != 0) {
        static_cast<void>(dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE));
    }
}

} // namespace hetcoll
