#include "engine/communicator/peer_search.h"

#include "base/float_control.h"
#include "base/lost.h"
#include "choice/call_prices.h"
#include "engine/communicator/story.h"
#include "engine/meeting/flags.h"
#include "topology/adapters.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace hetcoll {
namespace {

// A GPU of the rank's node that is not among the file's, which have bus ids: then numbers of
// devices tell which one each is. Null: there is none.
const PlacedGpu *taken_by_number(const Topology &file, const Placement &placement, int rank)
{
    const std::vector<int> vertices = file.gpus();
    const bool has_ids = std::any_of(vertices.begin(), vertices.end(), [&](int vertex) {
        return file.vertices[static_cast<std::size_t>(vertex)].bus.known != 0;
    });
    const int node = placement.node_of[static_cast<std::size_t>(rank)];
    for (const int gpu : placement.nodes[static_cast<std::size_t>(node)].gpus) {
        const PlacedGpu &found = placement.gpus[static_cast<std::size_t>(gpu)];
        if (has_ids && file.find(found.bus) == kNoVertex) {
            return &found;
        }
    }
    return nullptr;
}

} // namespace

PeerSearch::PeerSearch(Process &process, NodeGroup &group, Allowed allowed,
                       std::shared_ptr<Device> device, Messages &messages, int tag)
    : process_(process), gpus_(process.gpus()), tuning_(process.tuning()), group_(group),
      allowed_(allowed), device_(std::move(device)), messages_(messages), tag_(tag)
{
}

// Plain data of every rank goes to all.
template <class Record> void PeerSearch::exchange_records(const Record &own, Flags flags)
{
    const auto rank = static_cast<std::size_t>(group_.all().rank);
    exchange(std::as_bytes(std::span(&own, 1)), rank * sizeof own,
             static_cast<std::size_t>(group_.all().size) * sizeof own, flags);
}

void PeerSearch::exchange(std::span<const std::byte> own, std::size_t offset, std::size_t bytes,
                          Flags flags)
{
    records_ = std::make_unique<Records>();
    records_->mine.resize(bytes + Exchange::kFlagBytes);
    records_->theirs.resize(bytes + Exchange::kFlagBytes);
    std::copy(own.begin(), own.end(), records_->mine.begin() + static_cast<std::ptrdiff_t>(offset));
    exchange_.start(group_.all(), tag_, records_->mine.data(), records_->theirs.data(), bytes,
                    bytes, host_reduce(ReduceOp::kBor, ElementKind::kByte), flags);
}

// Those of all ranks.
template <class Record> std::vector<Record> PeerSearch::take_records()
{
    std::vector<Record> records(static_cast<std::size_t>(group_.all().size));
    std::memcpy(records.data(), records_->mine.data(), records.size() * sizeof(Record));
    records_.reset();
    return records;
}

void PeerSearch::start(const PointerInfo &pointer)
{
    const DefaultFloats control; // for what a topology file says
    const RankRecord own = own_record(pointer);
    exchange_records(own, flags_if(!problem_.ok(), kNoRecord));
}

RankRecord PeerSearch::own_record(const PointerInfo &pointer)
{
    tell_gpu(process_, pointer);
    auto record = process_.place().probe(pointer, gpus_);
    if (!record.ok()) {
        problem_ = record.take_status();
        return {};
    }
    auto file = tuning_.topology_file();
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
    if (!exchanges()) {
        if (FdSocket *socket = gpus_.sharing().socket.get()) {
            socket->step(); // peers may be waiting for an answer
        }
    }
    if (found_.adapters != nullptr) {
        found_.adapters->progress(); // likewise
    }
    const auto progress = [](bool done) { return done ? Progress::kDone : Progress::kPending; };
    switch (part_) {
    case Part::kRecords:
    case Part::kAddresses:
    case Part::kPrices: return exchange_.step();
    case Part::kOffer: return progress(trial_->offer());
    case Part::kTry: return progress(trial_->try_others());
    case Part::kMessage: return progress(message_has_come());
    case Part::kOffered:
    case Part::kTried:
    case Part::kMessaged: return meeting_.step();
    case Part::kDone: break;
    }
    return Progress::kDone;
}

int PeerSearch::code() const noexcept { return exchanges() ? exchange_.code() : meeting_.code(); }

