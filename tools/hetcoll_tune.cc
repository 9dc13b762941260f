// hetcoll_tune: measures hetcoll's algorithms on this machine, job by job, and makes the tuning
// table from it. What went wrong is one line, and then there is no new table.
#include "device/driver.h"
#include "tools/tune_child.h"
#include "tools/tune_line.h"
#include "tools/tune_options.h"
#include "tools/tune_progress.h"
#include "tools/tune_table.h"
#include "tools/tune_worker.h"
#include "topology/route.h"
#include "topology_probe/probe.h"
#include "tuning/check_table.h"
#include "tuning/topology_links.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <set>

namespace hetcoll {

namespace {

constexpr double kStartSeconds = 2;  // of a job, until one has run
constexpr double kFinishSeconds = 7; // to end a job that takes too long, and to write the table

void say(const std::string &text) { std::fprintf(stderr, "hetcoll_tune: %s\n", text.c_str()); }

struct ThisMachine {
    Fingerprint fingerprint;
    std::string name;
    int gpus = 0;
    bool emulated = false;
};

// One word for people: "Tesla-V100-SXM2-32GB.nvlink-x2".
std::string name_of(const Fingerprint &fingerprint)
{
    std::string name;
    for (const char *key : {"gpu", "links", "driver"}) {
        const auto fact = fingerprint.facts.find(key);
        if (fact != fingerprint.facts.end() && fact->second != Fingerprint::kAny) {
            name += (name.empty() ? "" : ".") + fact->second;
        }
    }
    std::string word;
    for (const char c : name) {
        const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-';
        if (plain) {
            word += c;
        } else if (!word.empty() && word.back() != '-') {
            word += '-';
        }
    }
    return word;
}

// No GPUs: there are none here.
Result<ThisMachine> look_at_machine()
{
    ThisMachine machine;
    const DriverLibrary library;
    int gpus = 0;
    if (!DriverLibrary::may_have_gpu() || library.get() == nullptr ||
        library.get()->cuInit(0) != CUDA_SUCCESS ||
        library.get()->cuDeviceGetCount(&gpus) != CUDA_SUCCESS || gpus == 0) {
        return machine;
    }
    machine.emulated = library.is_emulated();
    MachineProbe probe({});
    Result<Topology> topology = probe.probe_machine(library.get());
    if (!topology.ok()) {
        return topology.take_status();
    }
    if (Status status = add_unknown_ways(*topology); !status.ok()) {
        return status;
    }
    machine.gpus = static_cast<int>(topology->gpus().size());
    machine.fingerprint = fingerprint_of(*topology, machine.emulated ? "emulated" : "");
    machine.name = name_of(machine.fingerprint);
    return machine;
}

struct Job {
    int ranks, nodes, repetition;
};

// All kinds of jobs once, then all again: what drifts, drifts for all alike.
std::vector<Job> plan_jobs(const TuneOptions &options, int gpus)
{
    std::set<int> ranks(options.ranks.begin(), options.ranks.end());
    if (ranks.empty()) {
        ranks = {2, std::max(gpus, 2)};
        for (int n = 4; n <= gpus && !options.quick; n *= 2) {
            ranks.insert(n);
        }
        if (gpus == 1) {
            ranks.insert(4); // ranks that share it
        }
    }
    std::vector<Job> jobs;
    const bool by_node = options.ranks.empty();
    for (int repetition = 0; repetition < options.repetitions; ++repetition) {
        for (const int nodes : options.nodes) {
            for (const int n : ranks) {
                if (by_node) {
                    jobs.push_back({n * nodes, nodes, repetition});
                } else if (n % nodes == 0) {
                    jobs.push_back({n, nodes, repetition});
                }
            }
        }
    }
    return jobs;
}

std::string describe(const Job &job, int repetitions)
{
    return std::to_string(job.ranks) + " ranks on " + std::to_string(job.nodes) +
           (job.nodes == 1 ? " node" : " nodes") + ", repetition " +
           std::to_string(job.repetition + 1) + " of " + std::to_string(repetitions);
}

std::string own_path()
{
    std::string path(4096, '\0');
    const ssize_t length = readlink("/proc/self/exe", path.data(), path.size());
    path.resize(length > 0 ? static_cast<std::size_t>(length) : 0);
    return path;
}

ChildCommand command_of(const TuneOptions &options, const Job &job, double seconds,
                        Clock::time_point deadline)
{
    const int left = static_cast<int>(
        std::chrono::duration_cast<std::chrono::seconds>(deadline - Clock::now()).count());
    ChildCommand command{{options.mpirun, "-n", std::to_string(job.ranks)}, {}, deadline};
    std::vector<std::string> &words = command.arguments;
    if (job.nodes > 1 && !options.fake_nodes) {
        words.insert(words.end(),
                     {"--map-by", "ppr:" + std::to_string(job.ranks / job.nodes) + ":node"});
    }
    if (job.ranks > job.nodes * sysconf(_SC_NPROCESSORS_ONLN) || options.fake_nodes) {
        words.insert(words.end(),
                     {"--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"});
    }
    for (const auto &[name, value] :
         {std::pair{"coll_hetcoll_enable", "1"}, {"coll_hetcoll_tuning_table", "none"}}) {
        words.insert(words.end(), {"--mca", name, value});
    }
    words.insert(words.end(), options.mpirun_options.begin(), options.mpirun_options.end());
    std::string algorithms;
    for (const std::string &algorithm : options.algorithms) {
        algorithms += (algorithms.empty() ? "" : ",") + algorithm;
    }
    words.insert(words.end(),
                 {own_path(), "worker", "--sizes", options.sizes, "--algorithms", algorithms,
                  "--seconds", std::to_string(seconds), "--deadline", std::to_string(left + 2)});
    if (options.fake_nodes) {
        words.insert(words.end(), {"--fake-nodes", std::to_string(job.nodes)});
    }
    if (job.repetition == 0) {
        words.emplace_back("--verify");
    }
    if (geteuid() == 0) { // make install often is root's, and containers have no other user
        command.environment = {{"OMPI_ALLOW_RUN_AS_ROOT", "1"},
                               {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}};
    }
    return command;
}

// What a job said.
struct JobOutput {
    std::string samples, problem, last_line;
};

void read_message(const std::string &message, JobOutput &output, ProgressBar &progress)
{
    const auto after = [&](const char *kind) {
        return message.starts_with(kind) ? message.substr(std::string(kind).size()) : "";
    };
    if (const std::string sample = after(kSample); is_sample(sample)) {
        output.samples += sample + "\n";
    } else if (const std::string sizes = after(kProgress); !sizes.empty()) {
        double done = 0, all = 1;
        if (std::sscanf(sizes.c_str(), "%lf %lf", &done, &all) == 2 && all > 0) {
            progress.show(done / all);
        }
    } else if (const std::string problem = after(kError); !problem.empty()) {
        output.problem = output.problem.empty() ? problem : output.problem;
    }
}

void read_line(const std::string &line, JobOutput &output, ProgressBar &progress)
{
    const std::vector<std::string> messages = messages_in(line);
    for (const std::string &message : messages) {
        read_message(message, output, progress);
    }
    if (messages.empty() && line.find_first_not_of(" -\t\r") != std::string::npos) {
        output.last_line = line;
    }
}

Status failure(const TuneOptions &options, const Job &job, const ChildEnd &end,
               const JobOutput &output)
{
    const std::string what = describe(job, options.repetitions);
    if (end.signal != 0) {
        return error(Errc::kInvalid, "stopped by signal %d", end.signal);
    }
    if (end.timed_out) {
        return error(Errc::kInvalid,
                     "%s: not done within the limit of %.0f s, give a larger --limit", what.c_str(),
                     options.limit_s);
    }
    if (!output.problem.empty()) {
        return error(Errc::kInvalid, "%s", output.problem.c_str());
    }
    const bool exited = WIFEXITED(end.status);
    return error(Errc::kInvalid, "%s: %s ended with %s %d%s%s", what.c_str(),
                 options.mpirun.c_str(), exited ? "status" : "signal",
                 exited ? WEXITSTATUS(end.status) : WTERMSIG(end.status),
                 output.last_line.empty() ? "" : ": ", output.last_line.c_str());
}

// The text of all samples.
Result<std::string> run_jobs(const TuneOptions &options, const std::vector<Job> &jobs,
                             Clock::time_point start)
{
    const auto deadline =
        start + std::chrono::duration_cast<Clock::duration>(
                    std::chrono::duration<double>(std::max(options.limit_s - kFinishSeconds, 1.0)));
    ProgressBar progress(static_cast<int>(jobs.size()), !options.quick);
    std::string samples;
    double start_seconds = kStartSeconds; // the slowest so far
    for (std::size_t i = 0; i < jobs.size(); ++i) {
        const auto begin = Clock::now();
        const double left = std::chrono::duration<double>(deadline - begin).count();
        const double seconds =
            std::max(left / static_cast<double>(jobs.size() - i) - start_seconds, 0.1) * 0.9;
        progress.begin_job(describe(jobs[i], options.repetitions));
        JobOutput output;
        Clock::time_point first_line = begin;
        const ChildEnd end = run_child(
            command_of(options, jobs[i], seconds, deadline), [&](const std::string &line) {
                first_line = first_line == begin ? Clock::now() : first_line;
                read_line(line, output, progress);
            });
        if (!end.good() || output.samples.empty()) {
            return failure(options, jobs[i], end, output);
        }
        start_seconds = std::max(start_seconds,
                                 std::chrono::duration<double>(first_line - begin).count() + 0.5);
        samples += output.samples;
        progress.end_job();
    }
    return samples;
}

Status report(const std::string &path, const Measurements &measurements, bool quick)
{
    Result<WrittenTable> written = update_table(path, measurements);
    if (!written.ok()) {
        return written.take_status();
    }
    for (const std::string &note : written->notes) {
        if (!quick) {
            say("note: " + note);
        }
    }
    std::printf("hetcoll_tune: wrote %s: %d rules for %s, from %zu measurements in %s\n",
                path.c_str(), written->rules, measurements.machine.c_str(),
                measurements.samples.size(), measurements.path.c_str());
    return {};
}

Result<Measurements> read_measurements(const std::string &path)
{
    Result<std::string> text = read_file(path);
    if (!text.ok()) {
        return text.take_status();
    }
    return parse_measurements(*text, path);
}

Status rebuild(const TuneOptions &options, const std::string &output)
{
    for (const std::string &path : options.from_measurements) {
        Result<Measurements> measurements = read_measurements(path);
        if (!measurements.ok()) {
            return measurements.take_status();
        }
        if (Status status = report(output, *measurements, options.quick); !status.ok()) {
            return status;
        }
    }
    return {};
}

// 0: the table is right, 1: it is not, or it cannot be known.
Result<int> check(const TuneOptions &options)
{
    const Result<TableFile> file = read_table(options.check);
    if (!file.ok()) {
        return error(Errc::kInvalid, "%s", file.status().message().c_str());
    }
    int exceptions = 0;
    for (const std::string &path : options.from_measurements) {
        Result<Measurements> measurements = read_measurements(path);
        if (!measurements.ok()) {
            return measurements.take_status();
        }
        const Result<Table> table = Table::select(*file, measurements->fingerprint);
        if (!table.ok()) {
            return error(Errc::kInvalid, "%s", table.status().message().c_str());
        }
        const TableCheck found = check_table(*table, *measurements);
        for (const std::string &line : found.exceptions) {
            std::printf("%s\n", line.c_str());
        }
        std::printf("hetcoll_tune: %s against %s: %d choices, %zu exceptions\n",
                    options.check.c_str(), path.c_str(), found.choices, found.exceptions.size());
        exceptions += static_cast<int>(found.exceptions.size());
    }
    return exceptions == 0 ? 0 : 1;
}

Status tune(const TuneOptions &options, const ThisMachine &machine, const std::string &output,
            Clock::time_point start)
{
    const std::string name = options.machine.empty() ? machine.name : options.machine;
    const std::string path = measurements_path(output, name);
    if (Status status = check_writable(output); !status.ok()) {
        return status;
    }
    const std::vector<Job> jobs = plan_jobs(options, machine.gpus);
    if (jobs.empty()) {
        return error(Errc::kInvalid, "--ranks and --nodes leave no job to run");
    }
    const Result<std::string> samples = run_jobs(options, jobs, start);
    if (!samples.ok()) {
        return error(Errc::kInvalid, "%s", samples.status().message().c_str());
    }
    Measurements head;
    head.machine = name;
    head.fingerprint = machine.fingerprint;
    const std::string text = write_measurements(head) + *samples;
    const Result<Measurements> measurements = parse_measurements(text, path);
    if (!measurements.ok()) {
        return error(Errc::kInvalid, "%s", measurements.status().message().c_str());
    }
    if (Status status = write_file(path, text); !status.ok()) {
        return status;
    }
    return report(output, *measurements, options.quick);
}

// hetcoll_sim is a program of its own, so that this one needs no SimGrid.
Status simulate(const TuneOptions &options, Clock::time_point start)
{
    if (options.output.empty()) {
        return error(Errc::kInvalid, "a table from a simulation is not this machine's: give "
                                     "--output FILE");
    }
    const std::string name = options.machine.empty() ? "simulated" : options.machine;
    const std::string path = measurements_path(options.output, name);
    if (Status status = check_writable(options.output); !status.ok()) {
        return status;
    }
    const auto beside = std::filesystem::path(own_path()).parent_path() / "hetcoll_sim";
    std::string nodes;
    for (const int count : options.nodes) {
        nodes += (nodes.empty() ? "" : ",") + std::to_string(count);
    }
    const ChildCommand command{{options.hetcoll_sim.empty() ? beside.string() : options.hetcoll_sim,
                                "--topology", options.simulate, "--nodes", nodes, "--algorithm",
                                "all", "--bytes", options.sizes, "--machine", name,
                                "--measurements", path},
                               {},
                               start + std::chrono::duration_cast<Clock::duration>(
                                           std::chrono::duration<double>(options.limit_s))};
    std::string last_line;
    const ChildEnd end = run_child(command, [&](const std::string &line) { last_line = line; });
    if (!end.good()) {
        return error(Errc::kInvalid, "%s%s",
                     end.timed_out ? "not done within --limit: take fewer --nodes or --sizes; "
                                   : "the simulation failed (is hetcoll_sim installed? it needs "
                                     "SimGrid): ",
                     last_line.c_str());
    }
    Result<std::string> text = read_file(path);
    if (!text.ok()) {
        return text.take_status();
    }
    Result<Measurements> measurements = parse_measurements(*text, path);
    return measurements.ok() ? report(options.output, *measurements, options.quick)
                             : measurements.take_status();
}

int run(const TuneOptions &options)
{
    const auto start = Clock::now();
    const std::string installed = std::string(HETCOLL_DATA_FOLDER) + "/tuning_table.json";
    const std::string output = options.output.empty() ? installed : options.output;
    const auto give_up = [](const Status &status) {
        say("no new table: " + status.message());
        return 1;
    };
    if (!options.check.empty()) {
        const Result<int> checked = check(options);
        if (!checked.ok()) {
            say(checked.status().message());
        }
        return checked.ok() ? *checked : 1;
    }
    if (!options.from_measurements.empty()) {
        const Status status = rebuild(options, output);
        return status.ok() ? 0 : give_up(status);
    }
    if (!options.simulate.empty()) {
        const Status status = simulate(options, start);
        return status.ok() ? 0 : give_up(status);
    }
    const Result<ThisMachine> machine = look_at_machine();
    if (!machine.ok()) {
        return give_up(machine.status());
    }
    if (machine->gpus == 0) {
        say("no GPU on this machine: hetcoll goes by its model");
        return options.quick ? 0 : 1;
    }
    if (machine->emulated && options.output.empty()) {
        say("the GPU here is emulated and its times are not a GPU's, so no table is installed: "
            "hetcoll goes by its model; --output FILE writes a table to try");
        return options.quick ? 0 : 1;
    }
    const Status status = tune(options, *machine, output, start);
    return status.ok() ? 0 : give_up(status);
}

} // namespace

} // namespace hetcoll

int main(int argc, char **argv)
{
    hetcoll::TuneOptions options;
    hetcoll::WorkerOptions worker;
    int exit_code = 0;
    if (!hetcoll::parse_tune_options(argc, argv, options, worker, exit_code)) {
        return exit_code;
    }
    return worker.wanted ? hetcoll::run_worker(worker) : hetcoll::run(options);
}
