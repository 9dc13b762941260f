#include "engine/meeting/node_group.h"

#include "base/lost.h"
#include "engine/meeting/flags.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace hetcoll {

NodeGroup::NodeGroup(const hetcoll_p2p &p2p, std::span<const ProcessIdentity> processes,
                     std::uint64_t settings, ShmBudget *budget)
    : all_(p2p), processes_(processes.begin(), processes.end()), node_of_(processes.size()),
      local_(all_, find_local(p2p, processes)), leaders_(all_, find_leaders(processes)),
      budget_(budget), payloads_(local_.ranks().size()), settings_(settings)
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

bool NodeGroup::is_affordable(std::size_t bytes, ShmBudget::Loan &loan) noexcept
{
    short_ = budget_ != nullptr && !budget_->take(ShmBudget::part(bytes, local_size()), loan);
    return !short_;
}

void NodeGroup::offer_rooms() noexcept
{
    if (local_size() == 1 || page_.rooms().data() != nullptr) {
        return;
    }
    rooms_loan_ = {}; // of a meeting in which the ranks called differently
    const bool pays = is_affordable(ControlPage::room_bytes(local_size()), rooms_loan_);
    own_slot().rooms.reserved = pays ? 0 : 1; // the leader says so
    if (!pays || !is_leader()) {
        return;
    }
    try {
        make_rooms();
    } catch (const std::bad_alloc &) {
        problem_ = Status::out_of_memory();
    }
}

void NodeGroup::make_rooms()
{
    auto made = SharedPage::create(processes_[all_.rank], ControlPage::room_bytes(local_size()));
    if (!made.ok()) {
        problem_ = made.take_status();
        return;
    }
    own_slot().rooms = made->ticket();
    page_.rooms() = std::move(*made);
}

Flags NodeGroup::attach_rooms() noexcept
{
    if (local_size() == 1) {
        return {};
    }
    const SharedPageTicket &ticket = slot(0).rooms;
    if (ticket.bytes == 0) {
        return kNoPage; // the leader says why
    }
    if (is_leader()) {
        return {};
    }
    if (short_) {
        return kNoPage;
    }
    try {
        auto attached = SharedPage::attach(ticket);
        if (attached.ok()) {
            page_.rooms() = std::move(*attached);
            return {};
        }
        problem_ = attached.take_status();
    } catch (const std::bad_alloc &) {
        problem_ = Status::out_of_memory();
    }
    return kNoPage;
}

void NodeGroup::settle_rooms(Flags all) noexcept
{
    rooms_ = any(all, kNoPage) ? Rooms::kNone : Rooms::kMade;
    for (int rank = 0; is_leader() && local_size() > 1 && rank < local_size(); ++rank) {
        says_short_ = says_short_ || slot(rank).rooms.reserved != 0;
    }
    if (rooms_ == Rooms::kMade) {
        page_.rooms().seal();
    } else {
        page_.rooms() = {};
        rooms_loan_ = {};
    }
}

