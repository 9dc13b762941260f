// Ring allreduce (Patarasuk and Yuan 2009): reduce-scatter, then allgather, around the ring.
// A rank sends 2(n-1)/n of the vector, the least possible, in 2(n-1) messages: for large vectors.
// Each half alone sends and receives (n-1)/n, the least possible too.
#include "schedule/algorithms.h"
#include "schedule/halves.h"
#include "schedule/rounds.h"

namespace hetcoll {
namespace {

class Ring {
public:
    Ring(const Team &team, BlockRange blocks)
        : size_(static_cast<int>(team.ranks.size())), blocks_(blocks),
          prev_(team.ranks[wrap(team.place - 1)]), next_(team.ranks[wrap(team.place + 1)])
    {
    }

    // In round r of each half's size - 1 rounds, pass on part first-r and add our own to part
    // first-r-1; part first+1 is final at the end. The sum of a part starts at another rank for
    // every part, but has one place to end.
    [[nodiscard]] Round reduce_scatter(int first, int r) const
    {
        return {{StepKind::kSend, next_, part(first - r)},
                {StepKind::kRecvReduce, prev_, part(first - r - 1)}};
    }
    // Part `mine` is final at first.
    [[nodiscard]] Round allgather(int mine, int r) const
    {
        return {{StepKind::kSend, next_, part(mine - r)},
                {StepKind::kRecv, prev_, part(mine - r - 1)}};
    }

private:
    [[nodiscard]] int wrap(int i) const { return (i + 2 * size_) % size_; }
    [[nodiscard]] BlockRange part(int i) const
    {
        const int part_blocks = blocks_.count / size_;
        return {blocks_.first + wrap(i) * part_blocks, part_blocks};
    }

    int size_;
    BlockRange blocks_;
    int prev_, next_;
};

TeamCost cost_of_both(int size, int /*rack*/)
{
    return {size, 2 * (size - 1), 2 * (size - 1), size - 1};
}
TeamCost cost_of_reduce_scatter(int size, int /*rack*/)
{
    return {size, size - 1, size - 1, size - 1};
}
TeamCost cost_of_allgather(int size, int /*rack*/) { return {size, size - 1, size - 1, 0}; }

// The allgather goes on with the part that is final here, self+1: the same bits on every rank.
Round ring_round(const Team &team, BlockRange blocks, int number)
{
    const Ring ring(team, blocks);
    const int half = static_cast<int>(team.ranks.size()) - 1;
    return number < half ? ring.reduce_scatter(team.place, number)
                         : ring.allgather(team.place + 1, number - half);
}

// Here the sum of a rank's own part must end at the rank.
Round ring_reduce_scatter_round(const Team &team, BlockRange blocks, int number)
{
    return Ring(team, blocks).reduce_scatter(team.place - 1, number);
}

Round ring_allgather_round(const Team &team, BlockRange blocks, int number)
{
    return Ring(team, blocks).allgather(team.place, number);
}

} // namespace

const TeamAlgorithm kRingOfTeam{cost_of_both, ring_round};
const TeamAlgorithm kRingReduceScatterOfTeam{cost_of_reduce_scatter, ring_reduce_scatter_round};
const TeamAlgorithm kRingAllgatherOfTeam{cost_of_allgather, ring_allgather_round};

Schedule build_ring(int rank, int size) { return build_for_all(kRingOfTeam, rank, size); }

Schedule build_ring_reduce_scatter(int rank, int size)
{
    return build_for_all(kRingReduceScatterOfTeam, rank, size);
}

Schedule build_ring_allgather(int rank, int size)
{
    return build_for_all(kRingAllgatherOfTeam, rank, size);
}

} // namespace hetcoll
