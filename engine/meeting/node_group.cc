#include "engine/meeting/node_group.h"

#include "base/lost.h"
#include "engine/meeting/flags.h"

#include <algorithm>
#include <cstring>

namespace hetcoll {

NodeGroup::NodeGroup(const hetcoll_p2p &p2p, std::span<const ProcessIdentity> processes,
                     std::uint64_t settings)
    : all_(p2p), processes_(processes.begin(), processes.end()), node_of_(processes.size()),
      local_(all_, find_local(p2p, processes)), leaders_(all_, find_leaders(processes)),
      payloads_(local_.ranks().size()), settings_(settings)
{
    std::vector<int> ranks_on(leaders_.ranks().size());
    for (std::size_t rank = 0; rank < processes.size(); ++rank) {
        const auto same_host = [&](int leader) {
            return processes[leader].host == processes[rank].host;
        };
        const auto &leaders = leaders_.ranks();
        const auto node = std::find_if(leaders.begin(), leaders.end(), same_host);
        node_of_[rank] = static_cast<int>(node - leaders.begin());
        ++ranks_on[node_of_[rank]];
    }
    most_ = *std::max_element(ranks_on.begin(), ranks_on.end());
    least_ = *std::min_element(ranks_on.begin(), ranks_on.end());
}

std::vector<int> NodeGroup::find_local(const hetcoll_p2p &p2p,
                                       std::span<const ProcessIdentity> processes)
{
    std::vector<int> local;
    for (int rank = 0; rank < p2p.size; ++rank) {
        if (processes[rank].host == processes[p2p.rank].host) {
            local.push_back(rank);
        }
    }
    return local;
}

std::vector<int> NodeGroup::find_leaders(std::span<const ProcessIdentity> processes)
{
    std::vector<int> leaders;
    for (std::size_t rank = 0; rank < processes.size(); ++rank) {
        const auto same_host = [&](int leader) {
            return processes[leader].host == processes[rank].host;
        };
        if (std::none_of(leaders.begin(), leaders.end(), same_host)) {
            leaders.push_back(static_cast<int>(rank));
        }
    }
    return leaders;
}

int NodeGroup::local_number(int rank) const noexcept
{
    const auto &ranks = local_ranks();
    return static_cast<int>(std::lower_bound(ranks.begin(), ranks.end(), rank) - ranks.begin());
}

std::span<const void *const> NodeGroup::payloads(unsigned turn) noexcept
{
    for (std::size_t rank = 0; rank < payloads_.size(); ++rank) {
        payloads_[rank] = slot(static_cast<int>(rank)).payload[turn];
    }
    return payloads_;
}

Progress NodeGroup::make_pages(int tag)
{
    if (part_ == Part::kStart) {
        if (all_.size == 1) {
            part_ = Part::kDone;
            return Progress::kDone;
        }
        make_page_for_onlookers();
        if (most_ == 1) {
            start_agreement(tag);
        } else {
            start_ticket(tag);
        }
    }
    while (part_ != Part::kDone) {
        const Progress progress = exchange_.step();
        if (progress != Progress::kDone) {
            return progress;
        }
        if (part_ == Part::kTicket) {
            attach();
            sign_slot();
            start_agreement(tag);
            continue;
        }
        Settings settings;
        std::memcpy(&settings, mine_, sizeof settings);
        settings_differ_ = (settings.set & settings.unset) != 0;
        settings_ = settings.set;
        if (most_ > 1) {
            if (!leaves_page_open_) {
                page_.memory().seal();
            }
            uses_pages_ = !any(exchange_.flags(), kNoPage);
        }
        if (!uses_pages_ && local_size() > 1) {
            page_ = {};
        }
        part_ = Part::kDone;
    }
    return Progress::kDone;
}

// A rank alone on its node shares its slot with nobody but hetcoll_info --live, so doing without it
// is no problem.
void NodeGroup::make_page_for_onlookers()
{
    if (local_size() > 1 || !leaves_page_open_) {
        return;
    }
    auto made = SharedPage::create(processes_[all_.rank], ControlPage::bytes(1));
    if (made.ok()) {
        page_ = ControlPage(std::move(*made));
        sign_slot();
    }
}

void NodeGroup::start_ticket(int tag)
{
    std::memset(mine_, 0, sizeof mine_);
    if (is_leader() && local_size() > 1) {
        auto made = SharedPage::create(processes_[all_.rank], ControlPage::bytes(local_size()));
        if (made.ok()) {
            std::memcpy(mine_, &made->ticket(), sizeof(SharedPageTicket));
            page_ = ControlPage(std::move(*made));
        } else {
            problem_ = made.take_status();
        }
    }
    part_ = Part::kTicket;
    exchange_.start(local_.table(), tag, mine_, theirs_, sizeof(Ticket), sizeof(Ticket),
                    host_reduce(ReduceOp::kBor, ElementKind::kByte),
                    flags_if(!problem_.ok(), kNoPage));
}

void NodeGroup::start_agreement(int tag)
{
    const Settings settings{settings_, ~settings_};
    std::memcpy(mine_, &settings, sizeof settings);
    part_ = Part::kAgree;
    exchange_.start(all_, tag, mine_, theirs_, sizeof settings, sizeof settings,
                    host_reduce(ReduceOp::kBor, ElementKind::kByte),
                    flags_if(!problem_.ok(), kNoPage));
}

void NodeGroup::attach()
{
    if (is_leader() || any(exchange_.flags(), kNoPage)) {
        return; // the leader has said why
    }
    Ticket ticket;
    std::memcpy(&ticket, mine_, sizeof ticket);
    auto attached = SharedPage::attach(ticket.page);
    if (attached.ok()) {
        page_ = ControlPage(std::move(*attached));
    } else {
        problem_ = attached.take_status();
    }
}

void NodeGroup::sign_slot() noexcept
{
    if (page_.exists()) {
        own_slot().who = {.layout = ControlPage::kLayout,
                          .process = processes_[all_.rank],
                          .rank = all_.rank,
                          .ranks = all_.size,
                          .node_ranks = local_size(),
                          .comm_id = all_.comm_id};
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

void NodeGroup::announce(const SharedBuffer &input, const SharedBuffer &output) const noexcept
{
    ControlPage::Slot &own = own_slot();
    // What stays as it was stays in the caches of the ranks that read it.
    const auto tell = [](SharedBuffer &told, const SharedBuffer &buffer) {
        if (std::memcmp(&told, &buffer, sizeof told) != 0) {
            told = buffer;
        }
    };
    tell(own.input, input);
    tell(own.output, output);
    for (auto &word : own.progress) {
        word.store(0, std::memory_order_relaxed);
    }
}

void NodeGroup::abandon_page() noexcept
{
    if (page_.exists()) {
        touches_no_peers();
        lose(std::unique_ptr<ControlPage>(new (std::nothrow) ControlPage(std::move(page_))));
    }
}

} // namespace hetcoll
