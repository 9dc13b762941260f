// The emulated driver as the probe sees it.
#pragma once

#include "device/driver.h"
#include "test/unit/emulated_gpu_driver.h"
#include "test/unit/topology_machines.h"

#include <unistd.h>

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace hetcoll::test {

// Initialized.
inline const Driver &driver()
{
    static const DriverLibrary library;
    static const Driver *const loaded = library.get();
    if (loaded == nullptr || !library.is_emulated() || loaded->cuInit(0) != CUDA_SUCCESS) {
        std::fprintf(stderr, "these tests need the emulated GPU on LD_LIBRARY_PATH\n");
        std::abort();
    }
    return *loaded;
}

// Runs a test of this program on the emulated GPUs of a machine.
inline void run_on(const std::string &topology_file, const char *test,
                   std::vector<std::string> environment = {})
{
    environment.push_back("EMU_LINKS=" + topology_file);
    environment.push_back("EMU_NODE=probe" + std::to_string(getpid()));
    const ChildResult child = run_in_child(test, environment);
    EXPECT_EQ(child.exit_status, 0) << child.errors;
}

inline std::string shipped_path(const std::string &name)
{
    return shipped_folder() + "/" + name + ".topology";
}

} // namespace hetcoll::test
