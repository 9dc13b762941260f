// hetcoll_info: what hetcoll knows about machines and calls. Each thing it shows has a file of its
// own here: add_X_options() and show_X().
#include "measure/command_line.h"
#include "tools/info_explain.h"
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
               ? show_fingerprint(*topology)
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

} // namespace

int main(int argc, char **argv)
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
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError &problem) {
        return app.exit(problem);
    }
    requests.topology.wanted = app.count("--topology") > 0;
    requests.live.wanted = app.count("--live") > 0;
    if (!requests.topology.wanted && !requests.live.wanted && !requests.model.wanted &&
        !requests.explain.wanted && !requests.explain.fingerprint &&
        requests.schedule.name.empty() && requests.trace.files.empty()) {
        std::fprintf(stderr, "hetcoll_info: nothing to show, write --topology, --model, --explain, "
                             "--schedule, --fingerprint, --trace or --live, or look at --help\n");
        return 2;
    }
    const hetcoll::Result<Shown> shown = show(requests);
    if (!shown.ok()) {
        std::fprintf(stderr, "hetcoll_info: %s\n", shown.status().message().c_str());
        return 1;
    }
    std::fputs(shown->first.c_str(), stdout);
    return shown->second;
}
