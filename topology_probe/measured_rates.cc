// Which link a measured rate is the rate of.
#include "topology/route.h"
#include "topology_probe/measure.h"

#include <algorithm>

namespace hetcoll {
namespace {

double limited(double gbps) { return std::clamp(gbps, kMinLinkGbps, kMaxLinkGbps); }

// The vertex of each measured GPU; kNoVertex if it is not there.
std::vector<int> find_gpus(const Topology &topology, const MeasuredLinks &measured)
{
    std::vector<int> found;
    for (const GpuRates &gpu : measured.gpus) {
        int vertex = kNoVertex;
        for (const int v : topology.gpus()) {
            const Vertex &candidate = topology.vertices[v];
            if (gpu.uuid.known() && candidate.uuid.known()
                    ? gpu.uuid == candidate.uuid
                    : gpu.bus.known != 0 && gpu.bus == candidate.bus) {
                vertex = v;
            }
        }
        found.push_back(vertex);
    }
    return found;
}

// The GPU's first link to its CPU has this rate; the others have at least that.
void set_host_rate(Topology &topology, int gpu, double gbps)
{
    bool first = true;
    for (const Hop &hop : find_host_route(topology, gpu).links) {
        Link &link = topology.links[hop.link];
        if (first || link.total_gbps() < gbps) {
            link.gbps = limited(gbps / link.count);
        }
        first = false;
    }
}

// All links of the GPU to NVSwitches together have this rate.
void set_port_rate(Topology &topology, int gpu, double gbps)
{
    std::vector<Link *> port;
    int count = 0;
    for (Link &link : topology.links) {
        if (link.kind == LinkKind::kNvlink && (link.a == gpu || link.b == gpu) &&
            topology.vertices[link.other(gpu)].kind == VertexKind::kNvSwitch) {
            port.push_back(&link);
            count += link.count;
        }
    }
    for (Link *const link : port) {
        link->gbps = limited(gbps / count);
    }
}

} // namespace

Topology with_measured_rates(Topology topology, const MeasuredLinks &measured)
{
    const std::vector<int> gpus = find_gpus(topology, measured);
    double sockets = 0;
    std::vector<double> ports(gpus.size()); // of each GPU: its best peer's rate
    for (std::size_t a = 0; a < gpus.size(); ++a) {
        for (std::size_t b = a + 1; b < gpus.size(); ++b) {
            const double gbps = std::min(measured.between(a, b), measured.between(b, a));
            if (gpus[a] == kNoVertex || gpus[b] == kNoVertex || gbps <= 0) {
                continue;
            }
            const Route route = find_route(topology, gpus[a], gpus[b]);
            if (route.kind == RouteKind::kNvlink) {
                Link &link = topology.links[route.links[0].link];
                link.gbps = limited(gbps / link.count);
            } else if (route.kind == RouteKind::kNvSwitch) {
                ports[a] = std::max(ports[a], gbps);
                ports[b] = std::max(ports[b], gbps);
            } else if (route.kind == RouteKind::kPcie && route.distance == Distance::kSys) {
                sockets = std::max(sockets, gbps);
            }
        }
    }
    for (std::size_t g = 0; g < gpus.size(); ++g) {
        const double host = std::min(measured.gpus[g].to_host, measured.gpus[g].from_host);
        if (gpus[g] != kNoVertex && host > 0) {
            set_host_rate(topology, gpus[g], host);
        }
        if (gpus[g] != kNoVertex && ports[g] > 0) {
            set_port_rate(topology, gpus[g], ports[g]);
        }
    }
    for (Link &link : topology.links) {
        if (link.kind == LinkKind::kSocket && sockets > 0) {
            link.gbps = limited(sockets / link.count);
        }
    }
    return topology;
}

} // namespace hetcoll
