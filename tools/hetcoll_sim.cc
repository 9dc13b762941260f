// hetcoll_sim: MPI_Allreduce on a cluster that need not exist, by the schedules that hetcoll runs.
#include "base/counted.h"
#include "base/installed.h"
#include "choice/choose.h"
#include "hetcoll_config.h"
#include "machine/topology_links.h"
#include "measure/command_line.h"
#include "measure/commit.h"
#include "measure/host.h"
#include "measure/output_file.h"
#include "measure/progress.h"
#include "plan/describe.h"
#include "sim/bound.h"
#include "sim/cluster_file.h"
#include "sim/in_network.h"
#include "tools/adapters_option.h"
#include "tools/job_table.h"
#include "tools/sim_options.h"
#include "tools/sim_report.h"
#include "tuning/measurements.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hetcoll {
namespace {

// The run of one entry of --algorithm.
struct Asked {
    std::string name;
    std::optional<Algorithm> forced;
    bool in_network = false;
};

std::vector<Asked> asked_algorithms(const SimOptions &options, const Ranks &ranks)
{
    std::vector<Asked> asked;
    for (const std::string &name : options.algorithms) {
        if (name != "all") {
            const bool in_network = name == kInNetworkName;
            asked.push_back({name, in_network ? std::nullopt : find_algorithm(name), in_network});
            continue;
        }
        for (int i = 0; i < kAlgorithmCount; ++i) {
            const auto algorithm = static_cast<Algorithm>(i);
            const bool shares = needs(algorithm, Needs::kShares) && options.shares != "off";
            if (shares || contains(ranks.query.available | algorithms_of(Form::kHost), algorithm)) {
                asked.push_back({algorithm_name(algorithm), algorithm, false});
            }
        }
    }
    return asked;
}

const char *path_name(const SimOptions &options, const Ranks &ranks, Algorithm algorithm)
{
    if (is(algorithm, Form::kHost)) {
        return "small";
    }
    const bool one_node = ranks.query.nodes == 1;
    return one_node && !row_of(algorithm).has(Trait::kWholeVectors) ? "mapped"
           : options.path == MessagePath::kDirect                   ? "direct"
                                                                    : "bounce";
}

class Tool {
public:
    explicit Tool(const SimOptions &options)
        : options_(options),
          text_(options.json == "-" || options.measurements == "-" ? stderr : stdout),
          progress_("hetcoll_sim", 0, options.progress)
    {
    }

    Status run()
    {
        between_ = find_algorithm(options_.between_nodes);
        Result<ShareSetting> shares = parse_shares(options_.shares);
        if (!shares.ok()) {
            return shares.take_status();
        }
        shares_ = std::move(*shares);
        if (!options_.table.empty()) {
            Result<TableFile> file = read_table(options_.table);
            if (!file.ok()) {
                return file.take_status();
            }
            table_file_ = std::move(*file);
        }
        const int most = *std::max_element(options_.nodes.begin(), options_.nodes.end());
        if (options_.adapters && most > 1) { // before any of them has run
            return check_adapters(nullptr, most);
        }
        if (Status status = open_files(); !status.ok()) {
            return status;
        }
        for (const int nodes : options_.nodes) {
            if (Status status = run_nodes(nodes); !status.ok()) {
                return status;
            }
        }
        if (!rows_.empty()) {
            progress_.hide();
            print_sim_costs(text_, rows_);
        }
        if (left_out_ > 0) {
            progress_.hide();
            std::fprintf(text_, "# --budget is used up: %d simulation%s left out\n", left_out_,
                         left_out_ == 1 ? " is" : "s are");
            facts_.emplace_back("left out for --budget", std::to_string(left_out_));
            last_problem_ = "--budget is too short for the first one";
        }
        if (rows_.empty() && !options_.describe) {
            return error(Errc::kUnsupported, "nothing was simulated: %s",
                         last_problem_.empty() ? "no --algorithm is for these --bytes"
                                               : last_problem_.c_str());
        }
        if (measurements_file_) {
            if (Status status = measurements_file_->write(write_measurements(measurements_));
                !status.ok()) {
                return status;
            }
        }
        return json_file_ ? json_file_->write(print_sim_json(facts_, rows_)) : Status();
    }

private:
    // Before the work: a path that cannot be written is found out first.
    Status open_files()
    {
        for (const auto &[path, file] : {std::pair{&options_.json, &json_file_},
                                         std::pair{&options_.measurements, &measurements_file_}}) {
            if (path->empty()) {
                continue;
            }
            Result<OutputFile> opened = OutputFile::open(*path);
            if (!opened.ok()) {
                return opened.take_status();
            }
            file->emplace(std::move(*opened));
        }
        return {};
    }

