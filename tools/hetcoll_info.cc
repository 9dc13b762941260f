// hetcoll_info: what hetcoll knows about machines and calls. Each thing it shows has a file of its
// own here: add_X_options() and show_X().
#include "measure/command_line.h"
#include "tools/info_explain.h"
#include "tools/info_html.h"
#include "tools/info_live.h"
#include "tools/info_model.h"
#include "tools/info_schedule.h"
#include "tools/info_topology.h"
#include "tools/info_trace.h"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <optional>
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
    hetcoll::Result<std::string> text = show_other(requests);
    if (!text.ok()) {
        return text.take_status();
    }
    return Shown{std::move(*text), 0};
}

// What is wrong with the command line beyond what CLI11 sees; empty: nothing.
std::string wrong_usage(const CLI::App &app, const Requests &requests)
{
    const bool explain = requests.explain.wanted, html = !requests.html.path.empty();
    const bool trace = !requests.trace.files.empty(), schedule = !requests.schedule.name.empty();
    const bool for_json = requests.topology.wanted || requests.live.wanted || explain ||
                          requests.explain.fingerprint || trace;
    if (!for_json && !requests.model.wanted && !schedule && !html) {
        return "nothing to show, write --topology, --model, --explain, --schedule, --fingerprint, "
               "--trace, --html or --live, or look at --help";
    }
    for (const char *option : {"--table", "--machine", "--small-limit"}) {
        if (app.count(option) > 0 && !explain && !html) {
            return std::string(option) + " goes with --explain or --html";
        }
    }
    const bool draws = requests.topology.dot || requests.topology.svg || requests.topology.write;
    if (app.count("--json") > 0 && (!for_json || requests.model.wanted || schedule || html ||
                                    draws || !requests.trace.perfetto.empty())) {
        return "--json goes with --topology, --explain, --fingerprint, --trace or --live, and "
               "without what prints something else";
    }
    return {};
}

void add_options(CLI::App &app, Requests &requests)
{
    CLI::App app{"Shows what hetcoll knows about machines and calls."};
    hetcoll::introduce(app, "hetcoll_info");
    Requests requests;
    add_topology_options(app, requests.topology);
    add_call_options(app, requests.call);
    add_model_options(app, requests.model);
    add_explain_options(app, requests.explain);
    add_schedule_options(app, requests.schedule);
    add_trace_options(app, requests.trace);
    add_live_options(app, requests.live);
    add_html_options(app, requests.html);
    app.add_option("--json", requests.json,
                   "print JSON, to FILE or stdout (-): with --topology, --explain, --fingerprint, "
                   "--trace; with --live a line for each communicator")
        ->type_name("[FILE]")
        ->expected(0, 1);
}

// The exit status.
int fail(const std::string &problem, int status)
{
    std::fprintf(stderr, "hetcoll_info: %s\n", problem.c_str());
    return status;
}

} // namespace

int main(int argc, char **argv)
{
    CLI::App app{"Shows what hetcoll knows about machines and calls."};
    Requests requests;
    add_options(app, requests);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError &problem) {
        return app.exit(problem);
    }
    requests.topology.wanted = app.count("--topology") > 0;
    requests.live.wanted = app.count("--live") > 0;
    requests.explain.json = requests.topology.json = requests.trace.json = requests.live.json =
        app.count("--json") > 0;
    if (const std::string problem = wrong_usage(app, requests); !problem.empty()) {
        return fail(problem, 2);
    }
    auto output = hetcoll::OutputFile::open(requests.json.empty() ? "-" : requests.json);
    if (!output.ok()) { // before the work
        return fail(output.status().message(), 1);
    }
    const hetcoll::Result<Shown> shown = show(requests);
    if (!shown.ok()) {
        return fail(shown.status().message(), 1);
    }
    if (const hetcoll::Status status = output->write(shown->first); !status.ok()) {
        return fail(status.message(), 1);
    }
    return shown->second;
}
