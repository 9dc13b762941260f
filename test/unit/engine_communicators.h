// The engines of all ranks of a node in one process, over messages in memory. A rank makes calls,
// or is a script of what it says in one meeting after the other.
#pragma once

#include "engine/call/host_calls.h"
#include "engine/call/operation.h"
#include "engine/call/operation_queue.h"
#include "engine/call/refusals.h"
#include "engine/communicator/communicator.h"
#include "memory_network.h"
#include "test/unit/engine_process.h"
#include "test/unit/engine_scripted_peer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

namespace hetcoll::test {

class Communicators {
public:
    static constexpr int kTag = HETCOLL_TAGS;
    static constexpr int kNothing = -1000; // no result yet

    // `disguise` changes what the ranks are told of each other.
    Communicators(int ranks, const hetcoll_settings &settings,
                  const std::function<void(std::vector<hetcoll_facts> &)> &disguise = {},
                  bool may_break = false)
        : network_(ranks, true, 1)
    {
        if (may_break) {
            network_.may_break();
        }
        HETCOLL_REQUIRE(cuda().driver->cuCtxSetCurrent(cuda().context));
        std::vector<hetcoll_facts> facts;
        for (int rank = 0; rank < ranks; ++rank) {
            ranks_.emplace_back().process = make_process(settings);
            facts.push_back(ranks_.back().process->facts());
        }
        if (disguise) {
            disguise(facts);
        }
        for (int rank = 0; rank < ranks; ++rank) {
            ranks_[rank].table = network_.rank(rank);
            ranks_[rank].comm = std::make_unique<Communicator>(
                *ranks_[rank].process, ranks_[rank].table, facts[rank], facts);
            ranks_[rank].refusals =
                std::make_unique<Refusals>(*ranks_[rank].comm, ranks_[rank].queue);
        }
    }

    [[nodiscard]] int size() const { return static_cast<int>(ranks_.size()); }
    [[nodiscard]] Communicator &comm(int rank) { return *ranks_[rank].comm; }
    [[nodiscard]] Process &process(int rank) { return *ranks_[rank].process; }
    [[nodiscard]] std::uint64_t counter(int rank, hetcoll_counter which) const
    {
        return ranks_[rank].process->counters().counter(which);
    }
    [[nodiscard]] MemoryNetwork &network() { return network_; }
    // The arguments that the previous module got on that rank, and its answer.
    [[nodiscard]] PreviousModule &previous(int rank) { return ranks_[rank].previous; }

    // A sum on that rank. The numbers live until its end.
    void call(int rank, const void *send, void *recv, std::size_t count,
              int collective = HETCOLL_ALLREDUCE)
    {
        Rank &caller = begin(rank);
        caller.call = {};
        caller.call.send = send;
        caller.call.recv = recv;
        caller.call.collective = collective;
        caller.call.kind = HETCOLL_INT32;
        caller.call.op = HETCOLL_SUM;
        caller.call.count = count;
        caller.call.span = count * sizeof(int);
        caller.call.dense = 1;
        caller.call.tag = kTag;
        caller.call.context = &caller.previous;
        caller.call.previous_allreduce = [](void *context, const void *in, void *out) {
            auto &previous = *static_cast<PreviousModule *>(context);
            ++previous.calls;
            const auto *const input = static_cast<const int *>(in);
            previous.input.assign(input, input + previous.output.size());
            std::copy(previous.output.begin(), previous.output.end(), static_cast<int *>(out));
            return 0;
        };
        caller.operation.emplace(*caller.comm, caller.call);
    }
    void call(int rank, Numbers<int> &vector, std::size_t count, int collective = HETCOLL_ALLREDUCE)
    {
        call(rank, vector.data(), vector.data(), count, collective);
    }
    // That rank has no memory to begin its call of that number. It has no result.
    void refuse(int rank, unsigned number, hetcoll_why_refused why)
    {
        Rank &caller = begin(rank);
        caller.script.clear();
        caller.refusals->add(number, why, kTag);
    }
    // The operation that call() made, to be changed before it is stepped.
    [[nodiscard]] hetcoll_call &made(int rank) { return ranks_[rank].call; }
    // Called before a step of that rank's operation, with true, and after it.
    void around_step(std::function<void(int rank, bool before)> what)
    {
        around_step_ = std::move(what);
    }
    // In its next meetings that rank says these.
    void script(int rank, std::vector<Flags> says) { begin(rank).script = std::move(says); }

