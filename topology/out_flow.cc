#include "topology/out_flow.h"

#include <algorithm>
#include <cstddef>
#include <deque>

namespace hetcoll {
namespace {

constexpr double kUnlimited = 1e6; // GB/s
constexpr double kNothing = 1e-6;  // what subtracting has left of a full link

// Shortest augmenting paths (Edmonds and Karp 1972) on the vertices of the topology, a source in
// front of the GPUs and a sink behind the adapters.
class Flow {
public:
    Flow(const Topology &node, std::span<const int> gpus)
        : count_(node.vertices.size() + 2), left_(count_ * count_)
    {
        for (const Link &link : node.links) {
            add(node, link.a, link.b, link);
            add(node, link.b, link.a, link);
        }
        const std::vector<int> vertices = node.gpus();
        for (const int gpu : gpus) {
            const auto vertex = static_cast<std::size_t>(vertices[static_cast<std::size_t>(gpu)]);
            left(source(), vertex) = kUnlimited;
        }
        for (const int nic : node.of_kind(VertexKind::kNic)) {
            add_adapter(node, static_cast<std::size_t>(nic));
        }
        whole_ = left_;
        while (widen()) {
        }
    }

    // Takes the path of some of the flow out of it; its rate, 0 if none of it is left.
    [[nodiscard]] double take_path(std::vector<std::size_t> &path)
    {
        path = {source()};
        while (path.back() != sink()) {
            const std::size_t to = next_of_flow(path.back());
            if (to == count_) {
                return 0;
            }
            const auto seen = std::find(path.begin(), path.end(), to);
            if (seen == path.end()) {
                path.push_back(to);
                continue;
            }
            std::vector<std::size_t> circle(seen, path.end()); // which carries nothing out
            circle.push_back(to);
            take_out(circle);
            path = {source()};
        }
        return take_out(path);
    }

private:
    [[nodiscard]] std::size_t source() const { return count_ - 2; }
    [[nodiscard]] std::size_t sink() const { return count_ - 1; }
    double &left(std::size_t from, std::size_t to) { return left_[from * count_ + to]; }
    [[nodiscard]] double flow(std::size_t from, std::size_t to) const
    {
        return whole_[from * count_ + to] - left_[from * count_ + to];
    }

    [[nodiscard]] std::size_t next_of_flow(std::size_t from) const
    {
        std::size_t to = 0;
        while (to < count_ && !(flow(from, to) > kNothing)) {
            ++to;
        }
        return to;
    }

    double take_out(const std::vector<std::size_t> &path)
    {
        double gbps = kUnlimited;
        for (std::size_t i = 0; i + 1 < path.size(); ++i) {
            gbps = std::min(gbps, flow(path[i], path[i + 1]));
        }
        for (std::size_t i = 0; i + 1 < path.size(); ++i) {
            left(path[i], path[i + 1]) += gbps;
            left(path[i + 1], path[i]) -= gbps;
        }
        return gbps;
    }

    void add(const Topology &node, int from, int to, const Link &link)
    {
        const auto kind = [&](int vertex) {
            return node.vertices[static_cast<std::size_t>(vertex)].kind;
        };
        if (kind(to) != VertexKind::kGpu && kind(from) != VertexKind::kNic &&
            kind(from) != VertexKind::kNetwork && kind(to) != VertexKind::kNetwork) {
            left(static_cast<std::size_t>(from), static_cast<std::size_t>(to)) += link.total_gbps();
        }
    }

    void add_adapter(const Topology &node, std::size_t nic)
    {
        double card = 0;
        bool has_bus = false;
        for (const Link &link : node.links) {
            const bool ours = link.a == static_cast<int>(nic) || link.b == static_cast<int>(nic);
            card += ours && link.kind == LinkKind::kNetwork ? link.total_gbps() : 0;
            has_bus = has_bus || (ours && link.kind != LinkKind::kNetwork);
        }
        left(nic, sink()) = card > 0 ? card : kUnlimited;
        for (const int gpu : node.gpus()) {
            if (!has_bus) {
                left(static_cast<std::size_t>(gpu), nic) = card;
            }
        }
    }

    // False: no path is left.
    bool widen()
    {
        std::vector<std::size_t> before(count_, count_);
        std::deque<std::size_t> next{source()};
        before[source()] = source();
        while (!next.empty() && before[sink()] == count_) {
            const std::size_t from = next.front();
            next.pop_front();
            for (std::size_t to = 0; to < count_; ++to) {
                if (before[to] == count_ && left(from, to) > kNothing) {
                    before[to] = from;
                    next.push_back(to);
                }
            }
        }
        if (before[sink()] == count_) {
            return false;
        }
        double gbps = kUnlimited;
        for (std::size_t to = sink(); to != source(); to = before[to]) {
            gbps = std::min(gbps, left(before[to], to));
        }
        for (std::size_t to = sink(); to != source(); to = before[to]) {
            left(before[to], to) -= gbps;
            left(to, before[to]) += gbps;
        }
        return true;
    }

    std::size_t count_;
    std::vector<double> left_, whole_; // of what each vertex can still send to each, and could
};

} // namespace

OutFlow out_flow(const Topology &node, std::span<const int> gpus)
{
    OutFlow found;
    if (node.of_kind(VertexKind::kNic).empty()) {
        return found;
    }
    const std::vector<int> vertices = node.gpus();
    Flow flow(node, gpus);
    std::vector<std::size_t> path;
    for (double gbps = flow.take_path(path); gbps > 0; gbps = flow.take_path(path)) {
        const int vertex = static_cast<int>(path[1]), nic = static_cast<int>(path[path.size() - 2]);
        const auto is_it = [&](int gpu) {
            return vertices[static_cast<std::size_t>(gpu)] == vertex;
        };
        const auto place = std::find_if(gpus.begin(), gpus.end(), is_it) - gpus.begin();
        found.exits.push_back({static_cast<int>(place), nic, gbps});
        found.gbps += gbps;
    }
    return found;
}

} // namespace hetcoll
