#include "topology/merge_graph.h"

#include "topology/route.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

namespace hetcoll {
namespace {

constexpr double kUnknownSocketGbps = 10; // what peers get between sockets of about 2017

// A rate as it was written, 9.6 and not 9.6000003815; 0 if it is not a rate.
double rate(float gbps)
{
    if (!(gbps >= kMinLinkGbps && gbps <= kMaxLinkGbps)) {
        return 0;
    }
    char text[32];
    const auto end = std::to_chars(text, text + sizeof text, gbps).ptr;
    double value = 0;
    std::from_chars(text, end, value);
    return value;
}

struct Bundle { // of equal links
    int count = 0;
    double gbps = 0;

    // The statements of two ends, or two ranks, about the same links.
    void merge(const Bundle &other)
    {
        count = std::max(count, other.count);
        gbps = std::max(gbps, other.gbps);
    }
};

using VertexId = std::pair<bool, std::uint64_t>; // is_cpu, id: switches before CPUs

struct Below { // a GPU, or the switch `id`
    int gpu = kNoGpu;
    VertexId id{};
    auto operator<=>(const Below &) const = default;
};

class Graph {
public:
    explicit Graph(std::span<const RecordedGpu> gpus) : gpus_(gpus) {}

    Result<Topology> merge()
    {
        for (std::size_t g = 0; g < gpus_.size(); ++g) {
            for (const RankRecord *record : gpus_[g].records) {
                add_nvlinks(static_cast<int>(g), *record);
                socket_gbps_ = std::max(socket_gbps_, rate(record->socket_gbps));
            }
            add_ancestors(static_cast<int>(g), *gpus_[g].record);
        }
        add_unknown_links();
        add_gpus();
        add_switches();
        add_pcie();
        return status_.ok() ? Result<Topology>(std::move(topology_)) : std::move(status_);
    }

private:
    void add_nvlinks(int gpu, const RankRecord &record)
    {
        Bundle to_switches; // nobody tells how these are joined: they count as one
        const int used = std::min<int>(record.nvlink_count, RankRecord::kMaxNvlinks);
        for (int i = 0; i < used; ++i) {
            const RankRecord::Nvlink &link = record.nvlinks[i];
            const Bundle bundle{link.count, rate(link.gbps)};
            if (bundle.count == 0 || bundle.gbps == 0) {
                continue;
            }
            if (link.to_switch != 0) {
                to_switches.count += bundle.count;
                to_switches.gbps = std::max(to_switches.gbps, bundle.gbps);
            } else if (const int peer = find(link.remote); peer != kNoGpu && peer != gpu) {
                between_[std::minmax(gpu, peer)].merge(bundle);
            }
        }
        if (to_switches.count > 0) {
            switched_[gpu].merge(to_switches);
        }
    }

    // The way to the CPU, the same for all ranks that know it all.
    void add_ancestors(int gpu, const RankRecord &record)
    {
        const int used = std::min<int>(record.ancestor_count, RankRecord::kMaxAncestors);
        Below below{gpu, {}};
        for (int i = 0; i < used; ++i) {
            const RankRecord::Ancestor &ancestor = record.ancestors[i];
            const VertexId id{ancestor.is_cpu != 0, ancestor.id};
            const double gbps = rate(ancestor.gbps);
            if (below.gpu == kNoGpu && below.id == id) {
                continue; // nothing hangs on itself
            }
            add_uplink(below, id, gbps != 0 ? gbps : kUnknownPcieGbps);
            below = {kNoGpu, id};
            if (id.first) {
                return;
            }
        }
        no_cpu_.push_back(below);
    }

    // A device without a path to a CPU is taken to hang on the first one.
    void add_unknown_links()
    {
        const auto first_cpu = uplinks_.lower_bound({true, 0});
        const VertexId cpu = first_cpu == uplinks_.end() ? VertexId{true, 0} : first_cpu->first;
        for (const Below &below : no_cpu_) {
            add_uplink(below, cpu, kUnknownPcieGbps);
        }
    }

