// Measures what wave-synchronous training saves: steps that compute nothing but take a time drawn
// from a log-normal distribution, with distances 0 and more in turns. Computation is sleep, so more
// ranks than cores measure what they should. bench/wsp_bench.sh makes bench/results/wsp.txt of it.
//
//     wsp_bench --ms 20 --sigma 0.6 --slow 1 --waves 60 --count 10000 --distances 0,1,2,4,8
#include "measure/command_line.h"
#include "measure/machine.h"

#include "include/hetcoll_wsp.h"

#include <chrono>
#include <cmath>
#include <cstdio>
#include <random>
#include <thread>
#include <vector>

namespace hetcoll {
namespace {

struct Job {
    double ms = 20;     // mean time of a wave's computation
    double sigma = 0.6; // of its logarithm: 0 is none
    double slow = 1;    // the last rank takes `slow` times as long
    int waves = 60, repetitions = 5, count = 10000, progress_us = 100;
    std::vector<int> distances = {0, 1, 2, 4, 8};
};

struct Times {
    std::vector<double> ms; // a wave, of each repetition
    double blocked = 0;     // part of the time, mean of the ranks
    unsigned long long staleness = 0, bound = 0;
};

void require(int code)
{
    if (code != HETCOLL_WSP_SUCCESS) {
        std::fprintf(stderr, "wsp_bench: %s\n", hetcoll_wsp_error_message());
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

// All distances of one repetition see the same times.
void run(const Job &job, int distance, unsigned seed, Times &times)
{
    int rank = 0, ranks = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    std::vector<float> weights(static_cast<std::size_t>(job.count)), update(weights.size(), 1);
    hetcoll_wsp_options options = HETCOLL_WSP_OPTIONS;
    options.distance = distance;
    options.progress_us = job.progress_us;
    hetcoll_wsp *wsp = nullptr;
    require(hetcoll_wsp_create(MPI_COMM_WORLD, weights.data(), weights.size(), HETCOLL_WSP_FLOAT,
                               &options, &wsp));
    std::mt19937 random(seed * 1000 + static_cast<unsigned>(rank));
    // Mean 1 whatever sigma is.
    std::lognormal_distribution<double> factor(-job.sigma * job.sigma / 2, job.sigma);
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    for (int wave = 0; wave < job.waves; ++wave) {
        const double ms =
            job.ms * (job.sigma > 0 ? factor(random) : 1) * (rank == ranks - 1 ? job.slow : 1);
        std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(ms));
        require(hetcoll_wsp_step(wsp, update.data()));
    }
    require(hetcoll_wsp_flush(wsp));
    double seconds = MPI_Wtime() - start;
    hetcoll_wsp_statistics seen{};
    require(hetcoll_wsp_get_statistics(wsp, &seen));
    require(hetcoll_wsp_free(&wsp));
    if (weights.front() != static_cast<float>(job.waves * ranks)) {
        std::fprintf(stderr, "wsp_bench: the weights are wrong\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    double blocked = seen.blocked_ms / 1e3 / seconds / ranks;
    MPI_Allreduce(MPI_IN_PLACE, &blocked, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    unsigned long long staleness = seen.max_staleness;
    MPI_Allreduce(MPI_IN_PLACE, &staleness, 1, MPI_UNSIGNED_LONG_LONG, MPI_MAX, MPI_COMM_WORLD);
    times.ms.push_back(seconds * 1e3 / job.waves);
    times.blocked += blocked / job.repetitions;
    times.staleness = std::max(times.staleness, staleness);
    times.bound = seen.staleness_bound;
}

double median(std::vector<double> values)
{
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

void report(const Job &job, const std::vector<Times> &all)
{
    std::printf("# sigma %.2f, the last rank takes %.1f times as long, progress_us %d\n", job.sigma,
                job.slow, job.progress_us);
    std::printf("#distance  ms/wave   least    most  faster  blocked  stalest  bound\n");
    for (std::size_t i = 0; i < all.size(); ++i) {
        const auto [least, most] = std::minmax_element(all[i].ms.begin(), all[i].ms.end());
        std::vector<double> faster; // of each repetition: the same delays
        for (std::size_t k = 0; k < all[i].ms.size(); ++k) {
            faster.push_back(all[0].ms[k] / all[i].ms[k]);
        }
        std::printf("%9d %8.2f %7.2f %7.2f %7.2f %7.1f%% %8llu %6llu\n", job.distances[i],
                    median(all[i].ms), *least, *most, median(faster), 100 * all[i].blocked,
                    all[i].staleness, all[i].bound);
    }
    std::fflush(stdout);
}

int measure(const Job &job, bool header)
{
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const Facts facts = machine_facts(MPI_COMM_WORLD, nullptr);
    if (rank == 0 && header) {
        for (const auto &[key, value] : facts) {
            std::printf("# %-13s %s\n", key.c_str(), value.c_str());
        }
        std::printf("# %-13s a wave is one step that sleeps %.1f ms on average, log-normal; %d "
                    "elements of float; libhetcoll_wsp's thread\n",
                    "workload", job.ms, job.count);
        std::printf("# %-13s %d waves, median of %d repetitions, in which all distances see the "
                    "same delays, in turns; slowest rank\n",
                    "times", job.waves, job.repetitions);
    }
    std::vector<Times> all(job.distances.size());
    for (int repetition = 0; repetition < job.repetitions; ++repetition) {
        for (std::size_t i = 0; i < all.size(); ++i) {
            run(job, job.distances[i], static_cast<unsigned>(repetition), all[i]);
        }
    }
    if (rank == 0) {
        report(job, all);
    }
    return 0;
}

} // namespace
} // namespace hetcoll

int main(int argc, char **argv)
{
    hetcoll::Job job;
    bool no_header = false;
    hetcoll::CommandLine line("wsp_bench", "Times wave-synchronous training with sleeping steps");
    line.add_option("--ms", job.ms, "mean time of a step")
        .check(hetcoll::number(0, 1e6))
        .show_default();
    line.add_option("--sigma", job.sigma, "standard deviation of the logarithm of that time")
        .check(hetcoll::number(0, 100))
        .show_default();
    line.add_option("--slow", job.slow, "the last rank takes this many times as long")
        .check(hetcoll::number(0, 1e6))
        .show_default();
    line.add_option("--waves", job.waves).check(hetcoll::whole_number(1, 100000)).show_default();
    line.add_option("--repetitions", job.repetitions)
        .check(hetcoll::whole_number(1, 1000))
        .show_default();
    line.add_option("--count", job.count, "elements").check(hetcoll::whole_number(1, 100000000));
    line.add_option("--progress-us", job.progress_us, "0: no thread")
        .check(hetcoll::whole_number(0, 1000000))
        .show_default();
    line.add_option("--distances", job.distances, "the others are compared to the first one")
        .list()
        .check(hetcoll::whole_number(0, 1024));
    line.add_flag("--no-header", no_header);
    int code = 0, level = 0;
    if (!line.parse(argc, argv, code)) {
        return code;
    }
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    code = hetcoll::measure(job, !no_header);
    MPI_Finalize();
    return code;
}
