#include "machine/topology_links.h"
#include "tools/report_parts.h"
#include "topology/print.h"
#include "topology/route.h"
#include "tuning/check_table.h"

#include <map>
#include <utility>

namespace hetcoll {
namespace {

// From each GPU to each vertex of `columns`: word and GB/s; null to itself.
Json routes_from(const Topology &topology, int gpu, const std::vector<int> &columns)
{
    Json row = Json::array();
    for (const int other : columns) {
        if (other == gpu) {
            row.push_back(nullptr);
            continue;
        }
        const Route route = find_route(topology, gpu, other);
        row.push_back({print_route(route), std::stod(print_gbps(route.gbps))});
    }
    return row;
}

} // namespace

Json report_machine(const Topology &topology)
{
    const std::vector<int> gpus = topology.gpus(), nics = topology.of_kind(VertexKind::kNic);
    std::vector<int> columns = gpus;
    columns.insert(columns.end(), nics.begin(), nics.end());
    Json machine = {{"name", topology.machine},
                    {"gpus", Json::array()},
                    {"columns", Json::array()},
                    {"fingerprint", Json::object()}};
    for (const int column : columns) {
        machine["columns"].push_back(topology.vertices[static_cast<std::size_t>(column)].name);
    }
    for (const int gpu : gpus) {
        const Vertex &vertex = topology.vertices[static_cast<std::size_t>(gpu)];
        machine["gpus"].push_back(
            {{"name", vertex.name},
             {"model", vertex.model},
             {"bus", print_bus_id(vertex.bus)},
             {"numa", vertex.numa == kUnknownNuma ? Json() : Json(vertex.numa)},
             {"routes", routes_from(topology, gpu, columns)},
             {"host", std::stod(print_gbps(find_host_route(topology, gpu).gbps))}});
    }
    for (const auto &[name, value] : fingerprint_of(topology, {}).facts) {
        machine["fingerprint"][name] = value;
    }
    return machine;
}

Json report_measurements(const Measurements &measurements, const Table *table)
{
    std::map<Setup, std::vector<const Sample *>> setups;
    for (const Sample &sample : measurements.samples) {
        setups[sample.setup].push_back(&sample);
    }
    Json list = Json::array();
    for (const auto &[setup, samples] : setups) {
        const Curves curves(samples);
        Json json = {{"ranks", setup.ranks},
                     {"nodes", setup.nodes},
                     {"onGpu", setup.ranks_per_gpu},
                     {"element", setup.element_bytes},
                     {"op", setup.op == OpClass::kSum ? "sum" : "other"},
                     {"memory", setup.memory == CallMemory::kDevice ? "device" : "mixed"},
                     {"sizes", curves.sizes()},
                     {"curves", Json::array()}};
        for (std::size_t v = 0; v < curves.variants().size(); ++v) {
            const Variant &variant = curves.variants()[v];
            Json us = Json::array();
            for (std::size_t s = 0; s < curves.sizes().size(); ++s) {
                us.push_back(curves.measured(v, s)
                                 ? Json(static_cast<double>(curves.median_ns(v, s)) / 1e3)
                                 : Json());
            }
            Json curve = {{"name", variant_name(variant)},
                          {"algorithm", static_cast<int>(variant.algorithm)},
                          {"us", std::move(us)}};
            if (variant.between_nodes) {
                curve["name"] = variant_name(variant) + ", " +
                                algorithm_name(*variant.between_nodes) + " between nodes";
            }
            json["curves"].push_back(std::move(curve));
        }
        for (std::size_t s = 0; s < curves.sizes().size(); ++s) {
            const auto chosen = table != nullptr ? chosen_variant(*table, setup, curves, s)
                                                 : std::optional<std::size_t>();
            json["chosen"].push_back(chosen ? Json(*chosen) : Json());
        }
        list.push_back(std::move(json));
    }
    return {{"path", measurements.path},
            {"machine", measurements.machine},
            {"setups", std::move(list)}};
}

} // namespace hetcoll
