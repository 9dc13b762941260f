// The emulated GDRCopy for tests: its faults, and what is pinned.
#pragma once

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

namespace hetcoll::test {

template <class Function> Function gdr_function(const char *name)
{
    void *const library = dlopen("libgdrapi.so.2", RTLD_NOW);
    void *const found = library == nullptr ? nullptr : dlsym(library, name);
    if (found == nullptr) {
        std::fprintf(stderr, "these tests need the emulated GDRCopy on LD_LIBRARY_PATH: %s\n",
                     dlerror());
        std::abort();
    }
    return reinterpret_cast<Function>(found);
}

// Faults as in EMU_GDR_FAIL, until the end of the scope.
class GdrFaults {
public:
    explicit GdrFaults(const char *faults) { set(faults); }
    ~GdrFaults() { set(nullptr); }
    GdrFaults(const GdrFaults &) = delete;
    GdrFaults &operator=(const GdrFaults &) = delete;

private:
    static void set(const char *faults)
    {
        gdr_function<void (*)(const char *)>("emulated_gdr_set_faults")(faults);
    }
};

inline int gdr_pins() { return gdr_function<int (*)()>("emulated_gdr_pins")(); }

} // namespace hetcoll::test
