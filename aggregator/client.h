// One communicator's connection to its aggregator: a reduction server that adds up what the ranks
// send, and sends the sum to all (docs/aggregators.md). The rank runs its part of the schedule
// in_network with the ordinary Executor over table(), whose peer `ranks + index` is the aggregator.
//
//   start()                       connects, does not wait
//   step() until it is kJoined    all ranks of the communicator have joined, the aggregator is
//   ready begin(op, kind, count)        before each reduction, in the same order on all ranks
//   table().isend, irecv, ...     what the Executor does: every message that is sent comes back as
//                                 the sum of all ranks' messages of that place, in the same order
//
// One thread at a time. After a failure every request's test() answers kAggregatorFailed, step()
// kFailed and status() why; no call hangs as long as step() or table().progress is called.
#pragma once

#include "aggregator/endpoint.h"
#include "base/element.h"
#include "base/p2p.h"
#include "base/status.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace hetcoll {

class Names;

inline constexpr int kAggregatorFailed = -1; // of isend, irecv and test: Open MPI's OMPI_ERROR

struct AggregatorPlan {
    Endpoint endpoint; // of this rank's aggregator
    AggregatorKey key; // what it and all its workers know: read_key()
    // Tell apart the jobs and communicators that use these aggregators at the same time. The same
    // on all ranks of a communicator.
    std::uint64_t job = 0;
    std::uint32_t comm = 0;
    int rank = 0, ranks = 0;
    // Which aggregator of the list it is. Its leaf serves ranks [first, first + count); if that is
    // not all of them, the leaves' sums meet at their spine. The sum is in the order of the ranks.
    int index = 0;
    int first = 0, count = 0;
    int window = 8; // most messages in flight; the aggregator may grant less
    std::size_t message_bytes = 256u << 10; // most bytes of a message
    double join_seconds = 10;               // no answer, or not all ranks there by then: failed
    // The client gives up an aggregator that says nothing for this time while this rank waits and
    // listens, or that takes nothing of what it is sent. An aggregator says every 5 seconds that it
    // is there, however long other ranks take.
    int silence_seconds = 30;
    // A device of this machine for RDMA, or "any": vectors go that way if the aggregator has one,
    // too (tcp_wire.h). Empty: over TLS.
    std::string rdma{};
    std::shared_ptr<Names> names{}; // null: its own
};

// Traffic over the connection since it began.
struct AggregatorTraffic {
    std::uint64_t messages_out = 0, messages_in = 0;
    std::uint64_t payload_bytes_out = 0, payload_bytes_in = 0;
    std::uint64_t header_bytes_out = 0,
                  header_bytes_in = 0; // of ours, without those of TLS and TCP
    int most_in_flight = 0;            // messages sent whose sum has not been received
};

class Wire;

enum class AggregatorState : std::uint8_t { kJoining, kJoined, kFailed };

class AggregatorClient {
public:
    // Fails immediately if this build has no OpenSSL, its library cannot be loaded or the plan is
    // wrong. Nothing waits: a host's name is looked up while step() is called.
    static Result<std::unique_ptr<AggregatorClient>> start(const AggregatorPlan &plan);
    // The same over another wire, for tests.
    static Result<std::unique_ptr<AggregatorClient>> start_over(std::unique_ptr<Wire> wire,
                                                                const AggregatorPlan &plan);
    virtual ~AggregatorClient() = default; // leaves the aggregator

    // Lets the connection advance.
    virtual AggregatorState step() = 0;
    // Why, once step() has answered kFailed: with the aggregator's name, for the user.
    [[nodiscard]] virtual const Status &status() const noexcept = 0;

    // The next messages belong to this reduction; its first one carries these facts. Requires
    // kJoined and count > 0, and that every message of the reduction before has come back. All
    // ranks send the same messages: of whole elements, at most message_bytes, together `count`.
    virtual void begin(ReduceOp op, ElementKind kind, std::size_t count) = 0;

    // For peer `ranks + index` only. isend keeps to the window: it sends what is too early once
    // sums have been received. It ignores tags: sends go out, and sums come in, in the order in
    // which they were started. A receive has the size of the send of its place. Buffers are host
    // memory and are left alone until test() has answered. progress() lets this connection advance,
    // and nothing else.
    [[nodiscard]] virtual const hetcoll_p2p &table() const noexcept = 0;

    // Requires kJoined: what the aggregator has granted.
    [[nodiscard]] virtual int window() const noexcept = 0;
    [[nodiscard]] virtual AggregatorTraffic traffic() const noexcept = 0;
    // A message for the user, given one time: that there is no RDMA, and why. Empty: nothing new.
    [[nodiscard]] virtual std::string take_note() { return {}; }
    // Waits until something arrives, or this time is over: for programs that have nothing else to
    // do.
    virtual void wait(int milliseconds) = 0;

protected:
    AggregatorClient() = default;
};

// A process's: its clients look up the same names once.
class AggregatorClients {
public:
    virtual ~AggregatorClients() = default;
    // As AggregatorClient::start().
    virtual Result<std::unique_ptr<AggregatorClient>> start(const AggregatorPlan &plan) = 0;

protected:
    AggregatorClients() = default;
};

} // namespace hetcoll
