#include "engine/peers.h"

#include "tuning/rank_shares.h"
#include "tuning/topology_links.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

namespace hetcoll {
namespace {

constexpr Flags kProblem = 1;     // this rank's record or offer could not be made
constexpr Flags kUnreachable = 2; // some pair of ranks of a node cannot share memory

constexpr int kMostLocalRanks = 64; // bits of ControlPage::Slot::reach
static_assert(2 * kMaxTrees <= HETCOLL_TAGS, "a tree has two channels");

} // namespace

Peers::Peers(Process &process, NodeGroup &group, bool ipc, bool tables)
    : process_(process), group_(group), ipc_(ipc), tables_(tables)
{
}

Peers::~Peers() = default;

bool Peers::share_node() const noexcept
{
    return ipc_ && group_.uses_pages() && group_.most_ranks_on_a_node() <= kMostLocalRanks;
}

void Peers::start(const PointerInfo &pointer, DeviceBounce &bounce, Messages &messages, int tag)
{
    messages_ = &messages;
    tag_ = tag;
    device_ = bounce.device();
    auto record = process_.probe(pointer);
    RankRecord own{};
    if (record.ok()) {
        own = *record;
        auto file = process_.topology_file();
        if (!file.ok()) {
            problem_ = file.take_status();
        } else if (*file != nullptr) {
            own.file_hash = topology_hash(**file);
            own.file_gpu = pointer.device;
        }
    } else {
        problem_ = record.take_status();
    }
    const std::size_t bytes = static_cast<std::size_t>(group_.all().size) * sizeof own;
    mine_.assign(bytes + Exchange::kFlagBytes, std::byte{});
    theirs_.resize(mine_.size());
    std::memcpy(mine_.data() + group_.all().rank * sizeof own, &own, sizeof own);
    part_ = Part::kRecords;
    exchange_.start(group_.all(), tag, mine_.data(), theirs_.data(), bytes, bytes,
                    host_reduce(ReduceOp::kBor, ElementKind::kByte), problem_.ok() ? 0 : kProblem);
}

Progress Peers::step()
{
    while (part_ != Part::kDone) {
        if (part_ != Part::kRecords) {
            if (FdChannel *channel = process_.sharing().channel.get()) {
                channel->step(); // peers may be waiting for an answer
            }
        }
        switch (part_) {
        case Part::kRecords: {
            const Progress progress = exchange_.step();
            if (progress != Progress::kDone) {
                code_ = exchange_.code();
                return progress;
            }
            merge();
            break;
        }
        case Part::kOffer: {
            Result<bool> filled = target_ != nullptr ? target_->step() : Result<bool>(true);
            if (filled.ok() && !*filled) {
                return Progress::kPending;
            }
            if (!filled.ok()) {
                why_not_ = filled.take_status();
                target_.reset();
            }
            if (group_.local_size() > 1) {
                group_.own_slot().offer = target_ != nullptr ? target_->offer() : ReachOffer{};
            }
            begin_meeting(Part::kOffered, 0);
            break;
        }
        case Part::kOffered:
        case Part::kProbed: {
            const Progress progress = meeting_.step();
            if (progress != Progress::kDone) {
                code_ = meeting_.code();
                return progress;
            }
            if (part_ == Part::kOffered) {
                part_ = Part::kProbe;
            } else {
                conclude(meeting_.flags());
            }
            break;
        }
        case Part::kProbe:
            if (!probe()) {
                return Progress::kPending;
            }
            break;
        case Part::kStart:
        case Part::kDone: break;
        }
    }
    return Progress::kDone;
}

// All records are here. Errors are the same on every rank, but for the one that had the problem.
void Peers::merge()
{
    const bool problem = (exchange_.flags() & kProblem) != 0;
    if (!problem) {
        std::vector<RankRecord> records(static_cast<std::size_t>(group_.all().size));
        std::memcpy(records.data(), mine_.data(), records.size() * sizeof(RankRecord));
        const auto file = process_.topology_file();
        auto placement = merge_records(records, file.ok() ? *file : nullptr);
        if (placement.ok()) {
            placement_ = std::move(*placement);
        } else {
            problem_ = placement.take_status();
        }
    }
    mine_ = theirs_ = {};
    if (!problem_.ok()) {
        log(problem ? process_.log() : process_.node_log(), 0,
            "hetcoll: does without the links between the GPUs, so messages go through host memory: "
            "%s",
            problem_.message().c_str());
    }
    if (!placement_) {
        device_.reset();
        part_ = Part::kDone;
    } else if (share_node()) {
        start_offer();
    } else {
        conclude(kUnreachable);
    }
}

void Peers::start_offer()
{
    part_ = Part::kOffer;
    if (group_.local_size() == 1) {
        return;
    }
    Sharing &sharing = process_.sharing();
    auto target = ReachTarget::create(device_, *sharing.exporter);
    auto probe = ReachProbe::create(device_, *sharing.memory);
    if (target.ok() && probe.ok()) {
        target_ = std::move(*target);
        probe_ = std::move(*probe);
    } else {
        why_not_ = target.ok() ? probe.take_status() : target.take_status();
    }
}

void Peers::begin_meeting(Part part, Flags flags)
{
    part_ = part;
    meeting_.start(group_, *messages_, tag_, flags);
}

// Tries the other ranks of the node, one after the other. True when the trials are over.
bool Peers::probe()
{
    while (probe_ != nullptr && probed_ < group_.local_size()) {
        if (probed_ >= 0 && probed_ != group_.local_rank()) {
            const Reach reach = probe_->step();
            if (reach == Reach::kPending) {
                return false;
            }
            if (reach == Reach::kYes) {
                reached_ |= std::uint64_t{1} << probed_;
            } else if (why_not_.ok()) {
                why_not_ = error(Errc::kUnsupported, "rank %d: %s", group_.local_ranks()[probed_],
                                 probe_->why().message().c_str());
            }
        }
        ++probed_;
        if (probed_ < group_.local_size() && probed_ != group_.local_rank()) {
            const ControlPage::Slot &slot = group_.slot(probed_);
            probe_->start(group_.process(group_.local_ranks()[probed_]), slot.offer);
        }
    }
    bool all = true;
    if (group_.local_size() > 1) {
        reached_ |= std::uint64_t{1} << group_.local_rank();
        group_.own_slot().reach = reached_;
        const std::uint64_t wanted = group_.local_size() == kMostLocalRanks
                                         ? ~std::uint64_t{0}
                                         : (std::uint64_t{1} << group_.local_size()) - 1;
        all = reached_ == wanted;
    }
    begin_meeting(Part::kProbed, all ? 0 : kUnreachable);
    return true;
}

bool Peers::reach(int rank, int other) const noexcept
{
    if (!any_reach_ || group_.local_size() == 1) {
        return false;
    }
    const int a = group_.local_number(rank), b = group_.local_number(other);
    return (group_.slot(a).reach >> b & 1) != 0 && (group_.slot(b).reach >> a & 1) != 0;
}

// Everything that the choice of an algorithm needs, from what all ranks know alike.
void Peers::conclude(Flags flags)
{
    part_ = Part::kDone;
    target_.reset();
    probe_.reset();
    any_reach_ = share_node();
    const bool full = (flags & kUnreachable) == 0;
    find_links(full);
    rates_ = rank_gbps(*placement_);
    find_table();
    for (const PlacedNode &node : placement_->nodes) {
        NodeGroups &gpus = groups_.nodes.emplace_back();
        for (const int gpu : node.gpus) {
            gpus.push_back(placement_->gpus[gpu].ranks);
        }
    }
    std::optional<Packing> packing;
    if (group_.nodes() == 1 && any_reach_) {
        const PlacedNode &node = placement_->nodes[0];
        packing = pack_trees(node.topology, numbers_of(node), links_);
    }
    if (packing) {
        trees_ = rank_trees(*packing, groups_.nodes[0]);
    }
    if (group_.nodes() > 1 && any_reach_) {
        find_node_trees();
    }
    available_ = available_algorithms({.nodes = group_.nodes(),
                                       .ranks_per_node = group_.most_ranks_on_a_node(),
                                       .ranks_per_gpu = ranks_per_gpu_,
                                       .mapped = full,
                                       .trees = packing.has_value()});
    if (!full && share_node()) {
        say_unreachable();
    }
}

// What the slowest of the nodes can do. `full`: all GPUs of each node reach each other.
void Peers::find_links(bool full)
{
    ranks_per_gpu_ = std::max(1, summarize(*placement_).max_ranks_per_gpu);
    bool first = true;
    for (const PlacedNode &node : placement_->nodes) {
        Links links = links_of(node.topology, numbers_of(node));
        if (!full) {
            links.gpu_gbps = links.ring_gbps = links.exchange_gbps = links.chain_gbps = 0;
            links.switched = false;
        }
        if (std::exchange(first, false)) {
            links_ = links;
            continue;
        }
        links_ = slowest_of(links_, links);
    }
}

// Nodes are mostly of one kind: what is found for one serves all that are alike.
void Peers::find_node_trees()
{
    std::map<std::pair<std::uint64_t, std::vector<int>>, NodeTrees> known;
    for (const PlacedNode &node : placement_->nodes) {
        const std::vector<int> numbers = numbers_of(node);
        const auto [kind, fresh] =
            known.try_emplace({topology_hash(node.topology), numbers}, NodeTrees{});
        if (fresh) {
            kind->second = pack_node_trees(node.topology, numbers).value_or(NodeTrees{});
            add_node_trees(links_, kind->second);
        }
        groups_.trees.push_back(kind->second.trees);
    }
}

// The table is for a class of machines: all nodes must be of it.
void Peers::find_table()
{
    const TableFile *file = process_.table();
    if (file == nullptr || !tables_) {
        return;
    }
    const char *driver = process_.is_emulated() ? "emulated" : "";
    Status problem;
    for (const PlacedNode &node : placement_->nodes) {
        auto table = Table::select(*file, fingerprint_of(node.topology, driver));
        if (!table.ok()) {
            problem = table.take_status();
        } else if (table_ && table_->hash() != table->hash()) {
            problem = error(Errc::kUnsupported,
                            "%s: the communicator's nodes are of different classes, and no rule is "
                            "for both",
                            file->path.c_str());
        } else {
            table_ = std::move(*table);
            continue;
        }
        table_.reset();
        break;
    }
    if (!problem.ok() && group_.all().rank == 0) {
        log(process_.log(), 0,
            "hetcoll ignores its tuning table and chooses algorithms by its model: %s",
            problem.message().c_str());
    }
}

std::vector<int> Peers::numbers_of(const PlacedNode &node) const
{
    std::vector<int> numbers;
    for (const int gpu : node.gpus) {
        numbers.push_back(placement_->gpus[gpu].number);
    }
    return numbers;
}

void Peers::forget() noexcept
{
    part_ = Part::kStart;
    device_.reset();
    target_.reset();
    probe_.reset();
    probed_ = -1;
    reached_ = 0;
    problem_ = {};
    why_not_ = {};
    placement_.reset();
    table_.reset();
    any_reach_ = false;
    available_ = kMessageAlgorithms;
    links_ = {};
    ranks_per_gpu_ = 1;
    rates_.clear();
    groups_ = {};
    trees_ = {};
}

void Peers::give_up_mapping() noexcept
{
    any_reach_ = false;
    available_ &= kMessageAlgorithms | bit(Algorithm::kHierarchical);
}

// One rank of each node speaks. Where GPUs are joined pair by pair it is usual that some are not,
// but then neither reads the other: if one of two does, something has failed.
void Peers::say_unreachable()
{
    const auto reads = [&](int rank, int other) {
        return (group_.slot(rank).reach >> other & 1) != 0;
    };
    bool some_reach = false;
    int first = -1, one_sided = -1; // ranks of this node whose trial failed
    for (int rank = 0; rank < group_.local_size() && group_.local_size() > 1; ++rank) {
        for (int other = 0; other < group_.local_size(); ++other) {
            if (reads(rank, other)) {
                some_reach = some_reach || rank != other;
                continue;
            }
            first = first < 0 ? rank : first;
            one_sided = one_sided < 0 && reads(other, rank) ? rank : one_sided;
        }
    }
    const bool usual = some_reach && one_sided < 0;
    if ((one_sided < 0 ? first : one_sided) == group_.local_rank()) {
        log(process_.log(), usual ? 1 : 0,
            "hetcoll: some GPUs of this node do not share memory, so data between them goes "
            "through host memory, which is slower. First reason: %s",
            why_not_.ok() ? "a peer offered none" : why_not_.message().c_str());
    }
}

} // namespace hetcoll