Progress NodeGroup::make_pages(int tag)
{
    if (part_ == Part::kStart) {
        if (all_.size == 1) {
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
            if (most_ > 1) {
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
        if (most_ > 1) {
            if (!leaves_page_open_) {
                page_.memory().seal();
            }
            uses_pages_ = !any(making_->exchange.flags(), kNoPage);
        }
        if (!uses_pages_ && local_size() > 1) {
            page_ = {};
            page_loan_ = {};
        }
        if (uses_pages_ && local_size() > 1 && compared_ == kAllCompared) {
            tells_ = true;
            own_ = &own_slot();
            before_ = &slot(local_before());
            behind_ = &slot(local_behind());
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
    auto made = SharedPage::create(processes_[all_.rank], ControlPage::bytes(1));
    if (made.ok()) {
        page_ = ControlPage(std::move(*made));
        sign_slot();
    }
}

void NodeGroup::start_ticket(int tag)
{
    std::memset(making_->mine, 0, sizeof making_->mine);
    const bool pays =
        local_size() > 1 && is_affordable(ControlPage::bytes(local_size()), page_loan_);
    const SharedPageTicket says{.owner = {}, .bytes = 0, .nonce = 0, .fd = 0, .reserved = short_};
    std::memcpy(making_->mine, &says, sizeof says);
    if (pays && is_leader()) {
        auto made = SharedPage::create(processes_[all_.rank], ControlPage::bytes(local_size()));
        if (made.ok()) {
            std::memcpy(making_->mine, &made->ticket(), sizeof(SharedPageTicket));
            page_ = ControlPage(std::move(*made));
        } else {
            problem_ = made.take_status();
        }
    }
    part_ = Part::kTicket;
    making_->exchange.start(local_.table(), tag, making_->mine, making_->theirs, sizeof(Ticket),
                            sizeof(Ticket), host_reduce(ReduceOp::kBor, ElementKind::kByte),
                            flags_if(short_ || !problem_.ok(), kNoPage));
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
    making_->exchange.start(all_, tag, making_->mine, making_->theirs, sizeof settings,
                            sizeof settings, host_reduce(ReduceOp::kBor, ElementKind::kByte),
                            flags_if(short_ || !problem_.ok(), kNoPage));
}

void NodeGroup::attach()
{
    Ticket ticket;
    std::memcpy(&ticket, making_->mine, sizeof ticket);
    says_short_ = is_leader() && ticket.page.reserved != 0;
    if (is_leader() || any(making_->exchange.flags(), kNoPage)) {
        return; // the leader has said why
    }
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

namespace {

// Entries are read while their rank may write them.
std::optional<CallSignature> read(const ControlPage::Slot::HandedOn &entry)
{
    CallSignature call;
    call.rest = entry.rest.load(std::memory_order_seq_cst);
    call.what = entry.what.load(std::memory_order_acquire);
    return call.rest != 0 && entry.rest.load(std::memory_order_relaxed) == call.rest
               ? std::optional(call)
               : std::nullopt;
}

} // namespace

std::optional<CallSignature> NodeGroup::handed_on(int local_rank,
                                                  std::uint32_t number) const noexcept
{
    const auto call = read(slot(local_rank).handed_on[number % ControlPage::kHandedOn]);
    return call && call->number() == number ? call : std::nullopt;
}

std::optional<CallSignature> NodeGroup::last_handed_on(int local_rank) const noexcept
{
    std::optional<CallSignature> last;
    for (const ControlPage::Slot::HandedOn &entry : slot(local_rank).handed_on) {
        const auto call = read(entry);
        if (call && (!last || is_later(call->number(), last->number()))) {
            last = call;
        }
    }
    return last;
}

NodeGroup::Place NodeGroup::place_of(int local_rank, const CallSignature &own) const noexcept
{
    const ControlPage::Slot &rank = slot(local_rank);
    Place place{false, std::nullopt};
    const auto look = [&](const CallSignature &call) {
        if (call.number() == 0) {
            return; // not counted
        }
        place.has_come = place.has_come || !is_later(own.number(), call.number());
        if (call.number() == own.number() && call != own) {
            place.call = call;
        }
    };
    for (const ControlPage::Slot::HandedOn &entry : rank.handed_on) {
        if (const auto call = read(entry)) {
            look(*call);
        }
    }
    if (rank.arrived.load(std::memory_order_acquire) == meetings_ + 1) {
        look(rank.call[(meetings_ + 1) % 2]); // it waits for this rank
    }
    return place;
}

std::optional<NodeGroup::Begun> NodeGroup::begun_instead(const CallSignature &call) const noexcept
{
    if (!tells_) {
        return std::nullopt;
    }
    for (const int local : {local_before(), local_behind()}) {
        auto other = handed_on(local, call.number());
        const ControlPage::Slot &slot = page_.slot(local);
        if (!other && slot.arrived.load(std::memory_order_acquire) == meetings_ + 1) {
            const CallSignature &met = slot.call[(meetings_ + 1) % 2]; // it waits for this rank
            other = met.number() == call.number() ? std::optional(met) : std::nullopt;
        }
        if (other && *other != call) {
            return Begun{local_ranks()[local], *other};
        }
    }
    return std::nullopt;
}

void NodeGroup::announce(const SharedBuffer &input, const SharedBuffer &output) noexcept
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
    for (int word = 0; word < used_words_; ++word) {
        own.progress[word].store(0, std::memory_order_relaxed);
    }
    used_words_ = 0;
}

void NodeGroup::abandon_page() noexcept
{
    if (page_.exists()) {
        touches_no_peers();
        tells_ = false;
        lose(std::unique_ptr<ControlPage>(new (std::nothrow) ControlPage(std::move(page_))));
    }
}

} // namespace hetcoll
