// A GPU has one link to its host, with a rate and a latency like those of a link to another GPU. So
// host memory stands for peers' memory on a machine with one GPU.
//
// Each of n ranks reduces an n-th of the vector, as `two_shot` does: it reads this part of all
// vectors, and writes the sum into all of them. With all memory in the GPU's own it is `leader`'s
// kernel, of as many bytes.
#include "bench/kernel_blocks.h"

#include "bench/flagged_sum.h"
#include "bench/matmul_blocks.h"
#include "bench/peer_vectors.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <utility>
#include <vector>

namespace hetcoll {
namespace {

constexpr int kFull = 0; // as many as fit
constexpr int kBlocks[] = {1, 2, 4, 8, 16, 32, 64, 132, 264, kFull};
constexpr int kRanks[] = {2, 4, 8};
constexpr double kNearly = 0.95; // of the largest rate

enum class Moves : std::uint8_t { kBoth, kReads, kWrites };
constexpr std::pair<Moves, const char *> kMoves[] = {{Moves::kBoth, "reads and writes"},
                                                     {Moves::kReads, "reads, one output"},
                                                     {Moves::kWrites, "writes, one input"}};

struct Shape {
    int inputs, outputs;
};
Shape shape_of(Moves moves, int ranks)
{
    return {moves == Moves::kWrites ? 1 : ranks, moves == Moves::kReads ? 1 : ranks};
}

std::string name_of(int blocks) { return blocks == kFull ? "full" : std::to_string(blocks); }

struct Row {
    std::string name;
    std::vector<std::string> cells; // of each of kMoves, by kRanks
};
constexpr std::size_t kColumns = std::size(kMoves) * std::size(kRanks);

void print_table(const std::string &title, const char *first, const std::vector<Row> &rows)
{
    std::printf("\n%s\n%-13s", title.c_str(), "");
    for (const auto &[moves, name] : kMoves) {
        std::printf(" | %26s", name);
    }
    std::printf("\n%-13s", first);
    for (std::size_t i = 0; i < kColumns; ++i) {
        std::printf("%s %2d ranks", i % std::size(kRanks) == 0 ? " |" : "",
                    kRanks[i % std::size(kRanks)]);
    }
    for (const Row &row : rows) {
        std::printf("\n%-13s", row.name.c_str());
        for (std::size_t i = 0; i < row.cells.size(); ++i) {
            std::printf("%s %8s", i % std::size(kRanks) == 0 ? " |" : "", row.cells[i].c_str());
        }
    }
    std::printf("\n");
    std::fflush(stdout);
}

std::string with_digits(double value, int digits)
{
    char text[32];
    std::snprintf(text, sizeof text, "%.*f", digits, value);
    return text;
}

struct Method {
    int samples;
    double least_seconds; // of a sample: with up to eight sums, so that launches are hidden
};

// Correct before fast. Seconds of one sum, the median.
double seconds_of_sum(FlaggedSum &sum, const PeerVectors &vectors, Shape shape, int blocks,
                      const std::vector<unsigned char> &wanted, Method method)
{
    const ReduceInputs inputs = vectors.inputs(shape.inputs);
    const ReduceOutputs outputs = vectors.outputs(shape.outputs);
    sum.limit_blocks(blocks);
    const auto seconds_of = [&](int in_a_row) {
        const auto start = std::chrono::steady_clock::now();
        for (int i = 0; i < in_a_row; ++i) {
            sum.launch(outputs, inputs, vectors.count());
        }
        sum.wait();
        return seconds_since(start) / in_a_row;
    };
    vectors.clear(shape.outputs);
    const double first = seconds_of(1);
    vectors.check(shape.outputs, wanted);
    const int in_a_row = static_cast<int>(std::clamp(method.least_seconds / first, 1.0, 8.0));
    std::vector<double> seconds;
    for (int i = 0; i < method.samples; ++i) {
        seconds.push_back(seconds_of(in_a_row));
    }
    return median(seconds);
}

// [row][column]: seconds of a sum of vectors of `bytes` bytes each, or of a rank's part of these,
// with a row's blocks.
enum class Each : std::uint8_t { kWhole, kPart };
std::vector<std::vector<double>> seconds_of_rows(const Gpu &gpu, FlaggedSum &sum, PeersIn where,
                                                 Each each, std::size_t bytes,
                                                 const std::vector<int> &blocks, Method method)
{
    std::vector<std::vector<double>> seconds(blocks.size(), std::vector<double>(kColumns));
    for (std::size_t r = 0; r < std::size(kRanks); ++r) {
        const int ranks = kRanks[r];
        const std::size_t parts = each == Each::kPart ? static_cast<std::size_t>(ranks) : 1;
        const PeerVectors vectors(gpu, sum.device(), where, ranks, bytes / parts / sizeof(float));
        for (std::size_t m = 0; m < std::size(kMoves); ++m) {
            const Shape shape = shape_of(kMoves[m].first, ranks);
            const auto wanted = vectors.sum_of(shape.inputs);
            for (std::size_t row = 0; row < blocks.size(); ++row) {
                seconds[row][m * std::size(kRanks) + r] =
                    seconds_of_sum(sum, vectors, shape, blocks[row], wanted, method);
            }
        }
    }
    return seconds;
}

// The bytes of one sum in a column: those that cross the link in the direction that has more, or
// all that a GPU's memory reads and writes.
double moved_gigabytes(PeersIn where, std::size_t column, std::size_t bytes)
{
    const int ranks = kRanks[column % std::size(kRanks)];
    const Shape shape = shape_of(kMoves[column / std::size(kRanks)].first, ranks);
    const int parts = where == PeersIn::kHostMemory ? ranks - 1 : shape.inputs + shape.outputs;
    return static_cast<double>(bytes) / ranks * parts / 1e9;
}

// The fewest blocks of ranks that read and write, of most ranks.
std::string print_rates(const Gpu &gpu, FlaggedSum &sum, PeersIn where, std::size_t bytes,
                        Method method)
{
    const std::vector<int> blocks(std::begin(kBlocks), std::end(kBlocks));
    auto rates = seconds_of_rows(gpu, sum, where, Each::kPart, bytes, blocks, method);
    std::vector<Row> rows;
    std::vector<double> most(kColumns, 0);
    for (std::size_t row = 0; row < blocks.size(); ++row) {
        rows.push_back({name_of(blocks[row]), {}});
        for (std::size_t column = 0; column < kColumns; ++column) {
            double &rate = rates[row][column];
            rate = moved_gigabytes(where, column, bytes) / rate;
            most[column] = std::max(most[column], rate);
            rows.back().cells.push_back(with_digits(rate, 1));
        }
    }
    Row fewest{with_digits(100 * kNearly, 0) + " % with", {}};
    for (std::size_t column = 0; column < kColumns; ++column) {
        std::size_t row = 0;
        while (rates[row][column] < kNearly * most[column]) {
            ++row;
        }
        fewest.cells.push_back(name_of(blocks[row]));
    }
    rows.push_back(fewest);
    print_table(where == PeersIn::kHostMemory
                    ? "peers in host memory: GB/s over the link, in one direction"
                    : "all in the GPU's own memory: GB/s read and written",
                "blocks", rows);
    return fewest.cells[std::size(kRanks) - 1];
}

// Small sums have few blocks, whatever the limit.
void print_times(const Gpu &gpu, FlaggedSum &sum, PeersIn where, int samples)
{
    constexpr std::size_t kBytesOfBlock = 512 * 16;
    std::vector<Row> rows;
    for (const std::size_t bytes : {8, 1 << 10, 64 << 10, 256 << 10}) {
        const int most = static_cast<int>((bytes + kBytesOfBlock - 1) / kBytesOfBlock);
        std::vector<int> blocks = {most};
        std::copy_if(std::begin(kBlocks), std::end(kBlocks), std::back_inserter(blocks),
                     [most](int limit) { return limit != kFull && limit < most; });
        std::sort(blocks.begin(), blocks.end());
        const auto seconds =
            seconds_of_rows(gpu, sum, where, Each::kWhole, bytes, blocks, {samples, 0});
        for (std::size_t row = 0; row < blocks.size(); ++row) {
            char name[32];
            std::snprintf(name, sizeof name, "%6zu %6d", bytes, blocks[row]);
            rows.push_back({name, {}});
            for (const double of_column : seconds[row]) {
                rows.back().cells.push_back(with_digits(of_column * 1e6, 2));
            }
        }
    }
    print_table(std::string("peers in ") +
                    (where == PeersIn::kHostMemory ? "host memory" : "the GPU's own memory") +
                    ": us from the launch until the host sees the flag; bytes of a vector",
                " bytes blocks", rows);
}

} // namespace

void sweep_blocks(const Gpu &gpu, const std::string &cublas)
{
    print_header(gpu, "kernel_bench --blocks: the kernel of many inputs with a limit of blocks");
    const std::size_t bytes = std::size_t{gpu.is_emulated() ? 1u << 20 : 64u << 20};
    const Method method = gpu.is_emulated() ? Method{1, 0} : Method{9, 0.002};
    const int small_samples = gpu.is_emulated() ? 3 : 51;
    std::printf(
        "# vectors     %zu KiB of float, of n ranks: a rank reads and writes its n-th of "
        "each; of its own one in device memory\n"
        "# method      median of %d samples, each of the launches that take %g ms, at most 8; of "
        "small sums, median of %d launches\n"
        "# %.0f %% with   the fewest blocks that reach this much of the largest rate\n",
        bytes >> 10, method.samples, method.least_seconds * 1e3, small_samples, 100 * kNearly);
    FlaggedSum sum(gpu);
    std::string fewest[2];
    for (const PeersIn where : {PeersIn::kHostMemory, PeersIn::kOwnMemory}) {
        fewest[static_cast<int>(where)] = print_rates(gpu, sum, where, bytes, method);
    }
    for (const PeersIn where : {PeersIn::kHostMemory, PeersIn::kOwnMemory}) {
        print_times(gpu, sum, where, small_samples);
    }
    time_next_to_matmul(gpu, sum, cublas, bytes);
    std::printf("\n# checked     every output of every line, every element, against the host\n");
    if (gpu.is_emulated()) {
        std::printf("# target      not judged: a CPU ran the kernels\n");
    } else {
        std::printf("# target      none is set; %d ranks that read and write reach %.0f %% with %s "
                    "blocks over the link, with %s in the GPU's own memory\n",
                    kRanks[std::size(kRanks) - 1], 100 * kNearly, fewest[0].c_str(),
                    fewest[1].c_str());
    }
}

} // namespace hetcoll
