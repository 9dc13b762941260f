#include "engine/meeting/node_group.h"

#include "base/lost.h"
#include "engine/meeting/flags.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace hetcoll {

NodeGroup::NodeGroup(const hetcoll_p2p &p2p, std::span<const ProcessIdentity> processes,
                     std::uint64_t settings, ShmBudget *budget)
    : NodeRanks(p2p, processes), problem_(budget), payloads_(local_ranks().size()),
      settings_(settings)
{
}

std::span<const void *const> NodeGroup::payloads(unsigned turn, std::size_t bytes) noexcept
{
    const std::byte *next = payload(0, turn, bytes);
    const std::size_t step = bytes <= ControlPage::kSlotPayloadBytes ? sizeof(ControlPage::Slot)
                                                                     : sizeof(ControlPage::Room);
    for (const void *&its : payloads_) {
        its = next;
        next += step;
    }
    return payloads_;
}

Progress NodeGroup::make_pages(int tag)
{
    if (part_ == Part::kStart) {
        if (all().size == 1) {
            part_ = Part::kDone;
            all_are_able_ = true;
            return Progress::kDone;
        }
        make_page_for_onlookers();
        start_agreement(tag, Part::kRollCall);
    }
    while (part_ != Part::kDone) {
        const Progress progress = making_->exchange.step();
        if (progress != Progress::kDone) {
            return progress;
        }
        if (part_ == Part::kRollCall) {
            all_are_able_ = !any(making_->exchange.flags(), kFailed);
            if (!all_are_able_) {
                part_ = Part::kStart;
                return Progress::kDone;
            }
            if (most_ranks_on_a_node() > 1) {
                start_ticket(tag);
                continue;
            }
        }
        if (part_ == Part::kTicket) {
            attach();
            sign_slot();
            start_agreement(tag, Part::kAgree);
            continue;
        }
        learn_settings();
        if (most_ranks_on_a_node() > 1) {
            if (!leaves_page_open_) {
                page_.memory().seal();
            }
            uses_pages_ = !any(making_->exchange.flags(), kNoPage);
        }
        if (!uses_pages_ && local_size() > 1) {
            page_ = {};
            page_loan_ = {};
        }
        if (uses_pages_ && local_size() > 1 && own_call().compares_all()) {
            handed_on_.start_telling();
        }
        part_ = Part::kDone;
    }
    making_.reset();
    return Progress::kDone;
}

// A rank alone on its node shares its slot with nobody but hetcoll_info --live, so doing without it
// is no problem.
void NodeGroup::make_page_for_onlookers()
{
    if (local_size() > 1 || !leaves_page_open_) {
        return;
    }
    auto made = SharedPage::create(process(all().rank), ControlPage::bytes(1));
    if (made.ok()) {
        page_ = ControlPage(std::move(*made));
        sign_slot();
    }
}

void NodeGroup::start_ticket(int tag)
{
    std::memset(making_->mine, 0, sizeof making_->mine);
    const bool pays = local_size() > 1 && problem_.can_afford(ControlPage::bytes(local_size()),
                                                              local_size(), page_loan_);
    const SharedPageTicket says{
        .owner = {}, .bytes = 0, .nonce = 0, .fd = 0, .reserved = problem_.is_short()};
    std::memcpy(making_->mine, &says, sizeof says);
    if (pays && is_leader()) {
        auto made = SharedPage::create(process(all().rank), ControlPage::bytes(local_size()));
        if (made.ok()) {
            std::memcpy(making_->mine, &made->ticket(), sizeof(SharedPageTicket));
            page_ = ControlPage(std::move(*made));
        } else {
            problem_.note(made.take_status());
        }
    }
    part_ = Part::kTicket;
    making_->exchange.start(local(), tag, making_->mine, making_->theirs, sizeof(Ticket),
                            sizeof(Ticket), host_reduce(ReduceOp::kBor, ElementKind::kByte),
                            flags_if(problem_.exists(), kNoPage));
}

void NodeGroup::learn_settings() noexcept
{
    Settings settings;
    std::memcpy(&settings, making_->mine, sizeof settings);
    settings_differ_ = (settings.set & settings.unset) != 0;
    settings_ = settings.set;
}

// The roll call is one too.
void NodeGroup::start_agreement(int tag, Part part)
{
    const Settings settings{settings_, ~settings_};
    std::memcpy(making_->mine, &settings, sizeof settings);
    part_ = part;
    making_->exchange.start(all(), tag, making_->mine, making_->theirs, sizeof settings,
                            sizeof settings, host_reduce(ReduceOp::kBor, ElementKind::kByte),
                            flags_if(problem_.exists(), kNoPage));
}

void NodeGroup::attach()
{
    Ticket ticket;
    std::memcpy(&ticket, making_->mine, sizeof ticket);
    problem_.note_shortage(is_leader() && ticket.page.reserved != 0);
    if (is_leader() || any(making_->exchange.flags(), kNoPage)) {
        return; // the leader has said why
    }
    auto attached = SharedPage::attach(ticket.page);
    if (attached.ok()) {
        page_ = ControlPage(std::move(*attached));
    } else {
        problem_.note(attached.take_status());
    }
}

void NodeGroup::sign_slot() noexcept
{
    if (page_.exists()) {
        own_slot().who = {.layout = ControlPage::kLayout,
                          .process = process(all().rank),
                          .rank = all().rank,
                          .ranks = all().size,
                          .node_ranks = local_size(),
                          .comm_id = all().comm_id};
    }
}

// Who touches peers says so, then looks whether one of them has left; who leaves says so, then
// looks who touches peers. So of two ranks one sees the other.
bool NodeGroup::may_touch_peers() const noexcept
{
    if (!page_.exists()) {
        return true; // nobody could leave here, nor has anybody
    }
    own_slot().works.store(1, std::memory_order_seq_cst);
    for (int rank = 0; rank < local_size(); ++rank) {
        if (slot(rank).left.load(std::memory_order_seq_cst) != 0) {
            return false;
        }
    }
    return true;
}

void NodeGroup::touches_no_peers() const noexcept
{
    if (page_.exists()) {
        own_slot().works.store(0, std::memory_order_release);
    }
}

bool NodeGroup::leave() const noexcept
{
    if (!uses_pages_ || local_size() == 1) {
        return true;
    }
    own_slot().works.store(0, std::memory_order_seq_cst);
    own_slot().left.store(1, std::memory_order_seq_cst);
    for (int rank = 0; rank < local_size(); ++rank) {
        if (slot(rank).works.load(std::memory_order_seq_cst) != 0 &&
            is_alive(process_state(process(local_ranks()[rank])))) {
            return false;
        }
    }
    return true;
}

void NodeGroup::announce(const SharedBuffer &input, const SharedBuffer &output) noexcept
{
    ControlPage::Slot &own = own_slot();
    // Unchanged lines stay in the caches of the ranks that read them.
    const auto tell = [](SharedBuffer &told, const SharedBuffer &buffer) {
        if (std::memcmp(&told, &buffer, sizeof told) != 0) {
            told = buffer;
        }
    };
    tell(own.input, input);
    tell(own.output, output);
    for (int word = 0; word < used_words_; ++word) {
        own.progress[word].store(0, std::memory_order_relaxed);
    }
    used_words_ = 0;
}

void NodeGroup::abandon_page() noexcept
{
    if (page_.exists()) {
        touches_no_peers();
        handed_on_.tell_no_more();
        lose(std::unique_ptr<ControlPage>(new (std::nothrow) ControlPage(std::move(page_))));
    }
}

} // namespace hetcoll
