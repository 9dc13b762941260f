// Messages between the ranks of a node through its network adapters: RDMA that turns round in an
// adapter or in the switch. Open MPI has no such way within a node, so these are connections of our
// own, by UCX's upper layer (UCP). UCX keeps memory registered, and so watches what the process
// frees.
#pragma once

#include "base/p2p.h"
#include "base/status.h"

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace hetcoll {

inline constexpr int kAdapterFailed = -1; // of isend, irecv and test: Open MPI's OMPI_ERROR

// One communicator's. One thread at a time; with CUDA, one whose current context has the memory.
class AdapterMessages {
public:
    static constexpr std::size_t kMostAddressBytes = 1024;

    struct Options {
        std::string transports; // as UCX_TLS has them: "rc", "tcp"; no shared memory, no cuda_ipc
        std::string device;     // as the topology names it: "mlx5_0", "lo"; empty: UCX chooses
        bool cuda = true;       // memory is CUDA's; false: the host's
    };

    // The user's UCX_* say nothing of transports, nor of devices if `device` does. UCX prints
    // nothing if there is no such transport, device or CUDA.
    static Result<std::unique_ptr<AdapterMessages>> create(const Options &options);
    // Waits for no peer: whoever destroys it knows by a meeting that all messages have arrived, or
    // has abandoned them.
    virtual ~AdapterMessages() = default;

    // Before the first message, with CUDA: an error if UCX does not see that this is device memory.
    // Then a message of it would end the process.
    [[nodiscard]] virtual Status check(std::span<const std::byte> device_memory) = 0;
    // The address that the others connect to. It carries its own check, so that UCX sees no
    // garbage.
    [[nodiscard]] virtual std::span<const std::byte> address() const noexcept = 0;
    // Once. addresses[r] is rank r's; an empty one, and this rank's own, is not connected to. All
    // endpoints are made here, so that ranks can tell each other in time that one cannot be. UCX
    // exchanges its first messages later, when one is sent. A failure abandons.
    virtual Status connect(std::span<const std::span<const std::byte>> addresses, int rank) = 0;

    // Once connected. A message of another size than its receive is
    // an error there. Where a peer is lost all requests with it fail. `progress` advances this
    // alone; no `broken`.
    [[nodiscard]] virtual const hetcoll_p2p &table() const noexcept = 0;
    // The first failure before abandon(); null: none.
    [[nodiscard]] virtual const char *problem() const noexcept = 0;
    virtual void progress() noexcept = 0;

    // Ends all requests and connections, as ranks have died. It waits for nobody, and when it
    // returns no adapter touches memory of a request. Requests may still be tested; new ones fail.
    // Peers that live lose this rank. UCX 1.13 prints warnings of requests that were under way.
    virtual void abandon() noexcept = 0;

protected:
    AdapterMessages() = default;
};

} // namespace hetcoll
