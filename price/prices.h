// Prices of all algorithms that can run on a machine, for the choice among them.
#pragma once

#include "price/price.h"
#include "price/price_table.h"
#include "price/stand_ins.h"

#include <optional>
#include <span>
#include <vector>

namespace hetcoll {

// A way that takes longer than the best by this factor has no price. At half or twice the size it
// may be the best, but is then worth little between the two.
inline constexpr double kFarFromTheBest = 1.5;

// A way, or a chunk, is taken in place of another one if it takes at most this share of its time.
inline constexpr double kWorthwhile = 0.98;

class Prices {
public:
    // All outlive it. `shares`: by rank, of kWeighted. `late`: the rank that comes last; where
    // `early_is_done`, so late that the others have added up theirs.
    struct Weighted {
        std::span<const int> shares{};
        int late = -1;
        bool early_is_done = false;
    };
    Prices(const Cluster &cluster, const Ranks &ranks) : Prices(cluster, ranks, Weighted{}) {}
    Prices(const Cluster &cluster, const Ranks &ranks, const Weighted &weighted);

    // The algorithms that have prices there: all that can run. kWeighted only with shares and on
    // few ranks.
    [[nodiscard]] AlgorithmSet set() const noexcept;
    // Those of one size of the table, with the best way of each, and the best chunk of the best.
    // Algorithms that cost kFarFromTheBest times more than the best one are given up: their prices
    // are infinite, and so are those of what is not near the best, but for hierarchies, which are
    // priced less exactly there.
    [[nodiscard]] PriceTable::Column of_size(int size, AlgorithmSet set);

private:
    // Ways of the hierarchy that are not so far from the best may become better than it with other
    // segments.
    static constexpr double kMayBecomeBest = 1.3;

    struct Candidate {
        Way way;
        double least_us;
    };
    [[nodiscard]] std::vector<Candidate> candidates(AlgorithmSet set, const PricedCall &call);
    [[nodiscard]] PricedCell with_best_chunk(Way way, const PricedCall &call, Price best);
    [[nodiscard]] bool loses_step(const Way &way, const PricedCall &call) const;
    [[nodiscard]] Price price(const Way &way, const PricedCall &call, PriceLimits limits);
    [[nodiscard]] double least_us(const Way &way, const PricedCall &call);
    [[nodiscard]] bool may_stand_in(Algorithm algorithm) const noexcept;
    struct Priced {
        Way way{};
        Price price{.us = std::numeric_limits<double>::infinity()};
        double alone_us = std::numeric_limits<double>::infinity(); // links wait for nobody
        double place = 0;                                          // for sort_by_place()
    };
    static void sort_by_place(std::span<Priced> ways); // stable
    // All ways that are not given up; of kernels only the best one.
    struct Alone {
        std::vector<Priced> hierarchies{}, others{};
        Priced kernel{};
        double hierarchy_us = std::numeric_limits<double>::infinity();
    };
    [[nodiscard]] Alone price_alone(AlgorithmSet set, const PricedCall &call,
                                    PriceTable::Column &column);
    // `known_us`: of another way of the algorithm.
    [[nodiscard]] Priced by_both_if_near(double best_us, double known_us, Priced way,
                                         const PricedCall &call);
    [[nodiscard]] static std::span<Priced>::iterator least_alone(std::span<Priced> ways);
    // `other_us`: the best that is no hierarchy. Not searched further if none may become the best.
    [[nodiscard]] Priced best_hierarchy(std::span<Priced> ways, double other_us,
                                        const PricedCall &call);
    // `least_us`: of all hierarchies, alone.
    [[nodiscard]] Priced best_of_kind(std::span<Priced> ways, double least_us, double other_us,
                                      const PricedCall &call);
    // The best of trees with other parts of the vector, so far.
    struct Sharing {
        Way way{};
        double us = std::numeric_limits<double>::infinity();    // links wait for each other
        double waits = std::numeric_limits<double>::infinity(); // of what they take alone
    };
    bool takes_parts(Sharing &found, int Way::*parts, int count, const PricedCall &call);
    [[nodiscard]] PricedCell with_best_sides(const Way &trees, const PricedCall &call);
    void run_in_full(Priced &best, double next_us, const PricedCall &call);
    bool take_if_below(double us, const Way &way, Priced &best, const PricedCall &call);
    void find_segments(Priced &best, const PricedCall &call);
    void let_two_leave(Priced &best, const PricedCall &call);
    [[nodiscard]] int most_gpus() const; // of a node
    [[nodiscard]] bool has_one_rank_a_node() const noexcept
    {
        return ranks_.query.ranks_per_node_max == 1;
    }
    [[nodiscard]] int most_segments(const Way &way) const;
    [[nodiscard]] int first_segments(std::size_t bytes) const; // to try, of a hierarchy
    void cut(Way &way, int segments) const;                    // a hierarchy's

    const Ranks &ranks_;
    Weighted weighted_;
    Pricer pricer_, in_full_;           // the latter mirrors nothing
    std::optional<StandIns> stand_ins_; // for schedules of many ranks
};

// Returns the prices that choose() needs for a `bytes`-byte call limited to `set`.
[[nodiscard]] PriceTable price_near(Prices &prices, std::size_t bytes, AlgorithmSet set);

} // namespace hetcoll
