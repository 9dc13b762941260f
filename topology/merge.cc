#include "topology/merge_graph.h"
#include "topology/record.h"

#include <algorithm>
#include <cinttypes>
#include <cstring>
#include <map>
#include <tuple>
#include <utility>

namespace hetcoll {
namespace {

// All ranks must plan from one graph. Every rank words the same error.
Status check_files(std::span<const RankRecord> records, const Topology *file)
{
    constexpr const char *kRemedy = "set coll_hetcoll_topology_file to the same file on every rank";
    for (std::size_t rank = 0; rank < records.size(); ++rank) {
        const std::uint64_t first = records[0].file_hash, hash = records[rank].file_hash;
        if (hash != first && (hash == 0 || first == 0)) {
            return error(Errc::kInvalid,
                         "rank %zu uses %s topology file and rank 0 %s (hash %016" PRIx64 "): %s",
                         rank, hash == 0 ? "no" : "a", hash == 0 ? "one" : "none", hash | first,
                         kRemedy);
        }
        if (hash != first) {
            return error(Errc::kInvalid,
                         "the topology file of rank %zu has the hash %016" PRIx64
                         " and that of rank 0 %016" PRIx64 ": %s",
                         rank, hash, first, kRemedy);
        }
    }
    const std::uint64_t ours = file != nullptr ? topology_hash(*file) : 0;
    if (!records.empty() && records[0].file_hash != ours) {
        return error(Errc::kInvalid,
                     "the records name the topology file %016" PRIx64 ", not %016" PRIx64
                     " which is at hand: %s",
                     records[0].file_hash, ours, kRemedy);
    }
    return {};
}

// The identity of a GPU on its node; an instance of a divided one has its own UUID.
using GpuKey = std::tuple<BusId, Uuid>;

GpuKey key_of(const RankRecord &record)
{
    // Ranks that share a GPU may not all have its bus id: the UUID alone names it then.
    return record.uuid.known() ? GpuKey{BusId{}, record.uuid} : GpuKey{record.bus, Uuid{}};
}

struct FoundGpu {
    std::vector<int> ranks;
    std::vector<const RankRecord *> records; // of these ranks
    const RankRecord *record = nullptr;      // the one that knows most
    int number = 0;
};

// The GPUs of a node, by bus id and not by rank: the order in which a job numbers its ranks does
// not change the graph.
std::vector<FoundGpu> find_gpus(std::span<const RankRecord> records, const std::vector<int> &ranks)
{
    std::map<GpuKey, FoundGpu> by_key;
    const auto knows = [](const RankRecord &record) {
        return std::tuple(record.bus.known, record.ancestor_count, record.nvlink_count, record.pid);
    };
    for (const int rank : ranks) {
        const RankRecord &record = records[rank];
        if (has_gpu(record)) {
            FoundGpu &gpu = by_key[key_of(record)];
            gpu.ranks.push_back(rank);
            gpu.records.push_back(&record);
            if (gpu.record == nullptr || knows(record) > knows(*gpu.record)) {
                gpu.record = &record;
            }
        }
    }
    std::vector<FoundGpu> gpus;
    for (auto &[key, gpu] : by_key) {
        gpus.push_back(std::move(gpu));
    }
    std::sort(gpus.begin(), gpus.end(), [](const FoundGpu &a, const FoundGpu &b) {
        return std::tie(a.record->bus, a.record->uuid) < std::tie(b.record->bus, b.record->uuid);
    });
    for (std::size_t i = 0; i < gpus.size(); ++i) {
        gpus[i].number = static_cast<int>(i);
    }
    return gpus;
}

// The numbers that the GPUs of a node have in the file; sorts the GPUs by number. Bus ids count
// only if the file has them all: another machine may have one of them by chance.
Result<std::vector<int>> find_in_file(const Topology &file, std::vector<FoundGpu> &gpus)
{
    const std::vector<int> vertices = file.gpus();
    const bool by_bus = std::all_of(gpus.begin(), gpus.end(), [&](const FoundGpu &gpu) {
        return file.find(gpu.record->bus) != kNoVertex;
    });
    for (FoundGpu &gpu : gpus) {
        int number = -1;
        if (by_bus) {
            const auto at = std::find(vertices.begin(), vertices.end(), file.find(gpu.record->bus));
            number = static_cast<int>(at - vertices.begin());
        }
        for (const RankRecord *record : gpu.records) {
            number = by_bus ? number : std::max(number, record->file_gpu);
        }
        if (number < 0 || number >= static_cast<int>(vertices.size())) {
            return error(Errc::kInvalid,
                         "rank %d's GPU %s is not in the topology file (%.80s, %zu GPUs), so "
                         "nothing is known of its "
                         "links: add it to the file or unset coll_hetcoll_topology_file",
                         gpu.ranks[0], print_bus_id(gpu.record->bus).c_str(), file.machine.c_str(),
                         vertices.size());
        }
        gpu.number = number;
    }
    std::sort(gpus.begin(), gpus.end(),
              [](const FoundGpu &a, const FoundGpu &b) { return a.number < b.number; });
    std::vector<int> numbers;
    for (std::size_t i = 0; i < gpus.size(); ++i) {
        if (i > 0 && gpus[i - 1].number == gpus[i].number) {
            return error(
                Errc::kInvalid,
                "ranks %d and %d of one node have different GPUs, and both are GPU %d of the "
                "topology file: give each its bus id there, or unset coll_hetcoll_topology_file",
                gpus[i - 1].ranks[0], gpus[i].ranks[0], gpus[i].number);
        }
        numbers.push_back(gpus[i].number);
    }
    return numbers;
}

Result<Topology> graph_of(std::vector<FoundGpu> &gpus, const Topology *file)
{
    if (file != nullptr) {
        Result<std::vector<int>> numbers = find_in_file(*file, gpus);
        return numbers.ok() ? fragment(*file, *numbers) : numbers.take_status();
    }
    std::vector<RecordedGpu> recorded;
    for (const FoundGpu &gpu : gpus) {
        recorded.push_back({gpu.record, gpu.records});
    }
    return merge_graph(recorded);
}

// The processors of all ranks that use it; empty if they are not bound, or not to the same one.
std::string adapter_of(const FoundGpu &gpu)
{
    std::string name;
    for (const RankRecord *record : gpu.records) {
        const std::string own(record->adapter, strnlen(record->adapter, sizeof record->adapter));
        if (own.empty() || (!name.empty() && own != name)) {
            return {};
        }
        name = own;
    }
    return name;
}

// Without a file nobody knows where adapters are.
void bind_adapters(const std::vector<FoundGpu> &gpus, Topology &topology)
{
    const std::vector<int> vertices = topology.gpus();
    for (std::size_t i = 0; i < gpus.size(); ++i) {
        const std::string name = adapter_of(gpus[i]);
        if (topology.find_nic(name) != kNoVertex) {
            topology.vertices[static_cast<std::size_t>(vertices[i])].adapter = name;
        }
    }
}

// Counts the file's NICs if it has any, else what the records say.
void count_nics(std::span<const RankRecord> records, const Topology *file, PlacedNode &node)
{
    for (const int rank : node.ranks) {
        node.nic_count = std::max<int>(node.nic_count, records[rank].nic_count);
        node.nic_gbps = std::max<double>(node.nic_gbps, records[rank].nic_gbps);
    }
    const std::vector<int> nics =
        file != nullptr ? file->of_kind(VertexKind::kNic) : std::vector<int>();
    if (nics.empty()) {
        return;
    }
    node.nic_count = static_cast<int>(nics.size());
    node.nic_gbps = 0;
    for (const int nic : nics) {
        double network = 0, pcie = 0;
        for (const Link &link : file->links) {
            if (link.a == nic || link.b == nic) {
                (link.kind == LinkKind::kNetwork ? network : pcie) += link.total_gbps();
            }
        }
        node.nic_gbps +=
            network != 0 && pcie != 0 ? std::min(network, pcie) : std::max(network, pcie);
    }
}

Status place_node(std::span<const RankRecord> records, const Topology *file, int index,
                  Placement &placement)
{
    PlacedNode &node = placement.nodes[index];
    std::vector<FoundGpu> gpus = find_gpus(records, node.ranks);
    if (!gpus.empty()) {
        Result<Topology> graph = graph_of(gpus, file);
        if (!graph.ok()) {
            return graph.take_status();
        }
        node.topology = std::move(*graph);
        bind_adapters(gpus, node.topology);
    }
    for (FoundGpu &gpu : gpus) {
        const int number = static_cast<int>(node.gpus.size()),
                  place = static_cast<int>(placement.gpus.size());
        node.gpus.push_back(place);
        for (std::size_t i = 0; i < gpu.ranks.size(); ++i) {
            placement.gpu_of[gpu.ranks[i]] = place;
            placement.rank_on_gpu[gpu.ranks[i]] = static_cast<int>(i);
        }
        double memory_gbps = 0;
        for (const RankRecord *record : gpu.records) {
            memory_gbps = std::max<double>(memory_gbps, record->memory_gbps);
        }
        placement.gpus.push_back({.uuid = gpu.record->uuid,
                                  .bus = gpu.record->bus,
                                  .node = index,
                                  .number = number,
                                  .ranks = std::move(gpu.ranks),
                                  .memory_gbps = memory_gbps});
    }
    count_nics(records, file, node);
    return {};
}

} // namespace

Result<Placement> merge_records(std::span<const RankRecord> records, const Topology *file)
{
    if (Status status = check_files(records, file); !status.ok()) {
        return status;
    }
    Placement placement;
    std::map<std::uint64_t, int> node_index;
    for (std::size_t rank = 0; rank < records.size(); ++rank) {
        const auto [at, is_new] =
            node_index.try_emplace(records[rank].host_id, static_cast<int>(placement.nodes.size()));
        if (is_new) {
            placement.nodes.emplace_back().host_id = records[rank].host_id;
        }
        PlacedNode &node = placement.nodes[at->second];
        placement.node_of.push_back(at->second);
        placement.local_rank.push_back(static_cast<int>(node.ranks.size()));
        node.ranks.push_back(static_cast<int>(rank));
    }
    placement.by_cpu = std::all_of(records.begin(), records.end(),
                                   [](const RankRecord &record) { return record.by_cpu != 0; });
    placement.gpu_of.assign(records.size(), kNoGpu);
    placement.rank_on_gpu.assign(records.size(), 0);
    for (std::size_t index = 0; index < placement.nodes.size(); ++index) {
        if (Status status = place_node(records, file, static_cast<int>(index), placement);
            !status.ok()) {
            return status;
        }
    }
    return placement;
}

} // namespace hetcoll
