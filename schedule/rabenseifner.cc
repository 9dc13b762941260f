// Rabenseifner's algorithm (Thakur, Rabenseifner and Gropp 2005): reduce-scatter by recursive
// halving, allgather by recursive doubling. As few bytes as the ring in 2 log2(n) messages: for
// vectors too large for recursive doubling and too small for the ring.
#include "schedule/algorithms.h"
#include "schedule/fold.h"

#include <algorithm>
#include <bit>

namespace hetcoll {
namespace {

int one_part_an_active_rank(int size)
{
    return static_cast<int>(std::bit_floor(static_cast<unsigned>(size)));
}

Rounds rabenseifner_rounds(const Team &team, BlockRange blocks)
{
    const Fold fold(team);
    const int active = fold.active_ranks();
    const auto peer_at = [&](int distance) {
        return fold.rank_of(fold.active_number() ^ distance);
    };
    const auto is_lower = [&](int distance) { return (fold.active_number() & distance) == 0; };
    Rounds rounds;

    fold.begin(rounds, blocks);
    // Halving: of the range that both hold, the lower rank keeps the lower half. Neighbours come
    // first: the large messages travel least, and groups stay consecutive ranks.
    BlockRange mine = blocks;
    for (int distance = 1; distance < active; distance *= 2) {
        Round &round = rounds.emplace_back();
        if (fold.sits_out()) {
            continue;
        }
        const int half = mine.count / 2;
        const BlockRange lower{mine.first, half}, upper{mine.first + half, half};
        mine = is_lower(distance) ? lower : upper;
        round = {{StepKind::kSend, peer_at(distance), is_lower(distance) ? upper : lower},
                 {StepKind::kRecvReduce, peer_at(distance), mine}};
    }
    // Doubling: the same exchanges backwards, each side now has the half that it kept.
    for (int distance = active / 2; distance > 0; distance /= 2) {
        Round &round = rounds.emplace_back();
        if (fold.sits_out()) {
            continue;
        }
        const int theirs = is_lower(distance) ? mine.first + mine.count : mine.first - mine.count;
        round = {{StepKind::kSend, peer_at(distance), mine},
                 {StepKind::kRecv, peer_at(distance), {theirs, mine.count}}};
        mine = {std::min(mine.first, theirs), 2 * mine.count};
    }
    fold.end(rounds, blocks);
    return rounds;
}

} // namespace

const TeamAlgorithm kRabenseifnerOfTeam{one_part_an_active_rank, rabenseifner_rounds};

Schedule build_rabenseifner(int rank, int size)
{
    return build_for_all(kRabenseifnerOfTeam, rank, size);
}

} // namespace hetcoll
