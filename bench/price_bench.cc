// Times the pricing of all algorithms at all sizes, as the ranks of a communicator do together
// before they choose: processor time of one thread. Processors only, so the times are what they
// say.
//
//   price_bench [MACHINE[+adapters] NODES]...   machines by their files' names, whose ranks may
//                                               send by adapters; 0: nodes as the file says
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

const std::vector<Machine> kMachines = {{"4xtitanv", 1},
                                        {"dgx1p", 1},
                                        {"dgx1v", 1},
                                        {"dgx1v-01234", 1},
                                        {"dgx1v-01234+adapters", 1},
                                        {"dgx2", 1},
                                        {"dgxa100", 1},
                                        {"dgxh100", 1},
                                        {"pcie8", 1},
                                        {"fragments", 0},
                                        {"netreduce6", 0},
                                        {"hetpipe", 0},
                                        {"dgx1v", 2},
                                        {"pcie8", 2},
                                        {"dgx1v", 3},
                                        {"dgx1v", 5},
                                        {"dgxh100", 8},
                                        {"awan64", 16},
                                        {"awan64", 48},
                                        {"awan64", 0},
                                        {"oversubscribed", 0},
                                        {"dgxh100x512", 128},
                                        {"dgxh100x512", 100},
                                        {"dgx1vx128", 128}};

// Milliseconds for `ranks` ranks.
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
    const std::string file = machine.name.substr(0, machine.name.find('+'));
    return require(read_cluster(file, machine.nodes, "topology/machines"));
}

Ranks ranks_of(const Machine &machine, const Cluster &cluster)
{
    Ranks ranks = place_ranks(cluster);
    ranks.query.links.by_adapters = machine.name.ends_with("+adapters");
    return ranks;
}

// Milliseconds of the sizes from `first` on, every `step`-th, as a rank that is dealt these prices
// them; the costliest of them in `*size_ms`, if it is more.
double sizes_ms(const Cluster &cluster, const Ranks &ranks, int first, int step, double *size_ms)
{
    const double start = thread_ms();
    Prices prices(cluster, ranks);
    for (int size = first; size < PriceTable::kSizes; size += step) {
        const double before = thread_ms();
        (void)prices.of_size(size, without(prices.set(), kWhenAskedAlgorithms));
        *size_ms = std::max(*size_ms, thread_ms() - before);
    }
    return thread_ms() - start;
}

// True if all sizes together are within the budget.
bool run(const Machine &machine, int repetitions)
{
    const Cluster cluster = cluster_of(machine);
    const Ranks ranks = ranks_of(machine, cluster);
    constexpr double kMany = 1e9;
    double all_ms = kMany, size_ms = 0, rank_ms = kMany;
    for (int repetition = 0; repetition < repetitions; ++repetition) {
        double costliest = 0, slowest = 0, of_a_rank = 0;
        const double ms = sizes_ms(cluster, ranks, 0, 1, &costliest);
        if (ms < all_ms) {
            all_ms = ms;
            size_ms = costliest;
        }
        for (int rank = 0; rank < std::min(ranks.size(), PriceTable::kSizes); ++rank) {
            of_a_rank = std::max(of_a_rank, sizes_ms(cluster, ranks, rank, ranks.size(), &slowest));
        }
        rank_ms = std::min(rank_ms, of_a_rank);
    }
    const double budget = budget_ms(ranks.size());
    const auto verdict = [budget](double ms) { return ms <= budget ? "met" : "missed"; };
    std::printf("%-20s %6d %6d %8.1f %-6s %8.1f %8.1f %-6s %7.0f\n", machine.name.c_str(),
                cluster.node_count(), ranks.size(), all_ms, verdict(all_ms), size_ms, rank_ms,
                verdict(rank_ms), budget);
    return all_ms <= budget;
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
    std::printf("# method      processor time of one thread, the least of %d: of all sizes, of the "
                "costliest, and of the rank that\n"
                "#             has most to do when they are dealt to the ranks, as a communicator "
                "does; next to the budget of each\n"
                "%-20s %6s %6s %15s %8s %15s %7s\n",
                repetitions, "machine", "nodes", "ranks", "all_ms", "size_ms", "rank_ms", "budget");
    int missed = 0;
    for (const Machine &machine : machines) {
        missed += run(machine, repetitions) ? 0 : 1;
    }
    std::printf("# missed      %d by all sizes together\n", missed);
    return missed > 0 ? 1 : 0;
}
