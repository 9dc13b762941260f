#include "tools/tune_options.h"

#include "measure/command_line.h"
#include "measure/contenders.h"
#include "measure/named_files.h"
#include "measure/sizes.h"
#include "schedule/algorithm_rows.h"

#include <algorithm>
#include <string_view>

namespace hetcoll {

namespace {

// Jobs at the limit of a mode end in time for the table to be written.
constexpr double kQuickLimit = 58, kFullLimit = 590;

void add_options(CommandLine &line, TuneOptions &options)
{
    line.add_flag("--quick", options.quick,
                  "take less than a minute, with few sizes; then a missing GPU is no error");
    line.add_option("--limit", options.limit_s,
                    "most seconds to take; default 590, with --quick 58")
        .check(number(5, 1e6));
    line.add_option("--output", options.output,
                    "the table to make or bring up to date; default: the one that "
                    "coll_hetcoll_tuning_table=auto reads, which is made in sysconfdir");
    line.add_option("--html", options.html,
                    "also write a page for a browser: the links, the new table, and what was "
                    "measured")
        .type_name("FILE");
    line.add_option(
            "--ranks", options.ranks,
            "ranks of the jobs, such as 2,3,4, without those that are not a multiple of the "
            "nodes; default: by the GPUs of a node")
        .list()
        .check(whole_number(2, 4096));
    line.add_option("--nodes", options.nodes, "numbers of nodes, such as 1,2; default 1")
        .list()
        .check(whole_number(1, 1024));
    line.add_flag("--fake-nodes", options.fake_nodes,
                  "for tests: pretend that this machine is several nodes, by coll_hetcoll_node");
    line.add_option("--repetitions", options.repetitions,
                    "how many jobs of each kind to run; at least 3 show how far they differ")
        .check(whole_number(1, 100))
        .show_default();
    line.add_option(
            "--most-repetitions", options.most_repetitions,
            "how many to run, within the limit, of the sizes and algorithms that these leave "
            "undecided; with --quick none but these")
        .check(whole_number(1, 100))
        .show_default();
    line.add_option("--sizes", options.sizes,
                    "bytes: 8:64M doubles from 8 to 64M, 8,24,64K is a list");
    line.add_option("--algorithms", options.algorithms,
                    "measure only these; ring/65536 is ring with chunks of 65536 bytes")
        .list();
    line.add_option("--machine", options.machine, "what the table calls machines like this one")
        .check(word());
    line.add_option("--from-measurements", options.from_measurements,
                    "measure nothing: make the table from these files")
        .excludes("--quick");
    line.add_option("--simulate", options.simulate,
                    "measure nothing: simulate this cluster (hetcoll_sim --topology) on --nodes, "
                    "for a table for machines that are not there yet; needs --output")
        .excludes("--quick")
        .excludes("--from-measurements")
        .type_name("FILE");
    line.add_option(
        "--hetcoll-sim", options.hetcoll_sim,
        "with --simulate: the hetcoll_sim to run; default: the one next to this program");
    line.add_option(
            "--check", options.check,
            "make no table: check this one against --from-measurements that it was not made "
            "from, and say where it chooses something clearly slower than the best")
        .needs("--from-measurements");
    line.add_option("--mpirun", options.mpirun, "the mpirun to use").show_default();
    line.add_option("mpirun_options", options.mpirun_options,
                    "options for mpirun, after --, such as: -- --hostfile HOSTS");
}

// `hetcoll_tune worker ...`, which only hetcoll_tune writes: one job of it.
bool parse_worker(int argc, char **argv, WorkerOptions &worker, int &exit_code)
{
    CommandLine line("hetcoll_tune worker", "One job of hetcoll_tune.");
    line.add_option("--sizes", worker.sizes).required();
    line.add_option("--algorithms", worker.algorithms).required();
    line.add_option("--seconds", worker.seconds).required();
    line.add_option("--deadline", worker.deadline_s).required();
    line.add_option("--fake-nodes", worker.fake_nodes);
    line.add_flag("--verify", worker.verify);
    worker.wanted = true;
    return line.parse(argc, argv, exit_code);
}

// Checks of several options together: a request that would be ignored is refused.
Status check(const CommandLine &line, const TuneOptions &options)
{
    if (!options.sizes.empty()) {
        const Result<std::vector<std::size_t>> sizes = parse_sizes(options.sizes);
        if (!sizes.ok()) {
            return error(Errc::kInvalid, "--sizes: %s", sizes.status().message().c_str());
        }
    }
    const Result<std::vector<Contender>> ways = Contenders::parse(options.algorithms);
    if (!ways.ok()) {
        return error(Errc::kInvalid, "--algorithms: %s", ways.status().message().c_str());
    }
    const char *const instead = !options.simulate.empty()            ? "--simulate"
                                : !options.check.empty()             ? "--check"
                                : !options.from_measurements.empty() ? "--from-measurements"
                                                                     : nullptr;
    for (const char *option : {"--ranks", "--fake-nodes", "--repetitions", "--most-repetitions",
                               "--algorithms", "--mpirun"}) {
        if (instead != nullptr && line.is_given(option)) {
            return error(Errc::kInvalid, "%s is for measurements, and %s makes none: leave one out",
                         option, instead);
        }
    }
    for (const char *option : {"--nodes", "--sizes", "--limit", "--machine"}) {
        if (!options.from_measurements.empty() && line.is_given(option)) {
            return error(Errc::kInvalid,
                         "%s is for measurements and simulations, and %s makes none: leave one out",
                         option, instead);
        }
    }
    for (const char *option : {"--output", "--html"}) {
        if (!options.check.empty() && line.is_given(option)) {
            return error(Errc::kInvalid,
                         "%s is for a new table, and --check makes none: leave one "
                         "out",
                         option);
        }
    }
    if (!options.mpirun_options.empty() &&
        (instead != nullptr || !options.mpirun_options.front().starts_with('-'))) {
        return error(Errc::kInvalid,
                     "'%s' is no option of it, and options for the mpirun of measurements begin "
                     "with -",
                     options.mpirun_options.front().c_str());
    }
    if (line.is_given("--hetcoll-sim") && options.simulate.empty()) {
        return error(Errc::kInvalid, "--hetcoll-sim goes with --simulate");
    }
    if (!options.simulate.empty() && options.output.empty()) {
        return error(Errc::kInvalid, "a table from a simulation is not this machine's: give "
                                     "--output FILE");
    }
    const std::string lost = find_overwritten(line, {"--output", "--html"},
                                              {"--from-measurements", "--simulate", "--check"});
    return lost.empty() ? Status() : error(Errc::kInvalid, "%s", lost.c_str());
}

} // namespace

bool parse_tune_options(int argc, char **argv, TuneOptions &options, WorkerOptions &worker,
                        int &exit_code)
{
    if (argc > 1 && std::string_view(argv[1]) == "worker") {
        return parse_worker(argc - 1, argv + 1, worker, exit_code);
    }
    CommandLine line(
        "hetcoll_tune",
        "Measures hetcoll's algorithms on this machine and writes a tuning table, and the "
        "raw measurements next to it.");
    options.mpirun = HETCOLL_MPIRUN;
    add_options(line, options);
    if (!line.parse(argc, argv, exit_code)) {
        return false;
    }
    if (const Status status = check(line, options); !status.ok()) {
        exit_code = line.usage_error(status.message());
        return false;
    }
    options.limit_s = options.limit_s > 0 ? options.limit_s
                      : options.quick     ? kQuickLimit
                                          : kFullLimit;
    if (options.sizes.empty()) {
        options.sizes = options.quick ? "8,32,128,512,2K,8K,32K,128K,512K,2M,8M,32M" : "8:64M";
    }
    if (!options.simulate.empty() && options.sizes == "8:64M") { // fewer: the model is smooth
        options.sizes = "8,64,512,4K,8K,16K,64K,256K,1M,4M,16M,64M";
    }
    options.most_repetitions = options.quick
                                   ? options.repetitions
                                   : std::max(options.repetitions, options.most_repetitions);
    if (options.nodes.empty()) {
        options.nodes = {1};
    }
    if (options.algorithms.empty()) {
        for (const AlgorithmRow &row : kAlgorithmRows) {
            if (!row.has(Trait::kWhenAsked) && row.needs != Needs::kAggregators) {
                options.algorithms.emplace_back(row.name);
            }
        }
    }
    return true;
}

} // namespace hetcoll
