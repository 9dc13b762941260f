// Recursive doubling (Thakur, Rabenseifner and Gropp 2005): in round k, ranks at distance 2^k
// exchange all they have. log2(n) messages, the least possible, of a whole vector each: for small
// vectors.
#include "schedule/algorithms.h"
#include "schedule/fold.h"

namespace hetcoll {
namespace {

int one_part(int) { return 1; }

// Both ends of an exchange compute op(lower, higher): the groups that they stand for are
// consecutive ranks, so this is one and the same expression, in rank order, and gives the same
// bits.
Rounds recursive_doubling_rounds(const Team &team, BlockRange blocks)
{
    const Fold fold(team);
    Rounds rounds;
    fold.begin(rounds, blocks);
    for (int distance = 1; distance < fold.active_ranks(); distance *= 2) {
        Round &round = rounds.emplace_back();
        if (!fold.sits_out()) {
            const int peer = fold.rank_of(fold.active_number() ^ distance);
            round = {{StepKind::kSend, peer, blocks}, // first, because the receive overwrites it
                     {StepKind::kRecvReduce, peer, blocks}};
        }
    }
    fold.end(rounds, blocks);
    return rounds;
}

} // namespace

const TeamAlgorithm kRecursiveDoublingOfTeam{one_part, recursive_doubling_rounds};

Schedule build_recursive_doubling(int rank, int size)
{
    return build_for_all(kRecursiveDoublingOfTeam, rank, size);
}

} // namespace hetcoll
