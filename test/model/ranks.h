// The ranks of a communicator as threads of the explorer. They run hetcoll's own code; what
// carries their messages is ours: one mailbox for each pair and direction, which promises what MPI
// does, that what was written before a send is seen after its receive.
#pragma once

#include "explorer.h"

#include "engine/meeting/meeting.h"
#include "engine/meeting/node_group.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace model {

inline constexpr int kMostRanks = 4;

class Network {
public:
    // The table of a rank's functions. Two messages of a rank at a time at most.
    [[nodiscard]] hetcoll_p2p rank(int number, int size);

private:
    static constexpr int kMessages = 24; // of a pair, in one execution
    static constexpr std::size_t kBytes = 64;
    struct Mail {
        std::atomic<std::uint32_t> sent{0};
        std::uint32_t to_send = 0, to_receive = 0;
        std::byte bytes[kMessages][kBytes];
    };
    struct Request {
        const Mail *mail;
        void *to;
        std::size_t bytes;
        std::uint32_t number;
    };
    struct Rank {
        Network *network;
        int number;
        unsigned next_request = 0;
        Request request[2];
    };

    static int isend(void *context, const void *buffer, std::size_t bytes, int peer, int tag,
                     void **request);
    static int irecv(void *context, void *buffer, std::size_t bytes, int peer, int tag,
                     void **request);
    static int test(void *context, void **request);
    static void progress(void *) {}

    Mail mail_[kMostRanks][kMostRanks]; // from, to
    Rank rank_[kMostRanks];
};

// hosts[rank] is a rank's node. A job lives until the program ends, because its pages do.
struct Job {
    explicit Job(const std::vector<int> &hosts);
    [[nodiscard]] int size() const { return static_cast<int>(group.size()); }
    // Waits for a meeting that was started. `last_load`: of one node without payload, see
    // wait_for_last().
    static void meet(hetcoll::Meeting &meeting, bool last_load);

    std::unique_ptr<Network> network = std::make_unique<Network>();
    std::vector<std::unique_ptr<hetcoll::NodeGroup>> group;
    std::vector<std::unique_ptr<hetcoll::Messages>> messages;
};

// A rank's contribution to call or meeting `number`, by element, and the sum of all ranks'.
[[nodiscard]] std::int64_t value(int number, int rank, int i = 0);
[[nodiscard]] std::int64_t sum_of(int number, int ranks, int i = 0);

// The ranks' knowledge of deaths: the system reports immediately that a process has ended, Open
// MPI tells each rank some time later. It lives as long as its job.
class Deaths {
public:
    static constexpr int kCode = -75; // of calls that ranks may not come to
    explicit Deaths(const Job &job);
    // The system says that a process has ended once its GPU's work has. The others are told later.
    void die(int rank);
    // Also what a communicator's revocation does.
    void tell_all();
    [[nodiscard]] bool are_told_to(int rank) const { return code_of(of(rank)) != 0; }
    // For hetcoll_p2p::broken, and its context.
    static int code_of(void *rank);
    [[nodiscard]] void *of(int rank) const { return &ranks_[rank]; }

private:
    struct Rank {
        std::atomic<int> told, dead;
    };
    std::unique_ptr<Rank[]> ranks_;
    int size_;
};

// Says what was explored, and the trace if something is wrong.
[[nodiscard]] ::testing::AssertionResult proved(const Report &report);
[[nodiscard]] ::testing::AssertionResult not_refuted(const Report &report);

} // namespace model
