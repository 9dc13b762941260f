#include "tools/tune_options.h"

#include "tuning/choice.h"

#include <CLI/CLI.hpp>

#include <algorithm>

namespace hetcoll {

namespace {

// Jobs at the limit of a mode end in time for the table to be written.
constexpr double kQuickLimit = 58, kFullLimit = 590;

void add_options(CLI::App &app, TuneOptions &options)
{
    app.add_flag("--quick", options.quick,
                 "less than a minute, few sizes; where there is no GPU that is no error");
    app.add_option("--limit", options.limit_s, "most seconds; default 590, with --quick 58")
        ->check(CLI::Range(5.0, 1e6));
    app.add_option("--output", options.output,
                   "the table, made or brought up to date; default: the one that "
                   "coll_hetcoll_tuning_table=auto reads");
    app.add_option("--ranks", options.ranks,
                   "sizes of jobs, as 2,3,4; those that are no multiple of the nodes "
                   "are left out; default: by the GPUs of a node")
        ->delimiter(',')
        ->check(CLI::Range(2, 4096));
    app.add_option("--nodes", options.nodes, "numbers of nodes, as 1,2; default 1")
        ->delimiter(',')
        ->check(CLI::Range(1, 1024));
    app.add_flag("--fake-nodes", options.fake_nodes,
                 "for tests: several nodes on this machine, by coll_hetcoll_node");
    app.add_option("--repetitions", options.repetitions,
                   "jobs of each kind, at least 3 to know how far they differ")
        ->check(CLI::Range(1, 100))
        ->capture_default_str();
    app.add_option("--sizes", options.sizes, "bytes: 8:64M doubles, 8,24,64K lists");
    app.add_option("--algorithms", options.algorithms,
                   "measure only these; ring/65536 with chunks of so many bytes")
        ->delimiter(',');
    app.add_option("--machine", options.machine, "what the table calls machines like this one");
    app.add_option("--from-measurements", options.from_measurements,
                   "measure nothing, make the table from these files")
        ->excludes("--quick");
    app.add_option("--simulate", options.simulate,
                   "measure nothing, simulate this cluster (hetcoll_sim --topology) on --nodes: a "
                   "table for machines that are not there yet; needs --output")
        ->excludes("--quick", "--from-measurements")
        ->type_name("FILE");
    app.add_option("--hetcoll-sim", options.hetcoll_sim,
                   "with --simulate: the program; default: beside this one");
    app.add_option("--check", options.check,
                   "do not make a table: say where this one chooses something clearly slower than "
                   "the best of --from-measurements, which it was not made from")
        ->needs("--from-measurements");
    app.add_option("--mpirun", options.mpirun, "the mpirun to use")->capture_default_str();
    app.add_option("mpirun_options", options.mpirun_options,
                   "options of mpirun, after --, as: -- --hostfile HOSTS");
}

void add_worker(CLI::App &app, WorkerOptions &worker)
{
    CLI::App *sub = app.add_subcommand("worker", "one job of it")->group("");
    sub->add_option("--sizes", worker.sizes)->required();
    sub->add_option("--algorithms", worker.algorithms)->required();
    sub->add_option("--seconds", worker.seconds)->required();
    sub->add_option("--deadline", worker.deadline_s)->required();
    sub->add_option("--fake-nodes", worker.fake_nodes);
    sub->add_flag("--verify", worker.verify);
    sub->callback([&worker] { worker.wanted = true; });
}

} // namespace

bool parse_tune_options(int argc, char **argv, TuneOptions &options, WorkerOptions &worker,
                        int &exit_code)
{
    CLI::App app{"Measures hetcoll's algorithms on this machine and writes a tuning table, and the "
                 "raw measurements beside it."};
    options.mpirun = HETCOLL_MPIRUN;
    add_options(app, options);
    add_worker(app, worker);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError &problem) {
        exit_code = app.exit(problem);
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
    if (options.nodes.empty()) {
        options.nodes = {1};
    }
    if (options.algorithms.empty()) {
        for (int i = 0; i < kAlgorithmCount; ++i) {
            const auto algorithm = static_cast<Algorithm>(i);
            // No table chooses the one, and the other needs servers.
            if (algorithm != Algorithm::kOrdered && algorithm != Algorithm::kInNetwork) {
                options.algorithms.emplace_back(algorithm_name(algorithm));
            }
        }
    }
    return true;
}

} // namespace hetcoll
