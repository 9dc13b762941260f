#include "tools/info_topology.h"

#include "device/driver.h"
#include "topology/file.h"
#include "topology/print.h"
#include "topology/route.h"
#include "topology_probe/hwloc_xml.h"
#include "topology_probe/probe.h"

#include <CLI/CLI.hpp>

#include <cstdio>

namespace hetcoll {
namespace {

void write_to_stderr(int, const char *line) { std::fprintf(stderr, "hetcoll_info: %s\n", line); }

Result<Topology> probe_this_machine()
{
    const DriverLibrary library;
    const Driver *driver = library.get();
    Status cause = driver == nullptr
                       ? library.load_error()
                       : driver_status(*driver, driver->cuInit(0), "cuInit", "looking for GPUs");
    if (!cause.ok()) {
        return error(Errc::kUnsupported,
                     "no GPU to be seen here, name a file with --topology FILE (cause: %s)",
                     cause.message().c_str());
    }
    MachineProbe probe({.write = write_to_stderr, .verbose = 1});
    Result<Topology> topology = probe.probe_machine(driver);
    if (!topology.ok()) {
        return topology;
    }
    if (topology->gpus().empty()) {
        return error(Errc::kUnsupported,
                     "the CUDA driver shows no GPU here, look at CUDA_VISIBLE_DEVICES or name a "
                     "file with --topology FILE");
    }
    // As hetcoll does when it plans for the ranks of a job.
    if (Status status = add_unknown_ways(*topology); !status.ok()) {
        return status;
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
    const std::string &model = topology.vertices[topology.gpus()[0]].model;
    return text + (model.empty() ? "" : " (" + model + ")") + "\n\n";
}

} // namespace

void add_topology_options(CLI::App &app, TopologyRequest &request)
{
    auto *topology =
        app.add_option("--topology", request.name,
                       "the links of this machine, or of FILE: a path, or the name of a shipped "
                       "file such as dgx1v; hwloc's XML too. FILE:0,3-5 takes these GPUs only")
            ->type_name("[FILE[:GPUS]]")
            ->expected(0, 1);
    auto *dot = app.add_flag("--dot", request.dot, "with --topology: a graph for Graphviz")
                    ->needs(topology);
    auto *svg = app.add_flag("--svg", request.svg, "with --topology: a picture")->needs(topology);
    auto *write =
        app.add_flag("--write", request.write, "with --topology: a topology file")->needs(topology);
    dot->excludes(svg)->excludes(write);
    svg->excludes(write);
}

Result<Topology> load_topology(const TopologyRequest &request)
{
    return request.name.empty() ? probe_this_machine()
                                : read_any_topology(request.name, HETCOLL_TOPOLOGY_FOLDER);
}

Result<std::string> show_topology(const TopologyRequest &request)
{
    Result<Topology> topology = load_topology(request);
    if (!topology.ok()) {
        return topology.take_status();
    }
    return request.dot     ? print_dot(*topology)
           : request.svg   ? print_svg(*topology)
           : request.write ? write_topology(*topology)
                           : print_head(*topology) + print_matrix(*topology);
}

} // namespace hetcoll