    void add_uplink(const Below &below, const VertexId &above, double gbps)
    {
        double &known = uplinks_[above][below];
        known = std::max(known, gbps);
    }

    // The only GPU with that bus id: instances of a divided one have no NVLinks.
    [[nodiscard]] int find(const BusId &bus) const
    {
        int found = kNoGpu;
        for (std::size_t g = 0; g < gpus_.size(); ++g) {
            if (bus.known != 0 && gpus_[g].record->bus == bus) {
                if (found != kNoGpu) {
                    return kNoGpu;
                }
                found = static_cast<int>(g);
            }
        }
        return found;
    }

    int vertex(Vertex vertex)
    {
        if (status_.ok()) {
            status_ = add_vertex(topology_, std::move(vertex));
        }
        return static_cast<int>(topology_.vertices.size()) - 1;
    }

    void link(int a, int b, LinkKind kind, const Bundle &bundle)
    {
        if (status_.ok()) {
            const int count = std::min(bundle.count, kMaxLinkCount);
            status_ = add_link(topology_, {a, b, kind, count, bundle.gbps});
        }
    }

    void add_gpus()
    {
        for (std::size_t g = 0; g < gpus_.size(); ++g) {
            const RankRecord &record = *gpus_[g].record;
            const auto end = std::find(std::begin(record.model), std::end(record.model), '\0');
            vertex(
                {.kind = VertexKind::kGpu,
                 .name = "gpu" + std::to_string(g),
                 .bus = record.bus,
                 .uuid = record.uuid,
                 .numa = std::max(record.numa, kUnknownNuma),
                 .model = as_word({record.model, static_cast<std::size_t>(end - record.model)})});
        }
        for (const auto &[pair, bundle] : between_) {
            link(pair.first, pair.second, LinkKind::kNvlink, bundle);
        }
    }

    void add_switches()
    {
        if (switched_.empty()) {
            return;
        }
        const int fabric = vertex({.kind = VertexKind::kNvSwitch, .name = "nvs0"});
        for (const auto &[gpu, bundle] : switched_) {
            link(gpu, fabric, LinkKind::kNvlink, bundle);
        }
    }

    void add_pcie()
    {
        std::vector<int> cpus;
        std::map<VertexId, int> index;
        for (const auto &[id, links] : uplinks_) {
            const bool is_cpu = id.first;
            const std::size_t number = is_cpu ? cpus.size() : index.size();
            index[id] = vertex({.kind = is_cpu ? VertexKind::kCpu : VertexKind::kPcieSwitch,
                                .name = (is_cpu ? "cpu" : "plx") + std::to_string(number)});
            if (is_cpu) {
                cpus.push_back(index[id]);
            }
        }
        for (const auto &[id, links] : uplinks_) {
            for (const auto &[below, gbps] : links) {
                link(below.gpu != kNoGpu ? below.gpu : index[below.id], index[id], LinkKind::kPcie,
                     {1, gbps});
            }
        }
        for (std::size_t i = 0; i < cpus.size(); ++i) {
            for (std::size_t j = i + 1; j < cpus.size(); ++j) {
                link(cpus[i], cpus[j], LinkKind::kSocket,
                     {1, socket_gbps_ != 0 ? socket_gbps_ : kUnknownSocketGbps});
            }
        }
    }

    std::span<const RecordedGpu> gpus_;
    std::map<std::pair<int, int>, Bundle> between_;
    std::map<int, Bundle> switched_;
    std::map<VertexId, std::map<Below, double>> uplinks_; // GB/s from a vertex to the one above it
    std::vector<Below> no_cpu_;
    double socket_gbps_ = 0;
    Topology topology_;
    Status status_;
};

} // namespace

bool has_gpu(const RankRecord &record) noexcept
{
    return record.uuid.known() || record.bus.known != 0;
}

Result<Topology> merge_graph(std::span<const RecordedGpu> gpus) { return Graph(gpus).merge(); }

} // namespace hetcoll
