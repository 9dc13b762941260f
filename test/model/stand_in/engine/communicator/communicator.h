// In place of engine/communicator/communicator.h where the explorer looks at a call: the protocol
// of engine/call is compiled against this. The messages of ranks are hetcoll's. All else is as
// small as it can be: every rank has device memory that its peers have mapped, and a GPU runs what
// it was given immediately, or when it is asked for the end. Nothing here allocates.
#pragma once

#include "gpu.h"

#include "choice/choose.h"
#include "engine/communicator/executor.h"
#include "engine/communicator/mapped_buffers.h"
#include "engine/communicator/membership.h"
#include "engine/meeting/meeting.h"

#include <array>
#include <span>
#include <vector>

namespace hetcoll {

class DeviceBounce final : public model::PullsOnly {
public:
    using PullsOnly::PullsOnly;
    [[nodiscard]] DeviceBounce &kernels() noexcept { return *this; }
    Status prepare(ReduceOp, ElementKind) noexcept { return {}; }
    [[nodiscard]] bool direct() const noexcept { return false; }
    void finish() noexcept {}
    [[nodiscard]] Result<bool> copy_done(Linger) { return true; }
    [[nodiscard]] Result<bool> start_marker() { return true; }
    [[nodiscard]] Result<bool> kernel_done() { return kernel.is_done(); }
    model::Kernel kernel;
};
using HostBounce = DeviceBounce; // which no call here needs

// The vectors are announced where they are, and mapped there.
class MappedCall {
public:
    using Copy = MappedCopy;
    MappedCall(NodeGroup &group, bool is_new)
        : group_(group), new_(is_new), peers_(static_cast<std::size_t>(group.all().size))
    {
    }
    Result<Copy> plan(Algorithm, const MappedBuffers &buffers, DeviceBounce &bounce)
    {
        input_ = static_cast<const std::byte *>(buffers.send);
        output_ = static_cast<std::byte *>(buffers.recv);
        bounce_ = &bounce;
        ++call_;
        return Copy{};
    }
    [[nodiscard]] bool publish()
    {
        group_.announce(model::announced(input_, call_), model::announced(output_, call_));
        return new_;
    }
    [[nodiscard]] Copy copy_out() const noexcept { return {}; }
    [[nodiscard]] bool keeps_input() const noexcept { return output_ != input_; }
    [[nodiscard]] Result<bool> map(Algorithm, const Schedule *, int = -1)
    {
        for (int peer = 0; peer < group_.local_size(); ++peer) {
            peers_[static_cast<std::size_t>(peer)] = model::map(group_.slot(peer), call_);
        }
        return true;
    }
    void tell_unmapped() noexcept {}
    void hear_unmapped() noexcept {}
    void serve() const noexcept {}
    void remember() noexcept {}
    void release() noexcept {}
    [[nodiscard]] const std::byte *input() const noexcept { return input_; }
    [[nodiscard]] std::byte *output() const noexcept { return output_; }
    [[nodiscard]] MappedPeers peers(std::span<const LocalStep> steps) noexcept
    {
        return {peers_, steps, group_.take_progress(word_count(steps))};
    }
    Result<bool> start_kernel(Algorithm, ReduceOp, ElementKind, std::size_t count)
    {
        bounce_->kernel.start_share(peers_, group_.local_rank(), count, bounce_->streams());
        return true;
    }
    [[nodiscard]] std::size_t bytes_mapped() const noexcept { return 0; }

private:
    NodeGroup &group_;
    bool new_; // peers agree on having mapped
    const std::byte *input_ = nullptr;
    std::byte *output_ = nullptr;
    DeviceBounce *bounce_ = nullptr;
    std::uint64_t call_ = 0;
    std::vector<MappedPeer> peers_; // by rank
};

using Planner = class Communicator; // all in one
using Gpus = Communicator;
using Process = Communicator;
class Communicator {
public:
    Communicator(NodeGroup &node_group, Messages &ranks_messages, const hetcoll_p2p &table,
                 model::Streams streams, bool new_buffers)
        : bounce(streams), group_(node_group), messages_(ranks_messages), p2p_(table),
          mapped_(node_group, new_buffers)
    {
    }
    [[nodiscard]] Planner &planner() noexcept { return *this; }
    [[nodiscard]] Gpus &gpus() noexcept { return *this; }
    [[nodiscard]] const Communicator &agreed() const noexcept { return *this; }
    [[nodiscard]] Communicator &same_calls() noexcept { return *this; }
    [[nodiscard]] Communicator &departure() noexcept { return *this; }
    [[nodiscard]] const hetcoll_p2p &p2p() const noexcept { return p2p_; }
    [[nodiscard]] NodeGroup &group() noexcept { return group_; }
    [[nodiscard]] Membership &membership() noexcept { return membership_; }
    [[nodiscard]] MappedCall &mapped() noexcept { return mapped_; }
    [[nodiscard]] Communicator &freed() noexcept { return *this; } // no rank frees memory
    [[nodiscard]] Flags tell() noexcept { return Flags{}; }
    void hear() noexcept {}
    void close() noexcept {}
    [[nodiscard]] Executor &executor() noexcept { return executor_; }
    [[nodiscard]] bool has_streams() const noexcept { return false; }
    [[nodiscard]] Messages &messages() noexcept { return messages_; }
    [[nodiscard]] Meeting &meeting() noexcept { return meeting_; }
    [[nodiscard]] bool is_ready() const noexcept { return true; }
    void begin_call(const hetcoll_call &call, const char *) noexcept
    {
        group_.own_call().begin(signature_of(call));
    }
    [[nodiscard]] static ReduceOp op_of(const hetcoll_call &) noexcept { return ReduceOp::kSum; }
    void give_up_mapping() noexcept {}
    [[nodiscard]] bool should_find_peers() const noexcept { return false; }
    [[nodiscard]] bool has_missed(const hetcoll_call &) const noexcept { return false; }
    [[nodiscard]] int fail_differing(const Meeting &) noexcept { return HETCOLL_ERROR_RANGE; }
    void forget_peers() noexcept {}
    void find_peers_anew() noexcept {}
    void abandon_messages() noexcept {}
    [[nodiscard]] bool step() noexcept { return group_.leave(); } // without messages
    void close_dead() noexcept {}

    DeviceBounce bounce; // of its calls
    alignas(std::max_align_t) std::array<std::byte, 4096> frames;

private:
    NodeGroup &group_;
    Messages &messages_;
    Meeting meeting_;
    hetcoll_p2p p2p_;
    Membership membership_{p2p_, group_};
    MappedCall mapped_;
    Executor executor_;
};

} // namespace hetcoll
