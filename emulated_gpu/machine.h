// The machine that EMU_LINKS describes: its GPUs and the links between them, and which links bytes
// cross on their way. Pure data, no settings: the emulated driver and the emulated NVML share it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hetcoll::emulated_gpu {

enum class VertexKind : std::uint8_t { kGpu, kNvSwitch, kPcieSwitch, kCpu, kOther };
enum class LinkKind : std::uint8_t { kNvlink, kPcie, kSocket, kOther };

struct BusId {
    unsigned domain = 0, bus = 0, device = 0, function = 0;
    bool operator==(const BusId &) const = default;
};
// DOMAIN:BUS:DEVICE.FUNCTION or without the domain, in hexadecimal. False if it is not one.
[[nodiscard]] bool parse_bus_id(std::string_view text, BusId &bus);

using Uuid = std::array<std::uint8_t, 16>; // all zero: none given
// PREFIX-00010203-0405-...
[[nodiscard]] std::string print_uuid(const char *prefix, const Uuid &uuid);

struct Vertex {
    VertexKind kind = VertexKind::kOther;
    std::string name{};
    BusId bus{};
    Uuid uuid{};
    int numa = -1;
    std::string model{};
};

struct Link {
    int a, b; // vertices
    LinkKind kind;
    int count;
    double gbps; // of each link in each direction

    [[nodiscard]] int other(int vertex) const { return vertex == a ? b : a; }
};

struct Machine {
    std::string name;
    std::vector<Vertex> vertices;
    std::vector<Link> links;
    std::vector<int> gpus; // the vertex of each device

    [[nodiscard]] const Vertex &gpu(int device) const
    {
        return vertices[static_cast<std::size_t>(gpus[static_cast<std::size_t>(device)])];
    }
};

// Reads a topology file (docs/topology.md). Answers what is wrong with it, or "".
[[nodiscard]] std::string parse_machine(std::string_view text, Machine &machine);
// Leaves these GPUs, "0,3-5", as devices 0, 1, ... Answers what is wrong with the list, or "".
[[nodiscard]] std::string keep_gpus(Machine &machine, std::string_view list);
// GPUs that hang on one CPU by PCIe.
[[nodiscard]] Machine pcie_box(int gpus, double gbps);

// One direction of a link, of links side by side, or of a GPU's port to the NVSwitches.
struct LinkDirection {
    std::string name; // FROM_TO
    double gbps;
};

inline constexpr int kHostMemory = -1; // in place of a device

// Every way between two devices, and between a device and the memory of its nearest CPU: a direct
// NVLink; else the ports to the NVSwitches; else the path of fewest links (of these the widest)
// over PCIe switches and CPUs, never through another GPU.
class Routes {
public:
    explicit Routes(const Machine &machine);

    [[nodiscard]] const std::vector<LinkDirection> &directions() const { return directions_; }
    // Indices of directions in order; empty if there is no way, and from a place to itself.
    [[nodiscard]] const std::vector<int> &between(int from, int to) const;
    // The vertices on the way over PCIe and sockets, ends included, NVLinks or not.
    [[nodiscard]] std::vector<int> pcie_path(int from, int to) const;
    [[nodiscard]] bool uses_nvlink(int from, int to) const;
    [[nodiscard]] bool crosses_sockets(int from, int to) const;

private:
    struct Reach { // how a search got to a vertex
        int links = -1, link = -1, from = -1;
        double gbps = 0;
    };
    struct Route {
        std::vector<int> directions{};
        bool nvlink = false, sockets = false;
    };

    [[nodiscard]] int direction(const std::string &name, double gbps);
    [[nodiscard]] double direct_gbps(int a, int b, bool nvlink) const;
    [[nodiscard]] std::vector<int> switches_of(int gpu) const;
    [[nodiscard]] bool add_switched(int from, int to, Route &route);
    [[nodiscard]] std::vector<Reach> search(int start) const;
    [[nodiscard]] static std::vector<int> walk(const std::vector<Reach> &reached, int end);
    void add_path(const std::vector<int> &path, Route &route);
    [[nodiscard]] Route find(int from, int to);
    [[nodiscard]] Route find_to_host(int gpu, bool reversed);
    [[nodiscard]] std::size_t index(int from, int to) const;

    const Machine machine_;
    std::vector<LinkDirection> directions_;
    std::vector<Route> routes_; // by index(): devices, then the host
};

} // namespace hetcoll::emulated_gpu
