// The ranks of calls that hetcoll_info is asked about, and everything that a job would choose by.
#pragma once

#include "base/status.h"
#include "choice/choose.h"
#include "tools/info_prices.h"
#include "tools/job_table.h"

#include <cstddef>
#include <string>
#include <vector>

namespace hetcoll {

struct CallRequest;
struct ExplainRequest;
struct Topology;

struct CallSetup {
    Query query; // all but the size
    JobTable by;
    CallPriced prices;
    std::size_t small_limit;
    std::string shares{}; // a line about coll_hetcoll_shares; empty: it is off

    [[nodiscard]] const Table *table() const { return by.table ? &*by.table : nullptr; }
    // Returns the query of a `bytes`-byte call, with what may serve it.
    [[nodiscard]] Query at(std::size_t bytes) const;
    [[nodiscard]] Choice choose(std::size_t bytes) { return prices.choose(at(bytes), table()); }
};

// Returns the setup of the calls that the options describe, on nodes like `topology`; null: nothing
// is known of the links. Requires that check_explain() is ok.
[[nodiscard]] Result<CallSetup> set_up(const ExplainRequest &request, const CallRequest &call,
                                       const Topology *topology);

// "forced", "table" or "price", in JSON.
[[nodiscard]] const char *source_name(ChoiceSource source);

// Returns where pieces of all sizes begin, and where the last one ends. Within a piece, the same
// algorithms may serve a call, the same rule is for it, and each price is a line.
[[nodiscard]] std::vector<std::size_t> find_pieces(const CallSetup &setup);

// One way serves all sizes from `first_bytes` to where the next range begins.
struct ServedRange {
    std::size_t first_bytes;
    Choice choice;
};
// Returns the ranges of all sizes, by size. Neighbours differ.
[[nodiscard]] std::vector<ServedRange> served_ranges(CallSetup &setup);

} // namespace hetcoll