void PeerSearch::begin_next()
{
    const DefaultFloats control; // all ranks find the same links, trees and prices
    switch (part_) {
    case Part::kRecords: merge(); break;
    case Part::kOffer: meet(Part::kOffered, Flags{}); break;
    case Part::kOffered: part_ = Part::kTry; break;
    case Part::kTry: meet(Part::kTried, flags_if(!trial_->reaches_all(), kUnreachable)); break;
    case Part::kTried:
        conclude(any(meeting_.flags(), kUnreachable) ? Mapping::kSome : Mapping::kAll);
        break;
    case Part::kAddresses: try_adapters(); break;
    case Part::kMessage:
        meet(Part::kMessaged, flags_if(!adapters_problem_.ok(), kUnreachable));
        break;
    case Part::kMessaged: take_adapters_if(!any(meeting_.flags(), kUnreachable)); break;
    case Part::kPrices: take_prices(); break;
    case Part::kDone: break;
    }
}

void PeerSearch::meet(Part part, Flags flags)
{
    part_ = part;
    meeting_.start(group_, messages_, tag_, flags);
}

// The records have what was found, too, for the case that ranks have other files, or none for
// their GPUs: every rank knows of that.
Result<Placement> PeerSearch::merge(std::vector<RankRecord> &records)
{
    const auto file = tuning_.topology_file();
    auto placement = merge_records(records, file.ok() ? *file : nullptr);
    const bool some_file =
        std::any_of(records.begin(), records.end(),
                    [](const RankRecord &record) { return record.file_hash != 0; });
    if (placement.ok() && some_file && group_.is_leader()) {
        const PlacedGpu *const gpu = taken_by_number(**file, *placement, group_.all().rank);
        if (gpu != nullptr && process_.notices().first_time(Notice::kTopologyFile)) {
            log(process_.log(), 0,
                "hetcoll: coll_hetcoll_topology_file (%.80s) has no GPU with the bus id %s, so the "
                "numbers of devices tell which of its GPUs is which, right or wrong: give it this "
                "machine's bus ids, or - for each",
                (*file)->machine.c_str(), print_bus_id(gpu->bus).c_str());
        }
    }
    if (placement.ok() || !some_file) {
        return placement;
    }
    ignore_file(placement.status());
    for (RankRecord &record : records) {
        record.file_hash = 0;
    }
    return merge_records(records);
}

// All records are here. Errors are the same on every rank, but for the one that had the
// problem.
void PeerSearch::merge()
{
    const bool missing = any(exchange_.flags(), kNoRecord);
    if (!missing) {
        std::vector<RankRecord> records = take_records<RankRecord>();
        auto placement = merge(records);
        if (placement.ok()) {
            placement_ = std::move(*placement);
        } else {
            problem_ = placement.take_status();
        }
    }
    if (!problem_.ok()) {
        log(missing ? process_.log() : process_.node_log(), 0,
            "hetcoll: does without the links between the GPUs, so messages go through host "
            "memory: "
            "%s",
            problem_.message().c_str());
    }
    if (!placement_) {
        part_ = Part::kDone;
    } else if (allowed_.mapping && group_.uses_pages() &&
               group_.most_ranks_on_a_node() <= kMostNodeRanks) {
        trial_.emplace(group_, gpus_.sharing(), device_);
        part_ = Part::kOffer;
    } else {
        conclude(Mapping::kNone);
    }
}

void PeerSearch::conclude(Mapping mapping)
{
    static_assert(kMostNodeRanks == 256, "the number in tell_node()'s words");
    part_ = Part::kDone;
    found_.maps = mapping != Mapping::kNone;
    found_.ranks = place_ranks(*placement_, mapping,
                               {.nodes = group_.nodes(),
                                .min = group_.least_ranks_on_a_node(),
                                .max = group_.most_ranks_on_a_node()},
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
                  : "read no other's GPU memory: a node has more than 256 ranks");
    const std::vector<int> &gpus = placement_->gpu_of;
    if (group_.nodes() == static_cast<int>(placement_->nodes.size()) &&
        std::find(gpus.begin(), gpus.end(), kNoGpu) == gpus.end()) {
        if (allowed_.adapters && may_try_adapters()) {
            start_adapters();
        } else {
            start_prices();
        }
    }
}

