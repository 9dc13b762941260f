#include "topology/ring_packing.h"

#include "topology/route.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace hetcoll {
namespace {

constexpr int kMostSteps = 200'000; // of the search for a packing: milliseconds

// All cycles through all GPUs, each once: from GPU 0 on, its lower neighbour first.
class Cycles {
public:
    explicit Cycles(const LinkUnits &links) : links_(links)
    {
        path_ = {0};
        extend(1);
    }
    [[nodiscard]] std::vector<Ring> take() { return std::move(found_); }

private:
    void extend(unsigned passed)
    {
        if (static_cast<int>(path_.size()) == links_.gpus) {
            if (path_[1] < path_.back() && links_.between(path_.back(), 0) > 0) {
                found_.push_back(path_);
            }
            return;
        }
        for (int next = 1; next < links_.gpus; ++next) {
            if ((passed >> next & 1u) == 0 && links_.between(path_.back(), next) > 0) {
                path_.push_back(next);
                extend(passed | 1u << next);
                path_.pop_back();
            }
        }
    }

    const LinkUnits &links_;
    Ring path_;
    std::vector<Ring> found_;
};

class Packer {
public:
    Packer(const LinkUnits &links, const std::vector<Ring> &cycles) : left_(links), cycles_(cycles)
    {
        add_from(0);
    }
    [[nodiscard]] const std::vector<std::size_t> &best() const { return best_; }

private:
    // A cycle leaves and enters every GPU.
    [[nodiscard]] int most_more() const
    {
        int least = kMostRings;
        for (int gpu = 0; gpu < left_.gpus; ++gpu) {
            int units = 0;
            for (int other = 0; other < left_.gpus; ++other) {
                units += left_.between(gpu, other);
            }
            least = std::min(least, units / 2);
        }
        return least;
    }

    bool take(const Ring &cycle, int units)
    {
        bool fits = true;
        for (std::size_t i = 0; i < cycle.size(); ++i) {
            const int a = cycle[i], b = cycle[(i + 1) % cycle.size()];
            left_.units[static_cast<std::size_t>(a * left_.gpus + b)] -= units;
            left_.units[static_cast<std::size_t>(b * left_.gpus + a)] -= units;
            fits = fits && left_.between(a, b) >= 0;
        }
        return fits;
    }

    void add_from(std::size_t first)
    {
        best_ = chosen_.size() > best_.size() ? chosen_ : best_;
        const auto most = std::min(chosen_.size() + static_cast<std::size_t>(most_more()),
                                   static_cast<std::size_t>(kMostRings / 2));
        for (std::size_t i = first; i < cycles_.size() && best_.size() < most; ++i) {
            if (++steps_ > kMostSteps) {
                return;
            }
            if (take(cycles_[i], 1)) {
                chosen_.push_back(i);
                add_from(i); // the same once more, if its links are wide
                chosen_.pop_back();
            }
            take(cycles_[i], -1);
        }
    }

    LinkUnits left_;
    const std::vector<Ring> &cycles_;
    std::vector<std::size_t> chosen_, best_;
    int steps_ = 0;
};

} // namespace

std::vector<Ring> pack_rings(const LinkUnits &links)
{
    std::vector<Ring> rings;
    if (links.gpus < 3 || links.gpus > kMostRingGpus) {
        return rings;
    }
    const std::vector<Ring> cycles = Cycles(links).take();
    const Packer packer(links, cycles);
    for (const std::size_t number : packer.best()) {
        Ring ring = cycles[number];
        rings.push_back(ring);
        std::reverse(ring.begin() + 1, ring.end());
        rings.push_back(ring);
    }
    return rings;
}

PackedRings pack_nvlink_rings(const Topology &node, std::span<const int> gpus)
{
    const std::vector<int> vertices = node.gpus();
    LinkUnits links{.gpus = static_cast<int>(gpus.size()), .units = {}, .host_gbps = {}};
    for (const int from : gpus) {
        for (const int to : gpus) {
            const Route route = find_route(node, vertices[static_cast<std::size_t>(from)],
                                           vertices[static_cast<std::size_t>(to)]);
            const bool nvlink = route.kind == RouteKind::kNvlink;
            links.units.push_back(nvlink ? route.nvlinks : 0);
            const double unit_gbps = nvlink ? route.gbps / route.nvlinks : links.unit_gbps;
            if (links.unit_gbps != 0 && unit_gbps != links.unit_gbps) {
                return {};
            }
            links.unit_gbps = unit_gbps;
        }
    }
    PackedRings packed{.rings = pack_rings(links)};
    packed.gbps = static_cast<double>(packed.rings.size()) * links.unit_gbps;
    return packed;
}

} // namespace hetcoll
