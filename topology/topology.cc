#include "topology/topology.h"

#include "base/hash.h"
#include "topology/file.h"

#include <algorithm>
#include <cctype>

namespace hetcoll {
namespace {

bool is_word_char(char c) noexcept
{
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x80 &&
           (std::isalnum(byte) != 0 || std::string_view("_.:+-").find(c) != std::string_view::npos);
}

// Which vertices a kind of link can join.
bool can_join(LinkKind link, VertexKind a, VertexKind b) noexcept
{
    const auto either = [&](VertexKind kind) { return a == kind || b == kind; };
    switch (link) {
    case LinkKind::kNvlink: // between GPU and CPU on some machines
        return !either(VertexKind::kNic) && !either(VertexKind::kNetwork) &&
               !either(VertexKind::kPcieSwitch) &&
               (either(VertexKind::kGpu) || (a == VertexKind::kNvSwitch && b == a));
    case LinkKind::kPcie:
        return !either(VertexKind::kNetwork) &&
               (either(VertexKind::kPcieSwitch) || either(VertexKind::kCpu));
    case LinkKind::kSocket: return a == VertexKind::kCpu && b == VertexKind::kCpu;
    case LinkKind::kNetwork:
        return either(VertexKind::kNic) && (either(VertexKind::kNetwork) || a == b);
    }
    return false;
}

const char *what_it_joins(LinkKind kind) noexcept
{
    switch (kind) {
    case LinkKind::kNvlink: return "a gpu with a gpu, nvswitch or cpu, or two nvswitches";
    case LinkKind::kPcie:
        return "a pcie switch or cpu with a gpu, nic, nvswitch, pcie switch or cpu";
    case LinkKind::kSocket: return "two cpus";
    case LinkKind::kNetwork: return "a nic with a network or a nic";
    }
    return "nothing";
}

// Leaves out what a fragment has no use for: switches that lead nowhere.
std::vector<bool> needed(const Topology &topology, std::vector<bool> kept)
{
    for (bool again = true; again;) {
        again = false;
        for (std::size_t v = 0; v < topology.vertices.size(); ++v) {
            const VertexKind kind = topology.vertices[v].kind;
            const int least = kind == VertexKind::kNvSwitch     ? 1
                              : kind == VertexKind::kPcieSwitch ? 2
                                                                : 0;
            const auto links =
                std::count_if(topology.links.begin(), topology.links.end(), [&](const Link &link) {
                    return kept[link.a] && kept[link.b] &&
                           (link.a == static_cast<int>(v) || link.b == static_cast<int>(v));
                });
            if (kept[v] && links < least) {
                kept[v] = false;
                again = true;
            }
        }
    }
    return kept;
}

} // namespace

const char *vertex_kind_name(VertexKind kind) noexcept
{
    switch (kind) {
    case VertexKind::kGpu: return "gpu";
    case VertexKind::kNvSwitch: return "nvswitch";
    case VertexKind::kPcieSwitch: return "pcie";
    case VertexKind::kCpu: return "cpu";
    case VertexKind::kNic: return "nic";
    case VertexKind::kNetwork: return "network";
    }
    return "unknown";
}

const char *link_kind_name(LinkKind kind) noexcept
{
    switch (kind) {
    case LinkKind::kNvlink: return "nvlink";
    case LinkKind::kPcie: return "pcie";
    case LinkKind::kSocket: return "socket";
    case LinkKind::kNetwork: return "network";
    }
    return "unknown";
}

std::vector<int> Topology::of_kind(VertexKind kind) const
{
    std::vector<int> found;
    for (std::size_t v = 0; v < vertices.size(); ++v) {
        if (vertices[v].kind == kind) {
            found.push_back(static_cast<int>(v));
        }
    }
    return found;
}

int Topology::find(std::string_view name) const noexcept
{
    const auto at = std::find_if(vertices.begin(), vertices.end(),
                                 [&](const Vertex &vertex) { return vertex.name == name; });
    return at == vertices.end() ? kNoVertex : static_cast<int>(at - vertices.begin());
}

int Topology::find(const BusId &bus) const noexcept
{
    const auto at = std::find_if(vertices.begin(), vertices.end(), [&](const Vertex &vertex) {
        return vertex.kind == VertexKind::kGpu && bus.known != 0 && vertex.bus == bus;
    });
    return at == vertices.end() ? kNoVertex : static_cast<int>(at - vertices.begin());
}

int Topology::find_nic(std::string_view name) const noexcept
{
    const int found = find(name);
    return found != kNoVertex && vertices[static_cast<std::size_t>(found)].kind == VertexKind::kNic
               ? found
               : kNoVertex;
}

bool is_word(std::string_view text) noexcept
{
    return !text.empty() && text.size() <= kMaxTopologyNameBytes && is_word_char(text[0]) &&
           std::isalnum(static_cast<unsigned char>(text[0])) != 0 &&
           std::all_of(text.begin(), text.end(), is_word_char);
}

std::string as_word(std::string_view text)
{
    std::string word;
    for (const char c : text) {
        const bool fits = word.empty() ? is_word({&c, 1}) : is_word_char(c);
        if (fits) {
            word += c;
        } else if (!word.empty() && word.back() != '-') {
            word += '-';
        }
    }
    word.resize(std::min(word.size(), kMaxTopologyNameBytes));
    while (!word.empty() && word.back() == '-') {
        word.pop_back();
    }
    return word;
}

Status add_vertex(Topology &topology, Vertex vertex)
{
    const char *name = vertex.name.c_str();
    if (topology.vertices.size() >= kMaxVertices) {
        return error(Errc::kInvalid, "more than %d vertices, leave out what no GPU needs",
                     kMaxVertices);
    }
    if (!is_word(vertex.name)) {
        return error(Errc::kInvalid,
                     "'%.80s' is not a name, write at most %zu letters, digits and _.:+-", name,
                     kMaxTopologyNameBytes);
    }
    if (!vertex.model.empty() && !is_word(vertex.model)) {
        return error(
            Errc::kInvalid,
            "model '%.80s' of %s is not a word, write at most %zu letters, digits and _.:+-",
            vertex.model.c_str(), name, kMaxTopologyNameBytes);
    }
    if (topology.find(vertex.name) != kNoVertex) {
        return error(Errc::kInvalid, "the name %s is taken, give every vertex its own", name);
    }
    for (const Vertex &other : topology.vertices) {
        // Instances of a divided GPU have one bus id and a uuid each.
        const bool same_bus = vertex.bus.known != 0 && other.bus == vertex.bus;
        const bool told_apart = vertex.uuid.known() && other.uuid.known();
        if ((told_apart && other.uuid == vertex.uuid) || (same_bus && !told_apart)) {
            return error(Errc::kInvalid, "%s has the %s of %s, give each its own", name,
                         told_apart ? "uuid" : "bus id", other.name.c_str());
        }
    }
    topology.vertices.push_back(std::move(vertex));
    return {};
}

Status add_link(Topology &topology, const Link &link)
{
    if (topology.links.size() >= kMaxLinks) {
        return error(Errc::kInvalid, "more than %d links, write parallel ones as one with a count",
                     kMaxLinks);
    }
    const Vertex &a = topology.vertices[link.a], &b = topology.vertices[link.b];
    const char *kind = link_kind_name(link.kind);
    if (link.a == link.b) {
        return error(Errc::kInvalid, "a link of %s to itself, name two vertices", a.name.c_str());
    }
    if (!can_join(link.kind, a.kind, b.kind)) {
        return error(Errc::kInvalid, "no %s link can join %s (%s) and %s (%s): it joins %s", kind,
                     a.name.c_str(), vertex_kind_name(a.kind), b.name.c_str(),
                     vertex_kind_name(b.kind), what_it_joins(link.kind));
    }
    if (link.count < 1 || link.count > kMaxLinkCount) {
        return error(Errc::kInvalid, "%d links between %s and %s, write 1 to %d", link.count,
                     a.name.c_str(), b.name.c_str(), kMaxLinkCount);
    }
    if (!(link.gbps >= kMinLinkGbps && link.gbps <= kMaxLinkGbps)) { // NaN too
        return error(Errc::kInvalid, "%g GB/s between %s and %s, write a rate from %g to %g",
                     link.gbps, a.name.c_str(), b.name.c_str(), kMinLinkGbps, kMaxLinkGbps);
    }
    for (const Link &other : topology.links) {
        if (other.kind == link.kind &&
            std::minmax(other.a, other.b) == std::minmax(link.a, link.b)) {
            return error(Errc::kInvalid,
                         "a second %s link between %s and %s, write one with their count", kind,
                         a.name.c_str(), b.name.c_str());
        }
    }
    topology.links.push_back(link);
    return {};
}

Result<Topology> fragment(const Topology &topology, std::span<const int> gpus)
{
    const std::vector<int> all = topology.gpus();
    std::vector<bool> kept(topology.vertices.size(), true);
    for (const int vertex : all) {
        kept[vertex] = false;
    }
    std::string list;
    for (const int gpu : gpus) {
        if (gpu < 0 || gpu >= static_cast<int>(all.size())) {
            return error(Errc::kInvalid, "there is no GPU %d in %.80s, it has %zu, from 0", gpu,
                         topology.machine.c_str(), all.size());
        }
        if (kept[all[gpu]]) {
            return error(Errc::kInvalid, "GPU %d is in the list twice, name every GPU once", gpu);
        }
        kept[all[gpu]] = true;
        list += (list.empty() ? "" : ",") + std::to_string(gpu);
    }
    kept = needed(topology, std::move(kept));

    Topology part{.machine =
                      topology.machine + (topology.machine.empty() ? "" : " ") + "GPUs " + list,
                  .vertices = {},
                  .links = {}};
    std::vector<int> moved(topology.vertices.size(), kNoVertex);
    const auto move = [&](int vertex) {
        moved[vertex] = static_cast<int>(part.vertices.size());
        part.vertices.push_back(topology.vertices[vertex]);
    };
    for (const int gpu : gpus) {
        move(all[gpu]);
    }
    for (std::size_t v = 0; v < topology.vertices.size(); ++v) {
        if (kept[v] && moved[v] == kNoVertex) {
            move(static_cast<int>(v));
        }
    }
    for (Link link : topology.links) {
        link.a = moved[link.a];
        link.b = moved[link.b];
        if (link.a != kNoVertex && link.b != kNoVertex) {
            part.links.push_back(link);
        }
    }
    return part;
}

std::uint64_t topology_hash(const Topology &topology)
{
    Hash hash;
    hash.add(write_topology(topology));
    return std::max<std::uint64_t>(hash.value(), 1);
}

} // namespace hetcoll
