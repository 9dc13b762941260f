// Reduce-scatter and allgather with k-1 partners a round, for any number of ranks: as few bytes as
// the ring in ceil(log_k n) rounds each. With k = 2 and a power of two this is Rabenseifner's
// algorithm (Thakur, Rabenseifner and Gropp 2005).
//
// A circulant (J. L. Traeff, Optimal, non-pipelined reduce-scatter and allreduce algorithms, 2024,
// there with one partner a round): of the s parts from its own on, a rank keeps the first t =
// ceil(s/k) and sends the others on, t at a time, to the ranks t, 2t, .. further, until it has its
// own part alone. The allgather is the same backwards. Nobody folds, whatever n is.
//
// The largest messages, those of the first round, go furthest. So n is split into factors where
// that costs no more rounds: ranks that differ in the first factor are neighbours, exchange first,
// and each goes on with its share of the vector among its equals. Large messages then stay in racks
// of a power of k nodes. With racks of another size that is known, a circulant in the rack comes
// first, then one of racks.
//
// Every part is reduced by its owner alone: the same bits on all ranks.
#include "schedule/radix.h"

#include "schedule/algorithms.h"
#include "schedule/rounds.h"

#include <algorithm>
#include <optional>

namespace hetcoll {
namespace {

int parts_kept(int parts, int radix) { return (parts + radix - 1) / radix; }

// The ranks of the team that differ in one factor only, and what is left of the vector there.
struct Circle {
    const Team &team;
    int size, self, stride; // places in the team: (i - self) * stride from this rank's
    BlockRange blocks;
    bool fresh; // nobody has written any of it

