#include "tools/info_topology.h"

#include "base/installed.h"
#include "device/driver.h"
#include "measure/command_line.h"
#include "measure/json_document.h"
#include "tools/report_parts.h"
#include "topology/file.h"
#include "topology/print.h"
#include "topology/route.h"
#include "topology_probe/hwloc_xml.h"
#include "topology_probe/measure.h"
#include "topology_probe/probe.h"

#include <cstdio>
#include <utility>

namespace hetcoll {
namespace {

void write_to_stderr(int, const char *line) { std::fprintf(stderr, "hetcoll_info: %s\n", line); }

// The driver of this machine, initialized; null, and a line that says why, if there is none.
const Driver *find_driver(const DriverLibrary &library)
{
    const Driver *const driver = library.get();
    const Status cause =
        driver == nullptr ? library.load_error()
                          : driver_status(*driver, driver->cuInit(0), "cuInit", "looking for GPUs");
    if (!cause.ok()) {
        write_to_stderr(0, ("no GPU found here: " + cause.message()).c_str());
        return nullptr;
    }
    return driver;
}

Result<Topology> probe_this_machine(bool measure)
{
    const DriverLibrary library;
    const Driver *const driver = find_driver(library);
    MachineProbe probe({.write = write_to_stderr, .verbose = 1});
    Result<Topology> topology = probe.probe_machine(driver);
    if (!topology.ok() || topology->gpus().empty()) {
        return topology;
    }
    // As hetcoll does when it plans for the ranks of a job.
    if (Status status = add_unknown_links(*topology); !status.ok()) {
        return status;
    }
    if (measure) {
        const auto measured = measure_links(*driver);
        if (!measured.ok()) {
            return error(measured.status().code(), "%s", measured.status().message().c_str());
        }
        return with_measured_rates(std::move(*topology), *measured);
    }
    return topology;
}

// The line above the matrix: the machine and what it has.
std::string print_head(const Topology &topology)
{
    std::string text = topology.machine.empty() ? "this machine" : topology.machine;
    std::string before = ": ";
    for (int k = 0; k < kVertexKindCount; ++k) {
        const auto kind = static_cast<VertexKind>(k);
        const std::size_t count = topology.of_kind(kind).size();
        if (count > 0 && kind != VertexKind::kNetwork) {
            text += before + std::to_string(count) + " " + vertex_kind_name(kind);
            before = ", ";
        }
    }
    const std::vector<int> gpus = topology.gpus();
    const std::string model = gpus.empty() ? "no GPU" : topology.vertices[gpus[0]].model;
    return text + (model.empty() ? "" : " (" + model + ")") + "\n\n";
}

// Instead of the matrix: what there is.
std::string print_without_gpus(const Topology &topology)
{
    std::string text;
    for (const VertexKind kind : {VertexKind::kCpu, VertexKind::kNic}) {
        for (const int v : topology.of_kind(kind)) {
            const Vertex &vertex = topology.vertices[v];
            text += vertex.name +
                    (vertex.numa == kUnknownNuma ? "" : "  NUMA " + std::to_string(vertex.numa)) +
                    (vertex.bus.known == 0 ? "" : "  " + print_bus_id(vertex.bus)) + "\n";
        }
    }
    return text;
}

} // namespace

void add_machine_option(CommandLine &line, TopologyRequest &request)
{
    line.add_option("--topology", request.name,
                    "the links of this machine, or of FILE as hetcoll_info topology has it")
        .type_name("[FILE]")
        .value_optional();
}

void add_topology_options(CommandLine &line, TopologyRequest &request)
{
    line.add_option("FILE", request.name,
                    "a path, the name of a shipped file such as dgx1v, or hwloc's XML; FILE:0,3-5 "
                    "takes only these GPUs; without it: this machine")
        .type_name("");
    line.add_flag("--measure", request.measure,
                  "without FILE: rates measured by copies, not list speeds");
    line.add_flag("--dot", request.dot, "print a graph for Graphviz");
    line.add_flag("--svg", request.svg, "print a picture").excludes("--dot");
    line.add_flag("--write", request.write, "print a topology file")
        .excludes("--dot")
        .excludes("--svg");
}

Status check_topology(const TopologyRequest &request)
{
    if (request.measure && !request.name.empty()) {
        return error(Errc::kInvalid, "--measure is for this machine, not for '%s': leave one out",
                     request.name.c_str());
    }
    if (request.json && (request.dot || request.svg || request.write)) {
        return error(Errc::kInvalid,
                     "--json prints something else than --dot, --svg and --write: leave one out");
    }
    return {};
}

Result<Topology> load_topology(const TopologyRequest &request)
{
    if (request.name.empty()) {
        return probe_this_machine(request.measure);
    }
    return read_any_topology(request.name, installed_folders().topologies);
}

Result<std::string> show_topology(const TopologyRequest &request)
{
    Result<Topology> topology = load_topology(request);
    if (!topology.ok()) {
        return topology.take_status();
    }
    if (request.json) {
        Json json = json_document("hetcoll_info");
        json["topology"] = report_machine(*topology);
        return json_text(json);
    }
    return request.dot                ? print_dot(*topology)
           : request.svg              ? print_svg(*topology)
           : request.write            ? write_topology(*topology)
           : topology->gpus().empty() ? print_head(*topology) + print_without_gpus(*topology)
                                      : print_head(*topology) + print_matrix(*topology);
}

} // namespace hetcoll
