// Recursive multiplying (Ruefenacht, Bull and Booth, Generalisation of recursive doubling for
// AllReduce, 2017): in a round f groups of ranks that each have their group's sum become one; a
// rank exchanges all it has with one rank of each other group. ceil(log_k n) rounds with k-1
// partners or fewer, of a whole vector each: for small vectors, where rounds are all that counts.
// With k = 2 and a power of two it is recursive doubling. Up to k ranks, everybody sends to
// everybody, and the sum is the left fold in the order of the ranks.
//
// All of a group must have the same bits of its sum. So one kernel adds the sums of all groups, in
// the order of the groups, which are consecutive ranks: see Step::together.
//
// Any number of ranks: groups of one round differ by at most one rank. The last rank of the larger
// ones takes a smaller group's sum from that group's first rank, which so sends it twice or more.
#include "schedule/recursive_multiplying.h"

#include "schedule/algorithms.h"
#include "schedule/rounds.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <span>

namespace hetcoll {
namespace {

// Consecutive places of a team.
struct Places {
    int first, count;

    [[nodiscard]] Places part(int number, int parts) const
    {
        const int begin = number * count / parts, end = (number + 1) * count / parts;
        return {first + begin, end - begin};
    }
    [[nodiscard]] int part_of(int place, int parts) const
    {
        return (parts * (place - first + 1) - 1) / count;
    }
};

// The place in `other` whose sum place number `index` of its own group takes.
int source_in(const Places &other, int index)
{
    return other.first + (index < other.count ? index : 0);
}

// The ranks that come together in `rounds` rounds of `parts` groups.
long reach_of(int parts, int rounds)
{
    long reach = 1;
    for (int i = 0; i < rounds; ++i) {
        reach *= parts;
    }
    return reach;
}

// Most messages of a rank in the round that makes one of `parts` groups: sent, and received.
struct Load {
    int sent, received;
};

Load load_of(int size, int parts)
{
    const int groups = std::min(size, parts);
    const int larger = size % groups;
    return {groups - 1 + larger, groups - 1};
}

TeamCost recursive_multiplying_cost(int size, int /*rack*/)
{
    const std::vector<int> factors = multiplied_factors(size);
    TeamCost cost{1, static_cast<int>(factors.size()), 0, 0};
    int least = size, most = size; // ranks of the groups that a round makes
    for (const int factor : factors) {
        const Load small = load_of(least, factor), large = load_of(most, factor);
        cost.parts_sent += std::max(small.sent, large.sent);
        cost.parts_reduced += large.received;
        least = std::max(least / factor, 1);
        most = (most + factor - 1) / factor;
    }
    return cost;
}

// Steps of one kind, to or from these places.
void add_together(Round &round, StepKind kind, const Team &team, std::span<const int> places,
                  BlockRange blocks)
{
    for (std::size_t i = 0; i < places.size(); ++i) {
        round.push_back({.kind = kind,
                         .peer = team.ranks[static_cast<std::size_t>(places[i])],
                         .blocks = blocks,
                         .fused = i > 0,
                         .together = true});
    }
}

Round recursive_multiplying_round(const Team &team, BlockRange blocks, int number)
{
    const std::vector<int> factors = multiplied_factors(static_cast<int>(team.ranks.size()));
    Places group{0, static_cast<int>(team.ranks.size())};
    const std::size_t level = factors.size() - 1 - static_cast<std::size_t>(number);
    for (std::size_t above = 0; above < level; ++above) {
        const int parts = std::min(factors[above], group.count);
        group = group.part(group.part_of(team.place, parts), parts);
    }
    const int parts = std::min(factors[level], group.count);
    const int mine = group.part_of(team.place, parts);
    const Places own = group.part(mine, parts);
    const int index = team.place - own.first;
    std::vector<int> sends, receives;
    for (int i = 1; i < parts; ++i) { // beginning with the next one, so that nobody has a queue
        const Places to = group.part((mine + i) % parts, parts);
        const Places from = group.part((mine + parts - i) % parts, parts);
        for (int other = 0; other < to.count; ++other) {
            if (source_in(own, other) == team.place) {
                sends.push_back(to.first + other);
            }
        }
        receives.push_back(source_in(from, index));
    }
    Round round; // sends first, because the receives overwrite what they read
    add_together(round, StepKind::kSend, team, sends, blocks);
    add_together(round, StepKind::kRecvReduce, team, receives, blocks);
    return round;
}

} // namespace

std::vector<int> multiplied_factors(int size, int most)
{
    std::vector<int> factors;
    int rounds = 0;
    while (reach_of(most, rounds) < size) {
        ++rounds;
    }
    for (; rounds > 0; --rounds) {
        int least = 1; // that is enough in every round that is left
        while (reach_of(least, rounds) < size) {
            ++least;
        }
        int factor = least;
        while (factor <= most && size % factor != 0) {
            ++factor;
        }
        factors.push_back(factor <= most ? factor : least);
        size = (size + factors.back() - 1) / factors.back();
    }
    return factors;
}

bool multiplies_evenly(int size)
{
    const std::vector<int> factors = multiplied_factors(size);
    return std::accumulate(factors.begin(), factors.end(), 1, std::multiplies<>()) == size;
}

const TeamAlgorithm kRecursiveMultiplyingOfTeam{
    recursive_multiplying_cost, recursive_multiplying_round,
    [](int size, int, int) { return multiplied_factors(size); }};

Schedule build_recursive_multiplying(int rank, int size)
{
    return build_for_all(kRecursiveMultiplyingOfTeam, rank, size);
}

} // namespace hetcoll
