// A libucm for tests: the program itself exports libucm's two functions, and the cache is told to
// look there (a null library name). Events come from wrappers around the driver's calls, as UCX's
// patches of libcuda make them.
#pragma once

#include "base/log.h"
#include "test/unit/device_cuda.h"

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace hetcoll::test {

// From UCX, src/ucm/api/ucm.h.
inline constexpr int kUcmVmUnmapped = 1 << 17, kUcmMemTypeAlloc = 1 << 20,
                     kUcmMemTypeFree = 1 << 21;

// The handle in which caches look for libucm's functions: null, this program, unless
// HETCOLL_TEST_LIBUCS names a UCX with CUDA support, whose events then take the place of those
// here.
const char *ucm_library();

// Calls the handlers that are installed.
void emit_memory_event(int type, std::uintptr_t first, std::size_t bytes);
// How many handlers are installed.
std::size_t memory_event_handlers();
// The answer of ucm_set_event_handler from now on; 0 is success.
void set_ucm_status(int status);

// While it lives, the driver table's cuMemAlloc, cuMemAllocManaged and cuMemFree announce what they
// do.
class PatchedDriver {
public:
    PatchedDriver();
    ~PatchedDriver();
    PatchedDriver(const PatchedDriver &) = delete;
    PatchedDriver &operator=(const PatchedDriver &) = delete;
};

// The lines that a cache logged since clear(). Tests run one at a time.
struct LogLines {
    static std::vector<std::string> &all();
    static Log to_here();
};

} // namespace hetcoll::test
