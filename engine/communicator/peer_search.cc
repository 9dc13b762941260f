#include "engine/communicator/peer_search.h"

#include "base/lost.h"
#include "engine/communicator/story.h"
#include "engine/meeting/flags.h"
#include "price/call_prices.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace hetcoll {

PeerSearch::PeerSearch(Process &process, NodeGroup &group, Allowed allowed,
                       std::shared_ptr<Device> device, Messages &messages, int tag)
    : process_(process), group_(group), allowed_(allowed), device_(std::move(device)),
      messages_(messages), tag_(tag)
{
}

void PeerSearch::start(const PointerInfo &pointer)
{
    const RankRecord own = own_record(pointer);
    const std::size_t bytes = static_cast<std::size_t>(group_.all().size) * sizeof own;
    records_->mine.resize(bytes + Exchange::kFlagBytes);
    records_->theirs.resize(bytes + Exchange::kFlagBytes);
    std::memcpy(records_->mine.data() + group_.all().rank * sizeof own, &own, sizeof own);
    exchange_.start(group_.all(), tag_, records_->mine.data(), records_->theirs.data(), bytes,
                    bytes, host_reduce(ReduceOp::kBor, ElementKind::kByte),
                    flags_if(!problem_.ok(), kNoRecord));
}

RankRecord PeerSearch::own_record(const PointerInfo &pointer)
{
    auto record = process_.probe(pointer);
    if (!record.ok()) {
        problem_ = record.take_status();
        return {};
    }
    tell_gpu(process_, *record);
    auto file = process_.topology_file();
    if (!file.ok()) {
        ignore_file(file.status());
    } else if (*file != nullptr) {
        record->file_hash = topology_hash(**file);
        record->file_gpu = pointer.device;
    }
    return *record;
}

void PeerSearch::ignore_file(const Status &why)
{
    if (process_.notices().first_time(Notice::kTopologyFile)) {
        log(process_.node_log(), 0,
            "hetcoll: coll_hetcoll_topology_file is ignored, the links are those found: %s",
            why.message().c_str());
    }
}

Progress PeerSearch::step()
{
    while (part_ != Part::kDone) {
        const Progress progress = step_part();
        if (progress == Progress::kFailed) {
            lose(std::move(records_));
        }
        if (progress != Progress::kDone) {
            return progress;
        }
        begin_next();
    }
    return Progress::kDone;
}

// kDone: what the part waits for is there.
Progress PeerSearch::step_part()
{
    if (part_ != Part::kRecords && part_ != Part::kPrices) {
        if (FdChannel *channel = process_.store().sharing().channel.get()) {
            channel->step(); // peers may be waiting for an answer
        }
    }
    const auto progress = [](bool done) { return done ? Progress::kDone : Progress::kPending; };
    switch (part_) {
    case Part::kRecords:
    case Part::kPrices: return exchange_.step();
    case Part::kOffer: return progress(trial_->offer());
    case Part::kTry: return progress(trial_->try_others());
    case Part::kOffered:
    case Part::kTried: return meeting_.step();
    case Part::kDone: break;
    }
    return Progress::kDone;
}

int PeerSearch::code() const noexcept
{
    return part_ == Part::kRecords || part_ == Part::kPrices ? exchange_.code() : meeting_.code();
}

void PeerSearch::begin_next()
{
    switch (part_) {
    case Part::kRecords: merge(); break;
    case Part::kOffer: meet(Part::kOffered, Flags{}); break;
    case Part::kOffered: part_ = Part::kTry; break;
    case Part::kTry: meet(Part::kTried, flags_if(!trial_->reaches_all(), kUnreachable)); break;
    case Part::kTried:
        conclude(any(meeting_.flags(), kUnreachable) ? Mapping::kSome : Mapping::kAll);
        break;
    case Part::kPrices: take_prices(); break;
    case Part::kDone: break;
    }
}

void PeerSearch::meet(Part part, Flags flags)
{
    part_ = part;
    meeting_.start(group_, messages_, tag_, flags);
}

// The records have what was found, too, for the case that ranks have other files, or none for their
// GPUs: every rank knows of that.
Result<Placement> PeerSearch::merge(std::vector<RankRecord> &records)
{
    const auto file = process_.topology_file();
    auto placement = merge_records(records, file.ok() ? *file : nullptr);
    const bool some_file =
        std::any_of(records.begin(), records.end(),
                    [](const RankRecord &record) { return record.file_hash != 0; });
    if (placement.ok() || !some_file) {
        return placement;
    }
    ignore_file(placement.status());
    for (RankRecord &record : records) {
        record.file_hash = 0;
    }
    return merge_records(records);
}

