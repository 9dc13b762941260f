// Recursive doubling (Thakur, Rabenseifner and Gropp 2005): in round k, ranks at distance 2^k
// exchange all they have. log2(n) messages, the least possible, of a whole vector each: for small
// vectors.
#include "schedule/algorithms.h"
#include "schedule/fold.h"

namespace hetcoll {
namespace {

int exchanges(int size) { return std::bit_width(static_cast<unsigned>(size)) - 1; }

TeamCost recursive_doubling_cost(int size, int /*rack*/)
{
    const int most = exchanges(size) + Fold::messages(size);
    return {1, Fold::round_count(size, exchanges(size)), most, most};
}

// Both ends of an exchange compute op(lower, higher): the groups that they stand for are
// consecutive ranks, so this is one and the same expression, in rank order, and gives the same
// bits.
Round recursive_doubling_round(const Team &team, BlockRange blocks, int number)
{
    const Fold fold(team);
    return fold.round(number, exchanges(static_cast<int>(team.ranks.size())), blocks, [&](int i) {
        const int peer = fold.rank_of(fold.active_number() ^ 1 << i);
        return Round{{StepKind::kSend, peer, blocks}, // first, because the receive overwrites it
                     {StepKind::kRecvReduce, peer, blocks}};
    });
}

std::vector<int> factors(int size, int /*radix*/, int /*rack*/)
{
    return std::vector<int>(exchanges(size), 2);
}

} // namespace

const TeamAlgorithm kRecursiveDoublingOfTeam{recursive_doubling_cost, recursive_doubling_round,
                                             factors};

Schedule build_recursive_doubling(int rank, int size)
{
    return build_for_all(kRecursiveDoublingOfTeam, rank, size);
}

} // namespace hetcoll
