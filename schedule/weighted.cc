#include "schedule/weighted.h"

#include "schedule/direct.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace hetcoll {
namespace {

// Gathering goes on in several channels, each with some of the owners, so that one owner alone,
// whose links others use as well, never holds a rank up. If all ranks are equal, links were idle
// for a twentieth of the time with three channels, and for a hundredth with four. Ranks with small
// shares have slow links, which must never be idle: they take from more owners together than the
// others.
constexpr int kOwnersAtOnce = 4, kOwnersAtOnceOfSlow = 8;
enum Channel {
    kReduce,
    kReduceLate,
    kGather,
    kGatherSlow = kGather + kOwnersAtOnce,
    kChannels = kGatherSlow + kOwnersAtOnceOfSlow
};
static_assert(kChannels == kWeightedChannels);

// The blocks of one segment, rank by rank.
std::vector<Share> segment_shares(std::span<const int> shares, int first_block)
{
    std::vector<Share> owners;
    for (const int share : shares) {
        owners.push_back({static_cast<int>(owners.size()), {first_block, share}});
        first_block += share;
    }
    return owners;
}

// The late rank's own operand, which the owners add to what the others have summed up.
void add_late(ScheduleBuilder &steps, std::span<const Share> shares, int rank, int late)
{
    const int size = static_cast<int>(shares.size());
    for (int distance = 1; distance < size && rank == late; ++distance) {
        const Share &to = shares[(rank + distance) % size];
        if (to.blocks.count > 0) {
            steps.send(to.rank, to.blocks);
        }
    }
    if (late != kNoRank && shares[rank].blocks.count > 0) {
        steps.recv_reduce(late, shares[rank].blocks);
    }
}

// `most`: blocks of the largest share.
int gather_channel(const Share &receiver, int most, int distance)
{
    return receiver.blocks.count < most / 2.0 ? kGatherSlow + distance % kOwnersAtOnceOfSlow
                                              : kGather + distance % kOwnersAtOnce;
}

void add_allgather(ScheduleBuilder &steps, std::span<const Share> shares, int rank)
{
    const int size = static_cast<int>(shares.size());
    const auto less = [](const Share &a, const Share &b) {
        return a.blocks.count < b.blocks.count;
    };
    const int most = std::max_element(shares.begin(), shares.end(), less)->blocks.count;
    for (int distance = 1; distance < size; ++distance) {
        const int to = (rank + distance) % size;
        const Share &from = shares[(rank + size - distance) % size];
        if (shares[rank].blocks.count > 0) {
            steps.set_channel(gather_channel(shares[to], most, distance));
            steps.send(to, shares[rank].blocks);
        }
        if (from.blocks.count > 0) {
            steps.set_channel(gather_channel(shares[rank], most, distance));
            steps.recv(from.rank, from.blocks);
        }
    }
}

} // namespace

// In each channel the segment and then the distance of two ranks order all messages at both ends,
// so nobody waits in a circle.
Schedule build_weighted(int rank, std::span<const int> shares, int segments, int late)
{
    const int parts = std::accumulate(shares.begin(), shares.end(), 0);
    ScheduleBuilder steps(segments * parts, kChannels);
    for (int i = 0; i < segments; ++i) {
        const std::vector<Share> all = segment_shares(shares, i * parts);
        std::vector<Share> early = all;
        if (late != kNoRank) {
            early.erase(early.begin() + late);
        }
        steps.set_channel(kReduce);
        if (rank != late) {
            const int place = late != kNoRank && late < rank ? rank - 1 : rank;
            add_direct_reduce_scatter(steps, early, place);
        }
        steps.set_channel(kReduceLate);
        add_late(steps, all, rank, late);
        add_allgather(steps, all, rank);
    }
    return std::move(steps).finish();
}

} // namespace hetcoll
