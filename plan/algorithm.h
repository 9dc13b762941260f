// The ways, schedules and first chunks of each algorithm. A row (base/algorithm_list.h) names a
// plan, which is in the file of its algorithm. Algorithms that are alike have one in common.
#pragma once

#include "machine/cluster.h"
#include "machine/query.h"
#include "plan/build_schedule.h"

#include <memory>
#include <vector>

namespace hetcoll {

// Null, 0 and false: as for an algorithm of one way, of one message, and without a schedule.
struct AlgorithmPlan {
    // What `rank` does, of a resolved way, in one piece or round by round: a schedule has one.
    Schedule (*build)(const Way &way, int rank, const ScheduleParts &parts) = nullptr;
    std::unique_ptr<Program> (*program)(const Way &way, int rank,
                                        const ScheduleParts &parts) = nullptr;
    // Fills in the numbers of parts that depend on the vector's size.
    void (*resolve)(Way &way, std::size_t bytes, const Links &links, int ranks) = nullptr;
    // Adds the ways that are worth a price, each `way` but for what sets it apart. None: `way`.
    void (*add_ways)(Way way, const Query &query, std::vector<Way> &ways) = nullptr;
    // As is_mirrored() says (plan/candidates.h). Null: never.
    bool (*is_mirrored)(const Way &way, const Cluster &cluster, int ranks_of_node) = nullptr;
    // How many of its largest messages make a vector.
    int (*messages)(Algorithm algorithm, const Query &query) = nullptr;
    bool is_pipeline = false;    // many chunks follow each other through several ranks
    std::size_t chunk_bytes = 0; // the first chunk, of a vector of any size; 0: as messages are
};

#define HETCOLL_DECLARE(constant, enumerator, name, counter, form, needs, sizes, traits, plan, \
                        ...)                                                                   \
    extern const AlgorithmPlan plan;
HETCOLL_ALGORITHMS(HETCOLL_DECLARE)
#undef HETCOLL_DECLARE

[[nodiscard]] const AlgorithmPlan &plan_of(Algorithm algorithm) noexcept;

// The program of what has the form kTeam, among all ranks in their order.
[[nodiscard]] std::unique_ptr<Program> team_program(const Way &way, int rank,
                                                    const ScheduleParts &parts);

// Whether `size` ranks, or nodes, do the same: none folds, and all groups that multiply are alike.
[[nodiscard]] bool is_even_among(Algorithm algorithm, int size);

} // namespace hetcoll
