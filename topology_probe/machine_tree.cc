#include "topology_probe/machine_tree.h"

#include <algorithm>
#include <numeric>

namespace hetcoll {
namespace {

// Adds a tree's parts to a topology and remembers the first thing that is wrong.
class Drawing {
public:
    explicit Drawing(const MachineTree &tree) : tree_(tree) {}

    Result<Topology> draw()
    {
        topology_.machine = tree_.machine;
        add_devices(VertexKind::kGpu);
        add_devices(VertexKind::kNic);
        for (std::size_t s = 0; s < tree_.switches.size(); ++s) {
            switches_.push_back(add({.kind = VertexKind::kPcieSwitch, .name = numbered("plx", s)}));
        }
        for (std::size_t c = 0; c < tree_.cpus.size(); ++c) {
            cpus_.push_back(add({.kind = VertexKind::kCpu,
                                 .name = numbered("cpu", c),
                                 .numa = tree_.cpus[c].numa}));
        }
        add_nvlinks();
        add_pcie();
        for (std::size_t a = 0; a < cpus_.size(); ++a) {
            for (std::size_t b = a + 1; b < cpus_.size(); ++b) {
                join(cpus_[a], cpus_[b], LinkKind::kSocket, 1, tree_.socket_gbps);
            }
        }
        add_network();
        if (!wrong_.ok()) {
            return std::move(wrong_);
        }
        return std::move(topology_);
    }

private:
    static std::string numbered(const char *name, std::size_t number)
    {
        return name + std::to_string(number);
    }

    int add(Vertex vertex)
    {
        const std::string name = vertex.name;
        for (int again = 2; topology_.find(vertex.name) != kNoVertex; ++again) {
            vertex.name = name + "." + std::to_string(again); // a network card called gpu0
        }
        if (Status status = add_vertex(topology_, std::move(vertex)); !status.ok()) {
            wrong_ = std::move(status);
            return kNoVertex;
        }
        return static_cast<int>(topology_.vertices.size()) - 1;
    }

    void join(int a, int b, LinkKind kind, int count, double gbps)
    {
        if (a == kNoVertex || b == kNoVertex) {
            return;
        }
        Status status =
            add_link(topology_, {.a = a, .b = b, .kind = kind, .count = count, .gbps = gbps});
        if (!status.ok()) {
            wrong_ = std::move(status);
        }
    }

    // By bus id, as nvidia-smi counts, whatever the order in the tree.
    void add_devices(VertexKind kind)
    {
        devices_.resize(tree_.devices.size(), kNoVertex);
        std::vector<int> order(tree_.devices.size());
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(),
                         [&](int a, int b) { return tree_.devices[a].bus < tree_.devices[b].bus; });
        std::size_t number = 0;
        for (const int d : order) {
            const MachineTree::Device &device = tree_.devices[d];
            if (device.kind == kind) {
                const char *const unnamed = kind == VertexKind::kGpu ? "gpu" : "nic";
                devices_[d] =
                    add({.kind = kind,
                         .name = device.name.empty() ? numbered(unnamed, number) : device.name,
                         .bus = device.bus,
                         .uuid = device.uuid,
                         .numa = device.numa,
                         .model = device.model});
                ++number;
            }
        }
    }

    void add_nvlinks()
    {
        int nvswitch = kNoVertex;
        for (const MachineTree::Nvlink &link : tree_.nvlinks) {
            if (link.cpu == kNone && link.peer == kNone && nvswitch == kNoVertex) {
                nvswitch = add({.kind = VertexKind::kNvSwitch, .name = "nvs0"});
            }
            const int end = link.cpu != kNone    ? cpus_[link.cpu]
                            : link.peer != kNone ? devices_[link.peer]
                                                 : nvswitch;
            join(devices_[link.gpu], end, LinkKind::kNvlink, link.count, link.gbps);
        }
    }

    // The vertex that a link upwards leads to.
    [[nodiscard]] int above(int up, int cpu) const
    {
        return up != kNone ? switches_[up] : cpu != kNone ? cpus_[cpu] : kNoVertex;
    }

    void add_pcie()
    {
        for (std::size_t d = 0; d < tree_.devices.size(); ++d) {
            const MachineTree::Device &device = tree_.devices[d];
            join(devices_[d], above(device.up, device.cpu), LinkKind::kPcie, 1, device.gbps);
        }
        for (std::size_t s = 0; s < tree_.switches.size(); ++s) {
            const MachineTree::Switch &node = tree_.switches[s];
            join(switches_[s], above(node.up, node.cpu), LinkKind::kPcie, 1, node.gbps);
        }
    }

    void add_network()
    {
        int network = kNoVertex;
        for (std::size_t d = 0; d < tree_.devices.size(); ++d) {
            const double gbps = tree_.devices[d].network_gbps;
            if (tree_.devices[d].kind == VertexKind::kNic && gbps > 0) {
                network = network != kNoVertex
                              ? network
                              : add({.kind = VertexKind::kNetwork, .name = "net0"});
                join(devices_[d], network, LinkKind::kNetwork, 1, gbps);
            }
        }
    }

    const MachineTree &tree_;
    Topology topology_;
    Status wrong_;
    std::vector<int> devices_, switches_, cpus_; // their vertices
};

} // namespace

int MachineTree::find(const BusId &bus) const noexcept
{
    for (std::size_t d = 0; d < devices.size(); ++d) {
        if (bus.known != 0 && devices[d].bus == bus) {
            return static_cast<int>(d);
        }
    }
    return kNone;
}

void MachineTree::add_nvlinks(const Nvlink &links)
{
    for (Nvlink &known : nvlinks) {
        if (known.gpu == links.gpu && known.peer == links.peer && known.cpu == links.cpu) {
            known.count += links.count;
            return;
        }
        if (links.peer != kNone && known.gpu == links.peer && known.peer == links.gpu) {
            return; // the other end's word
        }
    }
    nvlinks.push_back(links);
}

Result<Topology> to_topology(const MachineTree &tree) { return Drawing(tree).draw(); }

} // namespace hetcoll
