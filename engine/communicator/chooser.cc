#include "engine/communicator/chooser.h"

#include "base/counted.h"
#include "base/float_control.h"
#include "engine/communicator/mapped_call.h"
#include "machine/assumed.h"
#include "plan/candidates.h"
#include "plan/facts.h"
#include "schedule/weighted.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace hetcoll {
namespace {

constexpr std::size_t kLeastTunedChunk = 64u << 10, kMostTunedChunk = 16u << 20;

bool order_matters(const hetcoll_call &call) noexcept
{
    return depends_on_order(static_cast<ReduceOp>(call.op), static_cast<ElementKind>(call.kind));
}

} // namespace

bool Chooser::keeps_order(const hetcoll_call &call) const noexcept
{
    return agreed_.reproducible != 0 &&
           (call.user_op != 0 || (call.kind >= 0 && order_matters(call)));
}

bool Chooser::forces_small_kernel() const noexcept
{
    return agreed_.algorithm != 0 && contains(without(kSmallAlgorithms, algorithms_of(Form::kHost)),
                                              static_cast<Algorithm>(agreed_.algorithm - 1));
}

// 8-bit floats are not added two at a time, as several nodes do in a small call.
std::size_t Chooser::small_limit(const hetcoll_call &call) const noexcept
{
    return call.user_op == 1 && !meets_in_order() ? 0 : agreed_.small_limit;
}

// The algorithms that can run this call.
AlgorithmSet Chooser::available(const hetcoll_call &call, std::size_t bytes, Means means,
                                bool in_order, int late)
{
    const std::size_t limit = small_limit(call);
    AlgorithmSet set =
        knows_links(means) ? peers_.found().ranks.query.available : kMessageAlgorithms;
    if (means.aggregators && aggregation_.joined()) {
        set |= algorithms_of(Form::kServers);
    }
    const AlgorithmSet can_run = set;
    const bool priced = (knows_links(means) || means.mixed) && !peers_.found().lacks_memory;
    set = at_size(set, bytes, limit, priced);
    if (agreed_.algorithm != 0 && bytes > limit) { // forced, it serves at any size
        set |= can_run & bit(static_cast<Algorithm>(agreed_.algorithm - 1));
    }
    if ((in_order || call.user_op == 1) && !meets_in_order()) {
        set = without(set, algorithms_of(Form::kHost));
    }
    if (knows_links(means) && bytes > limit) {
        find_shares();
        const bool unequal = !shares_->shares.empty() || late != kNoRank;
        set = unequal ? set | algorithms_that_need(Needs::kShares) : set;
    }
    const bool forced =
        agreed_.algorithm != 0 && contains(set, static_cast<Algorithm>(agreed_.algorithm - 1));
    if (is_float8(static_cast<ElementKind>(call.kind)) && call.op == HETCOLL_SUM && !forced &&
        (set & kAtOnceAlgorithms) != 0) {
        set &= kAtOnceAlgorithms; // any other would sum floats, of four times the size
    }
    return set;
}

Query Chooser::query(const hetcoll_call &call, std::size_t bytes, bool in_order) const
{
    Query query{
        .bytes = bytes,
        .element_bytes = element_bytes(static_cast<ElementKind>(call.kind)),
        .op = op_class(static_cast<ReduceOp>(call.op)),
        .ranks = group_.all().size,
        .nodes = group_.nodes(),
        .ranks_per_node_min = group_.least_ranks_on_a_node(),
        .ranks_per_node_max = group_.most_ranks_on_a_node(),
        .ranks_per_gpu = peers_.found().ranks.query.ranks_per_gpu,
        .aggregators = aggregation_.count(),
        .slices = aggregation_.slices(),
        .reproducible = in_order,
        .chunk_bytes = agreed_.chunk_bytes,
        .links = peers_.found().ranks.query.links,
    };
    if (agreed_.algorithm != 0) {
        const auto forced = static_cast<Algorithm>(agreed_.algorithm - 1);
        const bool small = bytes <= small_limit(call);
        if (small ? contains(kSmallAlgorithms, forced) : !is(forced, Form::kHost)) {
            query.forced = forced;
        }
    }
    return query;
}