    [[nodiscard]] int rank_at(int i) const
    {
        return team.ranks[static_cast<std::size_t>(team.place + (i % size - self) * stride)];
    }
};

// A round of the reduce-scatter: from `parts` of them on to `kept`. `mixed`: of those that a rank
// has, the last one is as it was before the first round, and no other.
struct CircleRound {
    int parts, kept;
    bool mixed;
};

CircleRound circle_round(int size, int radix, int number)
{
    CircleRound round{size, parts_kept(size, radix), false};
    for (int i = 0; i < number; ++i) {
        // With one partner and an odd number of parts, nobody had the last of them to send.
        round.mixed = i == 0 && round.parts < 2 * round.kept;
        round.parts = round.kept;
        round.kept = parts_kept(round.parts, radix);
    }
    return round;
}

// Parts first .. first + count - 1 around the circle: two ranges if they pass its end, one more if
// the last part must travel alone. Only piece number `piece`, if there is one.
std::optional<BlockRange> piece_of(const Circle &circle, int first, int count, bool last_alone,
                                   int piece)
{
    const int part = circle.blocks.count / circle.size;
    first %= circle.size;
    for (int end = first + count; first < end; --piece) {
        int to = first < circle.size ? std::min(end, circle.size) : end;
        if (last_alone && to == end && to - first > 1) {
            --to;
        }
        if (piece == 0) {
            return BlockRange{circle.blocks.first + first % circle.size * part,
                              (to - first) * part};
        }
        first = to;
    }
    return std::nullopt;
}
constexpr int kMostPieces = 3;

// Pieces of one number go to and come from all partners before those of the next: so all ranks are
// at the same one. All partners but perhaps the last one send the same range.
Round exchange(const Circle &circle, const CircleRound &round, bool reduces)
{
    Round moves;
    const bool alone = round.mixed && circle.fresh;
    const auto add = [&](bool sends, int piece) {
        BlockRange before{};
        for (int m = 1; m * round.kept < round.parts; ++m) {
            const int ahead = circle.self + m * round.kept;
            const int behind = circle.self + circle.size - m * round.kept;
            const int count = std::min(round.kept, round.parts - m * round.kept);
            // The part of the rank ahead goes to it and mine comes from behind, or the same
            // backwards.
            const int peer = circle.rank_at(sends == reduces ? ahead : behind);
            const int first = sends == reduces ? ahead : circle.self;
            if (const auto blocks = piece_of(circle, first, count, alone, piece)) {
                const StepKind kind = sends     ? StepKind::kSend
                                      : reduces ? StepKind::kRecvReduce
                                                : StepKind::kRecv;
                const bool fused = kind == StepKind::kRecvReduce && *blocks == before;
                moves.push_back({kind, peer, *blocks, fused});
                before = *blocks;
            }
        }
    };
    for (int piece = 0; piece < kMostPieces; ++piece) {
        add(true, piece);
    }
    for (int piece = 0; piece < kMostPieces; ++piece) {
        add(false, piece);
    }
    return moves;
}

template <int Radix> TeamCost radix_cost(int size, int rack)
{
    return {size, 2 * radix_rounds(size, Radix, rack), 2 * (size - 1), size - 1};
}

template <int Radix> Round radix_round(const Team &team, BlockRange blocks, int number)
{
    const int size = static_cast<int>(team.ranks.size());
    const int half = radix_rounds(size, Radix, team.rack);
    const bool reduces = number < half;
    int left = reduces ? number : 2 * half - 1 - number; // of the reduce-scatter's rounds
    Circle circle{team, 0, 0, 1, blocks, true};
    for (const int factor : radix_factors(size, Radix, team.rack)) {
        circle.size = factor;
        circle.self = team.place / circle.stride % factor;
        const int rounds = radix_rounds(factor, Radix);
        if (left < rounds) {
            break;
        }
        left -= rounds;
        const int part = circle.blocks.count / factor;
        circle.blocks = {circle.blocks.first + circle.self * part, part};
        circle.stride *= factor;
        circle.fresh = false;
    }
    return exchange(circle, circle_round(circle.size, Radix, left), reduces);
}

} // namespace

int radix_rounds(int size, int radix, int rack)
{
    if (has_racks(size, rack)) {
        return radix_rounds(rack, radix) + radix_rounds(size / rack, radix);
    }
    int rounds = 0;
    for (; size > 1; size = parts_kept(size, radix)) {
        ++rounds;
    }
    return rounds;
}

std::vector<int> radix_factors(int size, int radix, int rack)
{
    if (has_racks(size, rack)) {
        std::vector<int> factors = radix_factors(rack, radix);
        const std::vector<int> racks = radix_factors(size / rack, radix);
        factors.insert(factors.end(), racks.begin(), racks.end());
        return factors;
    }
    std::vector<int> factors;
    while (size > 1) {
        int factor = std::min(radix, size);
        while (factor > 1 && (size % factor != 0 ||
                              radix_rounds(size / factor, radix) + 1 > radix_rounds(size, radix))) {
            --factor;
        }
        factors.push_back(factor > 1 ? factor : size);
        size /= factors.back();
    }
    return factors;
}

bool differs_by_racks(int size, int radix, int rack)
{
    return radix_factors(size, radix, rack) != radix_factors(size, radix);
}

bool is_alike_on_all(int size, int radix, int rack)
{
    const std::vector<int> factors = radix_factors(size, radix, rack);
    return std::all_of(factors.begin(), factors.end(),
                       [radix](int factor) { return factor <= radix; });
}

const TeamAlgorithm kRabenseifnerOfTeam{radix_cost<2>, radix_round<2>, radix_factors, 2};
const TeamAlgorithm kRadix3OfTeam{radix_cost<3>, radix_round<3>, radix_factors, 3};
const TeamAlgorithm kRadix4OfTeam{radix_cost<4>, radix_round<4>, radix_factors, 4};
const TeamAlgorithm kRadix8OfTeam{radix_cost<8>, radix_round<8>, radix_factors, 8};

Schedule build_rabenseifner(int rank, int size)
{
    return build_for_all(kRabenseifnerOfTeam, rank, size);
}

Schedule build_radix3(int rank, int size) { return build_for_all(kRadix3OfTeam, rank, size); }
Schedule build_radix4(int rank, int size) { return build_for_all(kRadix4OfTeam, rank, size); }
Schedule build_radix8(int rank, int size) { return build_for_all(kRadix8OfTeam, rank, size); }

} // namespace hetcoll
