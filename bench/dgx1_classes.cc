// The rate of an allreduce by the NVLinks of a DGX-1, for every class of 3 to 8 GPUs that a job may
// get there: the bound, the packed trees, and the rings that a library of rings can use. Numbers of
// links alone, in vectors per time that one NVLink needs for one vector; bench/papers.sh makes
// rates of them.
#include "measure/micro.h"
#include "test/unit/topology_dgx1.h"
#include "topology/tree_packing.h"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <vector>

namespace hetcoll {
namespace {

using Ring = std::vector<int>; // the GPUs in their order, GPU 0 first

int after(const Ring &ring, std::size_t index) { return ring[(index + 1) % ring.size()]; }

// Every ring through all GPUs once, whatever its direction.
std::vector<Ring> rings_of(const LinkUnits &links)
{
    Ring ring(static_cast<std::size_t>(links.gpus));
    std::iota(ring.begin(), ring.end(), 0);
    std::vector<Ring> rings;
    do {
        bool linked = ring[1] < ring.back();
        for (std::size_t i = 0; i < ring.size() && linked; ++i) {
            linked = links.between(ring[i], after(ring, i)) > 0;
        }
        if (linked) {
            rings.push_back(ring);
        }
    } while (std::next_permutation(ring.begin() + 1, ring.end()));
    return rings;
}

// Takes one unit from each link of the ring, or gives it back. False if a link has too few.
bool take(LinkUnits &links, const Ring &ring, int units)
{
    bool enough = true;
    for (std::size_t i = 0; i < ring.size(); ++i) {
        const auto a = static_cast<std::size_t>(ring[i]);
        const auto b = static_cast<std::size_t>(after(ring, i));
        const auto gpus = static_cast<std::size_t>(links.gpus);
        links.units[a * gpus + b] -= units;
        links.units[b * gpus + a] -= units;
        enough = enough && links.units[a * gpus + b] >= 0;
    }
    return enough;
}

// How many of rings [first, end) fit side by side, each with a unit of every link that it uses.
int most_rings(LinkUnits &links, const std::vector<Ring> &rings, std::size_t first, int limit)
{
    int most = 0;
    for (std::size_t i = first; i < rings.size() && most < limit; ++i) {
        if (take(links, rings[i], 1)) {
            most = std::max(most, 1 + most_rings(links, rings, i, limit - 1));
        }
        take(links, rings[i], -1);
    }
    return most;
}

int most_rings(LinkUnits links)
{
    int limit = kMaxLinkUnits; // a ring uses two units of each GPU
    for (int gpu = 0; gpu < links.gpus; ++gpu) {
        const auto row = links.units.begin() + static_cast<std::ptrdiff_t>(gpu) * links.gpus;
        limit = std::min(limit, std::accumulate(row, row + links.gpus, 0) / 2);
    }
    return most_rings(links, rings_of(links), 0, limit);
}

void print_classes(const test::Machine &machine)
{
    for (const test::Fragment &one : test::classes_of(test::connected_fragments(machine))) {
        const Packing packing = pack_best(one.links);
        const double bound = static_cast<double>(packing.strength.numerator) /
                             static_cast<double>(packing.strength.denominator);
        // A ring goes both ways at the same time, half a vector each, in n / (n - 1) vectors a
        // time.
        const int rings = most_rings(one.links);
        const double in_rings = rings * static_cast<double>(one.links.gpus) / (one.links.gpus - 1);
        require(packing.rate_units() > bound * (1 + 1e-12) || in_rings > bound * (1 + 1e-12)
                    ? error(Errc::kInvalid, "dgx1_classes: %s: trees %g, rings %g, bound %g",
                            one.name.c_str(), packing.rate_units(), in_rings, bound)
                    : Status());
        std::printf("%-16s %4d %8.4f %8.4f %6d %8.4f\n", one.name.c_str(), one.links.gpus, bound,
                    packing.rate_units(), rings, in_rings);
    }
}

} // namespace
} // namespace hetcoll

int main()
{
    using namespace hetcoll;
    std::printf("#%-10s %4s %4s %8s %8s %6s %8s\n", "machine", "gpus", "n", "bound", "trees",
                "rings", "in rings");
    print_classes(test::kDgx1P);
    print_classes(test::kDgx1V);
}
