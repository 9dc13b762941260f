// hetcoll_info: what hetcoll knows about machines and calls. Each subcommand has a file of its own
// here: add_X_options() and show_X().
#include "device/driver.h"
#include "measure/command_line.h"
#include "measure/named_files.h"
#include "measure/output_file.h"
#include "tools/info_doctor.h"
#include "tools/info_explain.h"
#include "tools/info_html.h"
#include "tools/info_live.h"
#include "tools/info_model.h"
#include "tools/info_schedule.h"
#include "tools/info_topology.h"
#include "tools/info_trace.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>

namespace hetcoll {
namespace {

struct Requests {
    TopologyRequest topology;
    CallRequest call;
    ModelRequest model;
    ExplainRequest explain;
    ScheduleRequest schedule;
    TraceRequest trace;
    LiveRequest live;
    DoctorRequest doctor;
    HtmlRequest html;
    std::string json; // a file; empty: stdout
};

// The text to print, and the exit status.
using Shown = std::pair<std::string, int>;
using Words = std::vector<std::string>;

Result<Shown> shown(Result<std::string> text)
{
    if (!text.ok()) {
        return text.take_status();
    }
    return Shown{std::move(*text), 0};
}

// The topology that --topology asks for, if it is there.
Result<std::optional<Topology>> topology_of(const Requests &requests)
{
    if (!requests.topology.wanted) {
        return std::optional<Topology>();
    }
    Result<Topology> topology = load_topology(requests.topology);
    if (!topology.ok()) {
        return topology.take_status();
    }
    return std::optional(std::move(*topology));
}

void add_json_option(CommandLine &line, Requests &requests, const char *text)
{
    line.add_option("--json", requests.json, text).type_name("[FILE]").value_optional();
}

constexpr const char *kJson = "print JSON, to FILE or stdout (-)";

void add_topology(CommandLine &line, Requests &requests)
{
    add_topology_options(line, requests.topology);
    add_json_option(line, requests, kJson);
}

Status check_topology(const CommandLine &, const Requests &requests)
{
    return check_topology(requests.topology);
}

Result<Shown> run_topology(const Requests &requests)
{
    return shown(show_topology(requests.topology));
}

void add_fingerprint(CommandLine &line, Requests &requests)
{
    add_machine_option(line, requests.topology);
    add_json_option(line, requests, kJson);
}

Result<Shown> run_fingerprint(const Requests &requests)
{
    Result<Topology> topology = load_topology(requests.topology);
    if (!topology.ok()) {
        return topology.take_status();
    }
    return Shown{show_fingerprint(*topology, requests.explain.json), 0};
}

void add_explain(CommandLine &line, Requests &requests)
{
    add_explain_options(line, requests.explain, requests.call);
    add_machine_option(line, requests.topology);
    add_json_option(line, requests, kJson);
}

Status check_explain(const CommandLine &line, const Requests &requests)
{
    return check_explain(line, requests.explain, requests.call);
}

Result<Shown> run_explain(const Requests &requests)
{
    Result<std::optional<Topology>> topology = topology_of(requests);
    if (!topology.ok()) {
        return topology.take_status();
    }
    return shown(
        show_explanation(requests.explain, requests.call, *topology ? &**topology : nullptr));
}

void add_model(CommandLine &line, Requests &requests)
{
    add_model_options(line, requests.model, requests.call);
}

Status check_model(const CommandLine &, const Requests &requests)
{
    return check_model(requests.model, requests.call);
}

Result<Shown> run_model(const Requests &requests)
{
    return shown(show_model(requests.model, requests.call));
}

void add_schedule(CommandLine &line, Requests &requests)
{
    add_schedule_options(line, requests.schedule, requests.call);
    add_machine_option(line, requests.topology);
}

Status check_schedule(const CommandLine &line, const Requests &requests)
{
    return check_schedule(line, requests.schedule, requests.call);
}

Result<Shown> run_schedule(const Requests &requests)
{
    Result<std::optional<Topology>> topology = topology_of(requests);
    if (!topology.ok()) {
        return topology.take_status();
    }
    Result<Proved> proved =
        show_schedule(requests.schedule, requests.call, *topology ? &**topology : nullptr);
    if (!proved.ok()) {
        return proved.take_status();
    }
    return Shown{std::move(proved->text), proved->ok ? 0 : 1};
}

void add_trace(CommandLine &line, Requests &requests)
{
    add_trace_options(line, requests.trace);
    add_json_option(line, requests, kJson);
}

Status check_trace(const CommandLine &line, const Requests &) { return check_trace(line, "FILE"); }

Result<Shown> run_trace(const Requests &requests) { return shown(show_trace(requests.trace)); }

void add_live(CommandLine &line, Requests &requests)
{
    add_live_options(line, requests.live);
    add_json_option(line, requests,
                    "print JSON, a line for each communicator, to FILE or stdout (-)");
}

Result<Shown> run_live(const Requests &requests) { return shown(show_live(requests.live)); }

void add_doctor(CommandLine &line, Requests &requests)
{
    add_doctor_options(line, requests.doctor);
    add_json_option(line, requests, kJson);
}

Status check_doctor(const CommandLine &, const Requests &requests)
{
    return check_doctor(requests.doctor);
}

Result<Shown> run_doctor(const Requests &requests)
{
    Diagnosis found = show_doctor(requests.doctor);
    return Shown{std::move(found.text), found.good ? 0 : 1};
}

void add_page(CommandLine &line, Requests &requests)
{
    add_html_options(line, requests.html);
    add_machine_option(line, requests.topology);
    add_nodes_option(line, requests.call, "prices on up to N such nodes too (1)");
    add_table_options(line, requests.explain);
    add_files_option(line, "--trace", requests.trace);
}

Status check_page(const CommandLine &line, const Requests &)
{
    return check_trace(line, "--trace");
}

Result<Shown> run_page(const Requests &requests)
{
    return shown(show_html(requests.html, requests.topology, requests.explain, requests.call,
                           requests.trace));
}

struct Subcommand {
    const char *name;
    const char *flag; // in place of the name, where there is none: the older form
    const char *text;
    void (*add_options)(CommandLine &line, Requests &requests);
    Status (*check)(const CommandLine &line, const Requests &requests); // null: nothing to check
    Result<Shown> (*run)(const Requests &requests);
};

constexpr std::array kSubcommands = {
    Subcommand{"topology", "--topology", "Shows the links between GPUs, of this machine or others.",
               add_topology, check_topology, run_topology},
    Subcommand{
        "explain", "--explain",
        "Shows which algorithm serves a call, by which rule, and what the others would cost.",
        add_explain, check_explain, run_explain},
    Subcommand{"schedule", "--schedule",
               "Shows the steps of an algorithm's ranks, and proves that they add up.",
               add_schedule, check_schedule, run_schedule},
    Subcommand{"trace", "--trace", "Shows where the time of a job's calls went.", add_trace,
               check_trace, run_trace},
    Subcommand{
        "doctor", "--doctor",
        "Checks whether hetcoll works here, and says what to do. Exit status 1: something is "
        "wrong.",
        add_doctor, check_doctor, run_doctor},
    Subcommand{"live", "--live",
               "Shows the communicators of jobs on this host, and where each rank is.", add_live,
               nullptr, run_live},
    Subcommand{"page", "--html",
               "Writes a page for a browser: links, who serves which calls, measurements, a trace.",
               add_page, check_page, run_page},
    Subcommand{"model", "--model",
               "Shows what calls would take on a cluster of equal nodes, by formulas.", add_model,
               check_model, run_model},
    Subcommand{"fingerprint", "--fingerprint", "Shows what a tuning table knows a machine by.",
               add_fingerprint, nullptr, run_fingerprint},
};

// Its command line, whose options fill the requests.
struct SubcommandLine {
    explicit SubcommandLine(const Subcommand &subcommand)
        : line(std::string("hetcoll_info ") + subcommand.name, subcommand.text)
    {
        subcommand.add_options(line, requests);
    }
    Requests requests;
    CommandLine line;
};

// "explain, model and schedule", of all subcommands that `belongs` says.
template <class Belongs> std::string names_of(const Belongs &belongs)
{
    Words names;
    for (const Subcommand &subcommand : kSubcommands) {
        if (belongs(subcommand)) {
            names.emplace_back(subcommand.name);
        }
    }
    std::string text;
    for (std::size_t i = 0; i < names.size(); ++i) {
        text += (i == 0 ? "" : i + 1 < names.size() ? ", " : " and ") + names[i];
    }
    return text;
}

bool is_flag(const std::string &word, const std::string &flag)
{
    return word == flag || word.starts_with(flag + "=");
}

bool is_given(const Words &words, const char *flag)
{
    return std::any_of(words.begin(), words.end(),
                       [flag](const std::string &word) { return is_flag(word, flag); });
}

// Without an option that only other subcommands have; else which one it is.
std::string find_stranger(const CommandLine &line, const Words &words, const char *subcommand)
{
    for (const std::string &word : words) {
        const std::string option = word.substr(0, word.find('='));
        if (!option.starts_with("--") || line.has(option)) {
            continue;
        }
        const std::string names = names_of(
            [&option](const Subcommand &other) { return SubcommandLine(other).line.has(option); });
        if (!names.empty()) {
            return option + " is for hetcoll_info " + names +
                   (*subcommand != '\0' ? ", not for " : "") + subcommand;
        }
    }
    return {};
}

// The older form, all flags: `--trace FILE --json` is `trace FILE --json`. Puts what is behind the
// flag first, where it is the subcommand's own.
Words without_flag(const Words &words, const char *flag)
{
    Words first, rest;
    bool is_its = false;
    for (const std::string &word : words) {
        is_its = is_flag(word, flag) || (is_its && (word == "-" || !word.starts_with('-')));
        if (!is_its) {
            rest.push_back(word);
        } else if (word != flag) {
            first.push_back(is_flag(word, flag) ? word.substr(word.find('=') + 1) : word);
        }
    }
    first.insert(first.end(), rest.begin(), rest.end());
    return first;
}

// The one whose flag is given, along with flags that are options of it; null: the problem says why
// there is none.
const Subcommand *find_by_flag(const Words &words, std::string &problem)
{
    for (const Subcommand &subcommand : kSubcommands) {
        if (!is_given(words, subcommand.flag)) {
            continue;
        }
        const SubcommandLine own(subcommand);
        const auto *const other = std::find_if(
            kSubcommands.begin(), kSubcommands.end(), [&](const Subcommand &candidate) {
                return &candidate != &subcommand && is_given(words, candidate.flag) &&
                       !own.line.has(candidate.flag);
            });
        if (other == kSubcommands.end()) {
            return &subcommand;
        }
        problem = std::string(subcommand.flag) + " and " + other->flag +
                  " are two things to show: give one of them";
    }
    return nullptr;
}

// The exit status.
int fail(const Status &status)
{
    std::fprintf(stderr, "hetcoll_info: %s\n", status.message().c_str());
    return 1;
}

int run(const Subcommand &subcommand, const Words &words)
{
    SubcommandLine own(subcommand);
    Requests &requests = own.requests;
    if (const std::string problem = find_stranger(own.line, words, subcommand.name);
        !problem.empty()) {
        return own.line.usage_error(problem);
    }
    int exit_code = 0;
    if (!own.line.parse(words, exit_code)) {
        return exit_code;
    }
    requests.topology.wanted = own.line.is_given("--topology");
    requests.explain.json = requests.topology.json = requests.trace.json = requests.live.json =
        requests.doctor.json = own.line.is_given("--json");
    if (!requests.explain.table.empty() && requests.topology.name.empty()) { // as a job here asks
        requests.explain.driver = DriverLibrary().is_emulated() ? "emulated" : "";
    }
    const Status status =
        subcommand.check != nullptr ? subcommand.check(own.line, requests) : Status();
    if (!status.ok()) {
        return own.line.usage_error(status.message());
    }
    if (const std::string lost =
            find_overwritten(own.line, {"--json", "PAGE", "--perfetto"},
                             {"FILE", "--topology", "--table", "--measurements", "--trace"});
        !lost.empty()) {
        return own.line.usage_error(lost);
    }
    auto output = OutputFile::open(requests.json.empty() ? "-" : requests.json);
    if (!output.ok()) { // before the work
        return fail(output.status());
    }
    const Result<Shown> result = subcommand.run(requests);
    if (!result.ok()) {
        return fail(result.status());
    }
    if (const Status written = output->write(result->first); !written.ok()) {
        return fail(written);
    }
    return result->second;
}

// Without a subcommand, there are --help, --version and mistakes.
int run_none(const Words &words, std::string problem)
{
    CommandLine line("hetcoll_info", "Shows what hetcoll knows about machines and calls.");
    bool all = false;
    const bool completes = !words.empty() && words.front() == kCompletion;
    for (const Subcommand &subcommand : kSubcommands) {
        line.add_subcommand(subcommand.name, subcommand.text);
    }
    line.add_flag("--help-all", all, "print the help of all subcommands and exit");
    line.set_footer(
        "hetcoll_info SUBCOMMAND --help lists its options. The older form, in which "
        "--SUBCOMMAND is an option\ntoo and --html FILE is page FILE, goes on working.");
    if (problem.empty()) {
        problem = find_stranger(line, words, "");
    }
    if (completes) { // options of all subcommands too: the older form has them
        std::string text = line.completion();
        for (const Subcommand &subcommand : kSubcommands) {
            text += SubcommandLine(subcommand).line.completion();
        }
        std::fputs(text.c_str(), stdout);
        return end_output("hetcoll_info", 0);
    }
    int exit_code = 0;
    if (problem.empty() && !line.parse(words, exit_code)) {
        return exit_code;
    }
    if (!all) {
        return line.usage_error(!problem.empty() ? problem
                                                 : "nothing to show: write one of " +
                                                       names_of([](auto &) { return true; }));
    }
    std::string text = line.help();
    for (const Subcommand &subcommand : kSubcommands) {
        text += std::string("\nhetcoll_info ") + subcommand.name + ":\n" +
                SubcommandLine(subcommand).line.help();
    }
    std::fputs(text.c_str(), stdout);
    return end_output("hetcoll_info", 0);
}

int run(const Words &words)
{
    std::string problem;
    if (words.empty() || words.front().starts_with('-')) {
        const Subcommand *const subcommand = find_by_flag(words, problem);
        return subcommand != nullptr ? run(*subcommand, without_flag(words, subcommand->flag))
                                     : run_none(words, problem);
    }
    for (const Subcommand &subcommand : kSubcommands) {
        if (words.front() == subcommand.name) {
            return run(subcommand, {words.begin() + 1, words.end()});
        }
    }
    return run_none(words, "'" + words.front() + "' is no subcommand: write one of " +
                               names_of([](auto &) { return true; }));
}

} // namespace
} // namespace hetcoll

int main(int argc, char **argv) { return hetcoll::run({argv + 1, argv + argc}); }
