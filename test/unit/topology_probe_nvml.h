// The fake NVML as a test of this program uses it.
#pragma once

#include "test/unit/topology_probe_fake_nvml.h"

#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <string>

namespace hetcoll::test {

inline std::string fake_nvml_path()
{
    const char *const build = std::getenv("HETCOLL_BUILDDIR");
    return std::string(build != nullptr ? build : ".") + "/test/unit/.libs/libfake_nvml.so";
}

// Empty, and the same that the probe loads.
class LoadedFakeNvml {
public:
    LoadedFakeNvml() : library_(dlopen(fake_nvml_path().c_str(), RTLD_NOW | RTLD_LOCAL))
    {
        if (library_ == nullptr) {
            std::fprintf(stderr, "test setup: %s\n", dlerror());
            std::abort();
        }
        const auto get = reinterpret_cast<FakeNvml *(*)()>(dlsym(library_, "hetcoll_fake_nvml"));
        fake_ = get();
        *fake_ = {};
    }
    ~LoadedFakeNvml()
    {
        *fake_ = {};
        dlclose(library_);
    }
    LoadedFakeNvml(const LoadedFakeNvml &) = delete;
    LoadedFakeNvml &operator=(const LoadedFakeNvml &) = delete;

    FakeNvml *operator->() const { return fake_; }

private:
    void *library_;
    FakeNvml *fake_;
};

} // namespace hetcoll::test
