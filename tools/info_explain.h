// hetcoll_info explain: which algorithm serves a call, by which rule, and what the others cost;
// who serves other collectives.
// hetcoll_info fingerprint: what tells machines of one class, for tuning tables.
#pragma once

#include "choice/choose.h"
#include "engine/types/settings.h"
#include "tools/info_call.h"
#include "tools/job_table.h"
#include "topology/topology.h"

namespace hetcoll {

struct ExplainRequest {
    std::string table, machine; // a file, and the machine in it; empty: none, as a job chooses
    std::string driver;         // "emulated" if --topology is this machine and its GPUs are that
    std::string algorithm = hetcoll_default_settings().algorithm;
    std::string op = "sum";
    std::size_t element_bytes = 4;
    // As the parameters coll_hetcoll_...
    std::size_t small_limit = hetcoll_default_settings().small_limit;
    std::size_t chunk_bytes = hetcoll_default_settings().chunk_bytes;
    bool reproducible = false;
    std::string accumulate = "float"; // as coll_hetcoll_accumulate
    bool mixed = false;               // some ranks reduce host memory
    bool json = false;
};

// --table, --machine and --small-limit.
void add_table_options(CommandLine &line, ExplainRequest &request);
// Those, and all else that a choice depends on.
void add_explain_options(CommandLine &line, ExplainRequest &request, CallRequest &call);

// An error: the options lack something, or contradict each other.
[[nodiscard]] Status check_explain(const CommandLine &line, const ExplainRequest &request,
                                   const CallRequest &call);
// Returns what to print on stdout, as JSON too; without a size, that is show_regions(). `topology`
// is each node's; null: nothing is known of the links. Requires that check_explain() is ok.
[[nodiscard]] Result<std::string>
show_explanation(const ExplainRequest &request, const CallRequest &call, const Topology *topology);

// Says why `choice` serves the call: what comes after "because".
[[nodiscard]] std::string print_source(const Choice &choice, const Query &query,
                                       const JobTable &by);

[[nodiscard]] std::string show_fingerprint(const Topology &topology, bool json);

} // namespace hetcoll
