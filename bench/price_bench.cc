// What it costs to price all algorithms at all sizes, as the ranks of a communicator do together
// before they choose: processor time of one thread. Processors only, so the times are what they
// say.
//
//   price_bench [MACHINE NODES]...   machines by their files' names; 0: nodes as the file says
#include "measure/micro.h"
#include "price/prices.h"
#include "sim/cluster_file.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

namespace hetcoll {
namespace {

struct Machine {
    std::string name;
    int nodes;
};

const std::vector<Machine> kMachines = {
    {"4xtitanv", 1},      {"dgx1p", 1},         {"dgx1v", 1},      {"dgx1v-01234", 1},
    {"dgx2", 1},          {"dgxa100", 1},       {"dgxh100", 1},    {"pcie8", 1},
    {"fragments", 0},     {"netreduce6", 0},    {"hetpipe", 0},    {"dgx1v", 2},
    {"pcie8", 2},         {"dgx1v", 3},         {"dgx1v", 5},      {"dgxh100", 8},
    {"awan64", 16},       {"awan64", 48},       {"awan64", 0},     {"oversubscribed", 0},
    {"dgxh100x512", 128}, {"dgxh100x512", 100}, {"dgx1vx128", 128}};

// Milliseconds for so many ranks.
double budget_ms(int ranks) { return ranks <= 8 ? 20 : ranks <= 64 ? 100 : 300; }

double thread_ms()
{
    timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

// Run in the source folder.
Cluster cluster_of(const Machine &machine)
{
    return require(read_cluster(machine.name, machine.nodes, "topology/machines"));
}

// True if it is within the budget.
bool run(const Machine &machine, int repetitions)
{
    const Cluster cluster = cluster_of(machine);
    const Ranks ranks = place_ranks(cluster);
    double least_ms = 0, largest_ms = 0;
    for (int repetition = 0; repetition < repetitions; ++repetition) {
        const double start = thread_ms();
        Prices prices(cluster, ranks);
        double slowest = 0;
        for (int size = 0; size < PriceTable::kSizes; ++size) {
            const double before = thread_ms();
            (void)prices.of_size(size, without(prices.set(), Algorithm::kOrdered));
            slowest = std::max(slowest, thread_ms() - before);
        }
        const double ms = thread_ms() - start;
        if (repetition == 0 || ms < least_ms) {
            least_ms = ms;
            largest_ms = slowest;
        }
    }
    const bool met = least_ms <= budget_ms(ranks.size());
    std::printf("%-16s %6d %6d %10.1f %10.1f %8.0f  %s\n", machine.name.c_str(),
                cluster.node_count(), ranks.size(), least_ms, largest_ms, budget_ms(ranks.size()),
                met ? "met" : "missed");
    return met;
}

} // namespace
} // namespace hetcoll

int main(int argc, char **argv)
{
    using namespace hetcoll;
    std::vector<Machine> machines = kMachines;
    int repetitions = 3;
    if (argc > 1) {
        machines.clear();
        repetitions = 1; // for callgrind
    }
    for (int i = 1; i + 1 < argc; i += 2) {
        machines.push_back({argv[i], std::atoi(argv[i + 1])});
    }
    print_header("price_bench: what it costs to price all algorithms at all sizes");
    std::printf("# method      processor time, the least of %d; columns: all sizes, the costliest "
                "one, the target\n%-16s %6s %6s %10s %10s %8s\n",
                repetitions, "machine", "nodes", "ranks", "all_ms", "size_ms", "budget");
    int missed = 0;
    for (const Machine &machine : machines) {
        missed += run(machine, repetitions) ? 0 : 1;
    }
    std::printf("# missed      %d\n", missed);
    return missed > 0 ? 1 : 0;
}