// Facts that all ranks know. False: they cannot serve this communicator.
bool PeerSearch::may_try_adapters() const
{
    const bool serve = group_.nodes() == 1 &&
                       (found_.ranks.query.available & algorithms_that_need(Needs::kTrees)) != 0;
    const bool there = serve && reach_adapters(placement_->nodes.front().topology);
    if (serve && !there && group_.all().rank == 0 &&
        process_.notices().first_time(Notice::kWithoutAdapters)) {
        log(process_.log(), 0,
            "hetcoll: coll_hetcoll_adapters is not used: not all GPUs of the node have an adapter "
            "in its topology; write that with hetcoll_info --topology --write, and set "
            "coll_hetcoll_topology_file");
    }
    return there;
}

// Each rank opens its GPU's adapter, and tells the others where that is.
void PeerSearch::start_adapters()
{
    part_ = Part::kAddresses;
    const Topology &node = placement_->nodes.front().topology;
    const int gpu = placement_->gpu_of[static_cast<std::size_t>(group_.all().rank)];
    const int number = placement_->gpus[static_cast<std::size_t>(gpu)].number;
    const auto adapter = adapters_of(node)[static_cast<std::size_t>(number)];
    auto opened =
        Adapters::create(gpus_.pool(), device_,
                         {.transports = process_.adapter_transports(),
                          .device = node.vertices[static_cast<std::size_t>(adapter)].name});
    Adapters::Address own{};
    if (opened.ok()) {
        found_.adapters = std::move(*opened);
        own = found_.adapters->address();
    } else {
        adapters_problem_ = opened.take_status();
    }
    exchange_records(own, flags_if(found_.adapters == nullptr, kUnreachable));
}

void PeerSearch::try_adapters()
{
    const bool all = !any(exchange_.flags(), kUnreachable);
    const auto addresses = take_records<Adapters::Address>();
    if (!all) {
        take_adapters_if(false);
        return;
    }
    part_ = Part::kMessage;
    adapters_problem_ = found_.adapters->start_trial(addresses, group_.all().rank);
}

bool PeerSearch::message_has_come()
{
    if (!adapters_problem_.ok()) {
        return true;
    }
    const std::optional<bool> works = found_.adapters->step_trial();
    if (works && !*works) {
        adapters_problem_ = error(Errc::kUnsupported, "a message of device memory has not come "
                                                      "through them as it was sent");
    }
    return works.has_value();
}

// All ranks know whether each has reached the next one.
void PeerSearch::take_adapters_if(bool all)
{
    found_.ranks.query.links.by_adapters = all;
    if (!adapters_problem_.ok() && process_.notices().first_time(Notice::kAdaptersFail)) {
        log(process_.log(), 0, "hetcoll: coll_hetcoll_adapters is not used, rank %d cannot: %s",
            group_.all().rank, adapters_problem_.message().c_str());
    }
    if (all) {
        found_.adapters->end_trial();
        log(process_.node_log(), 1,
            "hetcoll: ranks of this node may send through its network adapters, by %s",
            process_.adapter_transports().c_str());
    } else {
        found_.adapters.reset();
    }
    start_prices();
}

// Every rank prices some sizes, and all get what one rank has found. Prices of another
// communicator on the same machine serve as well.
void PeerSearch::start_prices()
{
    part_ = Part::kPrices;
    PriceTable table;
    const bool priced = add_own_prices(table);
    exchange(std::as_bytes(std::span(&table, 1)), 0, sizeof table, flags_if(!priced, kNoRecord));
}

// False: there is no memory for it. Then all ranks do without.
bool PeerSearch::add_own_prices(PriceTable &table)
{
    try {
        priced_ = priced_machine(*placement_, found_.ranks);
        const std::shared_ptr<const PriceTable> known = tuning_.prices().find(priced_->hash());
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
        tuning_.prices().add(priced_->hash(), table);
        found_.prices = std::move(table);
        found_.machine = std::make_shared<const PricedMachine>(std::move(*priced_));
    }
}

void PeerSearch::find_table()
{
    const TableFile *file = tuning_.table();
    if (file == nullptr || !allowed_.tables) {
        return;
    }
    auto table = table_for(*placement_, *file, gpus_.is_emulated() ? "emulated" : "");
    if (table.ok()) {
        found_.table = std::move(*table);
        if (found_.table->cpu()) {
            gpus_.cpu_views().take_measured(*found_.table->cpu());
        }
    } else if (group_.all().rank == 0) {
        log(process_.log(), 0,
            "hetcoll ignores its tuning table and chooses algorithms by price: %s",
            table.status().message().c_str());
    }
}

} // namespace hetcoll
