// Rabenseifner's algorithm (Thakur, Rabenseifner and Gropp 2005): reduce-scatter by recursive
// halving, allgather by recursive doubling. As few bytes as the ring in 2 log2(n) messages: for
// vectors too large for recursive doubling and too small for the ring.
#include "schedule/algorithms.h"
#include "schedule/fold.h"

#include <bit>

namespace hetcoll {
namespace {

int halvings(int size) { return std::bit_width(static_cast<unsigned>(size)) - 1; }

// One part an active rank.
TeamCost rabenseifner_cost(int size)
{
    const int parts = static_cast<int>(std::bit_floor(static_cast<unsigned>(size)));
    const int folded = Fold::messages(size) * parts;
    return {parts, Fold::round_count(size, 2 * halvings(size)), 2 * (parts - 1) + folded,
            parts - 1 + folded};
}

// What a rank holds after some halvings: of the range that both hold, the lower rank keeps the
// lower half. Neighbours come first: the large messages travel least, and groups stay consecutive
// ranks.
struct Half {
    BlockRange mine, theirs;
};
Half halve(BlockRange blocks, int number, int halving)
{
    Half half{blocks, {}};
    for (int k = 0; k <= halving; ++k) {
        const int count = half.mine.count / 2;
        const BlockRange lower{half.mine.first, count}, upper{half.mine.first + count, count};
        const bool is_lower = (number >> k & 1) == 0;
        half = is_lower ? Half{lower, upper} : Half{upper, lower};
    }
    return half;
}

// The halvings, then the same exchanges backwards: each side now has the half that it kept.
Round rabenseifner_round(const Team &team, BlockRange blocks, int number)
{
    const Fold fold(team);
    const int count = halvings(static_cast<int>(team.ranks.size()));
    return fold.round(number, 2 * count, blocks, [&](int i) {
        const bool halves = i < count;
        const int k = halves ? i : 2 * count - 1 - i;
        const int peer = fold.rank_of(fold.active_number() ^ 1 << k);
        const Half half = halve(blocks, fold.active_number(), k);
        return halves ? Round{{StepKind::kSend, peer, half.theirs},
                              {StepKind::kRecvReduce, peer, half.mine}}
                      : Round{{StepKind::kSend, peer, half.mine},
                              {StepKind::kRecv, peer, half.theirs}};
    });
}

} // namespace

const TeamAlgorithm kRabenseifnerOfTeam{rabenseifner_cost, rabenseifner_round};

Schedule build_rabenseifner(int rank, int size)
{
    return build_for_all(kRabenseifnerOfTeam, rank, size);
}

} // namespace hetcoll
