#include "tools/sim_options.h"

#include "measure/command_line.h"
#include "sim/cluster_file.h"
#include "tuning/choice.h"

#include <CLI/CLI.hpp>

#include <string>

namespace hetcoll {

bool parse_sim_options(int argc, char **argv, SimOptions &options, int &exit_code)
{
    CLI::App app{
        "Simulates MPI_Allreduce of device memory on a cluster: the schedules that hetcoll would "
        "run, one rank per GPU, on SimGrid. Times are those of a model, not measured."};
    introduce(app, "hetcoll_sim");
    const auto sizes = CLI::AsSizeValue(false);
    app.add_option("--topology", options.topology,
                   "a cluster file, or a topology file that describes every node; shipped ones go "
                   "by name, such as dgxh100, awan64, netreduce")
        ->required()
        ->type_name("FILE[:GPUS]");
    app.add_option("--nodes", options.nodes,
                   "numbers of nodes to simulate, such as 1,2,4; a cluster file gives its first "
                   "ones, by default all")
        ->delimiter(',')
        ->check(CLI::Range(1, kMostNodes))
        ->type_name("N,...");
    app.add_option("--bytes", options.bytes, "sizes of the vector, such as 8,64K,4M")
        ->delimiter(',')
        ->transform(sizes)
        ->check(CLI::Range(std::uint64_t{4}, std::uint64_t{1} << 40))
        ->type_name("SIZE,...");
    app.add_option("--algorithm", options.algorithms,
                   "auto: as hetcoll would choose (the default); all; or names, such as "
                   "ring,hierarchical; in_network is switches that reduce")
        ->delimiter(',')
        ->type_name("NAME,...");
    app.add_option("--between-nodes", options.between_nodes,
                   "with --algorithm hierarchical, what runs between nodes: ring, rabenseifner, "
                   "recursive_doubling, recursive_multiplying, radix3, radix4, radix8");
    app.add_option("--table", options.table, "a tuning table to choose by");
    app.add_option("--machine", options.machine,
                   "with --table: the machine whose rules to take, if it has several");
    app.add_option("--shares", options.shares, "as coll_hetcoll_shares, for weighted")
        ->type_name("LIST");
    app.add_option("--chunk", options.chunk_bytes, "as coll_hetcoll_chunk_bytes")
        ->transform(sizes)
        ->type_name("SIZE");
    app.add_option("--small-limit", options.small_limit, "as coll_hetcoll_small_limit")
        ->transform(sizes)
        ->type_name("SIZE");
    app.add_option_function<std::string>(
           "--path",
           [&options](const std::string &name) {
               options.path = name == "bounce" ? MessagePath::kBounce : MessagePath::kDirect;
           },
           "what messages between nodes carry: direct, GPU memory (the default); bounce, pinned "
           "memory to which data are copied first")
        ->check(CLI::IsMember({"direct", "bounce"}))
        ->option_text("direct|bounce");
    app.add_option("--message", options.message_bytes, "with in_network: bytes of a message (170K)")
        ->transform(sizes)
        ->type_name("SIZE");
    app.add_option("--window", options.window,
                   "with in_network: most messages of a rank in flight (4)")
        ->check(CLI::Range(1, 64))
        ->type_name("N");
    app.add_flag_callback(
        "--no-meetings", [&options] { options.meetings = false; },
        "leave out the agreements of the ranks before and after a call");
    app.add_flag("--describe", options.describe, "say what the cluster is and simulate nothing");
    app.add_option("--json", options.json, "also write the results to this file")
        ->type_name("FILE");
    app.add_option("--measurements", options.measurements,
                   "with --algorithm all: write to this file what hetcoll_tune makes a table from; "
                   "hetcoll_tune --simulate does both")
        ->type_name("FILE");
    try {
        app.parse(argc, argv);
        if (options.bytes.empty() && !options.describe) {
            throw CLI::RequiredError("--bytes");
        }
    } catch (const CLI::ParseError &problem) {
        exit_code = app.exit(problem);
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
