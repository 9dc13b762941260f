#include "schedule/direct.h"

#include "schedule/halves.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace hetcoll {
namespace {

const Share &share_at(std::span<const Share> shares, int self, int distance)
{
    const int count = static_cast<int>(shares.size());
    return shares[(self + count + distance) % count];
}

// A block for every rank.
std::vector<Share> equal_shares(int size)
{
    std::vector<Share> shares;
    for (int rank = 0; rank < size; ++rank) {
        shares.push_back({rank, {rank, 1}});
    }
    return shares;
}

// A block for every rank but one.
std::vector<Share> shares_of_others(int size, int rank)
{
    std::vector<Share> shares = equal_shares(size);
    shares[rank].blocks.count = 0;
    for (int other = rank + 1; other < size; ++other) {
        --shares[other].blocks.first;
    }
    return shares;
}

} // namespace

// Each rank starts with another peer, so that no two want the same one at the same time.
void add_direct_reduce_scatter(ScheduleBuilder &steps, std::span<const Share> shares, int self)
{
    std::vector<int> from;
    for (int distance = 1; distance < static_cast<int>(shares.size()); ++distance) {
        const Share &to = share_at(shares, self, distance);
        if (to.blocks.count > 0) {
            steps.send(to.rank, to.blocks);
        }
        from.push_back(share_at(shares, self, -distance).rank);
    }
    if (shares[self].blocks.count > 0) {
        steps.recv_reduce_all(from, shares[self].blocks);
    }
}

void add_direct_allgather(ScheduleBuilder &steps, std::span<const Share> shares, int self)
{
    for (int distance = 1; distance < static_cast<int>(shares.size()); ++distance) {
        if (shares[self].blocks.count > 0) {
            steps.send(share_at(shares, self, distance).rank, shares[self].blocks);
        }
        const Share &from = share_at(shares, self, -distance);
        if (from.blocks.count > 0) {
            steps.recv(from.rank, from.blocks);
        }
    }
}

Schedule build_direct_reduce_scatter(int rank, int size)
{
    ScheduleBuilder steps(size);
    add_direct_reduce_scatter(steps, equal_shares(size), rank);
    return std::move(steps).finish();
}

Schedule build_direct_allgather(int rank, int size)
{
    ScheduleBuilder steps(size);
    add_direct_allgather(steps, equal_shares(size), rank);
    return std::move(steps).finish();
}

// Scatter and allgather. The root has no share, so that it sends the vector only once; the others
// pass their shares on among themselves.
Schedule build_direct_bcast(int rank, int size, int root)
{
    ScheduleBuilder steps(std::max(size - 1, 1));
    std::vector<Share> shares = shares_of_others(size, root);
    if (rank != root) {
        steps.recv(root, shares[rank].blocks);
        shares.erase(shares.begin() + root);
        add_direct_allgather(steps, shares, rank < root ? rank : rank - 1);
        return std::move(steps).finish();
    }
    for (const Share &share : shares) {
        if (share.rank != root) {
            steps.send(share.rank, share.blocks);
        }
    }
    return std::move(steps).finish();
}

// Reduce-scatter and gather. The root has no share, so that it receives the vector only once; with
// two ranks it has the only one.
Schedule build_direct_reduce(int rank, int size, int root)
{
    ScheduleBuilder steps(std::max(size - 1, 1));
    const std::vector<Share> shares = shares_of_others(size, size == 2 ? 1 - root : root);
    add_direct_reduce_scatter(steps, shares, rank);
    for (const Share &share : shares) {
        if (share.rank == root || share.blocks.count == 0) {
            continue;
        }
        if (rank == root) {
            steps.recv(share.rank, share.blocks);
        } else if (rank == share.rank) {
            steps.send(root, share.blocks);
        }
    }
    return std::move(steps).finish();
}

} // namespace hetcoll
