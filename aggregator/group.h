// The workers of one communicator at one aggregator: adds up what they send, message by message, in
// the order of their ranks, and hands the sums on. Knows no network: it hands what is to be sent to
// its Output.
#pragma once

#include "aggregator/protocol.h"
#include "aggregator/wire.h"
#include "cuda_kernels/reduction.h"

#include <memory>
#include <vector>

namespace hetcoll {

// Memory of sums, which several connections may still be sending from when a group is done with it.
// The memory that a member's connection takes: OpenSSL's memory, and what is sealed and not yet
// sent.
inline constexpr std::uint64_t kConnectionBytes = 256u << 10;

class SumPool : public std::enable_shared_from_this<SumPool> {
public:
    class Buffer final : public SendBuffer {
    public:
        [[nodiscard]] std::byte *data() noexcept { return bytes_.data(); }
        [[nodiscard]] std::span<const std::byte> view() const noexcept;
        void hold() noexcept { ++holders_; }
        void on_sent() noexcept override { release(); }
        void release() noexcept; // the last one gives it back

    private:
        friend class SumPool;
        std::vector<std::byte> bytes_;
        std::size_t used_ = 0;
        Payload received_; // instead of bytes_: a spine's sum
        int holders_ = 0;
        std::shared_ptr<SumPool> pool_; // while it is in use
    };

    // The buffer comes with one hold on it.
    [[nodiscard]] Buffer *take(std::size_t bytes);
    [[nodiscard]] Buffer *take(Payload received);
    [[nodiscard]] int in_use() const noexcept { return in_use_; }

private:
    [[nodiscard]] Buffer *take_any();
    std::vector<std::unique_ptr<Buffer>> idle_;
    int in_use_ = 0;
};

struct GroupCounters {
    std::uint64_t sums = 0;
    std::uint64_t dropped = 0; // parts that came out of turn
    int most_in_flight = 0;    // messages begun and not yet answered
};

class Group {
public:
    class Output {
    public:
        // Each gets a held buffer, and lets it go once it has been sent.
        virtual void send_sum(Connection to, std::uint64_t sequence, SumPool::Buffer *sum) = 0;
        virtual void send_up(const Reduction *first, SumPool::Buffer *sum) = 0;

    protected:
        ~Output() = default;
    };

    // `shape` is what all members must agree on; `window` is what is granted.
    Group(const Member &shape, std::uint32_t window, Output &output);
    ~Group();
    Group(const Group &) = delete;
    Group &operator=(const Group &) = delete;

    // Why the member cannot belong to it, or nothing.
    [[nodiscard]] std::string check(const Member &member) const;
    void add(Connection connection, const Member &member); // requires that check() finds nothing
    // From now on the group is not complete, and a worker that sends a part hears so.
    void remove(Connection connection, const std::string &why);
    [[nodiscard]] bool complete() const noexcept;            // all ranks are there
    [[nodiscard]] std::string gone() const { return gone_; } // who was removed last, and why
    [[nodiscard]] bool has_spine() const noexcept { return shape_.count < shape_.ranks; }
    [[nodiscard]] std::uint32_t window() const noexcept { return window_; }
    void limit_window(std::uint32_t window); // before the first part
    [[nodiscard]] const Member &shape() const noexcept { return shape_; }
    [[nodiscard]] std::vector<Connection> members() const;
    // Those that have sent a part whose sum is not complete.
    [[nodiscard]] std::vector<Connection> waiting() const;
    [[nodiscard]] int member_count() const noexcept { return static_cast<int>(workers_.size()); }
    // Some message of some member has not been answered.
    [[nodiscard]] bool is_busy() const noexcept { return opened_ != answered_; }

    // Require complete(). Answer why the group has failed, or nothing. A part that comes out of
    // turn is counted and dropped.
    [[nodiscard]] std::string on_part(Connection from, const Part &part, Payload payload);
    [[nodiscard]] std::string on_spine_sum(std::uint64_t sequence, Payload sum);

    [[nodiscard]] const GroupCounters &counters() const noexcept { return counters_; }
    // The most that it can hold with `members` members.
    [[nodiscard]] static std::uint64_t memory_bytes(const Member &shape, std::uint32_t window,
                                                    int members) noexcept;

private:
    struct Arrived {
        bool there = false;
        std::optional<Reduction> reduction;
        Payload payload;
    };
    struct Worker {
        Connection connection;
        std::uint32_t rank, span;
        std::uint64_t next = 0;       // sequence of the part that is looked at next
        std::vector<Arrived> arrived; // a place for each message of the window
    };
    // A message on its way to be a sum.
    struct Slot {
        SumPool::Buffer *sum = nullptr;
        std::size_t bytes = 0;
        std::size_t folded = 0;             // workers whose parts are in it
        std::optional<Reduction> reduction; // that begins with it
        HostReduction how = nullptr;
        std::size_t element = 0;
    };

    [[nodiscard]] std::string look_at(Worker &worker);
    [[nodiscard]] std::string open(std::uint64_t sequence, const Arrived &part);
    [[nodiscard]] bool is_ready(std::size_t worker, std::uint64_t sequence) const noexcept
    {
        return worker < workers_.size() && workers_[worker].next > sequence;
    }
    [[nodiscard]] Payload take_part(std::size_t worker, std::uint64_t sequence);
    void fold(std::uint64_t sequence);
    void add_what_is_there(std::uint64_t sequence);
    void add_all_at_once(std::uint64_t sequence);
    void answer(std::uint64_t sequence, SumPool::Buffer *sum);
    [[nodiscard]] Slot &slot(std::uint64_t sequence) { return slots_[sequence % window_]; }

    Member shape_;
    std::uint32_t window_;
    Output &output_;
    std::vector<Worker> workers_; // in the order of their ranks
    std::vector<Slot> slots_;
    std::string gone_;
    std::shared_ptr<SumPool> pool_ = std::make_shared<SumPool>();
    std::optional<Reduction> current_;
    std::uint64_t left_bytes_ = 0; // of the current reduction, that no message has brought
    std::uint64_t opened_ = 0, answered_ = 0; // the next message of each
    GroupCounters counters_;
};

} // namespace hetcoll
