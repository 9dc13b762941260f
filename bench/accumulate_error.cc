// The error of sums of half and bfloat16, by algorithm and number of ranks: with
// coll_hetcoll_accumulate float and element. The ranks are objects of this process. Schedules are
// hetcoll's own, run by its executor and its host code, which has the bits of the kernels; what
// adds the numbers of all ranks in one pass is a call of that host code. So the errors are those of
// a call on GPUs. docs/precision.md
//
//     accumulate_error [MOST_RANKS]     512: half a minute
#include "cuda_kernels/reduction.h"
#include "measure/micro.h"
#include "measure/small_floats.h"
#include "plan/build_schedule.h"
#include "schedule/algorithms.h"
#include "test/unit/engine_job.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace hetcoll {
namespace {

constexpr int kRanks[] = {2, 4, 8, 16, 64, 512};
constexpr int kNode = 8;        // ranks on a node of the hierarchy
constexpr int kMostMapped = 16; // inputs of a kernel, and ranks of a node that map each other
constexpr double kGoal = 0.5;   // units, of what is rounded once on a node

enum class Signs { kPositive, kMixed };
using Vector = std::vector<std::uint16_t>;
using Vectors = std::vector<Vector>;

struct Format {
    ElementKind kind;
    int digits, lowest; // of the significand; the exponent of the smallest number
};
constexpr Format kFormats[] = {{ElementKind::kBfloat16, 8, -133}, {ElementKind::kFloat16, 11, -24}};

// The distance of two neighbouring numbers at `value`.
double unit_at(const Format &format, double value)
{
    int exponent = 0;
    std::frexp(value, &exponent);
    return std::ldexp(1, std::max(exponent - format.digits, format.lowest));
}

// The ranks' numbers: normally distributed, as gradients roughly are. And the sums: a double
// holds them exactly.
struct Input {
    Format format;
    Vectors of_rank;
    std::vector<double> exact, magnitude; // magnitude: of the absolute values

    Input(const Format &its_format, Signs signs, int ranks, std::size_t count)
        : format(its_format), of_rank(static_cast<std::size_t>(ranks), Vector(count)), exact(count),
          magnitude(count)
    {
        std::mt19937_64 random(static_cast<std::uint64_t>(ranks));
        std::normal_distribution<float> normal(0, 1);
        for (Vector &vector : of_rank) {
            for (std::size_t i = 0; i < count; ++i) {
                const float drawn = normal(random);
                vector[i] =
                    bits_of(format.kind, signs == Signs::kPositive ? std::fabs(drawn) : drawn);
                exact[i] += static_cast<double>(value_of(format.kind, vector[i]));
                magnitude[i] += std::fabs(static_cast<double>(value_of(format.kind, vector[i])));
            }
        }
    }
    [[nodiscard]] int ranks() const { return static_cast<int>(of_rank.size()); }
};

// Errors in units in the last place of the exact sum.
struct Errors {
    double squares = 0, most = 0, most_beyond_float = 0;
    long count = 0;

