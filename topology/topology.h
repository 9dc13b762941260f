// The links between the GPUs of a node as a graph. It comes from a file (topology/file.h), from the
// ranks' records (topology/record.h) or from a probe; its readers need not know which. Pure data:
// no MPI, CUDA or hwloc.
#pragma once

#include "base/status.h"
#include "topology/ids.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hetcoll {

inline constexpr int kNoVertex = -1;
inline constexpr int kUnknownNuma = -1;
inline constexpr int kMaxVertices = 512;
inline constexpr int kMaxLinks = 8192;
inline constexpr int kMaxLinkCount = 1024; // of one Link
inline constexpr double kMinLinkGbps = 1e-3, kMaxLinkGbps = 1e5;
inline constexpr std::size_t kMaxTopologyNameBytes = 63;

enum class VertexKind : std::uint8_t {
    kGpu,
    kNvSwitch,
    kPcieSwitch,
    kCpu, // a socket or NUMA node: host memory hangs here
    kNic,
    kNetwork, // what is behind the NICs
};
inline constexpr int kVertexKindCount = 6;

enum class LinkKind : std::uint8_t { kNvlink, kPcie, kSocket, kNetwork };
inline constexpr int kLinkKindCount = 4;

// As the file has them: gpu nvswitch pcie cpu nic network, and nvlink pcie socket network.
[[nodiscard]] const char *vertex_kind_name(VertexKind kind) noexcept;
[[nodiscard]] const char *link_kind_name(LinkKind kind) noexcept;

struct Vertex {
    VertexKind kind = VertexKind::kGpu;
    std::string name; // one word, unique in the topology
    BusId bus{};      // of GPUs and NICs
    Uuid uuid{};      // of GPUs
    int numa = kUnknownNuma;
    std::string model{}; // of GPUs: one word, or empty
    // Of GPUs, the NIC that its ranks are bound to; empty: they use the nearest one. A name and not
    // a number, so that a fragment keeps it.
    std::string adapter{};

    friend bool operator==(const Vertex &, const Vertex &) = default;
};

// `count` equal links side by side between two vertices.
struct Link {
    int a = kNoVertex, b = kNoVertex; // indices of vertices
    LinkKind kind = LinkKind::kNvlink;
    int count = 1;
    double gbps = 0; // 1e9 bytes a second, of each link and each direction

    [[nodiscard]] double total_gbps() const noexcept { return count * gbps; }
    [[nodiscard]] int other(int vertex) const noexcept { return vertex == a ? b : a; }
    friend bool operator==(const Link &, const Link &) = default;
};

// "GPU g" means the g-th vertex of kind kGpu, in the order of `vertices`.
struct Topology {
    std::string machine; // its name for people; one line
    std::vector<Vertex> vertices;
    std::vector<Link> links;

    // The vertices of one kind, in order: gpus()[g] is the vertex of GPU g.
    [[nodiscard]] std::vector<int> of_kind(VertexKind kind) const;
    [[nodiscard]] std::vector<int> gpus() const { return of_kind(VertexKind::kGpu); }
    // kNoVertex if there is none.
    [[nodiscard]] int find(std::string_view name) const noexcept;
    [[nodiscard]] int find(const BusId &bus) const noexcept; // a GPU; unknown ids are never found
    [[nodiscard]] int find_nic(std::string_view name) const noexcept;
    friend bool operator==(const Topology &, const Topology &) = default;
};

// Names, models and the like are words: letters, digits and _ . : + - only, a letter or digit
// first, at most kMaxTopologyNameBytes.
[[nodiscard]] bool is_word(std::string_view text) noexcept;
// A name that comes from a driver, changed into a word: "NVIDIA-H100-80GB-HBM3".
[[nodiscard]] std::string as_word(std::string_view text);

// Add a vertex or a link to what is there, or say what is wrong with it: a name that is not a word
// or is taken, the identity of another GPU, a link of a vertex to itself, a kind that does not join
// such vertices, a rate or count beyond the limits, a second link of one kind between two vertices,
// too many of them. Vertex indices must exist.
[[nodiscard]] Status add_vertex(Topology &topology, Vertex vertex);
[[nodiscard]] Status add_link(Topology &topology, const Link &link);

// The same machine with these GPUs only, in this order; switches that nothing needs any more are
// left out. An error if a number is not that of a GPU or is there twice.
[[nodiscard]] Result<Topology> fragment(const Topology &topology, std::span<const int> gpus);

// Identifies the content: equal topologies have equal hashes on every machine. Never 0.
[[nodiscard]] std::uint64_t topology_hash(const Topology &topology);

} // namespace hetcoll