    // The rules of --table that a job on these nodes takes; says so if that is not what one may
    // expect.
    Status take_table(const Cluster &cluster)
    {
        if (!table_file_) {
            return {};
        }
        std::vector<Topology> kinds;
        for (const NodeKind &kind : cluster.kinds) {
            kinds.push_back(kind.topology);
        }
        Result<JobTable> found = table_of_job(*table_file_, options_.machine, kinds);
        if (!found.ok()) {
            return found.take_status();
        }
        if (!found->note.empty() && found->note != table_note_) {
            progress_.hide();
            std::fprintf(stderr, "hetcoll_sim: %s: %s\n", options_.table.c_str(),
                         found->note.c_str());
        }
        table_ = std::move(found->table);
        table_note_ = std::move(found->note);
        return {};
    }

    [[nodiscard]] NodePattern on_each_gpu(const Cluster &cluster) const
    {
        std::size_t most = 0;
        for (const NodeKind &kind : cluster.kinds) {
            most = std::max(most, kind.topology.gpus().size());
        }
        return NodePattern(most, options_.ranks_per_gpu);
    }

    Status run_nodes(int nodes)
    {
        Result<Cluster> cluster =
            read_cluster(options_.topology, nodes, installed_folders().topologies);
        if (!cluster.ok()) {
            return cluster.take_status();
        }
        if (Status status = take_table(*cluster); !status.ok()) {
            return status;
        }
        Ranks ranks = place_ranks(*cluster, on_each_gpu(*cluster));
        if (options_.adapters) {
            if (Status status =
                    check_adapters(&cluster->kinds.front().topology, cluster->node_count());
                !status.ok()) {
                return status;
            }
            ranks.query.links.by_adapters = true;
        }
        const auto count = [](int number, const char *what) {
            return counted(static_cast<std::size_t>(number), what);
        };
        if (options_.describe) {
            begin(*cluster);
            std::fprintf(text_, "%s on %s in %s\n", count(ranks.size(), "rank").c_str(),
                         count(cluster->node_count(), "node").c_str(),
                         count(cluster->rack_count(), "rack").c_str());
            return {};
        }
        if (ranks.size() < 2) {
            return error(Errc::kInvalid,
                         "one rank has nobody to reduce with: give --nodes or --ranks-per-gpu");
        }
        const std::size_t weights = shares_.weights.size();
        if (weights != 0 && weights != static_cast<std::size_t>(ranks.size())) {
            return error(Errc::kInvalid,
                         "--shares names %s for %s on %s of %s: give one for each rank, or auto",
                         counted(weights, "share").c_str(), count(ranks.size(), "rank").c_str(),
                         count(cluster->node_count(), "node").c_str(), options_.topology.c_str());
        }
        const std::vector<Asked> asked = asked_algorithms(options_, ranks);
        begin(*cluster);
        progress_.expect(static_cast<int>(options_.bytes.size() * asked.size()));
        for (const std::size_t bytes : options_.bytes) {
            for (const Asked &one : asked) {
                const bool wanted = is_wanted(ranks, bytes, one);
                const std::optional<double> most_s = time_left();
                if (!wanted || !most_s) {
                    left_out_ += wanted ? 1 : 0;
                    progress_.end_job();
                    continue;
                }
                progress_.begin_job(std::to_string(ranks.size()) + " ranks, " +
                                    std::to_string(bytes) + " bytes by " + one.name);
                if (Status status = run_one(*cluster, ranks, bytes, one, *most_s); !status.ok()) {
                    return status;
                }
                progress_.end_job();
            }
        }
        return options_.measurements.empty() ? Status() : add_measurements(*cluster, ranks);
    }

    // A table chooses among what runs at a size. A table for many ranks needs no measurement of
    // what takes one message per rank or more, one after the other.
    [[nodiscard]] bool is_wanted(const Ranks &ranks, std::size_t bytes, const Asked &asked) const
    {
        constexpr int kMostRanksInALine = 256;
        const bool in_line =
            asked.forced && row_of(*asked.forced).has(Trait::kInRing | Trait::kInChain);
        if (options_.algorithms.front() == "all" && in_line && ranks.size() > kMostRanksInALine) {
            return false;
        }
        return options_.measurements.empty() || !asked.forced ||
               (contains(at_size(ranks.query.available, bytes, options_.small_limit, false),
                         *asked.forced) &&
                !row_of(*asked.forced).has(Trait::kWhenAsked));
    }

    // The measurements that hetcoll_tune makes a table of.
    Status add_measurements(const Cluster &cluster, const Ranks &ranks)
    {
        if (cluster.kinds.size() > 1) {
            return error(Errc::kUnsupported, "a table is for nodes of one kind, %s has %zu",
                         options_.topology.c_str(), cluster.kinds.size());
        }
        Measurements &all = measurements_;
        all.machine = options_.machine.empty() ? "simulated" : options_.machine;
        all.fingerprint = fingerprint_of(cluster.kinds.front().topology, "");
        for (const SimRow &row : rows_) {
            if (row.nodes != cluster.node_count()) {
                continue;
            }
            const auto ns = static_cast<std::int64_t>(row.us * 1000);
            all.samples.push_back({.setup = {.ranks = row.ranks,
                                             .nodes = row.nodes,
                                             .ranks_per_node_min = ranks.query.ranks_per_node_min,
                                             .ranks_per_node_max = ranks.query.ranks_per_node_max,
                                             .ranks_per_gpu = ranks.query.ranks_per_gpu},
                                   .variant = {.algorithm = *find_algorithm(row.algorithm)},
                                   .bytes = static_cast<std::int64_t>(row.bytes),
                                   .min_ns = ns,
                                   .median_ns = ns,
                                   .p90_ns = ns});
        }
        return {};
    }

