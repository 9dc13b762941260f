// Point-to-point messages between ranks that are objects or threads of one process. Matching is as
// MPI has it; delivery is late and shuffled between pairs at random, so that tests see every order.
#pragma once

#include "base/p2p.h"

#include <cstddef>
#include <cstdlib>
#include <deque>
#include <memory>
#include <mutex>
#include <random>
#include <unordered_map>
#include <vector>

namespace hetcoll {

class MemoryNetwork {
public:
    // `synchronous`: a send completes only when it is received, else immediately (buffered).
    MemoryNetwork(int size, bool synchronous, unsigned seed);

    // The table of one rank; the network outlives it.
    [[nodiscard]] hetcoll_p2p rank(int rank);

    // A message may be shorter than the receive, as in MPI. Else both fail, because only ranks in
    // different calls may do that.
    void allow_shorter() { shorter_ = true; }
    // All ranks are of one thread, so that progress lets no other one run.
    void has_one_thread() { one_thread_ = true; }
    // The n-th send from now on (1: the next) fails to start.
    void fail_send(int nth);
    // From now on the tables of rank() say whether they have broken.
    void may_break() { may_break_ = true; }
    // For that rank's table, with that code. Its requests stay as they are until end_requests().
    void break_for(int rank, int code);
    void end_requests(int rank);
    // The code with which that rank has ended the job; 0: it has not.
    [[nodiscard]] int ended_job(int rank) const;
    // Sends that have been started so far.
    [[nodiscard]] int sends() const;
    // Messages that were sent and never received, or the reverse.
    [[nodiscard]] int unmatched() const;

private:
    struct Request {
        std::byte *to = nullptr;
        const std::byte *from = nullptr;
        std::size_t bytes = 0;
        // MPI's own memory: not operator new's, which tests let fail.
        std::unique_ptr<std::byte, decltype(&std::free)> buffered{nullptr, std::free};
        int state = 0; // as hetcoll_p2p::test()
    };
    struct Pair { // messages of one tag from one rank to another
        int from, to, tag;
        std::deque<std::shared_ptr<Request>> sends, receives;
    };
    struct Rank {
        MemoryNetwork *network;
        int rank;
        int broken = 0;
        bool ends_requests = false;
        int ended_job = 0;
    };

    static int isend(void *context, const void *buffer, std::size_t bytes, int peer, int tag,
                     void **request);
    static int irecv(void *context, void *buffer, std::size_t bytes, int peer, int tag,
                     void **request);
    static int test(void *context, void **request);
    static void progress(void *context);
    static int broken(void *context);
    static void end_job(void *context, int code);
    void forget(const Request &request);
    void *keep(std::shared_ptr<Request> request);
    void deliver_some();
    Pair &pair(int from, int to, int tag);

    int size_;
    bool synchronous_, shorter_ = false, may_break_ = false, one_thread_ = false;
    mutable std::mutex mutex_; // of all below
    std::mt19937 random_;
    std::vector<Pair> pairs_;
    std::vector<Rank> ranks_;
    std::unordered_map<void *, std::shared_ptr<Request>> requests_; // not yet tested complete
    int sends_ = 0, failing_send_ = 0;
};

} // namespace hetcoll
