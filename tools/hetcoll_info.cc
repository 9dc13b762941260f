// hetcoll_info: what hetcoll knows about machines and calls. Each thing it shows has a file of its
// own here: add_X_options() and show_X().
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

#include <array>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>

namespace {

struct Requests {
    hetcoll::TopologyRequest topology;
    hetcoll::CallRequest call;
    hetcoll::ModelRequest model;
    hetcoll::ExplainRequest explain;
    hetcoll::ScheduleRequest schedule;
    hetcoll::TraceRequest trace;
    hetcoll::LiveRequest live;
    hetcoll::DoctorRequest doctor;
    hetcoll::HtmlRequest html;
    std::string json; // a file; empty: text in place of JSON
};

// What to print, and the exit status.
using Shown = std::pair<std::string, int>;

hetcoll::Result<Shown> show_schedule(const Requests &requests)
{
    std::optional<hetcoll::Topology> topology;
    if (requests.topology.wanted) {
        hetcoll::Result<hetcoll::Topology> loaded = load_topology(requests.topology);
        if (!loaded.ok()) {
            return loaded.take_status();
        }
        topology = std::move(*loaded);
    }
    hetcoll::Result<hetcoll::Proved> shown =
        show_schedule(requests.schedule, requests.call, topology ? &*topology : nullptr);
    if (!shown.ok()) {
        return shown.take_status();
    }
    return Shown{std::move(shown->text), shown->ok ? 0 : 1};
}

hetcoll::Result<std::string> show_other(const Requests &requests)
{
    if (!requests.html.path.empty()) {
        return show_html(requests.html, requests.topology, requests.explain, requests.call,
                         requests.trace);
    }
    if (!requests.trace.files.empty()) {
        return show_trace(requests.trace);
    }
    if (requests.live.wanted) {
        return show_live(requests.live);
    }
    if (requests.model.wanted) {
        return show_model(requests.model, requests.call);
    }
    if (!requests.explain.wanted && !requests.explain.fingerprint) {
        return show_topology(requests.topology);
    }
    if (requests.explain.wanted && !requests.topology.wanted) {
        return show_explanation(requests.explain, requests.call, nullptr);
    }
    hetcoll::Result<hetcoll::Topology> topology = load_topology(requests.topology);
    if (!topology.ok()) {
        return topology.take_status();
    }
    return requests.explain.fingerprint
               ? show_fingerprint(*topology, requests.explain.json)
               : show_explanation(requests.explain, requests.call, &*topology);
}

hetcoll::Result<Shown> show(const Requests &requests)
{
    if (!requests.schedule.name.empty()) {
        return show_schedule(requests);
    }
    if (requests.doctor.wanted) {
        hetcoll::Diagnosis found = show_doctor(requests.doctor);
        return Shown{std::move(found.text), found.good ? 0 : 1};
    }
    hetcoll::Result<std::string> text = show_other(requests);
    if (!text.ok()) {
        return text.take_status();
    }
    return Shown{std::move(*text), 0};
}

// Empty, or which option of a call what is `shown` would leave out.
std::string find_left_out(const hetcoll::CommandLine &line, const std::string &shown)
{
    const auto given = [&line](const char *option) { return line.is_given(option); };
    const bool html = shown == "--html", model = shown == "--model", explain = shown == "--explain";
    for (const char *option : {"--bytes", "--nodes", "--ranks", "--ranks-per-node"}) {
        const bool known = model || explain || shown == "--schedule";
        if (given(option) && !known && !(html && option == std::string("--nodes"))) {
            return std::string(option) + " is for --model, --explain and --schedule, --nodes for " +
                   "--html too";
        }
    }
    for (const char *option : {"--ranks-per-gpu", "--collective", "--shares", "--aggregators",
                               "--rack-nodes", "--adapters"}) {
        if (given(option) && !explain && shown != "--schedule") {
            return std::string(option) + " is for --explain and --schedule";
        }
    }
    for (const char *option : {"--table", "--machine", "--small-limit"}) {
        if (given(option) && !explain && !html) {
            return std::string(option) + " goes with --explain or --html";
        }
    }
    if (given("--machine") && !given("--table")) {
        return "--machine is one of a --table: name that too";
    }
    const auto is = [&line](const char *option, const char *word) {
        return line.words_of(option).front() == word;
    };
    if (given("--accumulate") &&
        !(given("--element") && is("--element", "2") && (!given("--op") || is("--op", "sum")))) {
        return "--accumulate is for sums of half and bfloat16: write --element 2, or leave it out";
    }
    const bool other = given("--collective") && !is("--collective", "allreduce");
    for (const char *option : {"--table", "--small-limit", "--algorithm", "--op", "--element",
                               "--chunk", "--mixed", "--accumulate", "--reproducible", "--shares",
                               "--aggregators", "--rack-nodes", "--adapters"}) {
        if (given(option) && other) {
            return std::string(option) + " is for allreduce: leave it or --collective out";
        }
    }
    return {};
}

// Empty, or what is wrong with the options taken together. What would be left out silently is
// refused.
std::string find_contradiction(const hetcoll::CommandLine &line)
{
    constexpr std::array kShows = {"--model", "--explain", "--fingerprint", "--schedule",
                                   "--trace", "--live",    "--doctor"};
    const auto given = [&line](const char *option) { return line.is_given(option); };
    const bool html = given("--html"); // shows a trace too
    std::string shown = html ? "--html" : "";
    for (const std::string show : kShows) {
        if (!given(show.c_str()) || (html && show == "--trace")) {
            continue;
        }
        if (!shown.empty()) {
            return shown + " and " + show + " are two things to show: give one of them";
        }
        shown = show;
    }
    if (shown.empty() && !given("--topology")) {
        return "nothing to show, write --topology, --model, --explain, --schedule, --fingerprint, "
               "--trace, --html, --live or --doctor";
    }
    if (given("--topology") &&
        (shown == "--model" || shown == "--trace" || shown == "--live" || shown == "--doctor")) {
        return shown + " does not go by --topology: leave one out";
    }
    if (std::string problem = find_left_out(line, shown); !problem.empty()) {
        return problem;
    }
    if (given("--measure") && !line.words_of("--topology").empty() &&
        !line.words_of("--topology").front().empty()) {
        return "--measure is for this machine, not for a file: leave one out";
    }
    bool draws = given("--perfetto");
    for (const char *drawn : {"--dot", "--svg", "--write"}) {
        draws = draws || given(drawn);
        if (given(drawn) && !shown.empty()) {
            return std::string(drawn) + " and " + shown +
                   " are two things to show: give one of them";
        }
    }
    if (given("--json") && (draws || html || shown == "--model" || shown == "--schedule")) {
        return "--json goes with --topology, --explain, --fingerprint, --trace, --live or "
               "--doctor, and "
               "without what prints something else";
    }
    if (const std::string twice = hetcoll::find_twice(line, "--trace"); !twice.empty()) {
        return "--trace names " + twice + " twice, and its calls would count twice: once is enough";
    }
    return hetcoll::find_overwritten(line, {"--json", "--html", "--perfetto"},
                                     {"--topology", "--table", "--measurements", "--trace"});
}

hetcoll::Status check(const Requests &requests)
{
    return requests.model.wanted             ? check_model(requests.model, requests.call)
           : requests.explain.wanted         ? check_explain(requests.explain, requests.call)
           : !requests.schedule.name.empty() ? check_schedule(requests.schedule, requests.call)
           : requests.doctor.wanted          ? check_doctor(requests.doctor)
                                             : hetcoll::Status();
}

void add_options(hetcoll::CommandLine &line, Requests &requests)
{
    add_topology_options(line, requests.topology);
    add_call_options(line, requests.call);
    add_model_options(line, requests.model);
    add_explain_options(line, requests.explain);
    add_schedule_options(line, requests.schedule);
    add_trace_options(line, requests.trace);
    add_live_options(line, requests.live);
    add_html_options(line, requests.html);
    add_doctor_options(line, requests.doctor);
    line.add_option("--json", requests.json,
                    "print JSON, to FILE or stdout (-): with --topology, --explain, --fingerprint, "
                    "--trace, --doctor; with --live a line for each communicator")
        .type_name("[FILE]")
        .value_optional();
}

// The exit status.
int fail(const hetcoll::Status &status)
{
    std::fprintf(stderr, "hetcoll_info: %s\n", status.message().c_str());
    return 1;
}

} // namespace

