// A job of ranks that are processes of this machine, without MPI: forked, watched, and each with
// hetcoll's core over messages in shared memory.
#pragma once

#include "engine/hetcoll.h"
#include "process_network.h"

#include <functional>
#include <memory>

namespace hetcoll::test {

// Runs body(rank) in a forked process for each rank, and waits for all. An error if any of them
// fails, dies or is not done after `most_seconds`: the others are then killed. The caller has made
// no CUDA call: a driver does not survive fork().
Status run_ranks(int ranks, int most_seconds, const std::function<Status(NetworkRank &)> &body);

// One rank's process state and communicator, as Open MPI's component makes them. All ranks make it
// together.
class RankCommunicator {
public:
    static Result<std::unique_ptr<RankCommunicator>> create(NetworkRank &rank,
                                                            const char *algorithm);
    ~RankCommunicator();
    RankCommunicator(const RankCommunicator &) = delete;
    RankCommunicator &operator=(const RankCommunicator &) = delete;

    Status allreduce(const void *send, void *recv, hetcoll_kind kind, hetcoll_op op,
                     std::size_t count) noexcept;
    [[nodiscard]] std::uint64_t counter(hetcoll_counter counter) const noexcept;

private:
    RankCommunicator() = default;

    hetcoll_process *process_ = nullptr;
    hetcoll_comm *comm_ = nullptr;
};

} // namespace hetcoll::test