Choice Chooser::choose(const hetcoll_call &call, std::size_t bytes, Means means)
{
    // Earlier findings are not the same on all ranks: some may have called what others have
    // not, and failed together.
    if (std::exchange(peers_version_, peers_.version()) != peers_.version()) {
        forget();
    }
    const bool in_order = agreed_.reproducible != 0 && order_matters(call);
    const int late = bytes <= small_limit(call) ? kNoRank : late_rank(means);
    const AlgorithmSet set = available(call, bytes, means, in_order, late);
    if (memos_.empty() && !waits(bytes, means)) {
        memos_.resize(kMemos);
    }
    const std::size_t place = (bytes ^ bytes >> 5 ^ static_cast<std::size_t>(call.kind)) % kMemos;
    Memo none;
    Memo &memo = memos_.empty() ? none : memos_[place];
    if (memo.bytes == bytes && memo.kind == call.kind && memo.op == call.op &&
        memo.mapped == means.mapped && memo.adapters == means.adapters &&
        memo.mixed == means.mixed && memo.available == set) {
        return memo.choice;
    }
    const DefaultFloats control; // all ranks find the same prices
    Query asked = query(call, bytes, in_order);
    asked.available = set;
    asked.memory = means.mixed ? CallMemory::kMixed : CallMemory::kDevice;
    Choice chosen = choose_by_price(asked, means, late);
    if (chosen.forced_unavailable && knows_links(means)) {
        say_unavailable(*asked.forced, chosen.algorithm, in_order);
    }
    const bool maps = means.mapped && peers_.found().maps;
    static_cast<Way &>(chosen) = restricted(chosen, maps, means.adapters);
    chosen.late = needs(chosen.algorithm, Needs::kShares) ? late : kNoRank;
    memo = {bytes, call.kind, call.op, means.mapped, means.adapters, means.mixed, set, chosen};
    return chosen;
}

Choice Chooser::choose_by_price(const Query &query, Means means, int late)
{
    const KnownPeers &found = peers_.found();
    const Table *table = found.table ? &*found.table : nullptr;
    if (waits(query.bytes, means) || found.lacks_memory) {
        return hetcoll::choose(query, table);
    }
    CallPrices::Means by{.late = late};
    by.mapped = means.mapped && found.prices != nullptr;
    by.told = by.mapped ? found.prices.get() : nullptr;
    by.late_us = late == kNoRank ? 0 : arrivals_.late_us();
    if ((query.available & algorithms_that_need(Needs::kShares)) != 0) {
        by.shares = shares_without_late(late);
    }
    return prices_.choose(query, table, by);
}

// That of the ranks' GPUs if all know it, else one as any.
PricedMachine Chooser::machine() const
{
    const KnownPeers &found = peers_.found();
    if (found.machine != nullptr) {
        return *found.machine;
    }
    std::vector<int> node_of;
    for (int rank = 0; rank < group_.all().size; ++rank) {
        node_of.push_back(group_.node_of(rank));
    }
    return assumed_machine(node_of);
}

void Chooser::say_unavailable(Algorithm forced, Algorithm taken, bool in_order)
{
    if (std::exchange(unavailable_reported_, true) || group_.all().rank != 0) {
        return;
    }
    log(process_.log(), 0,
        "hetcoll: coll_hetcoll_algorithm %s cannot run on a communicator of %s on %s with these "
        "GPUs%s, so %s is taken",
        algorithm_name(forced), counted(group_.all().size, "rank").c_str(),
        counted(group_.nodes(), "node").c_str(),
        in_order ? " in a sum that coll_hetcoll_reproducible asks for" : "", algorithm_name(taken));
}

std::optional<Algorithm> Chooser::choose_kernel(const hetcoll_call &call, std::size_t bytes)
{
    constexpr double kMostTimes = 1.5; // of which a third has to overlap before it pays
    const Algorithm chosen = choose(call, bytes, {.mapped = true}).algorithm;
    if (row_of(chosen).is_one_kernel()) {
        return chosen;
    }
    const KnownPeers &found = peers_.found();
    if (agreed_.algorithm != 0 || !peers_.known() || found.lacks_memory ||
        needs(chosen, Needs::kShares)) {
        return std::nullopt;
    }
    const DefaultFloats control;
    std::optional<Algorithm> best;
    double best_us = kMostTimes * prices_.us_alone(chosen, bytes, true);
    for (const Algorithm kernel : kWriteAllResults) {
        if (!contains(found.ranks.query.available, kernel)) {
            continue;
        }
        const double us = prices_.us_alone(kernel, bytes, true);
        if (us > 0 && us <= best_us) {
            best = kernel;
            best_us = us;
        }
    }
    return best;
}

