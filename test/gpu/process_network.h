// Point-to-point messages between processes that were forked from one: ranks that are processes but
// not an MPI job. Every ordered pair of ranks has a ring of bytes in shared memory, through which
// messages go one after the other; the receiver matches them by peer and tag, as MPI does.
#pragma once

#include "base/p2p.h"
#include "base/status.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace hetcoll::test {

// State that the processes share. Made before they are forked.
class ProcessNetwork {
public:
    static constexpr std::size_t kMostGathered = 16 << 10;

    static Result<std::unique_ptr<ProcessNetwork>> create(int size);
    ~ProcessNetwork();
    ProcessNetwork(const ProcessNetwork &) = delete;
    ProcessNetwork &operator=(const ProcessNetwork &) = delete;

    [[nodiscard]] int size() const noexcept { return size_; }
    // Why a rank gave up: said in its process, read in the one that forked it.
    void set_message(int rank, const std::string &text) noexcept;
    [[nodiscard]] std::string message(int rank) const;

private:
    friend class NetworkRank;
    struct Ring;
    struct Board;

    ProcessNetwork() = default;
    [[nodiscard]] Ring &ring(int from, int to) const noexcept;

    int size_ = 0;
    void *memory_ = nullptr;
    std::size_t bytes_ = 0;
    Board *board_ = nullptr;
    Ring *rings_ = nullptr;
};

// One rank's end. Made in its process, used by one thread.
class NetworkRank {
public:
    NetworkRank(ProcessNetwork &network, int rank);
    ~NetworkRank();
    NetworkRank(const NetworkRank &) = delete;
    NetworkRank &operator=(const NetworkRank &) = delete;

    [[nodiscard]] int rank() const noexcept { return rank_; }
    [[nodiscard]] int size() const noexcept { return network_.size(); }
    // Valid as long as this object.
    [[nodiscard]] hetcoll_p2p table() noexcept;

    // Both wait for all ranks. all[r] is what rank r gave; bytes <= kMostGathered.
    void barrier() noexcept;
    void gather(const void *mine, std::size_t bytes, void *all) noexcept;

private:
    struct Request;
    struct Arrival;
    struct Peer;

    static int isend(void *context, const void *buffer, std::size_t bytes, int peer, int tag,
                     void **request);
    static int irecv(void *context, void *buffer, std::size_t bytes, int peer, int tag,
                     void **request);
    static int test(void *context, void **request);
    static void progress(void *context);
    bool push(int peer) noexcept;
    bool pull(int peer);

    ProcessNetwork &network_;
    int rank_;
    std::vector<Peer> peers_;
};

} // namespace hetcoll::test
