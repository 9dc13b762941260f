// Ranks that share one GPU, as processes and without MPI: hetcoll's algorithms, the staged
// allreduce through host memory and NCCL, in one run.
//
// A leader-reduce of n ranks and S bytes reads n*S bytes and writes n*S, so it cannot be faster
// than 2nS over the memory's bandwidth, which a device copy tells in the same run. Targets: 90 % of
// that at 256 MiB; up to 64 KiB 15 us, and less than the staged allreduce and NCCL take.
#include "bench/gpu_ranks.h"
#include "measure/micro.h"
#include "measure/sizes.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

namespace hetcoll {
namespace {

constexpr int kMostSeconds = 280; // of one job: a hang ends the benchmark
constexpr int kSkipped = 77;      // as test programs say that they cannot run
constexpr double kTarget = 0.9;
constexpr std::size_t kTargetBytes = std::size_t{256} << 20;
constexpr double kTargetUs = 15; // up to this many bytes:
constexpr std::size_t kSmallBytes = std::size_t{64} << 10;

struct Options {
    std::vector<std::size_t> ranks = {2, 4, 8};
    std::size_t most_bytes = 0; // 0: by the device
    std::vector<std::string> ways = {"auto",         "host",         "copy_in",
                                     "leader",       "one_shot",     "two_shot",
                                     "ring",         "rabenseifner", "recursive_doubling",
                                     "hierarchical", "staged"};
    std::string nccl;       // "": the loader's, on a real GPU
    double seconds = 0.125; // for one line
    bool emulated = false;
};

struct Line {
    int ranks;
    std::size_t bytes;
    char allreduce[40];
    double min_us, median_us;
};

// The report of a job to the process that forked it. Rank 0 writes it.
struct Report {
    static constexpr int kMostLines = 4096;
    bool emulated;
    double memory_gbps; // of the last job
    int count;
    Line lines[kMostLines];

