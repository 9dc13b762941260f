#include "engine/engine.h"

#include "engine/flags.h"
#include "tuning/model.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

namespace hetcoll {
namespace {

constexpr std::size_t kLeastTunedChunk = 64u << 10, kMostTunedChunk = 16u << 20;

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

static_assert(kMostWeightedSteps <= ControlPage::kWords, "weighted shares by mapped memory");
static_assert(kWeightedChannels <= HETCOLL_TAGS, "a channel takes a tag");

// Only these can differ: all else is combined from what all processes published.
std::uint64_t settings_of(const hetcoll_facts &agreed)
{
    return std::uint64_t{agreed.algorithm} << 32 | agreed.chunk_bytes;
}

} // namespace

Engine::Engine(Process &process, const hetcoll_p2p &p2p, const hetcoll_facts &agreed,
               std::span<const hetcoll_facts> facts)
    : process_(process), p2p_(p2p), agreed_(agreed),
      group_(p2p_, processes_of(facts), settings_of(agreed)),
      peers_(process, group_, agreed.ipc != 0, agreed.tables_differ == 0),
      mapped_(process, group_, peers_), aggregation_(process, group_, agreed.aggregators != 0)
{
    agreed_.fixed_point = agreed_.fixed_point_differs != 0 ? 0 : agreed_.fixed_point;
    process_.add_small_calls(host_calls_);
    executor_.limit_slots(agreed.slot_bytes);
    say_split_machine(facts);
}

// Ranks in different containers on one machine: they could share GPU memory, and do not.
void Engine::say_split_machine(std::span<const hetcoll_facts> facts)
{
    if (p2p_.rank != 0 || process_.has_node_word()) {
        return;
    }
    for (const hetcoll_facts &other : facts) {
        if (other.identity.machine == facts[0].identity.machine &&
            other.identity.host != facts[0].identity.host && process_.first_time_split_machine()) {
            log(process_.log(), 0,
                "hetcoll: ranks on one machine are in different containers or namespaces, so data "
                "between their GPUs goes through messages, which is slower: start the containers "
                "with the host's PID and IPC namespaces and /dev/shm (--pid=host --ipc=host), or "
                "set coll_hetcoll_node to a word of its own for each to keep it so");
            return;
        }
    }
}

Engine::~Engine() { process_.remove_small_calls(host_calls_); }

Progress Engine::make_ready(int tag)
{
    const Progress progress = group_.make_pages(tag);
    if (progress == Progress::kDone) {
        ready_ = true;
        if (group_.settings_differ()) {
            agreed_.algorithm = agreed_.chunk_bytes = 0;
            if (p2p_.rank == 0) {
                log(process_.log(), 0,
                    "hetcoll: the ranks of a communicator set coll_hetcoll_algorithm or "
                    "coll_hetcoll_chunk_bytes to different values while the program ran, so "
                    "hetcoll chooses there: set the same on every rank before its first "
                    "MPI_Allreduce");
            }
        }
        if (agreed_.tables_differ != 0 && p2p_.rank == 0 && process_.first_time_tables_differ()) {
            log(process_.node_log(), 0,
                "hetcoll ignores its tuning table and chooses algorithms by its model: the ranks "
                "of this communicator have not all read the same one; put the same file where "
                "coll_hetcoll_tuning_table points on every node, or set it to none "
                "(coll_hetcoll_verbose 1 says what a rank could not read)");
        }
        if (agreed_.aggregators_differ != 0 && p2p_.rank == 0 &&
            process_.first_time_aggregators_differ()) {
            log(process_.log(), 0,
                "hetcoll uses no aggregators: the ranks of this communicator have different "
                "coll_hetcoll_aggregators, _window or _copy, or some could not read the key; set "
                "the same on every rank");
        }
        if (agreed_.fixed_point_differs != 0 && p2p_.rank == 0 &&
            process_.first_time_fixed_point_differs()) {
            log(process_.log(), 0,
                "hetcoll adds floats as usual: the ranks of this communicator have different "
                "coll_hetcoll_fixed_point; set the same on every rank");
        }
        if (const Status problem = group_.take_problem(); !problem.ok()) {
            log(process_.log(), process_.first_time_without_page() ? 0 : 1,
                "hetcoll: ranks of a node do without shared memory and exchange messages instead: "
                "%s",
                problem.message().c_str());
        }
    }
    return progress;
}

std::optional<int> Engine::try_host(const hetcoll_call &call) noexcept
{
    if (call.kind < 0 || call.user_op != 0 || call.span > agreed_.small_limit || p2p_.size == 1 ||
        !ready_ || uses_fixed_point(call) || should_find_peers() ||
        (keeps_order(call) && !meets_in_order())) {
        return std::nullopt;
    }
    PointerCache &pointers = process_.pointers();
    if (!pointers.is_surely_host(call.recv) ||
        (call.send != call.recv && !pointers.is_surely_host(call.send))) {
        return std::nullopt;
    }
    if (peers_.known() && choice(call, call.span, true).algorithm != Algorithm::kHost) {
        return std::nullopt; // the ranks meet first
    }
    const std::uint64_t start_ns = process_.times_small() ? now_ns() : 0;
    host_calls_.store(host_calls_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    std::byte *const mine = Meeting::payload(group_, messages_->mine);
    std::memcpy(mine, call.send, call.span);
    meeting_.start(group_, *messages_, mine, call.tag, call.span, call.count,
                   host_reduce(static_cast<ReduceOp>(call.op), static_cast<ElementKind>(call.kind)),
                   kHostMemory);
    Progress progress;
    while ((progress = meeting_.step()) == Progress::kPending) {
        p2p_.progress(p2p_.context);
    }
    if (start_ns != 0) {
        observe_host(call, start_ns);
    }
    if (progress == Progress::kFailed) {
        process_.count(HETCOLL_CALLS_FAILED);
        abandon_messages();
        return meeting_.code();
    }
    if ((meeting_.flags() & kFailed) != 0) {
        forget_peers();
        process_.count(HETCOLL_CALLS_FAILED);
        log(process_.log(), 0,
            "hetcoll: MPI_Allreduce failed, the receive buffer is undefined: a "
            "driver call failed on another rank, which says more");
        return HETCOLL_ERROR_DEVICE;
    }
    std::memcpy(call.recv, meeting_.sum(), call.span);
    return HETCOLL_SUCCESS;
}

void Engine::observe_host(const hetcoll_call &call, std::uint64_t start_ns) noexcept
{
    CallRecord record;
    record.comm_id = p2p_.comm_id;
    record.rank = p2p_.rank;
    record.comm_size = p2p_.size;
    record.bytes = call.span;
    record.kind = call.kind;
    record.op = call.op;
    record.memory = static_cast<Flags>(meeting_.flags() | kHostMemory);
    record.served = HETCOLL_CALLS_SMALL;
    record.start_ns = start_ns;
    record.ns = now_ns() - start_ns;
    record.failed = (meeting_.flags() & kFailed) != 0;
    process_.observe(record);
}

void Engine::abandon_messages() noexcept
{
    if (auto *fresh = new (std::nothrow) Messages) {
        static_cast<void>(messages_.release());
        messages_.reset(fresh);
    }
    group_.abandon_page();
}

void Engine::pin_page(Device &device)
{
    if (pinned_by_ == &device || !group_.page().exists()) {
        return;
    }
    pinned_by_ = &device;
    pin_ = {};
    const std::size_t bytes = group_.page().memory().bytes();
    if (!process_.may_hold(bytes)) {
        log(process_.log(), 1,
            "hetcoll: small calls go by pageable memory: pinning %zu bytes would "
            "be more than coll_hetcoll_max_memory %zu allows",
            bytes, process_.settings().max_memory);
        return;
    }
    auto pinned = device.register_host(group_.page().memory().data(), bytes);
    if (pinned.ok()) {
        pin_ = std::move(*pinned);
    } else {
        log(process_.log(), 1, "hetcoll: small calls go by pageable memory: %s",
            pinned.status().message().c_str());
    }
}

bool Engine::keeps_order(const hetcoll_call &call) const noexcept
{
    return agreed_.reproducible != 0 &&
           (call.user_op != 0 ||
            (call.kind >= 0 && depends_on_order(static_cast<ReduceOp>(call.op),
                                                static_cast<ElementKind>(call.kind))));
}

bool Engine::uses_fixed_point(const hetcoll_call &call) const noexcept
{
    return agreed_.fixed_point != 0 && call.collective == HETCOLL_ALLREDUCE && call.user_op == 0 &&
           call.op == HETCOLL_SUM && (call.kind == HETCOLL_FLOAT32 || call.kind == HETCOLL_FLOAT64);
}

bool Engine::forces_small_kernel() const noexcept
{
    return agreed_.algorithm != 0 && contains(without(kSmallAlgorithms, Algorithm::kHost),
                                              static_cast<Algorithm>(agreed_.algorithm - 1));
}

Choice Engine::choice(const hetcoll_call &call, std::size_t bytes, bool mapped, bool in_network)
{
    const bool small = bytes <= agreed_.small_limit;
    const bool in_order =
        agreed_.reproducible != 0 &&
        depends_on_order(static_cast<ReduceOp>(call.op), static_cast<ElementKind>(call.kind));
    AlgorithmSet available = mapped && peers_.known() ? peers_.available() : kMessageAlgorithms;
    if (in_network && aggregation_.joined()) {
        available |= bit(Algorithm::kInNetwork);
    }
    available = small ? (available & kSmallAlgorithms) | bit(Algorithm::kHost) : available;
    if (in_order && !meets_in_order()) {
        available = without(available, Algorithm::kHost);
    }
    const int late = small ? kNoRank : late_rank(mapped);
    if (mapped && peers_.known() && !small) {
        find_shares();
        available = shares_->shares.empty() && late == kNoRank
                        ? available
                        : available | bit(Algorithm::kWeighted);
    }
    Memo &memo = memos_[(bytes ^ bytes >> 5 ^ static_cast<std::size_t>(call.kind)) % memos_.size()];
    if (memo.bytes == bytes && memo.kind == call.kind && memo.op == call.op &&
        memo.available == available) {
        return memo.choice;
    }
    Query query{
        .bytes = bytes,
        .element_bytes = element_bytes(static_cast<ElementKind>(call.kind)),
        .op = op_class(static_cast<ReduceOp>(call.op)),
        .ranks = p2p_.size,
        .nodes = group_.nodes(),
        .ranks_per_node_min = group_.least_ranks_on_a_node(),
        .ranks_per_node_max = group_.most_ranks_on_a_node(),
        .ranks_per_gpu = peers_.ranks_per_gpu(),
        .aggregators = aggregation_.count(),
        .slices = aggregation_.slices(),
        .available = available,
        .reproducible = in_order,
        .chunk_bytes = agreed_.chunk_bytes,
        .links = peers_.links(),
    };
    query.links.weighted_gbps = shares_ ? shares_->vector_gbps() : 0;
    query.late_us = late == kNoRank ? 0 : arrivals_.late_us();
    if (agreed_.algorithm != 0) {
        const auto forced = static_cast<Algorithm>(agreed_.algorithm - 1);
        if (small ? contains(kSmallAlgorithms, forced) : forced != Algorithm::kHost) {
            query.forced = forced;
        }
    }
    Choice chosen = choose(query, peers_.known() ? peers_.table() : nullptr);
    if (chosen.forced_unavailable && peers_.known() && mapped &&
        !std::exchange(unavailable_reported_, true) && p2p_.rank == 0) {
        log(process_.log(), 0,
            "hetcoll: coll_hetcoll_algorithm %s cannot run on a communicator of %d ranks on %d "
            "node%s with these GPUs%s, so %s is taken",
            algorithm_name(*query.forced), p2p_.size, group_.nodes(),
            group_.nodes() == 1 ? "" : "s",
            in_order ? " in a sum that coll_hetcoll_reproducible asks for" : "",
            algorithm_name(chosen.algorithm));
    }
    chosen.node_by_node = chosen.node_by_node && mapped && peers_.maps();
    chosen.over_trees = chosen.over_trees && mapped && peers_.maps();
    chosen.late = chosen.algorithm == Algorithm::kWeighted ? late : kNoRank;
    memo = {bytes, call.kind, call.op, available, chosen};
    return chosen;
}

ChunkTuner *Engine::tuner(const Choice &choice, std::size_t bytes)
{
    if (agreed_.adapt_chunk == 0 || agreed_.reproducible != 0 || agreed_.chunk_bytes != 0 ||
        choice.source == ChoiceSource::kTable || is_one_kernel(choice.algorithm) ||
        choice.algorithm == Algorithm::kHost) {
        return nullptr;
    }
    const int size_class = std::bit_width(bytes);
    for (Tuned &known : tuned_) {
        if (known.algorithm == choice.algorithm && known.size_class == size_class) {
            return &known.tuner;
        }
    }
    tuned_.push_back({choice.algorithm, size_class,
                      ChunkTuner(choice.chunk_bytes, kLeastTunedChunk, kMostTunedChunk)});
    return &tuned_.back().tuner;
}

bool Engine::uses_mapping(const Choice &choice) const noexcept
{
    switch (choice.algorithm) {
    case Algorithm::kOneShot:
    case Algorithm::kTwoShot:
    case Algorithm::kLeader:
    case Algorithm::kCopyIn: return true;
    case Algorithm::kTree:
    case Algorithm::kRing:
    case Algorithm::kRabenseifner:
    case Algorithm::kOrdered:
    case Algorithm::kWeighted:
    case Algorithm::kHierarchical: return peers_.known() && peers_.maps();
    // Whole vectors are exchanged: each rank would overwrite what the other one reads.
    case Algorithm::kRecursiveDoubling:
    case Algorithm::kInNetwork:
    case Algorithm::kHost: return false;
    }
    return false;
}

void Engine::forget_peers() noexcept
{
    peers_.forget();
    shares_.reset();
    schedules_.clear();
    memos_ = {};
}

// By what all ranks have set alike and know of their links, so that all find the same.
void Engine::find_shares()
{
    if (shares_) {
        return;
    }
    const bool forced = agreed_.algorithm == 1 + static_cast<std::uint32_t>(Algorithm::kWeighted);
    const ShareSetting off, &setting = process_.shares();
    const bool differ = agreed_.shares == HETCOLL_SHARES_DIFFER;
    const bool in_order = agreed_.reproducible != 0;
    const Links &links = peers_.links();
    shares_ = rank_shares(differ || in_order ? off : setting, p2p_.size, peers_.rates(),
                          links.gpu_gbps > 0 ? links.gpu_gbps : links.host_gbps, forced);
    const bool lost_skew = in_order && agreed_.skew != 0;
    if (p2p_.rank != 0 || (agreed_.shares == 0 && !lost_skew) || !shares_->shares.empty() ||
        !process_.first_time_without_shares()) {
        return;
    }
    if (in_order) {
        log(process_.node_log(), 0,
            "hetcoll: coll_hetcoll_shares and coll_hetcoll_skew do nothing while "
            "coll_hetcoll_reproducible has the ranks add in their order: unset one or the other");
        return;
    }
    const bool given = setting.kind == ShareSetting::Kind::kGiven;
    log(process_.log(), given || differ ? 0 : 1,
        "hetcoll: coll_hetcoll_shares is not used on a communicator of %d ranks: %s", p2p_.size,
        differ ? "ranks have set it to different values; set the same on every rank"
               : shares_->why_none);
}

Arrivals *Engine::arrivals() noexcept
{
    const bool measures = agreed_.skew != 0 && agreed_.reproducible == 0 && p2p_.size > 1 &&
                          p2p_.size <= Arrivals::kMostRanks;
    return measures ? &arrivals_ : nullptr;
}

void Engine::take_arrivals(std::span<const std::uint64_t> of_all)
{
    if (arrivals_.take(of_all)) {
        memos_ = {};
    }
    process_.set(HETCOLL_ARRIVAL_WAIT, arrivals_.average_wait_ns());
    process_.set(HETCOLL_LATE_RANK, static_cast<std::uint64_t>(arrivals_.late() + 1));
}

// Whom the others do not wait for: on one node, where they see in its page that all but one have
// come, and by mapped memory, which binds nobody.
int Engine::late_rank(bool mapped) const noexcept
{
    const bool can_begin = mapped && peers_.known() && group_.nodes() == 1 && group_.uses_pages() &&
                           contains(peers_.available(), Algorithm::kTwoShot);
    return can_begin ? arrivals_.late() : kNoRank;
}

std::vector<int> Engine::shares_for(int late) const
{
    const std::vector<int> equal(static_cast<std::size_t>(p2p_.size), 1);
    const std::vector<int> &shares = shares_->shares.empty() ? equal : shares_->shares;
    return late == kNoRank ? shares : shares_without(shares, late);
}

} // namespace hetcoll
