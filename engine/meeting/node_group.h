// The ranks of a communicator, node by node, and the control page that those of one node share.
#pragma once

#include "engine/meeting/control_page.h"
#include "engine/meeting/exchange.h"
#include "engine/meeting/handed_on.h"
#include "engine/meeting/node_ranks.h"
#include "engine/meeting/own_call.h"
#include "engine/meeting/page_problem.h"
#include "engine/meeting/roll_call.h"
#include "engine/meeting/rooms.h"
#include "transport/node_identity.h"
#include "transport/shm_budget.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace hetcoll {

class NodeGroup : public NodeRanks {
public:
    // processes[r] is rank r's. The table outlives the group. `settings` are those that a program
    // can change while it runs; all ranks should have the same. `budget` is this process's, which
    // outlives the group; null: there is none.
    NodeGroup(const hetcoll_p2p &p2p, std::span<const ProcessIdentity> processes,
              std::uint64_t settings, ShmBudget *budget = nullptr);
    NodeGroup(const NodeGroup &) = delete;
    NodeGroup &operator=(const NodeGroup &) = delete;

    // Makes the control pages, together with all other ranks: call it until it returns something
    // else than kPending. If some rank is not able to begin (RollCall) that is over without pages,
    // and may be tried again. Afterwards either every node with several ranks has its page, or
    // none, and all ranks know whether their settings differ.
    [[nodiscard]] Progress make_pages(int tag);
    [[nodiscard]] bool all_are_able() const noexcept { return all_are_able_; }
    [[nodiscard]] int code() const noexcept { return making_->exchange.code(); } // requires kFailed
    // While that lasts: what it waits for, and whose numbers these are; null: the communicator's.
    [[nodiscard]] const Exchange &exchange() const noexcept { return making_->exchange; }
    [[nodiscard]] const std::vector<int> *exchange_ranks() const noexcept
    {
        return part_ == Part::kTicket ? &local_ranks() : nullptr;
    }
    // The leader's descriptor of the page stays open as long as the page, for hetcoll_info --live.
    // A rank alone on its node makes a page then, too, which no other rank sees.
    void leave_page_open() noexcept { leaves_page_open_ = true; }
    // Why this rank could not have a page or rooms, if that is why there are none.
    [[nodiscard]] PageProblem &problem() noexcept { return problem_; }

    [[nodiscard]] bool settings_differ() const noexcept { return settings_differ_; }
    // The bits that some rank has set in them.
    [[nodiscard]] std::uint64_t settings_of_some() const noexcept { return settings_; }

    // The page of this rank's node. On a node with one rank that is for hetcoll_info --live alone.
    [[nodiscard]] ControlPage &page() noexcept { return page_; }
    // Whether calls go by the pages. The same on every rank.
    [[nodiscard]] bool uses_pages() const noexcept { return uses_pages_; }
    [[nodiscard]] ControlPage::Slot &slot(int local_rank) const noexcept
    {
        return page_.slot(local_rank);
    }
    [[nodiscard]] ControlPage::Slot &own_slot() const noexcept { return slot(local_rank()); }
    // Whether the pages have room for a vector of `bytes`. The same on every rank.
    [[nodiscard]] bool has_room(std::size_t bytes) const noexcept
    {
        return bytes <= ControlPage::kSlotPayloadBytes || rooms_.exist();
    }
    // Where a rank of this node puts its part of such a vector, and the sum. Require that calls go
    // by pages, that other ranks are on this node, and has_room().
    [[nodiscard]] std::byte *payload(int local_rank, unsigned turn,
                                     std::size_t bytes) const noexcept
    {
        return bytes <= ControlPage::kSlotPayloadBytes ? slot(local_rank).payload[turn]
                                                       : page_.room(local_rank).payload[turn];
    }
    [[nodiscard]] std::byte *sum(int local_rank, unsigned turn, std::size_t bytes) const noexcept
    {
        return bytes <= ControlPage::kSlotPayloadBytes ? slot(local_rank).sum[turn]
                                                       : page_.room(local_rank).sum[turn];
    }
    // The parts of all ranks of this node.
    [[nodiscard]] std::span<const void *const> payloads(unsigned turn, std::size_t bytes) noexcept;

