// Reliable connected queue pairs on one RDMA device, by UCX's lower layer. Such a pair takes
// packets from the one that it was connected with and from nobody else, and the addresses come from
// the caller: UCX does not look at what a stranger sends. (UCX's upper layer connects by datagrams,
// which anyone on the network can send.) Nothing here encrypts.
#pragma once

#include "aggregator/protocol.h"
#include "base/status.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

struct uct_ep;

namespace hetcoll {

class RdmaDevice {
public:
    using Queue = uct_ep *;

    // Callbacks of progress(). Neither may call the device.
    class Events {
    public:
        virtual void on_packet(const RdmaToken &token, std::span<const std::byte> bytes) = 0;
        virtual void on_broken(Queue queue, const char *why) = 0;

    protected:
        ~Events() = default;
    };

    // `name`: a device as UCX calls it, mlx5_0:1, or "any" for the first one; its transport is
    // rc_verbs. Tests name another one: tcp/lo. One thread at a time; so is all that is made of it.
    static Result<std::unique_ptr<RdmaDevice>> open(const std::string &name, Events &events);
    virtual ~RdmaDevice() = default;

    [[nodiscard]] virtual const std::string &name() const noexcept = 0;
    virtual Result<Queue> add(RdmaAddress &address) = 0; // answers its address, too
    // `to` is of somebody who has shown the key, and may be anything.
    virtual Status connect(Queue queue, const RdmaAddress &to) = 0;
    virtual void remove(Queue queue) = 0;
    // How many of the bytes it has taken, the first ones: 0 for now none.
    virtual Result<std::size_t> send(Queue queue, const RdmaToken &token,
                                     std::span<const std::byte> head,
                                     std::span<const std::byte> payload) = 0;

    virtual bool progress() = 0;
    // A descriptor that can be read when there is something to do; -1: there is already.
    [[nodiscard]] virtual int arm() = 0;

protected:
    RdmaDevice() = default;
};

} // namespace hetcoll