// All records are here. Errors are the same on every rank, but for the one that had the problem.
void PeerSearch::merge()
{
    const bool missing = any(exchange_.flags(), kNoRecord);
    if (!missing) {
        std::vector<RankRecord> records(static_cast<std::size_t>(group_.all().size));
        std::memcpy(records.data(), records_->mine.data(), records.size() * sizeof(RankRecord));
        auto placement = merge(records);
        if (placement.ok()) {
            placement_ = std::move(*placement);
        } else {
            problem_ = placement.take_status();
        }
    }
    records_.reset();
    if (!problem_.ok()) {
        log(missing ? process_.log() : process_.node_log(), 0,
            "hetcoll: does without the links between the GPUs, so messages go through host memory: "
            "%s",
            problem_.message().c_str());
    }
    if (!placement_) {
        part_ = Part::kDone;
    } else if (allowed_.mapping && group_.uses_pages() &&
               group_.most_ranks_on_a_node() <= ReachTrial::kMostLocalRanks) {
        trial_.emplace(group_, process_.store().sharing(), device_);
        part_ = Part::kOffer;
    } else {
        conclude(Mapping::kNone);
    }
}

void PeerSearch::conclude(Mapping mapping)
{
    part_ = Part::kDone;
    found_.maps = mapping != Mapping::kNone;
    found_.ranks = place_ranks(*placement_, mapping,
                               {.nodes = group_.nodes(),
                                .least_ranks = group_.least_ranks_on_a_node(),
                                .most_ranks = group_.most_ranks_on_a_node()},
                               allowed_.racks);
    found_.ranks.query.links.by_cpu = placement_->by_cpu;
    found_.device = device_;
    find_table();
    if (mapping == Mapping::kSome) {
        trial_->say_unreachable(process_.log());
    }
    tell_node(process_, group_, *placement_, found_,
              mapping == Mapping::kAll    ? nullptr
              : mapping == Mapping::kSome ? "read each other's GPU memory where they reach it"
              : !allowed_.mapping         ? "read no other's GPU memory: coll_hetcoll_ipc is never"
              : !group_.uses_pages()
                  ? "read no other's GPU memory: some node has no shared control page"
                  : "read no other's GPU memory: a node has too many ranks");
    const std::vector<int> &gpus = placement_->gpu_of;
    if (group_.nodes() == static_cast<int>(placement_->nodes.size()) &&
        std::find(gpus.begin(), gpus.end(), kNoGpu) == gpus.end()) {
        start_prices();
    }
}

// Every rank prices some sizes, and all get what one rank has found. Prices of another communicator
// on the same machine serve as well.
void PeerSearch::start_prices()
{
    part_ = Part::kPrices;
    PriceTable table;
    const bool priced = add_own_prices(table);
    records_ = std::make_unique<Records>();
    records_->mine.resize(sizeof table + Exchange::kFlagBytes);
    records_->theirs.resize(sizeof table + Exchange::kFlagBytes);
    std::memcpy(records_->mine.data(), &table, sizeof table);
    exchange_.start(group_.all(), tag_, records_->mine.data(), records_->theirs.data(),
                    sizeof table, sizeof table, host_reduce(ReduceOp::kBor, ElementKind::kByte),
                    flags_if(!priced, kNoRecord));
}

// False: there is no memory for it. Then all ranks do without.
bool PeerSearch::add_own_prices(PriceTable &table)
{
    try {
        priced_ = priced_machine(*placement_, found_.ranks);
        const std::shared_ptr<const PriceTable> known = process_.prices().find(priced_->hash());
        Prices prices(priced_->cluster, priced_->ranks);
        const AlgorithmSet set = told_of(prices.set());
        const int size = group_.all().size;
        for (int i = group_.all().rank; i < PriceTable::kSizes; i += size) {
            table.column(i) = known != nullptr ? known->column(i) : prices.of_size(i, set);
        }
        return true;
    } catch (const std::bad_alloc &) {
        table = {};
        return false;
    }
}

void PeerSearch::take_prices()
{
    part_ = Part::kDone;
    found_.lacks_memory = any(exchange_.flags(), kNoRecord);
    if (!found_.lacks_memory) {
        auto table = std::make_shared<PriceTable>();
        std::memcpy(table.get(), records_->mine.data(), sizeof *table);
        process_.prices().add(priced_->hash(), table);
        found_.prices = std::move(table);
        found_.machine = std::make_shared<const PricedMachine>(std::move(*priced_));
    }
}

void PeerSearch::find_table()
{
    const TableFile *file = process_.table();
    if (file == nullptr || !allowed_.tables) {
        return;
    }
    auto table = table_for(*placement_, *file, process_.is_emulated() ? "emulated" : "");
    if (table.ok()) {
        found_.table = std::move(*table);
        if (found_.table->cpu()) {
            process_.cpu_views().take_measured(*found_.table->cpu());
        }
    } else if (group_.all().rank == 0) {
        log(process_.log(), 0,
            "hetcoll ignores its tuning table and chooses algorithms by price: %s",
            table.status().message().c_str());
    }
}

} // namespace hetcoll
