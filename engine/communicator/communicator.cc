#include "engine/communicator/communicator.h"

#include "base/lost.h"
#include "engine/communicator/warnings.h"
#include "plan/parts.h"

#include <new>
#include <utility>

namespace hetcoll {
namespace {

std::vector<ProcessIdentity> processes_of(std::span<const hetcoll_facts> facts)
{
    std::vector<ProcessIdentity> processes;
    for (const hetcoll_facts &fact : facts) {
        processes.push_back({.host = fact.identity.host,
                             .start_time = fact.identity.start_time,
                             .pid = fact.identity.pid,
                             .reserved = 0});
    }
    return processes;
}

std::vector<std::string> host_names_of(const std::vector<int> &ranks,
                                       std::span<const hetcoll_facts> facts)
{
    std::vector<std::string> names;
    names.reserve(ranks.size());
    for (const int rank : ranks) {
        names.emplace_back(facts[rank].identity.host_name);
    }
    return names;
}

static_assert(kMostHostBytes <= ControlPage::kPayloadBytes, "a meeting sums it in one part");
static_assert(HETCOLL_MAX_SMALL_LIMIT <= kMostHostBytes, "a rank keeps as much for meetings");
static_assert(kMostWeightedSteps <= ControlPage::kWords, "weighted shares by mapped memory");
static_assert(kWeightedChannels <= HETCOLL_TAGS, "a channel takes a tag");
static_assert(kMostPricedChannels <= HETCOLL_TAGS, "a channel takes a tag");
static_assert(2 * kMaxTrees <= HETCOLL_TAGS, "a tree has two channels");

} // namespace

Communicator::Communicator(Process &process, const hetcoll_p2p &p2p, const hetcoll_facts &agreed,
                           std::span<const hetcoll_facts> facts)
    : process_(process), requests_(p2p), p2p_(requests_.table()), agreed_(agreed),
      group_(p2p_, processes_of(facts), agreed_.changeable(), &process.shm_budget()),
      freed_(gpus().node_sharing(), gpus().contexts(), group_),
      watch_(process.log(), group_, host_names_of(group_.leader_ranks(), facts),
             process.settings().report_after),
      named_stream_(gpus().contexts())
{
    if (agreed.check == 0) {
        group_.own_call().compare_all();
    }
    if (group_.is_leader() && group_.all().size > 1) {
        open_page_ = process.open_pages().take();
    }
    if (open_page_ != nullptr) {
        group_.leave_page_open();
    }
    say_split_machine(process, group_, facts);
    if (p2p_.rank == 0) {
        tell_differences(process, facts);
    }
}

Communicator::~Communicator()
{
    gpus().cpu_views().drop_gone();
    if (p2p_.broken != nullptr) {
        departure().close_dead(); // Open MPI may have refused every call since
    }
}

Progress Communicator::make_ready(int tag)
{
    const Progress progress = group_.make_pages(tag);
    if (progress == Progress::kDone && group_.all_are_able()) {
        same_calls_.note_ready();
        agreed_.settle(group_);
        say_what_differs(process_, group_, agreed_);
        say_page_problem();
    }
    return progress;
}

void Communicator::say_page_problem() { hetcoll::say_page_problem(process_, group_); }

void Communicator::abandon_messages() noexcept
{
    try {
        auto fresh = std::make_unique<Messages>();
        lose(std::exchange(messages_, std::move(fresh)));
    } catch (const std::bad_alloc &) { // the ranks call no more
    }
    group_.abandon_page();
}

} // namespace hetcoll