    Errors(const Input &input, const Vector &sums)
    {
        for (std::size_t i = 0; i < sums.size(); ++i) {
            // Units say nothing about a sum that is a small difference of large numbers.
            if (std::fabs(input.exact[i]) < input.magnitude[i] / input.ranks()) {
                continue;
            }
            const double unit = unit_at(input.format, input.exact[i]);
            const auto sum = static_cast<double>(value_of(input.format.kind, sums[i]));
            const double error = std::fabs(sum - input.exact[i]) / unit;
            // The error bound of the additions of floats.
            const double of_float = (input.ranks() - 1) * std::ldexp(input.magnitude[i], -24);
            squares += error * error;
            most = std::max(most, error);
            most_beyond_float = std::max(most_beyond_float, error - of_float / unit);
            ++count;
        }
    }
    [[nodiscard]] double rms() const { return std::sqrt(squares / static_cast<double>(count)); }
};

// ---- how the ranks' numbers come together ----

Vector at_once(const Input &input, ReduceOp op)
{
    std::vector<const void *> all;
    for (const Vector &vector : input.of_rank) {
        all.push_back(vector.data());
    }
    Vector sum = input.of_rank[0];
    const HostReduction how(op, input.format.kind);
    if (how.fold != nullptr) {
        how.fold(sum.data(), all.data(), all.size(), sum.size());
        return sum;
    }
    for (std::size_t rank = 1; rank < all.size(); ++rank) {
        how.reduce(sum.data(), sum.data(), all[rank], sum.size());
    }
    return sum;
}

// By these schedules; ranks of one number in node_of read each other's memory.
Vector by_schedules(const Input &input, ReduceOp op, const std::vector<Schedule> &schedules,
                    const std::vector<int> &node_of)
{
    constexpr std::size_t kInADouble = sizeof(double) / sizeof(std::uint16_t);
    const std::size_t count = input.exact.size();
    const auto job = std::make_unique<test::Job>(schedules, count / kInADouble,
                                                 test::JobOptions{.node_of = node_of,
                                                                  .chunk_bytes = 16u << 10,
                                                                  .slot_bytes = 16u << 10,
                                                                  .op = op,
                                                                  .kind = input.format.kind});
    for (std::size_t rank = 0; rank < input.of_rank.size(); ++rank) {
        std::memcpy(job->input[rank].data(), input.of_rank[rank].data(), 2 * count);
    }
    require(job->run() ? Status() : error(Errc::kInvalid, "accumulate_error: no end"));
    Vector sum(count);
    std::memcpy(sum.data(), job->output[0].data(), 2 * count);
    for (const std::vector<double> &output : job->output) {
        require(std::memcmp(output.data(), sum.data(), 2 * count) == 0
                    ? Status()
                    : error(Errc::kInvalid, "accumulate_error: ranks have different sums"));
    }
    return sum;
}

std::vector<Schedule> schedules_of(Algorithm algorithm, int ranks)
{
    std::vector<Schedule> schedules;
    std::vector<int> numbers(static_cast<std::size_t>(ranks)), shares(numbers.size(), 1);
    std::iota(numbers.begin(), numbers.end(), 0);
    TreeShape tree{.root = 0, .parent = {-1}, .weight = 1};
    Groups groups;
    for (int rank = 0; rank < ranks; ++rank) {
        if (rank > 0) {
            tree.parent.push_back((rank - 1) / 2);
        }
        if (rank % kNode == 0) {
            groups.nodes.emplace_back();
        }
        groups.nodes.back().push_back({rank});
    }
    const RankTrees trees{.ranks = numbers, .trees = {tree}};
    for (int rank = 0; rank < ranks; ++rank) {
        schedules.push_back(build_schedule(
            {.algorithm = algorithm, .between_nodes = *find_algorithm("recursive_doubling")}, rank,
            {.ranks = ranks, .trees = &trees, .groups = &groups, .shares = shares}));
    }
    return schedules;
}

struct Line {
    const char *name;
    const char *algorithm; // null: all in one pass
    ReduceOp op;
    int node;                      // ranks that map each other; 1: messages alone
    int least = 2, most = 1 << 20; // ranks
    bool has_goal = false;
};
constexpr ReduceOp kFloat = ReduceOp::kSumOnce, kElement = ReduceOp::kSum;
constexpr Line kLines[] = {
    {"in one pass, float", nullptr, kFloat, 1, 2, 1 << 20, true},
    {"in one pass, element", nullptr, kElement, 1},
    {"weighted, mapped, float", "weighted", kFloat, kMostMapped, 2, kMostMapped, true},
    {"tree, mapped, float", "tree", kFloat, kMostMapped, 2, kMostMapped},
    {"tree, mapped, element", "tree", kElement, kMostMapped, 2, kMostMapped},
    {"hierarchical, float", "hierarchical", kFloat, kNode, 2 * kNode},
    {"hierarchical, element", "hierarchical", kElement, kNode, 2 * kNode},
    {"recursive_multiplying, float", "recursive_multiplying", kFloat, 1},
    {"recursive_multiplying, element", "recursive_multiplying", kElement, 1},
    {"recursive_doubling", "recursive_doubling", kFloat, 1},
    {"rabenseifner", "rabenseifner", kFloat, 1},
    {"radix8", "radix8", kFloat, 1},
    {"ring", "ring", kFloat, 1},
    {"ordered", "ordered", kFloat, 1},
};

std::size_t count_for(int ranks) { return ranks <= 16 ? 16'384 : 4'096; }

// Whether what is rounded once on a node is within the goal.
bool print_table(const Format &format, Signs signs, int most_ranks)
{
    std::printf("\n%s, %s: error in units in the last place of the sum, root mean square / most\n"
                "%-32s",
                element_name(format.kind),
                signs == Signs::kPositive ? "positive numbers" : "numbers of both signs", "ranks");
    std::vector<Input> inputs;
    for (const int ranks : kRanks) {
        if (ranks <= most_ranks) {
            std::printf(" %14d", ranks);
            inputs.emplace_back(format, signs, ranks, count_for(ranks));
        }
    }
    bool met = true;
    for (const Line &line : kLines) {
        std::printf("\n%-32s", line.name);
        for (const Input &input : inputs) {
            const int ranks = input.ranks();
            if (ranks < line.least || ranks > line.most) {
                std::printf(" %14s", "-");
                continue;
            }
            const Vector sums =
                line.algorithm == nullptr
                    ? at_once(input, line.op)
                    : by_schedules(
                          input, line.op, schedules_of(*find_algorithm(line.algorithm), ranks),
                          line.node > 1 ? test::neighbours(ranks, line.node) : std::vector<int>());
            const Errors errors(input, sums);
            std::printf(" %6.2f /%6.2f", errors.rms(), errors.most);
            met =
                met && !(line.has_goal && ranks <= kMostMapped && errors.most_beyond_float > kGoal);
        }
    }
    std::printf("\n");
    return met;
}

} // namespace
} // namespace hetcoll

int main(int argc, char **argv)
{
    using namespace hetcoll;
    const int most_ranks = argc > 1 ? std::atoi(argv[1]) : 512;
    print_header("accumulate_error: sums of half and bfloat16 against the exact sum");
    std::printf(
        "# numbers     normally distributed, 16384 sums of up to 16 ranks, 4096 of more; without "
        "sums below\n"
        "#             the n-th part of their numbers' absolute values\n"
        "# in one pass one_shot, two_shot, leader and copy_in (up to 16 ranks), host on a node, "
        "an aggregator\n"
        "# mapped      in the memory of ranks of one node; hierarchical: nodes of %d ranks, "
        "recursive doubling\n"
        "#             between them; all else by messages\n",
        kNode);
    bool met = true;
    for (const Format &format : kFormats) {
        for (const Signs signs : {Signs::kPositive, Signs::kMixed}) {
            met = print_table(format, signs, most_ranks) && met;
        }
    }
    std::printf(
        "\n# target      at most %.1f units and the error of float, in one pass on a node of up "
        "to %d ranks: %s\n",
        kGoal, kMostMapped, met ? "met" : "MISSED");
    return met ? 0 : 1;
}
