// Rabenseifner's algorithm (Thakur, Rabenseifner and Gropp 2005): reduce-scatter by recursive
// halving, allgather by recursive doubling. As few bytes as the ring in 2 log2(n) messages: for
// vectors too large for recursive doubling and too small for the ring.
#include "schedule/algorithms.h"
#include "schedule/fold.h"

#include <utility>

namespace hetcoll {

Schedule build_rabenseifner(int rank, int size)
{
    const Fold fold(rank, size);
    const int active = fold.active_ranks();
    const BlockRange all{.first = 0, .count = active};
    if (size == 1) {
        return Schedule{};
    }
    ScheduleBuilder steps(active);
    const auto peer_at = [&](int distance) {
        return fold.rank_of(fold.active_number() ^ distance);
    };
    const auto is_lower = [&](int distance) { return (fold.active_number() & distance) == 0; };

    fold.begin(steps, all);
    if (!fold.sits_out()) {
        // Halving: of the range that both hold, the lower rank keeps the lower half. Neighbours
        // come first: the large messages travel least, and groups stay consecutive ranks.
        BlockRange mine = all;
        for (int distance = 1; distance < active; distance *= 2) {
            const int half = mine.count / 2;
            const BlockRange lower{mine.first, half}, upper{mine.first + half, half};
            mine = is_lower(distance) ? lower : upper;
            steps.send(peer_at(distance), is_lower(distance) ? upper : lower);
            steps.recv_reduce(peer_at(distance), mine);
        }
        // Doubling: the same exchanges backwards, each side now has the half that it kept.
        for (int distance = active / 2; distance > 0; distance /= 2) {
            const int theirs =
                is_lower(distance) ? mine.first + mine.count : mine.first - mine.count;
            steps.send(peer_at(distance), mine);
            steps.recv(peer_at(distance), {theirs, mine.count});
            mine = {std::min(mine.first, theirs), 2 * mine.count};
        }
    }
    fold.end(steps, all);
    return std::move(steps).finish();
}

} // namespace hetcoll