    void begin(const Cluster &cluster)
    {
        if (!facts_.empty()) {
            return;
        }
        facts_ = {{"result", "simulated: the time of a model, no machine was measured"},
                  {"cluster", options_.topology + " (" + cluster.name + ")"},
                  {"meetings", options_.meetings ? "yes" : "no"},
                  {"version", HETCOLL_VERSION},
                  {"commit", HETCOLL_COMMIT},
                  {"simulated on", cpu_model()},
                  {"date", now_utc()}};
        if (!options_.table.empty()) {
            facts_.emplace_back("table", options_.table);
        }
        if (options_.adapters) {
            facts_.emplace_back("adapters", "may carry a part of a vector");
        }
        print_sim_facts(text_, facts_);
        if (!options_.describe) {
            print_sim_heading(text_);
        }
    }

    // Seconds that are left of --budget; 0: no end; nothing: it is used up.
    [[nodiscard]] std::optional<double> time_left() const
    {
        const std::chrono::duration<double> used = std::chrono::steady_clock::now() - start_;
        const double left = options_.budget_s - used.count();
        return options_.budget_s == 0 ? std::optional(0.0)
               : left > 0             ? std::optional(left)
                                      : std::nullopt;
    }

    Status run_one(const Cluster &cluster, const Ranks &ranks, std::size_t bytes,
                   const Asked &asked, double most_s)
    {
        const SimCall call{.bytes = bytes,
                           .forced = asked.forced,
                           .between_nodes = asked.forced ? between_ : std::nullopt,
                           .chunk_bytes = options_.chunk_bytes,
                           .small_limit = options_.small_limit,
                           .table = table_ ? &*table_ : nullptr,
                           .shares = shares_,
                           .path = options_.path,
                           .meetings = options_.meetings,
                           .most_s = most_s};
        Result<SimResult> result =
            asked.in_network ? simulate_in_network(cluster, ranks, call,
                                                   {.message_bytes = options_.message_bytes,
                                                    .window = options_.window})
                             : simulate(cluster, ranks, call);
        if (!result.ok() && result.status().code() == Errc::kUnsupported && !time_left()) {
            ++left_out_;
            return {};
        }
        if (!result.ok() && result.status().code() == Errc::kUnsupported &&
            options_.algorithms.size() > 1) { // the others may
            last_problem_ = result.status().message();
            progress_.hide();
            std::fprintf(text_, "# %s\n", last_problem_.c_str());
            return {};
        }
        if (!result.ok()) {
            return result.take_status();
        }
        const Choice &choice = result->choice;
        rows_.push_back(
            {.ranks = ranks.size(),
             .nodes = cluster.node_count(),
             .bytes = bytes,
             .asked = asked.name,
             .algorithm = asked.in_network ? kInNetworkName : algorithm_name(choice.algorithm),
             .path = path_name(options_, ranks, choice.algorithm),
             .way = choice,
             .us = result->us,
             .bound_us =
                 lower_bound(cluster, ranks, static_cast<double>(bytes), asked.in_network).us(),
             .predicted_us = asked.in_network ? std::nullopt : std::optional(result->predicted_us),
             .transfers = result->transfers,
             .cost_s = result->cost.seconds,
             .cost_mib = result->cost.mib});
        progress_.hide();
        print_sim_row(text_, rows_.back());
        return {};
    }

    const SimOptions &options_;
    std::FILE *text_;
    ProgressBar progress_;
    std::optional<Algorithm> between_;
    std::optional<Table> table_;
    ShareSetting shares_;
    SimFacts facts_;
    std::vector<SimRow> rows_;
    std::optional<TableFile> table_file_;
    std::string table_note_;
    Measurements measurements_;
    std::optional<OutputFile> json_file_, measurements_file_;
    std::string last_problem_; // of an algorithm that was left out
    const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
    int left_out_ = 0; // for --budget
};

} // namespace
} // namespace hetcoll

int main(int argc, char **argv)
{
    hetcoll::SimOptions options;
    int exit_code = 0;
    if (!hetcoll::parse_sim_options(argc, argv, options, exit_code)) {
        return exit_code;
    }
    const hetcoll::Status status = hetcoll::Tool(options).run();
    if (!status.ok()) {
        std::fprintf(stderr, "hetcoll_sim: %s\n", status.message().c_str());
    }
    return hetcoll::end_output("hetcoll_sim", status.ok() ? 0 : 1);
}
