// The memory of other processes of this node, mapped here. Opening costs from a tenth of a
// millisecond up, so mappings are kept; they are told apart by the owner's id of the memory, never
// by an address (docs/internals/ipc.md).
#pragma once

#include "base/log.h"
#include "base/node_ranks.h"
#include "base/status.h"
#include "device/device.h"
#include "transport/exporter.h"
#include "transport/fd_socket.h"
#include "transport/node_identity.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace hetcoll {

class PeerMemory;
struct PeerMapping; // one open mapping

// The mappings that a running call uses: they stay open until release() or the end of the lease.
// GPU work that reads or writes them must be done before that. Keep a lease for further calls: then
// it does not allocate.
class PeerLease {
public:
    PeerLease() = default;
    PeerLease(const PeerLease &) = delete;
    PeerLease &operator=(const PeerLease &) = delete;
    ~PeerLease() { release(); }
    void release() noexcept;

private:
    friend class PeerMemory;
    PeerMemory *memory_ = nullptr;
    std::vector<PeerMapping *> held_;
};

struct PeerLimits {
    int mappings = 4 * kMostNodeRanks; // input and output of every rank, of two calls
    std::size_t bytes = 0;             // 0: as many as the device has that they are mapped for
};

struct PeerCounters {
    std::uint64_t opens, hits, closes;
    std::uint64_t evictions;      // closed to make room
    std::uint64_t replaced;       // closed because the owner has other memory there
    std::uint64_t already_mapped; // opens that met error 208
    std::uint64_t failures;
    std::uint64_t mappings, bytes; // open now
};

// One a process; thread safe. Leases end before it does.
class PeerMemory {
public:
    // `driver` outlives it. `socket` may be null: VMM memory of peers is an error then.
    static std::unique_ptr<PeerMemory> create(const Driver &driver, const ProcessIdentity &self,
                                              std::shared_ptr<FdSocket> socket,
                                              const PeerLimits &limits, const Log &log);
    ~PeerMemory(); // close_all()
    PeerMemory(const PeerMemory &) = delete;
    PeerMemory &operator=(const PeerMemory &) = delete;

    // The address of the buffer's first byte in this process, in the context of `importer`, which
    // need not be current; at least `bytes` from there on are the buffer's, or that is an error:
    // what `buffer` says comes from its owner. In the process that owns the buffer it is the buffer
    // itself. A null pointer means not yet, call again: the owner still has to pass file
    // descriptors (it must step() its socket), or a call of another thread that is about to end is
    // in the way, or a queued call is pending that an opening might wait for. An error names what
    // failed and the way out; the memory can then not be shared.
    [[nodiscard]] Result<void *> map(const ProcessIdentity &owner, const SharedBuffer &buffer,
                                     std::size_t bytes, const Device &importer, PeerLease &lease);

    // Closes what is not leased, and the rest when its lease ends, so that memory that its owner
    // freed is returned.
    void close_all() noexcept;
    // The same for the memory of one process, for one buffer that it is about to free.
    void close_owner(const ProcessIdentity &owner) noexcept;
    void close_buffer(const ProcessIdentity &owner, std::uint64_t buffer_id) noexcept;
    // Memory that its owner has reported as freed is not used again. close_freed() closes it, which
    // may wait for the device.
    void forget(const ProcessIdentity &owner, const FreedMemory &freed) noexcept;
    void close_freed() noexcept;

    void set_limits(const PeerLimits &limits) noexcept; // in force from the next open on
    [[nodiscard]] PeerCounters counters() const noexcept;

private:
    friend class PeerLease;
    struct Impl;
    explicit PeerMemory(std::unique_ptr<Impl> impl);
    void end(PeerLease &lease) noexcept;
    std::unique_ptr<Impl> impl_;
};

} // namespace hetcoll