    // Where the page has none the ranks make them.
    [[nodiscard]] Rooms &rooms() noexcept { return rooms_; }

    [[nodiscard]] OwnCall &own_call() noexcept { return own_call_; }
    [[nodiscard]] HandedOn &handed_on() noexcept { return handed_on_; }
    // Others hear that this rank cannot make its call. Messages bring it only where they have a
    // place for calls: without one they are as long as the call's vector, which this rank does not
    // know.
    [[nodiscard]] bool hears_refusals() const noexcept
    {
        return own_call_.compares_all() || (nodes() == 1 && uses_pages());
    }

    [[nodiscard]] std::uint32_t next_meeting() noexcept { return ++meetings_; }
    [[nodiscard]] std::uint32_t meetings() const noexcept { return meetings_; }
    // This rank does not come to that meeting after all. Requires that some rank of the node has
    // not come.
    void withdraw() noexcept { own_slot().arrived.store(--meetings_, std::memory_order_release); }

    // Where this rank's buffers of the running call are, for the ranks of its node: they may read
    // that, and its progress, after the next meeting and until the one after it.
    void announce(const SharedBuffer &input, const SharedBuffer &output) noexcept;
    // This rank's counters for the schedule that it is about to run: the first `words` ones, all
    // zero. The next announce() clears them; it leaves those alone that nobody has asked for.
    [[nodiscard]] std::atomic<std::uint64_t> *take_progress(int words) noexcept
    {
        used_words_ = std::max(used_words_, words);
        return own_slot().progress;
    }

    // Where ranks may die, a rank whose call fails must know that no GPU of a live peer works on
    // its memory any more. Before a rank's GPU touches peers' memory: false if a rank of the node
    // has left, so that this one must leave, too. Then touches_no_peers(), if it does not leave.
    [[nodiscard]] bool may_touch_peers() const noexcept;
    void touches_no_peers() const noexcept;
    // This rank's GPU has stopped. True once the GPUs of the node's live ranks have.
    [[nodiscard]] bool leave() const noexcept;

    // Leaks the page on purpose: a message may still arrive in it. This rank's GPU has stopped.
    void abandon_page() noexcept;

private:
    enum class Part : std::uint8_t { kStart, kRollCall, kTicket, kAgree, kDone };
    struct Ticket { // one exchange on the node: the leader's, of all others whether they are short
        SharedPageTicket page;
    };
    using Settings = RollCall::Settings;
    static_assert(sizeof(Settings) <= sizeof(Ticket));

    void make_page_for_onlookers();
    void start_ticket(int tag);
    void attach();
    void sign_slot() noexcept;
    void start_agreement(int tag, Part part);
    void learn_settings() noexcept;

    PageProblem problem_;
    ShmBudget::Loan page_loan_;
    ControlPage page_;
    Rooms rooms_{*this, page_, problem_};
    std::vector<const void *> payloads_; // room for payloads()
    bool all_are_able_ = false, uses_pages_ = false, leaves_page_open_ = false;
    std::uint64_t settings_;
    bool settings_differ_ = false;
    std::uint32_t meetings_ = 0;
    OwnCall own_call_;
    HandedOn handed_on_{*this, page_, meetings_};
    int used_words_ = 0; // of this rank's progress: all behind them are zero

    Part part_ = Part::kStart;
    struct Making { // of the pages
        Exchange exchange;
        alignas(64) std::byte mine[sizeof(Ticket) + Exchange::kFlagBytes];
        alignas(64) std::byte theirs[sizeof(Ticket) + Exchange::kFlagBytes];
    };
    std::unique_ptr<Making> making_ = std::make_unique<Making>(); // null: it is over
};

} // namespace hetcoll
