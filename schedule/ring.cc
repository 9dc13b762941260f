// Ring allreduce (Patarasuk and Yuan 2009): reduce-scatter, then allgather, around the ring.
// A rank sends 2(n-1)/n of the vector, the least possible, in 2(n-1) messages: for large vectors.
#include "schedule/algorithms.h"
#include "schedule/rounds.h"

namespace hetcoll {
namespace {

int one_part_a_rank(int size) { return size; }

// The sum of a part starts at another rank for every part, but it is computed in one place and
// copied from there: the same bits on every rank.
Rounds ring_rounds(const Team &team, BlockRange blocks)
{
    const int size = static_cast<int>(team.ranks.size()), self = team.place;
    const auto wrap = [size](int i) { return (i + 2 * size) % size; };
    const int part_blocks = blocks.count / size;
    const auto part = [&](int i) {
        return BlockRange{blocks.first + wrap(i) * part_blocks, part_blocks};
    };
    const int prev = team.ranks[wrap(self - 1)], next = team.ranks[wrap(self + 1)];
    Rounds rounds;

    // Reduce-scatter: in round r, pass on part self-r and add our own to part self-r-1.
    for (int r = 0; r < size - 1; ++r) {
        rounds.push_back({{StepKind::kSend, next, part(self - r)},
                          {StepKind::kRecvReduce, prev, part(self - r - 1)}});
    }
    // Allgather: part self+1 is final now.
    for (int r = 0; r < size - 1; ++r) {
        rounds.push_back(
            {{StepKind::kSend, next, part(self + 1 - r)}, {StepKind::kRecv, prev, part(self - r)}});
    }
    return rounds;
}

} // namespace

const TeamAlgorithm kRingOfTeam{one_part_a_rank, ring_rounds};

Schedule build_ring(int rank, int size) { return build_for_all(kRingOfTeam, rank, size); }

} // namespace hetcoll
