// A GPU for the explorer: it sums integers, and every rank reaches every other's memory where it
// is. The messages of ranks about that are hetcoll's.
#pragma once

#include "explorer.h"

#include "engine/communicator/pull_channels.h"
#include "engine/meeting/control_page.h"
#include "transport/bounce.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace model {

// When a GPU runs what it was given: immediately, or when it is asked for the end.
enum class Streams : std::uint8_t { kEarly, kLate };

// The effect of a kernel.
inline void sum(const hetcoll::ReduceInputs &inputs, const hetcoll::ReduceOutputs &outputs,
                std::size_t count)
{
    for (std::size_t i = 0; i < count; ++i) {
        std::int64_t total = 0;
        for (int input = 0; input < inputs.count; ++input) {
            total += static_cast<const std::int64_t *>(inputs.input[input])[i];
        }
        for (int output = 0; output < outputs.count; ++output) {
            static_cast<std::int64_t *>(outputs.output[output])[i] = total;
        }
    }
}

// The one kernel of a call.
class Kernel {
public:
    // It sums the rank's share of all inputs and writes it to all outputs, as two-shot.
    void start_share(std::span<const hetcoll::MappedPeer> peers, int rank, std::size_t count,
                     Streams when)
    {
        const std::size_t share = count / peers.size();
        const std::size_t first = share * static_cast<std::size_t>(rank) * sizeof(std::int64_t);
        hetcoll::ReduceInputs in{};
        hetcoll::ReduceOutputs out{};
        for (const hetcoll::MappedPeer &peer : peers) {
            in.input[in.count++] = peer.input + first;
            out.output[out.count++] = const_cast<std::byte *>(peer.output) + first;
        }
        start(in, out, share, when);
    }
    void start(const hetcoll::ReduceInputs &inputs, const hetcoll::ReduceOutputs &outputs,
               std::size_t count, Streams when)
    {
        inputs_ = inputs;
        outputs_ = outputs;
        count_ = count;
        runs_ = true;
        asked_ = 0;
        if (when == Streams::kEarly) {
            run();
        }
    }
    // True when it has ended. A late one is not over when it is asked for the first times, of which
    // a call that is given up in between makes one.
    [[nodiscard]] bool is_done()
    {
        if (runs_ && asked_++ < 2) {
            go_on();
            return false;
        }
        if (runs_) {
            run();
        }
        return true;
    }
    [[nodiscard]] bool is_running() const noexcept { return runs_; }

private:
    void run()
    {
        runs_ = false;
        sum(inputs_, outputs_, count_);
    }

    hetcoll::ReduceInputs inputs_{};
    hetcoll::ReduceOutputs outputs_{};
    std::size_t count_ = 0;
    bool runs_ = false;
    int asked_ = 0;
};

// A bounce that no message needs.
class PullsOnly : public hetcoll::Bounce {
public:
    explicit PullsOnly(Streams streams) noexcept : streams_(streams) {}
    hetcoll::Status divide(int, int) override { return {}; }
    [[nodiscard]] std::size_t slot_bytes() const noexcept override { return 64; }
    hetcoll::Status start_read(int, const void *, std::size_t) override { return {}; }
    [[nodiscard]] hetcoll::Result<bool> read_done(int) override { return true; }
    [[nodiscard]] const void *message(int) const noexcept override { return nullptr; }
    [[nodiscard]] bool reads_out() const noexcept override { return true; }
    [[nodiscard]] void *landing(int) noexcept override { return nullptr; }
    hetcoll::Status start_apply(int, const hetcoll::Apply &) override { return {}; }
    hetcoll::Status start_fold(int, const hetcoll::Pull &) override { return {}; }
    [[nodiscard]] hetcoll::Result<bool> apply_done(int) override { return true; }
    hetcoll::Status start_pull(int channel, int slot, const hetcoll::Pull &pull) override
    {
        pull_[channel][slot] = pull;
        if (streams_ == Streams::kEarly) {
            run(pull_[channel][slot]);
        }
        return {};
    }
    [[nodiscard]] hetcoll::Result<bool> pull_done(int channel, int slot) override
    {
        if (streams_ == Streams::kLate) {
            if (asked_++ % 2 == 0) {
                go_on();
                return false;
            }
            run(pull_[channel][slot]);
        }
        return true;
    }

    [[nodiscard]] Streams streams() const noexcept { return streams_; }

private:
    static void run(const hetcoll::Pull &pull) { sum(pull.inputs, {{pull.dst}, 1}, pull.count); }

    static constexpr int kLanes = 4;
    Streams streams_;
    unsigned asked_ = 0;
    hetcoll::Pull pull_[kLanes][hetcoll::kWindowSlots];
};

// A rank's description of a buffer of a call, counted from 1: its address, where peers map it.
[[nodiscard]] inline hetcoll::SharedBuffer announced(const void *buffer, std::uint64_t call)
{
    hetcoll::SharedBuffer shared{};
    shared.kind = hetcoll::SharedKind::kLegacyIpc;
    shared.buffer_id = call;
    shared.base = reinterpret_cast<std::uintptr_t>(buffer);
    return shared;
}
// As MappedCall::map_rank() does, without a driver.
[[nodiscard]] inline hetcoll::MappedPeer map(const hetcoll::ControlPage::Slot &slot,
                                             std::uint64_t call)
{
    const hetcoll::SharedBuffer in = slot.input, out = slot.output;
    require(in.buffer_id == call && out.buffer_id == call, "a peer's buffers of this call");
    return {reinterpret_cast<const std::byte *>(in.base),
            reinterpret_cast<const std::byte *>(out.base), slot.progress};
}

} // namespace model
