#include "tools/tune_worker.h"

#include "measure/machine.h"
#include "measure/measure.h"
#include "measure/mpi_names.h"
#include "measure/sizes.h"
#include "tools/tune_line.h"

#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace hetcoll {

namespace {

// Results are checked if that costs less than measuring.
constexpr std::size_t kCheckedBytes = 4u << 20;
// Calls of every algorithm at a size, at least: to warm up, three that count, and as much as they
// take again for buffers, their contents and checks.
constexpr double kFewestRounds = 14;

struct Place {
    JobShape shape;
    int local_rank;
};

// Nodes of equal size on this machine, before MPI_Init: hetcoll and the emulated GPU go by these.
void fake_node(int fake_nodes)
{
    const auto number = [](const char *name) {
        const char *text = std::getenv(name);
        return text == nullptr ? 0 : std::atoi(text);
    };
    const int ranks = std::max(number("OMPI_COMM_WORLD_SIZE"), fake_nodes);
    const int node = number("OMPI_COMM_WORLD_RANK") / (ranks / fake_nodes);
    const std::string word = "hetcoll_tune_" + std::to_string(node);
    setenv("OMPI_MCA_coll_hetcoll_node", word.c_str(), 1);
    setenv("EMU_NODE", word.c_str(), 1);
}

Place find_place(int fake_nodes)
{
    Place place{};
    int rank = 0, ranks = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    RankPlace found = find_placement(MPI_COMM_WORLD);
    if (fake_nodes > 1) {
        const int node = std::min(rank / (ranks / fake_nodes), fake_nodes - 1);
        MPI_Comm comm = MPI_COMM_NULL;
        MPI_Comm_split(MPI_COMM_WORLD, node, rank, &comm);
        MPI_Comm_rank(comm, &found.local_rank);
        MPI_Comm_size(comm, &found.local_size);
        MPI_Comm_free(&comm);
        found.nodes = fake_nodes;
    }
    int least = found.local_size, most = found.local_size;
    MPI_Allreduce(MPI_IN_PLACE, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    place.local_rank = found.local_rank;
    place.shape = {ranks, found.nodes, least, most, 1};
    return place;
}

// Ranks take their node's GPUs in turns.
int most_on_a_gpu(const Gpu &gpu, const Place &place)
{
    int devices = 1, most = 1;
    if (gpu.driver().cuDeviceGetCount(&devices) == CUDA_SUCCESS && devices > 0) {
        most = (place.shape.ranks_per_node_max + devices - 1) / devices;
    }
    MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    return most;
}

std::vector<std::string> split(const std::string &text)
{
    std::vector<std::string> words;
    std::stringstream stream(text);
    for (std::string word; std::getline(stream, word, ',');) {
        words.push_back(word);
    }
    return words;
}

// How long to measure at the next size, decided by rank 0.
class Clockwork {
public:
    Clockwork(double seconds, std::size_t sizes) : end_(MPI_Wtime() + seconds), sizes_left_(sizes)
    {
    }

    // Seconds; negative: the sizes that are left take too long.
    [[nodiscard]] double next(std::size_t bytes)
    {
        const double left = end_ - MPI_Wtime();
        // A small call is mostly latency, so a wide step tells little of what the next size takes.
        const double growth =
            last_bytes_ == 0 ? 0 : std::min(static_cast<double>(bytes) / last_bytes_, kWidestStep);
        double seconds = left / static_cast<double>(sizes_left_) * kShareOfLoop;
        if (left <= 0 || last_round_ * std::max(growth, 1.0) * kFewestRounds > left) {
            seconds = -1;
        }
        MPI_Bcast(&seconds, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        sizes_left_ -= sizes_left_ > 1 ? 1 : 0;
        return seconds;
    }
    // One call of every algorithm took so long.
    void note(std::size_t bytes, double round_seconds)
    {
        last_bytes_ = static_cast<double>(bytes);
        last_round_ = round_seconds;
    }

private:
    static constexpr double kShareOfLoop = 0.6; // the rest is for what is around it
    static constexpr double kWidestStep = 8;

    double end_, last_bytes_ = 0, last_round_ = 0;
    std::size_t sizes_left_;
};

struct Bench {
    const Contenders &contenders;
    const Gpu &gpu;
    const JobCounters &counters;
    const MpiNames &names;
    JobShape shape;
    bool speaks, verify;
};

// Seconds of one call of every algorithm.
double measure_size(const Bench &bench, std::size_t bytes, double seconds)
{
    const Pattern pattern{.kind = ElementKind::kFloat32, .op = ReduceOp::kSum};
    const VectorSpec spec{pattern, MPI_FLOAT,
                          MPI_SUM, std::max<std::size_t>(bytes / sizeof(float), 1),
                          false,   Memory::kDevice};
    Result<std::unique_ptr<Workload>> vector = make_vector(&bench.gpu, spec);
    if (!vector.ok()) {
        require(vector.take_status(), MPI_COMM_WORLD);
    }
    MeasureOptions options;
    options.seconds = seconds;
    options.warmup = 1;
    options.verify = bench.verify && bytes <= kCheckedBytes;
    const std::vector<MeasuredContender> results =
        measure_contenders(bench.contenders.all(), &bench.gpu, bench.counters, **vector, options);
    double round = 0;
    for (std::size_t i = 0; i < results.size(); ++i) {
        const MeasuredContender &result = results[i];
        const Contender &contender = bench.contenders.all()[i];
        round += result.served ? result.call.time.median_us / 1e6 : 0;
        if (!result.served || !bench.speaks) {
            continue;
        }
        if (result.call.verdict && !result.call.verdict->ok()) {
            tell(kError, contender.name + " gives wrong results at " + std::to_string(bytes) +
                             " bytes: report this");
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
        const CallTimes &time = result.call.time;
        tell(kSample, sample_line(bench.shape, contender.algorithm, contender.chunk_bytes, bytes,
                                  time.min_us, time.median_us, time.p90_us));
    }
    return round;
}

int refuse(const std::string &why, bool speaks)
{
    if (speaks) {
        tell(kError, why);
    }
    return 2;
}

int measure_all(const WorkerOptions &options)
{
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    Place place = find_place(options.fake_nodes);
    const JobCounters counters;
    if (!counters.available()) { // on all ranks
        return refuse("hetcoll is not in this Open MPI, or off: ompi_info | grep hetcoll",
                      rank == 0);
    }
    Result<std::unique_ptr<Gpu>> gpu = Gpu::open(place.local_rank);
    int opened = gpu.ok() ? 1 : 0;
    MPI_Allreduce(MPI_IN_PLACE, &opened, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (opened == 0) {
        return refuse(gpu.ok() ? "another rank has no GPU" : gpu.status().message(), !gpu.ok());
    }
    place.shape.ranks_per_gpu = most_on_a_gpu(**gpu, place);
    const Result<std::vector<std::size_t>> sizes = parse_sizes(options.sizes);
    const Result<Contenders> contenders =
        Contenders::create(MPI_COMM_WORLD, split(options.algorithms));
    if (!sizes.ok() || !contenders.ok()) {
        return refuse((sizes.ok() ? contenders.status() : sizes.status()).message(), rank == 0);
    }
    const MpiNames names;
    const Bench bench{*contenders, **gpu, counters, names, place.shape, rank == 0, options.verify};
    Clockwork clockwork(options.seconds, sizes->size());
    for (std::size_t i = 0; i < sizes->size(); ++i) {
        const std::size_t bytes = (*sizes)[i];
        const double seconds = clockwork.next(bytes);
        if (seconds < 0) {
            break;
        }
        clockwork.note(bytes, measure_size(bench, bytes, seconds));
        if (rank == 0) {
            tell(kProgress, std::to_string(i + 1) + " " + std::to_string(sizes->size()));
        }
    }
    return 0;
}

} // namespace

int run_worker(const WorkerOptions &options)
{
    alarm(static_cast<unsigned>(std::max(options.deadline_s, 1)));
    if (options.fake_nodes > 1) {
        fake_node(options.fake_nodes);
    }
    MPI_Init(nullptr, nullptr);
    const int status = measure_all(options);
    MPI_Finalize();
    return status;
}

} // namespace hetcoll