    // Once each, in turn.
    void step(const std::vector<int> &ranks)
    {
        for (const int rank : ranks) {
            step_one(rank);
        }
        network_.rank(0).progress(network_.rank(0).context);
        std::this_thread::yield(); // to the device
    }
    // These ranks, until that is true. False: it is not.
    bool step_until(const std::vector<int> &ranks, const std::function<bool()> &is_over)
    {
        for (int turn = 0; turn < 30000 && !is_over(); ++turn) {
            step(ranks);
            if (turn > 1000) { // others have the processors
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
            }
        }
        return is_over();
    }
    // These ranks, until they have come to their call's first meeting, and a while longer.
    bool step_to_meeting(const std::vector<int> &ranks)
    {
        const bool all_there = step_until(ranks, [&] {
            return std::all_of(ranks.begin(), ranks.end(),
                               [this](int rank) { return !said(rank).empty(); });
        });
        for (int turn = 0; turn < 200; ++turn) {
            step(ranks);
        }
        return all_there;
    }
    // All ranks, to the end of their calls and scripts. True if they get there.
    bool run()
    {
        std::vector<int> all;
        for (int rank = 0; rank < size(); ++rank) {
            all.push_back(rank);
        }
        return step_until(all, [this] {
            return std::all_of(ranks_.begin(), ranks_.end(),
                               [](const Rank &rank) { return rank.is_over; });
        });
    }
    [[nodiscard]] bool is_over(int rank) const { return ranks_[rank].is_over; }
    // Requires a call that is over.
    [[nodiscard]] int result(int rank) const
    {
        return is_over(rank) && ranks_[rank].operation ? ranks_[rank].operation->result()
                                                       : kNothing;
    }
    // The flags of a rank in the meetings of its last call, or script, in the page.
    [[nodiscard]] const std::vector<Flags> &said(int rank) const { return ranks_[rank].said; }

    // By a small call, of vectors that stay, so that nothing is freed.
    void find_peers()
    {
        for (int rank = 0; rank < size(); ++rank) {
            ranks_[rank].comm->planner().note_small_device_call();
            call(rank, found_by_.emplace_back(Where::kDevice, std::vector<int>(1)), 1);
        }
        ASSERT_TRUE(run());
        for (int rank = 0; rank < size(); ++rank) {
            ASSERT_EQ(result(rank), HETCOLL_SUCCESS);
            ASSERT_TRUE(comm(rank).planner().peers().known());
        }
        take_log();
    }

private:
    struct Rank {
        std::unique_ptr<Process> process;
        hetcoll_p2p table{};
        std::unique_ptr<Communicator> comm;
        PreviousModule previous;
        hetcoll_call call{};
        std::optional<Operation> operation; // none: a script, or refusals
        OperationQueue queue;
        std::unique_ptr<Refusals> refusals;
        std::vector<Flags> script;
        std::size_t next = 0; // of the script
        bool meets = false;
        Meeting meeting;
        bool is_over = true;
        std::vector<Flags> said;
        std::uint32_t seen = 0; // meetings in the page
    };

    Rank &begin(int rank)
    {
        Rank &caller = ranks_[rank];
        caller.operation.reset();
        caller.is_over = false;
        caller.next = 0;
        caller.said.clear();
        return caller;
    }
    void step_one(int number)
    {
        Rank &rank = ranks_[number];
        if (!rank.is_over) {
            rank.is_over = rank.operation ? step_operation(number)
                                          : rank.refusals->are_over() && step_script(rank);
            listen(rank);
        }
    }
    // As hetcoll_allreduce() does.
    bool step_operation(int number)
    {
        Operation &operation = *ranks_[number].operation;
        bool is_over = true;
        if (around_step_) {
            around_step_(number, true);
        }
        try {
            is_over = operation.step();
        } catch (const std::bad_alloc &) {
            operation.fail_without_memory();
        }
        if (around_step_) {
            around_step_(number, false);
        }
        return is_over;
    }
    bool step_script(Rank &rank)
    {
        if (rank.next == rank.script.size()) {
            return true;
        }
        if (!rank.meets) {
            rank.meets = true;
            rank.meeting.start(rank.comm->group(), rank.comm->messages(), kTag,
                               rank.script[rank.next]);
        }
        if (rank.meeting.step() == Progress::kDone) {
            rank.meets = false;
            ++rank.next;
        }
        return false;
    }
    // A step begins two meetings at most, so what was said in both is still there.
    static void listen(Rank &rank)
    {
        if (!rank.comm->group().page().exists()) {
            return;
        }
        const ControlPage::Slot &slot = rank.comm->group().own_slot();
        for (const std::uint32_t arrived = slot.arrived; rank.seen != arrived;) {
            rank.said.push_back(slot.said[++rank.seen % 2]);
        }
    }

    MemoryNetwork network_;
    std::function<void(int, bool)> around_step_;
    std::deque<Rank> ranks_;
    std::deque<Numbers<int>> found_by_;
};

} // namespace hetcoll::test