int main(int argc, char **argv)
{
    hetcoll::CommandLine line("hetcoll_info", "Shows what hetcoll knows about machines and calls.");
    Requests requests;
    add_options(line, requests);
    int exit_code = 0;
    if (!line.parse(argc, argv, exit_code)) {
        return exit_code;
    }
    if (const std::string problem = find_contradiction(line); !problem.empty()) {
        return line.usage_error(problem);
    }
    requests.doctor.wanted = line.is_given("--doctor");
    if (const hetcoll::Status status = check(requests); !status.ok()) {
        return line.usage_error(status.message());
    }
    requests.topology.wanted = line.is_given("--topology");
    requests.live.wanted = line.is_given("--live");
    if (!requests.explain.table.empty() && requests.topology.name.empty()) { // as a job here asks
        requests.explain.driver = hetcoll::DriverLibrary().is_emulated() ? "emulated" : "";
    }
    requests.explain.json = requests.topology.json = requests.trace.json = requests.live.json =
        requests.doctor.json = line.is_given("--json");
    auto output = hetcoll::OutputFile::open(requests.json.empty() ? "-" : requests.json);
    if (!output.ok()) { // before the work
        return fail(output.status());
    }
    const hetcoll::Result<Shown> shown = show(requests);
    if (!shown.ok()) {
        return fail(shown.status());
    }
    if (const hetcoll::Status status = output->write(shown->first); !status.ok()) {
        return fail(status);
    }
    return shown->second;
}
