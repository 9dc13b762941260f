// Which algorithm serves a communicator's calls: what its ranks have agreed on, their links, the
// tuning table and the times that they have told each other. The same on every rank, because
// everything that goes in is.
#pragma once

#include "choice/arrivals.h"
#include "choice/call_prices.h"
#include "choice/choose.h"
#include "choice/chunk_tuner.h"
#include "engine/communicator/aggregation.h"
#include "engine/communicator/means.h"
#include "engine/communicator/peers.h"
#include "engine/meeting/node_group.h"
#include "engine/process/process.h"
#include "engine/types/call.h"
#include "engine/types/facts.h"
#include "machine/rank_shares.h"

#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <span>
#include <vector>

namespace hetcoll {

class Chooser {
public:
    // All outlive it. `agreed` may change before the first choice.
    Chooser(Process &process, const hetcoll_facts &agreed, NodeGroup &group, Peers &peers,
            Aggregation &aggregation)
        : process_(process), agreed_(agreed), group_(group), peers_(peers),
          aggregation_(aggregation), prices_([this] { return machine(); })
    {
    }

    // Requires a kind that is not negative.
    [[nodiscard]] Choice choose(const hetcoll_call &call, std::size_t bytes, Means means);
    // The kernel that serves a call on mapped memory, one a rank. Also where a schedule is chosen,
    // unless that takes far less time: a call that needs nothing but a kernel can be prepared for
    // its stream (engine/call/prepared.h), and then overlaps with other work. Nothing: none does.
    [[nodiscard]] std::optional<Algorithm> choose_kernel(const hetcoll_call &call,
                                                         std::size_t bytes);
    // For a collective that is no allreduce: how it moves its vector.
    [[nodiscard]] Choice choose_for_collective(std::size_t bytes) const noexcept;

    // Whether the call's elements have to be summed in the order of the ranks:
    // coll_hetcoll_reproducible, where the order matters. Always true for user-defined ops: ranks
    // that do not know the op must decide alike.
    [[nodiscard]] bool keeps_order(const hetcoll_call &call) const noexcept;
    // A meeting sums in that order.
    [[nodiscard]] bool meets_in_order() const noexcept
    {
        return (group_.nodes() == 1 && group_.uses_pages()) || group_.all().size <= 2;
    }
    // coll_hetcoll_algorithm names one of the kernels that serve small calls too.
    [[nodiscard]] bool forces_small_kernel() const noexcept;
    // Whether calls of this choice read the memory of other ranks where they can.
    [[nodiscard]] bool uses_mapping(const Choice &choice) const noexcept;
    // Nobody maps any more, and all know it: a forced algorithm that needs it is not asked for.
    void expect_no_mapping() noexcept { unavailable_reported_ = true; }

    // Finds the chunk of calls like this one; null: it is given. Fed with the time of the
    // slowest rank, so all ranks stay together.
    [[nodiscard]] ChunkTuner *tuner(const Choice &choice, std::size_t bytes);
    // Looks which rank comes last: coll_hetcoll_skew. Null: nobody does.
    [[nodiscard]] Arrivals *arrivals() noexcept;
    // The waits that the ranks have told each other.
    void take_arrivals(std::span<const std::uint64_t> of_all);
    // Each rank's share of the vector, by the rate of its links; `late` reduces nothing.
    [[nodiscard]] std::vector<int> shares_without_late(int late) const;

private:
    struct Memo { // of choose(): programs repeat themselves
        std::size_t bytes = 0;
        int kind = -1, op = -1;
        bool mapped = false, adapters = false, mixed = false;
        AlgorithmSet available = 0;
        Choice choice;
    };
    struct Tuned { // calls whose sizes have one highest bit
        Algorithm algorithm;
        int size_class;
        ChunkTuner tuner;
    };

    [[nodiscard]] AlgorithmSet available(const hetcoll_call &call, std::size_t bytes, Means means,
                                         bool in_order, int late);
    [[nodiscard]] Query query(const hetcoll_call &call, std::size_t bytes, bool in_order) const;
    // Up to which size the call's vectors are small.
    [[nodiscard]] std::size_t small_limit(const hetcoll_call &call) const noexcept;
    [[nodiscard]] bool knows_links(Means means) const noexcept
    {
        return means.mapped && peers_.known();
    }
    // Before the ranks know their links, nothing but processors can serve a small call, and larger
    // ones choose again when they do. Where memory is not mapped, they may never.
    [[nodiscard]] bool waits(std::size_t bytes, Means means) const noexcept
    {
        return !knows_links(means) && (means.mapped || bytes <= agreed_.small_limit);
    }
    [[nodiscard]] Choice choose_by_price(const Query &query, Means means, int late);
    [[nodiscard]] PricedMachine machine() const;
    [[nodiscard]] int late_rank(Means means) const noexcept;
    void forget() noexcept; // what was chosen and priced
    void find_shares();
    void say_no_shares();
    void say_unavailable(Algorithm forced, Algorithm taken, bool in_order);

    Process &process_;
    const hetcoll_facts &agreed_;
    NodeGroup &group_;
    Peers &peers_;
    Aggregation &aggregation_;
    Arrivals arrivals_;
    unsigned peers_version_ = 0; // for which there are prices, shares and memos
    CallPrices prices_;
    std::optional<RankShares> shares_; // found at the first choice that knows the links
    static constexpr std::size_t kMemos = 8;
    std::vector<Memo> memos_; // empty until the first choice by price
    std::list<Tuned> tuned_;
    bool unavailable_reported_ = false;
};

} // namespace hetcoll
