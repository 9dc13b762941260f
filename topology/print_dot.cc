#include "topology/print.h"

namespace hetcoll {
namespace {

const char *shape_of(VertexKind kind)
{
    switch (kind) {
    case VertexKind::kGpu: return "shape=box, style=\"rounded,filled\", fillcolor=\"#dcedc8\"";
    case VertexKind::kNvSwitch: return "shape=hexagon, style=filled, fillcolor=\"#aed581\"";
    case VertexKind::kPcieSwitch: return "shape=diamond, style=filled, fillcolor=\"#cfd8dc\"";
    case VertexKind::kCpu: return "shape=box, style=filled, fillcolor=\"#ffe0b2\"";
    case VertexKind::kNic: return "shape=box, style=filled, fillcolor=\"#e1bee7\"";
    case VertexKind::kNetwork: return "shape=ellipse, style=filled, fillcolor=\"#f3e5f5\"";
    }
    return "shape=box";
}

const char *color_of(LinkKind kind)
{
    switch (kind) {
    case LinkKind::kNvlink: return "#558b2f";
    case LinkKind::kPcie: return "#546e7a";
    case LinkKind::kSocket: return "#ef6c00";
    case LinkKind::kNetwork: return "#8e24aa";
    }
    return "black";
}

std::string quote(const std::string &text)
{
    std::string quoted = "\"";
    for (const char c : text) {
        quoted += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
    }
    return quoted + "\"";
}

} // namespace

std::string print_dot(const Topology &topology)
{
    std::string text = "graph topology {\n  label=" + quote(topology.machine) +
                       ";\n  node [fontname=\"sans-serif\", fontsize=11];\n"
                       "  edge [fontname=\"sans-serif\", fontsize=9];\n";
    for (const Vertex &vertex : topology.vertices) {
        // The backslash and the n are for dot.
        const std::string model = vertex.model.empty() ? "" : "\\n" + vertex.model;
        text += "  " + quote(vertex.name) + " [label=\"" + vertex.name + model + "\", " +
                shape_of(vertex.kind) + "];\n";
    }
    for (const Link &link : topology.links) {
        const std::string count = link.count == 1 ? "" : std::to_string(link.count) + " x ";
        text += "  " + quote(topology.vertices[link.a].name) + " -- " +
                quote(topology.vertices[link.b].name) + " [label=\"" + count +
                print_gbps(link.gbps) + "\", color=\"" + color_of(link.kind) +
                "\", penwidth=" + (link.count > 1 ? "2" : "1") + "];\n";
    }
    return text + "}\n";
}

} // namespace hetcoll
