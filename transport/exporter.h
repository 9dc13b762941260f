// Describes device buffers so that other processes of the node can map them (peer_memory.h). What
// cannot be shared is described as such, with the reason; the caller copies it through memory that
// can.
#pragma once

#include "base/log.h"
#include "base/status.h"
#include "device/driver.h"
#include "transport/fd_socket.h"
#include "transport/node_identity.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace hetcoll {

enum class SharedKind : std::uint8_t { kNone, kLegacyIpc, kVmm };

// Why a buffer is kNone.
enum class NotShared : std::uint8_t {
    kIsShared,
    kNotExportable, // managed memory, a pool's, or another kind that has no handle
    kNoFdRequested, // VMM memory that was made without CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
    kTooManyPieces, // the buffer lies in more than kMaxSharedPieces VMM allocations
    kNoSocket,      // this process cannot pass file descriptors on
    kDriverRefused, // a driver call failed; the log has it
    kPeerRefused,   // a peer could not map it
};
[[nodiscard]] const char *reason(NotShared why) noexcept; // for a message: "it is managed memory"

inline constexpr int kMaxSharedPieces = 64;

// A buffer as its owner announces it. Lies in shared memory and goes through messages as it is.
struct SharedBuffer {
    SharedKind kind;
    NotShared why;
    bool stands_in;           // memory of hetcoll's own, for a buffer that cannot be shared
    std::uint8_t pieces;      // kVmm: allocations that the range is made of
    std::uint32_t generation; // kVmm: moves on when other memory is found at an old address
    std::uint64_t buffer_id;  // names the mapping: never again used for other memory of the process
    std::uint64_t base;       // of what is mapped, an address of the owner
    std::uint64_t bytes;      // of what is mapped
    std::uint64_t offset;     // of the buffer from base
    unsigned char uuid[16];   // of the device
    union {
        CUipcMemHandle handle; // kLegacyIpc
        FdTicket fds;          // kVmm
    };
};
static_assert(sizeof(SharedBuffer) <= 160 && std::is_trivially_copyable_v<SharedBuffer>);

// Memory that a process has announced and does not have any more, as it tells its peers: they close
// what they have mapped of it. Lies in shared memory.
struct FreedMemory {
    static constexpr std::size_t kMost = 15;
    std::uint64_t count; // more than kMost: any of what it has announced
    std::array<std::uint64_t, kMost> buffer_ids;

    [[nodiscard]] bool has(std::uint64_t buffer_id) const noexcept
    {
        const auto end = buffer_ids.begin() + static_cast<std::ptrdiff_t>(std::min(count, kMost));
        return count > kMost || std::find(buffer_ids.begin(), end, buffer_id) != end;
    }
};

// The pointer cache's facts about a buffer's allocation.
struct Allocation {
    int device; // ordinal
    std::uint64_t buffer_id;
    std::uintptr_t base; // of virtual memory management: what was reserved, maybe for more memory
    std::size_t bytes;
    bool legacy_ipc;  // cuIpcGetMemHandle can export it
    bool own = false; // memory of hetcoll's, which says when it is freed: own_is_freed()
};

// The allocation that `memory` points into, asked of the driver: for our own scratch.
[[nodiscard]] Result<Allocation> query_allocation(const Driver &driver, const void *memory);

struct ExporterCounters {
    std::uint64_t hits, legacy_exports, vmm_exports, refusals, evictions;
};

// One a process; thread safe. Legacy handles are cached by (device, BUFFER_ID). VMM memory is
// looked up in the driver each time, because its buffer ids are not known to change when other
// memory is mapped at its address; it gets an id of our own.
class Exporter final : public FdSource {
public:
    // `driver` outlives it. `socket` may be null: VMM memory is kNone then.
    static std::unique_ptr<Exporter> create(const Driver &driver, std::shared_ptr<FdSocket> socket,
                                            const Log &log, int limit = 256);
    ~Exporter() override; // releases what keeps VMM memory alive
    Exporter(const Exporter &) = delete;
    Exporter &operator=(const Exporter &) = delete;

    // `bytes` at `buffer`, which start in `allocation`. Allocates nothing on a hit. Requires a
    // current context of the device. A described VMM buffer is kept alive until its address is
    // described again with other memory, 64 others are described, it is found to be freed, or
    // close_all() is called.
    [[nodiscard]] SharedBuffer describe(const Allocation &allocation, const void *buffer,
                                        std::size_t bytes);

    // Asks the driver which of what was described the application has freed or unmapped since, or
    // lost with its context, and forgets it: 16 questions at most, in turn, and none about what was
    // described since the last look. Waits for no work of a device.
    void look_for_freed() noexcept;
    // Some of hetcoll's own memory was freed: the next look asks for all of it.
    void own_is_freed() noexcept;
    // The same as a look for calls that must not take longer for it: now and then. It is done in
    // the next of them after the above, after new memory was described or some was found freed, and
    // as long as nothing is found after two, four, eight of them, until it costs each less than a
    // hundredth.
    void look_sometimes() noexcept
    {
        const std::uint32_t calls = calls_to_look_.load(std::memory_order_relaxed);
        if (calls > 1) [[likely]] {
            calls_to_look_.store(calls - 1, std::memory_order_relaxed);
        } else {
            look_now();
        }
    }
    // How many described buffers have been forgotten so far.
    [[nodiscard]] std::uint64_t freed() const noexcept
    {
        return freed_.load(std::memory_order_relaxed);
    }
    // Those of them that some of processes[peers[..]] has not been told of, as all of them are now.
    [[nodiscard]] FreedMemory tell_freed(std::span<const ProcessIdentity> processes,
                                         std::span<const int> peers) noexcept;
    // Gives up VMM memory that was found to be freed, which may wait for the device. describe()
    // finds some, too.
    void release_freed() noexcept;

    // A peer could not map it: its memory is described as kNone from now on, as long as this is
    // remembered.
    void withdraw(const SharedBuffer &buffer) noexcept;
    // Forgets everything: nobody can open what was announced before.
    void close_all() noexcept;

    [[nodiscard]] ExporterCounters counters() const noexcept;

    // FdSource: peers ask for what describe() announced.
    [[nodiscard]] Result<FdBundle> fds_of(std::uint64_t token) override;

private:
    struct Impl;
    explicit Exporter(std::unique_ptr<Impl> impl);
    void look_now() noexcept;
    std::unique_ptr<Impl> impl_;
    std::atomic<std::uint32_t> calls_to_look_{1};
    std::atomic<std::uint64_t> freed_{0};
};

} // namespace hetcoll
