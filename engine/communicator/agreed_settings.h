// The settings that the ranks of a communicator have agreed on, as its calls ask for them.
#pragma once

#include "cuda_kernels/reduction.h"
#include "engine/meeting/node_group.h"
#include "engine/types/call.h"
#include "engine/types/facts.h"

#include <cstddef>
#include <cstdint>

namespace hetcoll {

class AgreedSettings {
public:
    explicit AgreedSettings(const hetcoll_facts &facts) noexcept : facts_(facts) {}

    [[nodiscard]] const hetcoll_facts &facts() const noexcept { return facts_; }
    [[nodiscard]] std::size_t small_limit() const noexcept { return facts_.small_limit; }

    // The settings that a program can change while it runs, for NodeGroup to compare. All else is
    // combined from what all processes published.
    [[nodiscard]] std::uint64_t changeable() const noexcept;
    // The ranks have compared these: what differs is not used.
    void settle(const NodeGroup &group) noexcept;

    // How the call's elements are combined: sums of half and bfloat16 as kSumOnce, unless
    // coll_hetcoll_accumulate has it otherwise or the order of the ranks is kept; those of 8-bit
    // floats always.
    [[nodiscard]] ReduceOp op_of(const hetcoll_call &call) const noexcept;

    // Whether the call sums floats as integers: coll_hetcoll_fixed_point gives the bits.
    [[nodiscard]] bool uses_fixed_point(const hetcoll_call &call) const noexcept
    {
        return facts_.fixed_point != 0 && call.collective == HETCOLL_ALLREDUCE &&
               call.user_op == 0 && call.op == HETCOLL_SUM &&
               (call.kind == HETCOLL_FLOAT32 || call.kind == HETCOLL_FLOAT64);
    }
    [[nodiscard]] int fixed_point_bits() const noexcept
    {
        return static_cast<int>(facts_.fixed_point);
    }

private:
    hetcoll_facts facts_;
};

} // namespace hetcoll
