// One buffer of a peer, mapped in a context of this process: how it is opened and closed.
#pragma once

#include "transport/peer_memory.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace hetcoll {

struct PeerMapping {
    struct Key {
        ProcessIdentity owner;
        std::uint64_t buffer_id;
        unsigned long long context_id;

        friend bool operator==(const Key &, const Key &) = default;
    };

    struct KeyHash {
        std::size_t operator()(const Key &key) const noexcept
        {
            std::uint64_t bits = key.buffer_id * 0x9e3779b97f4a7c15u;
            bits ^= key.owner.start_time + (static_cast<std::uint64_t>(key.owner.pid) << 32);
            bits = (bits ^ bits >> 29) * 0xbf58476d1ce4e5b9u;
            bits ^= key.context_id;
            return static_cast<std::size_t>(bits ^ bits >> 32);
        }
    };

    Key key;
    SharedKind kind;
    std::uint32_t generation;
    std::uint64_t base, bytes;          // in the owner
    std::array<unsigned char, 16> uuid; // of the owner's device
    ContextRef context;
    CUdevice device = -1;    // of the context
    CUdeviceptr address = 0; // here
    int leases = 0;
    bool doomed = false; // to be closed when it has no lease; not in the index any more

    // Closes one when it ends, immediately or when no queued call is pending.
    class Closing final : public QueuedCalls::Kept {
    public:
        Closing(const Driver &driver, const Log &log, const PeerMapping &mapping)
            : driver_(driver), log_(log), context_(mapping.context), kind_(mapping.kind),
              address_(mapping.address), bytes_(mapping.bytes)
        {
        }
        ~Closing() override;

    private:
        void note(CUresult result, const char *call) const;

        const Driver &driver_;
        const Log log_;
        const ContextRef context_;
        const SharedKind kind_;
        const CUdeviceptr address_;
        const std::uint64_t bytes_;
    };
};

// A peer passes on the whole buffer.
[[nodiscard]] Status check_bundle(const SharedBuffer &buffer, const FdBundle &fds);

// Maps such a buffer; `call` is set to the driver call that failed.
[[nodiscard]] CUresult open_vmm(const Driver &driver, const Log &log, PeerMapping &mapping,
                                const FdBundle &fds, const char *&call);

} // namespace hetcoll
