// Times the packing of trees into the links that a job got: every connected choice of 3 to 8 GPUs
// of a DGX-1, and wider machines. Processors only, so the times are what they say. Processor time
// of the one thread; the packing is checked before it is timed.
#include "measure/micro.h"
#include "test/unit/topology_dgx1.h"
#include "topology/tree_packing.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace hetcoll {
namespace {

constexpr int kRepetitions = 25;
constexpr double kTargetUs = 2000; // of any fragment

using Pack = std::function<Packing(const LinkUnits &)>;

double thread_us()
{
    timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

// The costliest of some fragments, and what came out for the worst of them.
struct Line {
    double median_us = 0, worst_us = 0;
    std::size_t trees = 0;
    int depth = 0;
    double least_rate = 1; // of the strength
};

void add(Line &line, const LinkUnits &links, const Pack &pack)
{
    const Packing packing = pack(links);
    const double most = static_cast<double>(packing.strength.numerator) /
                        static_cast<double>(packing.strength.denominator);
    require(packing.trees.empty() || packing.rate_units() > most * (1 + 1e-12)
                ? error(Errc::kInvalid, "tree_packing_bench: %zu trees of rate %g, strength %g",
                        packing.trees.size(), packing.rate_units(), most)
                : Status());
    line.trees = std::max(line.trees, packing.trees.size());
    line.depth = std::max(line.depth, deepest(packing));
    line.least_rate = std::min(line.least_rate, packing.rate_units() / most);

    std::vector<double> times;
    for (int repetition = 0; repetition < kRepetitions; ++repetition) {
        const double start = thread_us();
        require(pack(links) == packing
                    ? Status()
                    : error(Errc::kInvalid, "tree_packing_bench: other trees the second time"));
        times.push_back(thread_us() - start);
    }
    line.median_us = std::max(line.median_us, median(times));
    line.worst_us = std::max(line.worst_us, *std::max_element(times.begin(), times.end()));
}

double print(const std::string &links, const std::string &how, const Line &line)
{
    std::printf("%-28s %-14s %6zu %6d %10.3f %10.0f %9.0f\n", links.c_str(), how.c_str(),
                line.trees, line.depth, line.least_rate, line.median_us, line.worst_us);
    return line.median_us;
}

double run_fragments(const test::Machine &machine)
{
    const std::vector<test::Fragment> fragments = test::connected_fragments(machine);
    const std::string name =
        std::string(machine.name) + ", " + std::to_string(fragments.size()) + " fragments";
    double slowest_us = 0;
    const auto run = [&](const std::string &how, const Pack &pack) {
        Line line;
        for (const test::Fragment &fragment : fragments) {
            add(line, fragment.links, pack);
        }
        slowest_us = std::max(slowest_us, print(name, how, line));
    };
    for (int denominator = 1; denominator <= kMaxDenominator; ++denominator) {
        run("denominator " + std::to_string(denominator),
            [=](const LinkUnits &links) { return pack_trees(links, denominator); });
    }
    run("best", [](const LinkUnits &links) { return pack_best(links); });
    return slowest_us;
}

// Machines that no DGX-1 is: for the bounds of the method, not for the target.
void run_wide(int gpus, int most_units)
{
    std::mt19937 random(1);
    LinkUnits links;
    links.gpus = gpus;
    links.units.assign(static_cast<std::size_t>(gpus) * gpus, 0);
    for (int a = 0; a < gpus; ++a) {
        for (int b = 0; b < a; ++b) {
            const int units = 1 + static_cast<int>(random() % most_units);
            links.units[static_cast<std::size_t>(a) * gpus + b] = units;
            links.units[static_cast<std::size_t>(b) * gpus + a] = units;
        }
    }
    Line line;
    add(line, links, [](const LinkUnits &wide) { return pack_best(wide); });
    print("complete " + std::to_string(gpus) + ", 1 to " + std::to_string(most_units) + " units",
          "best", line);
}

} // namespace
} // namespace hetcoll

int main()
{
    using namespace hetcoll;
    print_header("tree_packing_bench: what it costs to pack trees, processors only");
    std::printf(
        "# method      processor time, %d repetitions; columns: the costliest and the worst "
        "of all fragments\n%-28s %-14s %6s %6s %10s %10s %9s\n",
        kRepetitions, "links", "packing", "trees", "depth", "rate/bound", "median_us", "worst_us");
    const double pascal_us = run_fragments(test::kDgx1P), volta_us = run_fragments(test::kDgx1V);
    const double slowest_us = std::max(pascal_us, volta_us);
    for (const int most_units : {1, 2, 48}) {
        run_wide(8, most_units);
        run_wide(16, most_units);
    }
    std::printf("# target      at most %.0f us a fragment of a DGX-1: %.0f us, %s\n", kTargetUs,
                slowest_us, slowest_us <= kTargetUs ? "met" : "missed");
    return slowest_us <= kTargetUs ? 0 : 1;
}