    // The faster of two times of one allreduce counts.
    void add(const Line &line)
    {
        auto *end = lines + count;
        auto *known = std::find_if(lines, end, [&](const Line &other) {
            return other.ranks == line.ranks && other.bytes == line.bytes &&
                   std::strcmp(other.allreduce, line.allreduce) == 0;
        });
        if (known != end) {
            known->min_us = std::min(known->min_us, line.min_us);
            known->median_us = std::min(known->median_us, line.median_us);
        } else if (count < kMostLines) {
            lines[count++] = line;
        }
    }
    // `allreduce` is its name, or what that begins with: "auto" is followed by whom it chose.
    [[nodiscard]] const Line *find(int ranks, std::size_t bytes, const std::string &allreduce) const
    {
        const auto *end = lines + count;
        const auto *found = std::find_if(lines, end, [&](const Line &line) {
            return line.ranks == ranks && line.bytes == bytes &&
                   (line.allreduce == allreduce ||
                    std::string(line.allreduce).starts_with(allreduce + ":"));
        });
        return found == end ? nullptr : found;
    }
};

double gb_s(double bytes, double us) { return bytes / us / 1e3; }

// From 8 bytes on by factors of four, the end of the small ones, and the most.
std::vector<std::size_t> sizes_up_to(std::size_t most)
{
    std::vector<std::size_t> sizes;
    for (std::size_t size = 8; size < most; size *= 4) {
        sizes.push_back(size);
        if (size < kSmallBytes && kSmallBytes < std::min(4 * size, most)) {
            sizes.push_back(kSmallBytes);
        }
    }
    sizes.push_back(most);
    return sizes;
}

void print_line(const Line &line, double memory)
{
    const double bytes = static_cast<double>(line.bytes);
    std::printf("%5d %10zu %-20s %11.2f %11.2f %10.3f", line.ranks, line.bytes, line.allreduce,
                line.min_us, line.median_us, gb_s(bytes, line.median_us));
    if (std::strstr(line.allreduce, "leader") != nullptr) {
        const double traffic = gb_s(2.0 * line.ranks * bytes, line.median_us);
        std::printf(" %10.1f %9.1f", traffic, 100 * traffic / memory);
    }
    std::printf("\n");
    std::fflush(stdout);
}

// One allreduce through all sizes `rounds` times, if it could be made on all ranks.
Status run_allreduce(test::NetworkRank &rank, const RankVectors &vectors,
                     Result<std::unique_ptr<RanksAllreduce>> allreduce, const char *name,
                     const Options &options, Report &report, int rounds = 1)
{
    const char good = allreduce.ok() ? 1 : 0;
    std::vector<char> all(static_cast<std::size_t>(rank.size()));
    rank.gather(&good, 1, all.data());
    if (std::count(all.begin(), all.end(), 1) != rank.size()) {
        if (rank.rank() == 0) {
            std::printf("# %-11s %d ranks: not measured: %s\n", name, rank.size(),
                        allreduce.ok() ? "another rank cannot"
                                       : allreduce.status().message().c_str());
        }
        return {};
    }
    // hetcoll's ranks look for each other's GPUs in the first call that is not small.
    Status status = (**allreduce).call(options.most_bytes / sizeof(float));
    if (!status.ok()) {
        return status;
    }
    const std::vector<std::size_t> once = sizes_up_to(options.most_bytes);
    std::vector<std::size_t> sizes;
    for (int round = 0; round < rounds; ++round) {
        sizes.insert(sizes.end(), once.begin(), once.end());
    }
    for (const std::size_t bytes : sizes) {
        auto times = time_calls(rank, vectors, **allreduce, bytes, options.seconds);
        if (!times.ok()) {
            return error(Errc::kDriver, "%s, %zu bytes: %s", name, bytes,
                         times.status().message().c_str());
        }
        if (times->served_by.empty() || rank.rank() != 0) {
            continue;
        }
        Line line{rank.size(), bytes, "", times->min_us, times->median_us};
        std::snprintf(line.allreduce, sizeof line.allreduce, "%s", times->served_by.c_str());
        print_line(line, report.memory_gbps);
        report.add(line);
    }
    return {};
}

// The initial state of each rank of a job.
struct RankGpu {
    std::unique_ptr<Gpu> gpu;
    std::unique_ptr<RankVectors> vectors;
};

Result<RankGpu> open_rank(test::NetworkRank &rank, const Options &options, Report &report)
{
    auto gpu = Gpu::open(0);
    if (!gpu.ok()) {
        return gpu.take_status();
    }
    if (rank.rank() == 0) {
        const std::size_t copied = (*gpu)->is_emulated() ? 4u << 20 : 512u << 20;
        auto memory = memory_gbps(**gpu, copied);
        if (!memory.ok()) {
            return memory.take_status();
        }
        report.memory_gbps = *memory;
        std::printf(
            "# memory      %d ranks: %.1f GB/s read and written by device copies of %zu MiB, "
            "the median of 20, other ranks waiting\n",
            rank.size(), *memory, copied >> 20);
    }
    rank.barrier();
    auto vectors = RankVectors::create(**gpu, rank.rank(), rank.size(), options.most_bytes);
    if (!vectors.ok()) {
        return vectors.take_status();
    }
    return RankGpu{std::move(*gpu), std::move(*vectors)};
}

Status run_hetcoll_and_staged(test::NetworkRank &rank, const Options &options,
                              const StagingArea &area, Report &report)
{
    auto opened = open_rank(rank, options, report);
    if (!opened.ok()) {
        return opened.take_status();
    }
    const RankVectors &vectors = *opened->vectors;
    // Forth and back: what a process does first may take longer, whatever it is.
    std::vector<std::string> order = options.ways;
    order.insert(order.end(), options.ways.rbegin(), options.ways.rend());
    for (const std::string &name : order) {
        auto allreduce = name == "staged" ? make_staged_allreduce(rank, vectors, *opened->gpu, area)
                                          : make_hetcoll_allreduce(rank, vectors, name);
        Status status =
            run_allreduce(rank, vectors, std::move(allreduce), name.c_str(), options, report);
        if (!status.ok()) {
            return status;
        }
    }
    return {};
}

Status run_nccl(test::NetworkRank &rank, const Options &options, Report &report)
{
    auto opened = open_rank(rank, options, report);
    if (!opened.ok()) {
        return opened.take_status();
    }
    auto nccl = NcclLibrary::open(options.nccl.empty() ? "libnccl.so.2" : options.nccl);
    if (nccl.ok() && rank.rank() == 0) {
        std::printf("# nccl        %s, ncclAllReduce and cuStreamSynchronize\n",
                    (*nccl)->version().c_str());
        std::fflush(stdout);
    }
    Result<std::unique_ptr<RanksAllreduce>> allreduce =
        nccl.ok() ? make_nccl_allreduce(rank, *opened->vectors, *opened->gpu, **nccl)
                  : Result<std::unique_ptr<RanksAllreduce>>(nccl.take_status());
    return run_allreduce(rank, *opened->vectors, std::move(allreduce), "nccl", options, report, 2);
}

// NCCL in a job of its own, so that all else is measured whatever becomes of it.
bool run_ranks_of(int ranks, const Options &options, Report &report)
{
    auto area = StagingArea::create(ranks, options.most_bytes);
    Status status = area.ok() ? test::run_ranks(ranks, kMostSeconds,
                                                [&](test::NetworkRank &rank) {
                                                    return run_hetcoll_and_staged(rank, options,
                                                                                  **area, report);
                                                })
                              : area.take_status();
    if (!status.ok()) {
        std::fprintf(stderr, "gpu_ranks_bench: %s\n", status.message().c_str());
        return false;
    }
    if (report.emulated && options.nccl.empty()) {
        std::printf("# nccl        %d ranks: not measured: it cannot run on the emulated GPU\n",
                    ranks);
        return true;
    }
    const Status by_nccl = test::run_ranks(ranks, kMostSeconds, [&](test::NetworkRank &rank) {
        return run_nccl(rank, options, report);
    });
    if (!by_nccl.ok()) {
        std::printf("# nccl        %d ranks: not measured further: %s\n", ranks,
                    by_nccl.message().c_str());
    }
    return true;
}

// The fastest of hetcoll next to the others.
void print_comparison(const Options &options, const Report &report)
{
    std::printf("\nmedians; staged and nccl as multiples of hetcoll's fastest\n%5s %10s %-20s %11s "
                "%11s %8s %11s %8s\n",
                "ranks", "bytes", "fastest", "hetcoll_us", "staged_us", "ratio", "nccl_us",
                "ratio");
    for (const std::size_t ranks : options.ranks) {
        const int n = static_cast<int>(ranks);
        for (const std::size_t bytes : sizes_up_to(options.most_bytes)) {
            const Line *best = nullptr;
            for (int i = 0; i < report.count; ++i) {
                const Line &line = report.lines[i];
                const bool other = std::strcmp(line.allreduce, "staged") == 0 ||
                                   std::strcmp(line.allreduce, "nccl") == 0;
                if (line.ranks == n && line.bytes == bytes && !other &&
                    (best == nullptr || line.median_us < best->median_us)) {
                    best = &line;
                }
            }
            if (best == nullptr) {
                continue;
            }
            std::printf("%5d %10zu %-20s %11.2f", n, bytes, best->allreduce, best->median_us);
            for (const char *allreduce : {"staged", "nccl"}) {
                if (const Line *other = report.find(n, bytes, allreduce)) {
                    std::printf(" %11.2f %8.2f", other->median_us,
                                other->median_us / best->median_us);
                } else {
                    std::printf(" %11s %8s", "-", "-");
                }
            }
            std::printf("\n");
        }
    }
}

void print_bandwidth_target(int ranks, const Report &report)
{
    if (const Line *line = report.find(ranks, kTargetBytes, "leader")) {
        const double share = gb_s(2.0 * ranks * static_cast<double>(line->bytes), line->median_us) /
                             report.memory_gbps;
        std::printf("# target      leader, %d ranks, 256 MiB: %.1f %% of memory bandwidth / "
                    "%d, at least %.0f %%: %s\n",
                    ranks, 100 * share, 2 * ranks, 100 * kTarget,
                    share >= kTarget ? "met" : "missed");
    }
}

// By how much `auto` is slower than a limit at a small size, where that is most.
struct Excess {
    double us = -1e30;
    std::size_t bytes = 0;
};
template <class Limit> Excess most_excess(int ranks, const Report &report, Limit limit_us)
{
    Excess most;
    for (const std::size_t bytes : sizes_up_to(kTargetBytes)) {
        const Line *line = report.find(ranks, bytes, "auto");
        if (line != nullptr && bytes <= kSmallBytes &&
            line->median_us - limit_us(bytes) > most.us) {
            most = {line->median_us - limit_us(bytes), bytes};
        }
    }
    return most;
}

void print_latency_target(const char *limit, int ranks, const Excess &most)
{
    std::printf("# target      auto, %d ranks, up to 64 KiB, less than %s: ", ranks, limit);
    if (most.bytes == 0) {
        std::printf("not judged, it was not measured\n");
    } else {
        std::printf("%s by %.2f us at %zu bytes\n", most.us < 0 ? "met" : "missed",
                    most.us < 0 ? -most.us : most.us, most.bytes);
    }
}

void print_targets(const Options &options, const Report &report)
{
    if (report.emulated || options.most_bytes != kTargetBytes) {
        std::printf("# target      not judged: %s\n",
                    report.emulated ? "no time here is a GPU's" : "it is set for 256 MiB");
        return;
    }
    for (const std::size_t count : options.ranks) {
        const int ranks = static_cast<int>(count);
        print_bandwidth_target(ranks, report);
        print_latency_target("15 us", ranks,
                             most_excess(ranks, report, [](std::size_t) { return kTargetUs; }));
        for (const char *other : {"staged", "nccl"}) {
            const auto limit = [&](std::size_t bytes) { // nothing is slower than what is not there
                const Line *line = report.find(ranks, bytes, other);
                return line != nullptr ? line->median_us : 1e40;
            };
            print_latency_target(other, ranks, most_excess(ranks, report, limit));
        }
    }
}

Result<Options> parse(int argc, char **argv)
{
    Options options;
    for (int i = 1; i < argc; ++i) {
        const std::string word = argv[i];
        if (word == "--emulated") {
            options.emulated = true;
            continue;
        }
        if (i + 1 == argc) {
            return error(Errc::kInvalid, "%s: unknown, or without its value", word.c_str());
        }
        const std::string value = argv[++i];
        if (word == "--nccl") {
            options.nccl = value;
        } else if (word == "--seconds") {
            options.seconds = std::strtod(value.c_str(), nullptr);
        } else if (word == "--ways") {
            options.ways.clear();
            std::stringstream words(value);
            for (std::string allreduce; std::getline(words, allreduce, ',');) {
                options.ways.push_back(allreduce);
            }
        } else if (word == "--ranks") {
            auto ranks = parse_sizes(value);
            if (!ranks.ok()) {
                return ranks.take_status();
            }
            options.ranks = std::move(*ranks);
            if (std::any_of(options.ranks.begin(), options.ranks.end(),
                            [](std::size_t n) { return n < 2 || n > 16; })) {
                return error(Errc::kInvalid, "--ranks %s: 2 to 16 ranks are possible",
                             value.c_str());
            }
        } else if (word == "--bytes") {
            auto bytes = parse_size(value);
            if (!bytes.ok()) {
                return bytes.take_status();
            }
            options.most_bytes = std::max<std::size_t>(*bytes / 8 * 8, 8);
        } else {
            return error(Errc::kInvalid, "%s: unknown", word.c_str());
        }
    }
    return options;
}

// In a process of its own, because this one may not make CUDA calls. 0: go on.
int print_what_is_there(Report &report)
{
    const Status status = test::run_ranks(1, kMostSeconds, [&](test::NetworkRank &) -> Status {
        auto gpu = Gpu::open(0);
        if (!gpu.ok()) {
            return gpu.take_status();
        }
        report.emulated = (*gpu)->is_emulated();
        print_header(**gpu, "gpu_ranks_bench: ranks that are processes and share one GPU");
        return {};
    });
    if (!status.ok()) {
        std::fprintf(stderr, "gpu_ranks_bench: %s\n", status.message().c_str());
    }
    return status.ok() ? 0 : kSkipped;
}

int run(Options options, Report &report)
{
    if (const int code = print_what_is_there(report); code != 0) {
        return code;
    }
    if (report.emulated && !options.emulated) {
        std::printf("# result      none: this is the emulated GPU, whose times say nothing about "
                    "one; --emulated tries the benchmark on it\n");
        return kSkipped;
    }
    if (options.most_bytes == 0) {
        options.most_bytes = report.emulated ? 1u << 20 : kTargetBytes;
    }
    std::printf("# messages    through shared memory; processes are not bound\n"
                "# method      sums of float32, send and receive buffers apart, every result "
                "checked before it is timed; 3 to 500 calls, about %.3g s\n"
                "# order       every allreduce twice, hetcoll's and staged the second time from "
                "the last to "
                "the first; the faster time counts below\n"
                "# time        of the slowest rank, a barrier before each call\n"
                "# algbw       bytes / median; traffic: 2 * ranks * bytes / median, and its share "
                "of the memory's bandwidth: a cache may make that of small vectors larger\n"
                "%5s %10s %-20s %11s %11s %10s %10s %9s\n",
                options.seconds, "ranks", "bytes", "allreduce", "min_us", "median_us", "algbw_gbs",
                "traffic", "of_mem_%");
    bool good = true;
    for (const std::size_t ranks : options.ranks) {
        good = run_ranks_of(static_cast<int>(ranks), options, report) && good;
    }
    print_comparison(options, report);
    print_targets(options, report);
    std::printf("# checked     every result above, every element\n");
    return good ? 0 : 1;
}

} // namespace
} // namespace hetcoll

int main(int argc, char **argv)
{
    using namespace hetcoll;
    auto options = parse(argc, argv);
    if (!options.ok()) {
        std::fprintf(stderr,
                     "gpu_ranks_bench: %s\nusage: gpu_ranks_bench [--ranks 2,4,8] [--bytes 256M] "
                     "[--ways auto,leader,staged] [--nccl FILE] [--seconds 0.125] [--emulated]\n",
                     options.status().message().c_str());
        return 2;
    }
    void *shared =
        mmap(nullptr, sizeof(Report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        std::perror("gpu_ranks_bench: memory that processes share");
        return 1;
    }
    return run(std::move(*options), *static_cast<Report *>(shared));
}
