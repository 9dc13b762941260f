#include "tools/sim_options.h"

#include "base/node_ranks.h"
#include "engine/hetcoll.h"
#include "machine/build_platform.h"
#include "machine/rank_shares.h"
#include "measure/command_line.h"
#include "measure/named_files.h"
#include "measure/size_options.h"
#include "schedule/algorithm_rows.h"
#include "sim/cluster_file.h"
#include "tools/adapters_option.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

namespace hetcoll {

namespace {

constexpr std::size_t kMostBytes = std::size_t{128} << 30; // no GPU has a larger vector
constexpr std::size_t kMostChunks = std::size_t{1}
                                    << 20; // that a simulation does not take long for

// Checks of several options together.
Status check(const SimOptions &options)
{
    if (options.bytes.empty() && !options.describe) {
        return error(Errc::kInvalid, "how large a vector? write --bytes, for example --bytes 4M");
    }
    if (options.budget_s > 0 && !options.measurements.empty()) {
        return error(Errc::kInvalid, "--budget goes without --measurements: a table chooses among "
                                     "all algorithms, so none may be left out");
    }
    if (options.chunk_bytes > 0 && options.chunk_bytes < HETCOLL_MIN_CHUNK) {
        return error(Errc::kInvalid, "--chunk %zu is too small, write at least %d, or 0 to choose",
                     options.chunk_bytes, HETCOLL_MIN_CHUNK);
    }
    for (const std::size_t bytes : options.bytes) {
        if (options.chunk_bytes > 0 && bytes / options.chunk_bytes > kMostChunks) {
            return error(Errc::kInvalid,
                         "--bytes %zu in chunks of %zu would take too long: write at least %zu for "
                         "--chunk",
                         bytes, options.chunk_bytes, bytes / kMostChunks + 1);
        }
    }
    const std::optional<Algorithm> between = find_algorithm(options.between_nodes);
    if (!options.between_nodes.empty() &&
        (!between || !contains(kBetweenNodesAlgorithms, *between))) {
        return error(Errc::kInvalid, "--between-nodes '%s' must be %s",
                     options.between_nodes.c_str(),
                     names_of(kBetweenNodesAlgorithms, " or ").c_str());
    }
    const bool in_network = std::find(options.algorithms.begin(), options.algorithms.end(),
                                      kInNetworkName) != options.algorithms.end();
    if (in_network && options.ranks_per_gpu > 1) {
        return error(Errc::kInvalid, "--algorithm in_network is simulated with one rank per GPU: "
                                     "leave out --ranks-per-gpu");
    }
    for (const std::string &name : options.algorithms) {
        if (name != "auto" && name != "all" && name != kInNetworkName && !find_algorithm(name)) {
            return error(
                Errc::kInvalid,
                "--algorithm '%s' is not one of hetcoll's: hetcoll_info explain lists them",
                name.c_str());
        }
    }
    const Result<ShareSetting> shares = parse_shares(options.shares);
    return shares.ok() ? Status() : error(Errc::kInvalid, "%s", shares.status().message().c_str());
}

} // namespace

bool parse_sim_options(int argc, char **argv, SimOptions &options, int &exit_code)
{
    CommandLine line(
        "hetcoll_sim",
        "Simulates MPI_Allreduce of device memory on a cluster: the schedules that hetcoll would "
        "run, on SimGrid, one rank per GPU unless told otherwise. Times are those of a model, not "
        "measured.");
    line.add_option("--topology", options.topology,
                    "a cluster file, or a topology file that describes every node; shipped ones go "
                    "by name, such as dgxh100, awan64, netreduce")
        .required()
        .type_name("FILE[:GPUS]");
    line.add_option("--nodes", options.nodes,
                    "numbers of nodes to simulate, such as 1,2,4; a cluster file gives its first "
                    "ones, by default all")
        .list()
        .check(whole_number(1, kMostNodes))
        .type_name("N,...");
    line.add_option("--ranks-per-gpu", options.ranks_per_gpu, "ranks that share each GPU (1)")
        .check(whole_number(1, kMostNodeRanks))
        .type_name("N");
    SizeWords sizes;
    line.add_option("--bytes", sizes.list,
                    "sizes of the vector, such as 8,64K,4M; 8:64M doubles from 8 to 64M")
        .type_name("SIZE,...");
    add_size_options(line, "--bytes", sizes);
    line.add_option("--algorithm", options.algorithms,
                    "auto: as hetcoll would choose (the default); all; or names, such as "
                    "ring,hierarchical; in_network is switches that reduce")
        .list()
        .type_name("NAME,...");
    line.add_option("--between-nodes", options.between_nodes,
                    "with --algorithm hierarchical, what runs between nodes: ring, rabenseifner, "
                    "recursive_doubling, recursive_multiplying, radix3, radix4, radix8")
        .type_name("NAME");
    line.add_option("--table", options.table, "a tuning table to choose by").type_name("FILE");
    line.add_option("--machine", options.machine,
                    "with --table: the machine whose rules to take; default: as a job chooses")
        .check(word())
        .type_name("NAME");
    line.add_option("--shares", options.shares, "as coll_hetcoll_shares, for weighted")
        .type_name("LIST");
    line.add_option("--chunk", options.chunk_bytes, "as coll_hetcoll_chunk_bytes")
        .check(size(0, HETCOLL_MAX_CHUNK))
        .type_name("SIZE");
    line.add_option("--small-limit", options.small_limit, "as coll_hetcoll_small_limit")
        .check(size(0, HETCOLL_MAX_SMALL_LIMIT))
        .type_name("SIZE");
    std::string path = "direct";
    line.add_option("--path", path,
                    "what messages between nodes carry: direct, GPU memory (the default); bounce, "
                    "pinned memory to which data are copied first")
        .check(one_of({"direct", "bounce"}));
    line.add_option("--message", options.message_bytes,
                    "with in_network: bytes of a message (170K)")
        .check(size(1024, 1u << 30))
        .type_name("SIZE");
    line.add_option("--window", options.window,
                    "with in_network: most messages of a rank in flight (4)")
        .check(whole_number(1, 64))
        .type_name("N");
    bool no_meetings = false;
    line.add_flag("--no-meetings", no_meetings,
                  "leave out the agreements of the ranks before and after a call");
    line.add_flag("--adapters", options.adapters, kAdaptersHelp);
    line.add_flag("--describe", options.describe, "say what the cluster is and simulate nothing");
    line.add_option("--budget", options.budget_s,
                    "seconds for all simulations together; what is not over by then is left out")
        .check(number(0.1, 1e6))
        .type_name("SECONDS");
    line.add_flag("--progress", options.progress,
                  "print progress to stderr even if it is not a terminal");
    line.add_option("--json", options.json,
                    "also write the results to this file; -: to stdout, and the table to stderr")
        .type_name("FILE");
    line.add_option(
            "--measurements", options.measurements,
            "with --algorithm all: write to this file what hetcoll_tune makes a table from; "
            "hetcoll_tune --simulate does both; -: as --json -")
        .type_name("FILE");
    if (!line.parse(argc, argv, exit_code)) {
        return false;
    }
    Result<std::vector<std::size_t>> bytes = read_sizes(sizes, "--bytes", 4, kMostBytes);
    if (!bytes.ok()) {
        exit_code = line.usage_error(bytes.status().message());
        return false;
    }
    options.bytes = std::move(*bytes);
    options.meetings = !no_meetings;
    options.path = path == "bounce" ? MessagePath::kBounce : MessagePath::kDirect;
    if (const Status status = check(options); !status.ok()) {
        exit_code = line.usage_error(status.message());
        return false;
    }
    if (const std::string lost =
            find_overwritten(line, {"--json", "--measurements"}, {"--topology", "--table"});
        !lost.empty()) {
        exit_code = line.usage_error(lost);
        return false;
    }
    if (options.nodes.empty()) {
        options.nodes = {0};
    }
    if (options.algorithms.empty()) {
        options.algorithms = {"auto"};
    }
    return true;
}

} // namespace hetcoll
