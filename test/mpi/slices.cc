// slices SHARES: with --mca coll_hetcoll_algorithm hierarchical on two nodes, a rank sends its
// share of the vector to the other one. SHARES: by rank, "1,0,1,1,0,1".
#include "test/mpi/check.h"

#include <cstdlib>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

namespace hetcoll::test {
namespace {

constexpr std::size_t kCount = 2'000'003;

std::vector<long long> parse_shares(const std::string &text)
{
    std::vector<long long> shares;
    std::istringstream words(text);
    for (std::string word; std::getline(words, word, ',');) {
        shares.push_back(std::atoll(word.c_str()));
    }
    return shares;
}

// Bytes in messages. Those to ranks of the same node are mapped.
long long sent(const CounterValues &values)
{
    return static_cast<long long>(values[HETCOLL_BYTES_BOUNCE] + values[HETCOLL_BYTES_DIRECT]);
}

int run(int argc, char **argv)
{
    Program program(argc, argv, "slices");
    const std::vector<long long> shares = parse_shares(argc > 1 ? argv[1] : "");
    const auto ranks = static_cast<std::size_t>(program.ranks());
    if (!program.check(shares.size() == ranks, "%zu shares, %zu ranks", shares.size(), ranks)) {
        return program.finish();
    }
    const Call call{{ElementKind::kFloat32, ReduceOp::kSum, Values::kExact, 1}, kCount};
    check_allreduce(program, MPI_COMM_WORLD, call); // finds out who reaches whom
    std::vector<long long> by_rank(ranks);
    {
        Buffers buffers(program, MPI_COMM_WORLD, call);
        buffers.fill();
        const CounterValues before = program.counters().read();
        program.check(buffers.reduce() == MPI_SUCCESS, "no success");
        const long long own = sent(program.counters().read() - before);
        buffers.check();
        MPI_Allgather(&own, 1, MPI_LONG_LONG, by_rank.data(), 1, MPI_LONG_LONG, MPI_COMM_WORLD);
    }
    const long long bytes = kCount * sizeof(float);
    const long long all = std::accumulate(shares.begin(), shares.end(), 0LL);
    for (std::size_t rank = 0; rank < ranks; ++rank) { // both nodes send a vector
        const long long expected = 2 * bytes * shares[rank] / all;
        program.check(std::llabs(by_rank[rank] - expected) <= bytes / 100,
                      "rank %zu sent %lld bytes, not %lld", rank, by_rank[rank], expected);
    }
    return program.finish();
}

} // namespace
} // namespace hetcoll::test

int main(int argc, char **argv) { return hetcoll::test::run(argc, argv); }
