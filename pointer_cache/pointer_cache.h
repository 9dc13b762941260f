// Answers what kind of memory a pointer points to. Everything known hangs off a BUFFER_ID, never
// off an address alone: buffer ids are not reused within a process, addresses are. Every find()
// that is not answered without a query makes one driver call, two where the address was reused
// (docs/internals/pointer-cache.md has the reasons, and the ways to be wrong).
#pragma once

#include "base/log.h"
#include "base/status.h"
#include "device/driver.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace hetcoll {

enum class MemoryKind : std::uint8_t { kHost, kDevice, kManaged };

struct PointerInfo {
    MemoryKind kind = MemoryKind::kHost;
    int device = -1;             // ordinal; -1 for host memory
    CUcontext context = nullptr; // the allocation's; nullptr where it has none (VMM, pools): use
                                 // the primary context of `device`
    std::uint64_t buffer_id = 0; // of the allocation; 0 for host memory
    std::uintptr_t base = 0;     // of the allocation; of VMM memory, of the reserved addresses
    std::size_t bytes = 0;       // of the same
    bool legacy_ipc = false;     // cuIpcGetMemHandle can export it

    // Memory of cuMemAlloc: while its BUFFER_ID is there, so are its range, its memory and its
    // context.
    [[nodiscard]] bool is_plain() const noexcept
    {
        return kind == MemoryKind::kDevice && context != nullptr && legacy_ipc;
    }
};

enum class PointerCacheMode : std::uint8_t {
    kValidated, // one BUFFER_ID query confirms a hit (default)
    kHooked,    // no driver call on a hit; needs libucm's memory events
    kOff,       // every pointer is queried in full
};

// Counts since creation. Queries counts every pointer query made here. While several threads call,
// some hits and answers without query may go uncounted.
struct PointerCacheCounters {
    std::uint64_t hits, misses, invalidations, queries, host_without_query;
};

// Thread safe. find() takes no lock and allocates nothing on a hit.
class PointerCache {
public:
    // `driver` outlives the cache. Makes no CUDA call. kHooked validates until the first device
    // pointer is found; an allocation of one byte, made and freed in that pointer's context, then
    // proves that libucm reports such events. If libucm does not report them, or is missing, one
    // line goes to the log and the cache goes on validating. A null `ucm_library` is the program
    // itself, for tests.
    static std::unique_ptr<PointerCache> create(const DriverLibrary &driver, PointerCacheMode mode,
                                                const Log &log,
                                                const char *ucm_library = "libucs.so.0");
    ~PointerCache();
    PointerCache(const PointerCache &) = delete;
    PointerCache &operator=(const PointerCache &) = delete;

    // kHost for memory that CUDA does not know or only registered (pinned), and for all memory
    // while nobody has initialized the driver. An error means that the driver could not be asked:
    // never take it for host.
    [[nodiscard]] Result<PointerInfo> find(const void *pointer) noexcept;

    // True if the address cannot be CUDA memory, found without a driver call: this thread's stack,
    // the brk heap, the main program's data, or no CUDA driver in this process (in kOff only that).
    [[nodiscard]] bool is_surely_host(const void *pointer) noexcept;

    // Forgets everything: after a context was destroyed or reset.
    void flush() noexcept;

    [[nodiscard]] PointerCacheMode mode() const noexcept; // in force, not asked for
    [[nodiscard]] PointerCacheCounters counters() const noexcept;

private:
    struct Impl;
    explicit PointerCache(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

} // namespace hetcoll
