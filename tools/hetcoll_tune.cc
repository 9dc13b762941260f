// hetcoll_tune: measures hetcoll's algorithms on this machine, job by job, and makes the tuning
// table from it. An error is one line, and then there is no new table.
#include "base/counted.h"
#include "base/installed.h"
#include "measure/command_line.h"
#include "measure/cpu_path.h"
#include "measure/output_file.h"
#include "measure/own_path.h"
#include "tools/child.h"
#include "tools/report.h"
#include "tools/this_machine.h"
#include "tools/tune_jobs.h"
#include "tools/tune_options.h"
#include "tools/tune_table.h"
#include "tools/tune_worker.h"
#include "tuning/check_table.h"

#include <cstdio>
#include <filesystem>
#include <functional>
#include <optional>
#include <utility>

namespace hetcoll {

namespace {

void say(const std::string &text) { std::fprintf(stderr, "hetcoll_tune: %s\n", text.c_str()); }

Status report(const std::string &path, const Measurements &measurements, const TuneOptions &options)
{
    Result<WrittenTable> written = update_table(path, measurements);
    if (!written.ok()) {
        return written.take_status();
    }
    for (const std::string &note : written->notes) {
        if (!options.quick) {
            say("note: " + note);
        }
    }
    std::fprintf(options.html == "-" ? stderr : stdout, // where the page goes, nothing else does
                 "hetcoll_tune: wrote %s: %s for %s, from %s in %s\n", path.c_str(),
                 counted(static_cast<std::size_t>(written->rules), "rule").c_str(),
                 measurements.machine.c_str(),
                 counted(measurements.samples.size(), "measurement").c_str(),
                 measurements.path.c_str());
    return {};
}

// --html: the table, and what it was made from. `topology` is the machine's; null: it is not known.
Status write_page(OutputFile &page, const std::string &table_path, const Topology *topology,
                  const std::vector<Measurements> &measurements, const std::vector<int> &nodes)
{
    const Result<TableFile> file = read_table(table_path);
    if (!file.ok()) {
        return error(Errc::kInvalid, "%s", file.status().message().c_str());
    }
    const std::string &machine = measurements.front().machine;
    Result<JobTable> table = table_of_job(*file, machine, {});
    if (!table.ok()) {
        return error(Errc::kInvalid, "%s", table.status().message().c_str());
    }
    const Result<std::string> text = print_report({.topology = topology,
                                                   .file = &*file,
                                                   .machine = machine,
                                                   .table = std::move(*table),
                                                   .measurements = measurements,
                                                   .nodes = nodes});
    if (!text.ok()) {
        return error(text.status().code(), "%s", text.status().message().c_str());
    }
    return page.write(*text);
}

// Opened before the work; nothing without --html.
Result<std::optional<OutputFile>> open_page(const TuneOptions &options)
{
    if (options.html.empty()) {
        return std::optional<OutputFile>();
    }
    Result<OutputFile> file = OutputFile::open(options.html);
    if (!file.ok()) {
        return file.take_status();
    }
    return std::optional<OutputFile>(std::move(*file));
}

Result<Measurements> read_measurements(const std::string &path)
{
    Result<std::string> text = read_file(path);
    if (!text.ok()) {
        return text.take_status();
    }
    return parse_measurements(*text, path);
}

// Makes the table, as tune() and simulate() do. Returns what it was made from, of several files the
// last: the machine that a page is about.
Result<Measurements> rebuild(const TuneOptions &options, const std::string &output)
{
    if (Status status = check_output(output); !status.ok()) {
        return status;
    }
    std::vector<Measurements> all; // read before anything is written
    for (const std::string &path : options.from_measurements) {
        Result<Measurements> measurements = read_measurements(path);
        if (!measurements.ok()) {
            return measurements;
        }
        all.push_back(std::move(*measurements));
    }
    for (const Measurements &measurements : all) {
        if (Status status = report(output, measurements, options); !status.ok()) {
            return status;
        }
    }
    return std::move(all.back());
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

Result<Measurements> tune(const TuneOptions &options, const ThisMachine &machine,
                          const std::string &output, Clock::time_point start)
{
    const std::string name = options.machine.empty() ? machine.name : options.machine;
    const std::string path = measurements_path(output, name);
    if (Status status = check_output(output); !status.ok()) {
        return status;
    }
    const std::vector<JobKind> kinds = job_kinds(options, machine.gpus);
    if (kinds.empty()) {
        return error(Errc::kInvalid, "--ranks and --nodes leave no job to run");
    }
    Result<std::vector<Sample>> samples = run_jobs(options, kinds, start);
    if (!samples.ok()) {
        return samples.take_status();
    }
    Measurements measurements{path, name, machine.fingerprint, std::move(*samples)};
    Result<std::vector<CpuSample>> cpu = measure_cpu_path(0);
    if (cpu.ok()) {
        measurements.cpu = std::move(*cpu);
    } else {
        say("no limits for the path cpu: " + cpu.status().message());
    }
    if (Status status = write_file(path, write_measurements(measurements)); !status.ok()) {
        return status;
    }
    if (Status status = report(output, measurements, options); !status.ok()) {
        return status;
    }
    return measurements;
}

// hetcoll_sim is a program of its own, so that this one needs no SimGrid.
Result<Measurements> simulate(const TuneOptions &options, Clock::time_point start)
{
    const std::string name = options.machine.empty() ? "simulated" : options.machine;
    const std::string path = measurements_path(options.output, name);
    if (Status status = check_output(options.output); !status.ok()) {
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
    if (!measurements.ok()) {
        return measurements;
    }
    if (Status status = report(options.output, *measurements, options); !status.ok()) {
        return status;
    }
    return measurements;
}

// The exit status. `make` makes the table at `output`, of a machine whose links are `topology`;
// null: they are not known.
int make_table(const TuneOptions &options, const std::string &output, const Topology *topology,
               const std::function<Result<Measurements>()> &make)
{
    Result<std::optional<OutputFile>> page = open_page(options);
    Result<Measurements> made = page.ok() ? make() : Result<Measurements>(page.take_status());
    if (!made.ok()) {
        say("no new table: " + made.status().message());
        return 1;
    }
    const Status status =
        *page ? write_page(**page, output, topology, {std::move(*made)}, options.nodes) : Status();
    if (!status.ok()) {
        say("no page about the new table: " + status.message());
    }
    return status.ok() ? 0 : 1;
}

int run(const TuneOptions &options)
{
    const auto start = Clock::now();
    const std::string output =
        options.output.empty() ? table_to_install(installed_folders()) : options.output;
    if (!options.check.empty()) {
        const Result<int> checked = check(options);
        if (!checked.ok()) {
            say(checked.status().message());
        }
        return checked.ok() ? *checked : 1;
    }
    if (!options.from_measurements.empty()) {
        return make_table(options, output, nullptr, [&] { return rebuild(options, output); });
    }
    if (!options.simulate.empty()) {
        return make_table(options, output, nullptr, [&] { return simulate(options, start); });
    }
    const Result<ThisMachine> machine = look_at_machine();
    if (!machine.ok()) {
        say("no new table: " + machine.status().message());
        return 1;
    }
    if (machine->gpus == 0) {
        say("no GPU on this machine: hetcoll goes by its prices");
        return options.quick ? 0 : 1;
    }
    if (machine->emulated && options.output.empty()) {
        say("the GPU here is emulated and its times are not a GPU's, so no table is installed: "
            "hetcoll goes by its prices; --output FILE writes a table to try");
        return options.quick ? 0 : 1;
    }
    return make_table(options, output, &*machine->topology,
                      [&] { return tune(options, *machine, output, start); });
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
    return worker.wanted ? hetcoll::run_worker(worker)
                         : hetcoll::end_output("hetcoll_tune", hetcoll::run(options));
}
