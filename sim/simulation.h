// One MPI_Allreduce of device memory on a cluster, simulated: chosen as the component would choose,
// and run by the schedules that it would run.
#pragma once

#include "choice/choose.h"
#include "engine/types/settings.h"
#include "machine/build_platform.h"
#include "machine/rank_shares.h"
#include "machine/ranks.h"
#include "sim/child.h"
#include "tuning/table.h"

#include <optional>

namespace hetcoll {

struct SimCall {
    std::size_t bytes = 0, element_bytes = 4;
    std::optional<Algorithm> forced{};
    std::optional<Algorithm> between_nodes{}; // of a forced hierarchy; else the price's
    std::size_t chunk_bytes = 0;              // 0: as chosen
    std::size_t small_limit = hetcoll_default_settings().small_limit;
    const Table *table = nullptr;
    ShareSetting shares{}; // coll_hetcoll_shares
    MessagePath path = MessagePath::kDirect;
    bool meetings = true; // the ranks' agreements before and after are part of the time
    double most_s = 0;    // that the simulation may take, see run_in_child()
};

struct SimResult {
    Choice choice;
    double us = 0;
    double predicted_us = 0; // the price
    std::uint64_t transfers = 0;
    SimCost cost;
};

// The choice that would serve the call; an error if a forced one cannot run there.
[[nodiscard]] Result<Choice> choose_simulated(const Cluster &cluster, const Ranks &ranks,
                                              const SimCall &call);

[[nodiscard]] Result<SimResult> simulate(const Cluster &cluster, const Ranks &ranks,
                                         const SimCall &call);

} // namespace hetcoll
