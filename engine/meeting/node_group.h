// The ranks of a communicator, node by node, and the control page that those of one node share.
#pragma once

#include "engine/meeting/control_page.h"
#include "engine/meeting/exchange.h"
#include "engine/meeting/roll_call.h"
#include "engine/meeting/subgroup.h"
#include "transport/node_identity.h"
#include "transport/shm_budget.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace hetcoll {

class NodeGroup {
public:
    // processes[r] is rank r's. The table outlives the group. `settings` are those that a program
    // can change while it runs; all ranks should have the same. `budget` is this process's, which
    // outlives the group; null: there is none.
    NodeGroup(const hetcoll_p2p &p2p, std::span<const ProcessIdentity> processes,
              std::uint64_t settings, ShmBudget *budget = nullptr);

    [[nodiscard]] int nodes() const noexcept { return static_cast<int>(leaders_.ranks().size()); }
    [[nodiscard]] std::span<const int> node_of() const noexcept { return node_of_; }
    [[nodiscard]] int node_of(int rank) const noexcept { return node_of_[rank]; }
    // The ranks of this rank's node, ascending; the first is its leader.
    [[nodiscard]] const std::vector<int> &local_ranks() const noexcept { return local_.ranks(); }
    [[nodiscard]] int local_size() const noexcept { return local_.table().size; }
    [[nodiscard]] int local_rank() const noexcept { return local_.table().rank; }
    // The number of one of local_ranks() among them.
    [[nodiscard]] int local_number(int rank) const noexcept;
    // The ranks beside this one on its node, all in a ring.
    [[nodiscard]] int local_before() const noexcept
    {
        return (local_rank() + local_size() - 1) % local_size();
    }
    [[nodiscard]] int local_behind() const noexcept { return (local_rank() + 1) % local_size(); }
    [[nodiscard]] bool is_leader() const noexcept { return local_rank() == 0; }
    [[nodiscard]] int most_ranks_on_a_node() const noexcept { return most_; }
    [[nodiscard]] int least_ranks_on_a_node() const noexcept { return least_; }
    [[nodiscard]] const ProcessIdentity &process(int rank) const noexcept
    {
        return processes_[rank];
    }
    [[nodiscard]] std::span<const ProcessIdentity> processes() const noexcept { return processes_; }
    [[nodiscard]] const hetcoll_p2p &all() const noexcept { return all_; }
    [[nodiscard]] const hetcoll_p2p &local() const noexcept { return local_.table(); }
    // The nodes' leaders among themselves. Requires is_leader().
    [[nodiscard]] const hetcoll_p2p &leaders() const noexcept { return leaders_.table(); }
    [[nodiscard]] const std::vector<int> &leader_ranks() const noexcept { return leaders_.ranks(); }

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
        return part_ == Part::kTicket ? &local_.ranks() : nullptr;
    }
    // The leader's descriptor of the page stays open as long as the page, for hetcoll_info --live.
    // A rank alone on its node makes a page then, too, which no other rank sees.
    void leave_page_open() noexcept { leaves_page_open_ = true; }
    // Why this rank could not have a page or rooms, if that is why there are none.
    [[nodiscard]] bool has_problem() const noexcept { return !problem_.ok(); }
    [[nodiscard]] Status take_problem() noexcept { return std::exchange(problem_, {}); }
    // The reason is the budget of a rank of this node, and this one is to say so: true once.
    [[nodiscard]] bool take_shortage() noexcept { return std::exchange(says_short_, false); }

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
        return bytes <= ControlPage::kSlotPayloadBytes || rooms_ == Rooms::kMade;
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

    // Where it has none the ranks make rooms, once: before they come to a meeting, when all have
    // come, and when all know whether some rank has said what that returned.
    [[nodiscard]] bool may_make_rooms() const noexcept { return rooms_ == Rooms::kUntried; }
    void offer_rooms() noexcept;
    [[nodiscard]] Flags attach_rooms() noexcept;
    void settle_rooms(Flags all) noexcept;

    // What this rank calls now: on every rank the same, or a mistake of the program's.
    void begin_call(const CallSignature &call) noexcept
    {
        ++calls_;
        call_ = call;
    }
    // It cannot.
    void refuse_call(hetcoll_why_refused why) noexcept { call_ = refused(call_, why); }
    // Others hear of that. Messages bring it only where they have a place for calls: without one
    // they are as long as the call's vector, which this rank does not know.
    [[nodiscard]] bool hears_refusals() const noexcept
    {
        return compared_ == kAllCompared || (nodes() == 1 && uses_pages());
    }
    [[nodiscard]] const CallSignature &call() const noexcept { return call_; }
    [[nodiscard]] std::uint32_t calls() const noexcept { return calls_; }
    // A call goes on to Open MPI: the ranks of this node see it from now on. False if one of the
    // two beside this one may have begun another call in its place. Of two ranks that hand on
    // different calls one sees the other, and of a node's ranks two that are neighbours differ, if
    // any do.
    [[nodiscard]] [[gnu::always_inline]] bool hand_on(CallSignature call) noexcept
    {
        if (!tells_) {
            return false;
        }
        const std::size_t place = call.number() % ControlPage::kHandedOn;
        ControlPage::Slot::HandedOn &entry = own_->handed_on[place];
        const ControlPage::Slot *const before = before_;
        entry.rest.store(0, std::memory_order_relaxed);
        entry.what.store(call.what, std::memory_order_release);
        entry.rest.store(call.rest, std::memory_order_seq_cst);
        return !may_differ(*before, place, call) &&
               (before == behind_ || !may_differ(*behind_, place, call));
    }
    // What a rank of this node has handed on as its call of this number, and as its last one;
    // nothing: that is not known.
    [[nodiscard]] std::optional<CallSignature> handed_on(int local_rank,
                                                         std::uint32_t number) const noexcept;
    [[nodiscard]] std::optional<CallSignature> last_handed_on(int local_rank) const noexcept;
    // A rank beside this one has begun another call in place of this one, which this rank has
    // handed on. Of a program that calls rightly nothing, ever. Nothing, too, where nobody looks.
    struct Begun {
        int rank; // in the communicator
        CallSignature call;
    };
    // Where a rank of this node is, as seen from a call that this rank has handed on and is in.
    struct Place {
        bool has_come;                     // to the call, or to a later one
        std::optional<CallSignature> call; // another one that it has begun in its place
    };
    [[nodiscard]] Place place_of(int local_rank, const CallSignature &own) const noexcept;
    // Whether some rank sees which calls this one hands on.
    [[nodiscard]] bool tells() const noexcept { return tells_; }
    void tell_no_more() noexcept { tells_ = false; }
    [[nodiscard]] std::optional<Begun> begun_instead(const CallSignature &call) const noexcept;

    // What ranks that meet compare of their calls: from the next meeting on, and on all of them.
    void compare_calls() noexcept { compared_ = kAllCompared; }
    [[nodiscard]] Differences compared() const noexcept { return compared_; }
    [[nodiscard]] Differences differences(const CallSignature &a,
                                          const CallSignature &b) const noexcept
    {
        return differences_of(a, b) & compared_;
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
    [[nodiscard]] bool is_affordable(std::size_t bytes, ShmBudget::Loan &loan) noexcept;
    enum class Part : std::uint8_t { kStart, kRollCall, kTicket, kAgree, kDone };
    enum class Rooms : std::uint8_t { kUntried, kMade, kNone };
    struct Ticket { // one exchange on the node: the leader's, of all others whether they are short
        SharedPageTicket page;
    };
    using Settings = RollCall::Settings;
    static_assert(sizeof(Settings) <= sizeof(Ticket));

    // It waits in a meeting for this rank, or has handed on a call of this number that differs. One
    // that has handed on the same is looked at no further, so most calls end there.
    [[nodiscard]] bool may_differ(const ControlPage::Slot &slot, std::size_t place,
                                  CallSignature call) const noexcept
    {
        const ControlPage::Slot::HandedOn &entry = slot.handed_on[place];
        const std::uint64_t rest = entry.rest.load(std::memory_order_seq_cst);
        if (rest == call.rest) [[likely]] {
            return entry.what.load(std::memory_order_acquire) != call.what;
        }
        return CallSignature{0, rest}.number() == call.number() ||
               slot.arrived.load(std::memory_order_acquire) == meetings_ + 1;
    }
    static std::vector<int> find_local(const hetcoll_p2p &p2p,
                                       std::span<const ProcessIdentity> processes);
    static std::vector<int> find_leaders(std::span<const ProcessIdentity> processes);
    void make_page_for_onlookers();
    void start_ticket(int tag);
    void attach();
    void make_rooms();
    void sign_slot() noexcept;
    void start_agreement(int tag, Part part);
    void learn_settings() noexcept;

    hetcoll_p2p all_;
    std::vector<ProcessIdentity> processes_;
    std::vector<int> node_of_;
    int most_ = 1, least_ = 1;
    Subgroup local_, leaders_;
    ShmBudget *budget_;
    ShmBudget::Loan page_loan_, rooms_loan_;
    ControlPage page_;
    Rooms rooms_ = Rooms::kUntried;
    bool short_ = false, says_short_ = false;
    std::vector<const void *> payloads_; // room for payloads()
    // Where a rank tells what it hands on, and whom it looks at then. Null until it tells.
    ControlPage::Slot *own_ = nullptr;
    const ControlPage::Slot *before_ = nullptr, *behind_ = nullptr;
    bool tells_ = false;
    bool all_are_able_ = false, uses_pages_ = false, leaves_page_open_ = false;
    std::uint64_t settings_ = 0;
    bool settings_differ_ = false;
    std::uint32_t meetings_ = 0, calls_ = 0;
    CallSignature call_;
    Differences compared_ = kAlwaysCompared;
    int used_words_ = 0; // of this rank's progress: all behind them are zero

    Part part_ = Part::kStart;
    struct Making { // of the pages
        Exchange exchange;
        alignas(64) std::byte mine[sizeof(Ticket) + Exchange::kFlagBytes];
        alignas(64) std::byte theirs[sizeof(Ticket) + Exchange::kFlagBytes];
    };
    std::unique_ptr<Making> making_ = std::make_unique<Making>(); // null: it is over
    Status problem_;
};

} // namespace hetcoll
