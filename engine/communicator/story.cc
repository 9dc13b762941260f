#include "engine/communicator/story.h"

#include "base/counted.h"
#include "engine/meeting/flags.h"
#include "engine/process/trace.h"
#include "machine/topology_links.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <new>

namespace hetcoll {
namespace {

constexpr std::size_t kMostKinds = 256; // of a communicator, then it is silent

std::string fact_of(const Fingerprint &fingerprint, const char *name)
{
    const auto fact = fingerprint.facts.find(name);
    return fact != fingerprint.facts.end() && fact->second != Fingerprint::kAny ? fact->second
                                                                                : "unknown";
}

// "ranks 0 to 3", "ranks 0, 2, 5".
std::string print_ranks(const std::vector<int> &ranks)
{
    if (ranks.size() > 2 && ranks.back() - ranks.front() + 1 == static_cast<int>(ranks.size())) {
        return "ranks " + std::to_string(ranks.front()) + " to " + std::to_string(ranks.back());
    }
    std::string text = ranks.size() == 1 ? "rank " : "ranks ";
    for (std::size_t i = 0; i < ranks.size() && i < 16; ++i) {
        text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
    }
    return ranks.size() > 16 ? text + ", ..." : text;
}

void tell_links(const Log &log, const PlacedNode &node, const std::string &ranks)
{
    std::vector<int> gpus;
    for (int gpu = 0; gpu < static_cast<int>(node.gpus.size()); ++gpu) {
        gpus.push_back(gpu);
    }
    const Links links = links_of(node.topology, gpus);
    const std::string kind = fact_of(fingerprint_of(node.topology, {}), "links");
    if (gpus.size() > 1) {
        hetcoll::log(log, 1,
                     "hetcoll: %s of this node: %zu GPUs, links %s, at least %.4g GB/s between two "
                     "of them, %.4g to host memory, %.4g to other nodes",
                     ranks.c_str(), gpus.size(), kind.c_str(), links.gpu_gbps, links.host_gbps,
                     links.node_gbps);
    } else {
        hetcoll::log(log, 1,
                     "hetcoll: %s of this node: one GPU, %.4g GB/s to host memory, %.4g to other "
                     "nodes",
                     ranks.c_str(), links.host_gbps, links.node_gbps);
    }
}

void tell_choice(const Log &log, const TuningInputs &tuning, const KnownPeers &found)
{
    if (found.table) {
        hetcoll::log(log, 1, "hetcoll: algorithms go by the tuning table %s%s%s, then by price",
                     found.table->path().c_str(),
                     found.table->machine().empty() ? "" : ", which is for this machine: ",
                     found.table->machine().c_str());
    } else {
        hetcoll::log(log, 1, "hetcoll: algorithms go by the price of the links, %s",
                     tuning.table() != nullptr ? "as the tuning table is for other machines"
                                               : "as there is no tuning table");
    }
}

using Fact = std::uint64_t hetcoll_facts::*;
enum class Counts : std::uint8_t { kLeast, kMost, kNone };

std::size_t rank_that_counts(std::span<const hetcoll_facts> facts, Fact fact, Counts counts)
{
    std::size_t best = 0;
    for (std::size_t rank = 1; rank < facts.size(); ++rank) {
        const std::uint64_t value = facts[rank].*fact, other = facts[best].*fact;
        best = (counts == Counts::kLeast ? value < other : value > other) ? rank : best;
    }
    return best;
}

} // namespace

void tell_gpu(Process &process, const PointerInfo &pointer) noexcept
try {
    const Log &log = process.log();
    if (!log.enabled(1) || !process.notices().first_time(Notice::kGpu)) {
        return;
    }
    Gpus &gpus = process.gpus();
    const Result<RankRecord> found = process.place().probe(pointer, gpus);
    const RankRecord record = found.ok() ? *found : RankRecord{};
    const std::string numa =
        record.numa == kUnknownNuma ? "" : ", NUMA " + std::to_string(record.numa);
    const std::string adapter =
        record.adapter[0] == '\0' ? "" : std::string(", adapter ") + record.adapter;
    hetcoll::log(log, 1, "hetcoll: GPU %s %s%s%s, CUDA driver %s%s",
                 record.model[0] == '\0' ? "of an unknown model" : record.model,
                 print_bus_id(record.bus).c_str(), numa.c_str(), adapter.c_str(),
                 gpus.driver_version().c_str(), gpus.is_emulated() ? ", emulated" : "");
} catch (const std::bad_alloc &) { // the story lacks this line
}

void tell_node(Process &process, const NodeGroup &group, const Placement &placement,
               const KnownPeers &found, WhyNot why_not)
{
    const Log &log = process.log();
    if (!log.enabled(1) || !group.is_leader() || !process.notices().first_time(Notice::kNode)) {
        return;
    }
    const int node = placement.node_of[static_cast<std::size_t>(group.all().rank)];
    const PlacedNode &own = placement.nodes[static_cast<std::size_t>(node)];
    const std::string ranks = print_ranks(own.ranks);
    tell_links(log, own, ranks);
    if (own.ranks.size() > 1) {
        hetcoll::log(log, 1, "hetcoll: %s %s", ranks.c_str(),
                     why_not == nullptr ? "read and write each other's GPU memory" : why_not);
    }
    tell_choice(log, process.tuning(), found);
}

void tell_differences(Process &process, std::span<const hetcoll_facts> facts)
{
    const Log &log = process.log();
    bool first = false, looked = false;
    const auto tell = [&](const char *name, Fact fact, Counts counts) {
        for (std::size_t rank = 1; rank < facts.size(); ++rank) {
            if (facts[rank].*fact == facts[0].*fact) {
                continue;
            }
            first = looked ? first : process.notices().first_time(Notice::kSettingsDiffer);
            looked = true;
            if (first && counts == Counts::kNone) { // what does without it says more
                hetcoll::log(log, 1,
                             "hetcoll: coll_hetcoll_%s of rank %zu is not that of rank 0: it "
                             "counts as not set",
                             name, rank);
            } else if (first) {
                hetcoll::log(log, 0,
                             "hetcoll: coll_hetcoll_%s of rank %zu is not that of rank 0: that of "
                             "rank %zu counts",
                             name, rank, rank_that_counts(facts, fact, counts));
            }
            return;
        }
    };
#define HETCOLL_PARAMETER HETCOLL_PARAMETER_AS_FACT
#define HETCOLL_FACT_LEAST(name) tell(#name, &hetcoll_facts::name, Counts::kLeast);
#define HETCOLL_FACT_MOST(name) tell(#name, &hetcoll_facts::name, Counts::kMost);
#define HETCOLL_FACT_VITAL(name) // there is no communicator then
#define HETCOLL_FACT_SAME(name) tell(#name, &hetcoll_facts::name, Counts::kNone);
    HETCOLL_PARAMETERS
#undef HETCOLL_FACT_LEAST
#undef HETCOLL_FACT_MOST
#undef HETCOLL_FACT_VITAL
#undef HETCOLL_FACT_SAME
#undef HETCOLL_PARAMETER
}

void Story::tell(const Log &log, const CallRecord &record, std::size_t small_limit) noexcept
{
    const bool device = any(record.memory, kDeviceMemory) && !told_device_;
    const bool larger = record.bytes > small_limit && !told_larger_;
    const bool first = device || larger;
    if (record.rank != 0 || (!first && !log.enabled(2))) {
        return;
    }
    bool is_new = first;
    if (log.enabled(2) && told_.size() < kMostKinds) {
        try {
            const int power = record.bytes <= 1 ? 0 : std::bit_width(record.bytes - 1);
            is_new |=
                told_.insert({record.call, power, algorithm_of(record), path_of(record)}).second;
        } catch (const std::bad_alloc &) { // then it is told again
        }
    }
    told_device_ = told_device_ || device;
    told_larger_ = told_larger_ || larger;
    if (!is_new) {
        return;
    }
    char chunks[48] = "";
    if (record.chunk_bytes != 0) {
        std::snprintf(chunks, sizeof chunks, ", in chunks of %zu bytes", record.chunk_bytes);
    }
    char number[16] = ""; // alone it would make one fact of many communicators many facts
    if (log.enabled(2)) {
        std::snprintf(number, sizeof number, " %u", record.comm_id);
    }
    hetcoll::log(log, first ? 1 : 2,
                 "hetcoll: communicator%s of %s: %s of %zu bytes by %s, path %s%s", number,
                 counted(record.comm_size, "rank").c_str(), record.call, record.bytes,
                 algorithm_of(record), path_name(path_of(record)), chunks);
}

} // namespace hetcoll
