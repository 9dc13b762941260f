// One call's vectors as the ranks of a node share them. Each rank announces where its input and its
// output are, in the control page; where they cannot be shared, memory of hetcoll's own stands in.
// After all have come together peers map what they need, and then either one kernel a rank does it
// all (one-shot, two-shot, leader), or the executor reads what the schedule says.
#pragma once

#include "engine/communicator/mapped_buffers.h"
#include "engine/communicator/peers.h"
#include "engine/communicator/pull_channels.h"

#include <array>
#include <memory>
#include <optional>
#include <vector>

namespace hetcoll {

// Whether a queued call's vectors fit into the memory that was made when its stream was attached.
[[nodiscard]] Status fits_attached(std::size_t bytes, const Scratch &memory);

// Needs no shared output: every rank writes its own result.
[[nodiscard]] constexpr bool shares_input_only(Algorithm algorithm) noexcept
{
    return row_of(algorithm).has(Trait::kOwnResult);
}

class MappedCall {
public:
    // All outlive it.
    MappedCall(Process &process, NodeGroup &group, Peers &peers);

    using Buffers = MappedBuffers;
    using Copy = MappedCopy;

    // Decides which memory stands for the vectors. The context of `gpu` is current. The caller
    // makes the copy that it returns, waits for it, and publishes.
    Result<Copy> plan(Algorithm algorithm, const Buffers &buffers, DeviceWork &gpu);
    // Announces them. True if some peer may have to map them again.
    [[nodiscard]] bool publish();
    // The result's last copy, if it is not where the application wants it.
    [[nodiscard]] Copy copy_out() const noexcept;
    // Whether the call's input stays as it is while the call runs.
    [[nodiscard]] bool keeps_input() const noexcept { return output_ != buffers_.send; }

    // Maps the peers that the schedule needs; null: those that the algorithm's kernel needs. False:
    // not yet. Requires that all have published. After an error peers() still tells which they are,
    // for a rank that only serves them.
    // `missing`: a rank that has not, whose memory stays unknown until all are mapped once more.
    [[nodiscard]] Result<bool> map(Algorithm algorithm, const Schedule *schedule, int missing = -1);
    // Maps what all ranks of the node have announced as their input, those whose GPUs reach each
    // other, for as long as `lease` lasts. False: not yet.
    [[nodiscard]] Result<bool> map_all(PeerLease &lease, std::size_t bytes);
    // A buffer that map() failed at: what stands in for one, if there is such.
    struct Unmapped {
        int rank = -1;
        const SharedBuffer *buffer = nullptr; // null: none
    };
    [[nodiscard]] Unmapped unmapped() const noexcept;
    // Before and after the meeting in which the ranks say whether they have mapped all: which
    // buffers this rank could not map; and, if other ranks could not map this rank's, other memory
    // takes its place in further calls.
    void tell_unmapped() noexcept;
    void hear_unmapped() noexcept;
    // Answers peers that need file descriptors to map this rank's vectors. To be called until the
    // call's closing agreement, because they may map later than this rank does.
    void serve() const noexcept;
    // All ranks have mapped: what is announced now need not be again.
    void remember() noexcept;
    // Ranks work on other devices: everything has to be.
    void forget() noexcept { known_ = {}; }

    [[nodiscard]] const std::byte *input() const noexcept { return input_; }
    [[nodiscard]] std::byte *output() const noexcept { return output_; }
    // For a schedule that is about to run.
    [[nodiscard]] MappedPeers peers(std::span<const LocalStep> steps) noexcept;

    // The vectors of this rank's kernel; a count of 0: it has none. The ranks begin with
    // different peers, their own memory first, so that they do not all meet at one rank's links.
    // The inputs are in the order of the ranks where the result's bits depend on it. `lists` has
    // the addresses if there are many.
    struct KernelWork {
        ReduceInputs in;
        ReduceOutputs out;
        std::size_t count; // elements
    };
    [[nodiscard]] KernelWork kernel_work(Algorithm algorithm, ReduceOp op, ElementKind kind,
                                         std::size_t count, OperandLists &lists) const;
    // That a kernel reads from and writes to other ranks.
    [[nodiscard]] static std::size_t bytes_of(const KernelWork &work, ElementKind kind) noexcept;
    // Starts this rank's kernel, if it has one: kernel_done() of `gpu` tells its end.
    Result<bool> start_kernel(Algorithm algorithm, ReduceOp op, ElementKind kind,
                              std::size_t count);
    // Bytes that this rank's kernel reads from and writes to other ranks.
    [[nodiscard]] std::size_t bytes_mapped() const noexcept { return bytes_mapped_; }

    // The call is over; the GPU has finished with the mappings.
    void release() noexcept;

private:
    [[nodiscard]] SharedBuffer describe(const void *buffer, const PointerInfo &info,
                                        std::size_t bytes);
    [[nodiscard]] SharedBuffer describe(const Scratch &scratch);
    [[nodiscard]] bool plan_beside(DeviceWork &gpu);
    Result<Copy> plan_in(const Scratch &memory);
    void find_needed(Algorithm algorithm, const Schedule *schedule);
    [[nodiscard]] Result<bool> map_rank(int rank, bool output);
    [[nodiscard]] Result<void *> map_buffer(int rank, const SharedBuffer &buffer,
                                            RankSet &unmapped);
    [[nodiscard]] bool is_known(const SharedBuffer &buffer) const noexcept;

    const Log &log_;
    Gpus &gpus_;
    NodeGroup &group_;
    Peers &peers_;
    Algorithm algorithm_{};
    Buffers buffers_{};
    DeviceWork *gpu_ = nullptr;
    std::unique_ptr<Scratch> scratch_;
    const std::byte *input_ = nullptr;
    std::byte *output_ = nullptr;
    SharedBuffer shared_input_{}, shared_output_{};
    bool copies_out_ = false;
    std::vector<MappedPeer> mapped_; // by rank
    ControlPage::Buffers unmapped_{};
    PeerLease lease_;
    std::size_t bytes_mapped_ = 0;

    // Buffers that peers have mapped, the last ones; and what was closed since. Who maps a buffer
    // depends on the algorithm, and on who comes late.
    struct Known {
        std::uint64_t buffer_id;
        int late; // the rank; -1: none
        Algorithm algorithm;

        friend bool operator==(const Known &, const Known &) = default;
    };
    [[nodiscard]] Known known_as(const SharedBuffer &buffer) const noexcept
    {
        return {buffer.buffer_id, buffers_.late, algorithm_};
    }
    static constexpr std::size_t kRemembered = 32;
    std::array<std::optional<Known>, kRemembered> known_{};
    std::size_t next_known_ = 0;
    std::uint64_t closes_ = 0;
};

} // namespace hetcoll