Choice Chooser::choose_for_collective(std::size_t bytes) const noexcept
{
    const Query query{
        .bytes = bytes, .ranks = group_.all().size, .chunk_bytes = agreed_.chunk_bytes};
    const std::size_t chunk =
        agreed_.chunk_bytes != 0 ? agreed_.chunk_bytes : first_chunk(kByMessages, query);
    return {{.algorithm = kByMessages, .chunk_bytes = chunk}};
}

bool Chooser::uses_mapping(const Choice &choice) const noexcept
{
    const AlgorithmRow &row = row_of(choice.algorithm);
    return row.is_one_kernel() ||
           (row.is_schedule() && !row.has(Trait::kWholeVectors) && peers_.found().maps);
}

ChunkTuner *Chooser::tuner(const Choice &choice, std::size_t bytes)
{
    if (agreed_.adapt_chunk == 0 || agreed_.reproducible != 0 || agreed_.chunk_bytes != 0 ||
        choice.source == ChoiceSource::kTable || row_of(choice.algorithm).is_one_kernel() ||
        is(choice.algorithm, Form::kHost)) {
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

void Chooser::forget() noexcept
{
    prices_.forget();
    shares_.reset();
    std::fill(memos_.begin(), memos_.end(), Memo());
}

// By what all ranks have set alike and know of their links, so that all find the same.
void Chooser::find_shares()
{
    if (shares_) {
        return;
    }
    const DefaultFloats control;
    const bool forced = agreed_.algorithm != 0 &&
                        needs(static_cast<Algorithm>(agreed_.algorithm - 1), Needs::kShares);
    const bool off = agreed_.shares_differs != 0 || agreed_.reproducible != 0;
    const Links &links = peers_.found().ranks.query.links;
    shares_ = rank_shares(off ? ShareSetting() : process_.shares(), group_.all().size,
                          peers_.found().ranks.rates,
                          links.gpu_gbps > 0 ? links.gpu_gbps : links.host_gbps, forced);
    if (group_.all().rank == 0 && shares_->shares.empty()) {
        say_no_shares();
    }
}

void Chooser::say_no_shares()
{
    const bool in_order = agreed_.reproducible != 0;
    const bool asked =
        agreed_.shares != 0 || agreed_.shares_differs != 0 || (in_order && agreed_.skew != 0);
    if (!asked || !process_.notices().first_time(Notice::kWithoutShares)) {
        return;
    }
    if (in_order) {
        log(process_.node_log(), 0,
            "hetcoll: coll_hetcoll_shares and coll_hetcoll_skew do nothing while "
            "coll_hetcoll_reproducible has the ranks add in their order: unset one or the other");
        return;
    }
    const bool differ = agreed_.shares_differs != 0;
    const bool given = process_.shares().kind == ShareSetting::Kind::kGiven;
    log(process_.log(), given || differ ? 0 : 1,
        "hetcoll: coll_hetcoll_shares is not used on a communicator of %s: %s",
        counted(group_.all().size, "rank").c_str(),
        differ ? "ranks have set it to different values; set the same on every rank"
               : shares_->why_none);
}

Arrivals *Chooser::arrivals() noexcept
{
    const int size = group_.all().size;
    const bool measures =
        agreed_.skew != 0 && agreed_.reproducible == 0 && size > 1 && size <= Arrivals::kMostRanks;
    return measures ? &arrivals_ : nullptr;
}

void Chooser::take_arrivals(std::span<const std::uint64_t> of_all)
{
    if (arrivals_.take(of_all)) {
        std::fill(memos_.begin(), memos_.end(), Memo());
    }
    process_.counters().set(HETCOLL_ARRIVAL_WAIT, arrivals_.average_wait_ns());
    process_.counters().set(HETCOLL_LATE_RANK, static_cast<std::uint64_t>(arrivals_.late() + 1));
}

// Whom the others do not wait for: on one node, where they see in its page that all but one have
// come, and by mapped memory, which binds nobody. A pull adds up to kMaxArgumentInputs vectors, and
// no more ranks have been tried.
int Chooser::late_rank(Means means) const noexcept
{
    const bool can_begin = knows_links(means) && group_.nodes() == 1 && group_.uses_pages() &&
                           group_.all().size <= kMaxArgumentInputs &&
                           contains(peers_.found().ranks.query.available, kNeedsMostMapping);
    return can_begin ? arrivals_.late() : kNoRank;
}

std::vector<int> Chooser::shares_without_late(int late) const
{
    const std::vector<int> equal(static_cast<std::size_t>(group_.all().size), 1);
    const std::vector<int> &shares = shares_->shares.empty() ? equal : shares_->shares;
    return late == kNoRank ? shares : shares_without(shares, late);
}

} // namespace hetcoll
