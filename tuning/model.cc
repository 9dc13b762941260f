#include "tuning/model.h"

#include "tuning/model_case.h"

#include <algorithm>
#include <bit>

namespace hetcoll {
namespace {

constexpr std::uint64_t kKiB = 1024;

// Bounds of a chunk. Below, a chunk is mostly overhead; above, nothing is won, and more pinned
// memory is needed.
constexpr std::uint64_t kMinChunkBytes = 64 * kKiB;
// Copy out, wire, copy in and kernel overlap well with this many chunks of the largest message; a
// tree is deeper.
constexpr std::uint64_t kChunksPerMessage = 4;
constexpr std::uint64_t kChunksPerTree = 32;
constexpr std::uint64_t kChunkMultiple = 4 * kKiB;

// The ring reads and writes GPU memory five times an element and step: three for the
// reduce-scatter, two for the allgather.
constexpr double kRingTraffic = 5;
// Pairs of GPUs without a switch between them get in each other's way.
constexpr double kContention = 2;

// How many of the rounds of doubling distances stay on a node, if ranks lie there in order.
struct Rounds {
    explicit Rounds(const Case &c)
    {
        const int all = log2_floor(c.ranks);
        near = c.nodes > 1 ? std::min(log2_floor(c.local), all) : all;
        far = all - near;
        folds = std::has_single_bit(unsigned(c.ranks)) ? 0 : 2;
        folds_far = c.nodes > 1 && c.local == 1;
    }
    int near, far, folds;
    bool folds_far; // the ranks left over hand theirs to another node
};

double pair_gbps(const Case &c)
{
    const bool quiet = c.links.switched || !c.mapped() || c.local <= 2;
    return c.near_gbps() / (quiet ? 1 : kContention);
}

// Whole vectors are exchanged: on a node too they go through host memory, as neither rank may
// overwrite what the other one reads.
Prediction recursive_doubling(const Case &c, double chunk)
{
    const Rounds rounds(c);
    const int near = rounds.near + (rounds.folds_far ? 0 : rounds.folds);
    const int far = rounds.far + (rounds.folds_far ? rounds.folds : 0);
    const double near_gbps = c.links.host_gbps / c.sharing;
    return {
        .latency_us =
            near * (c.links.host_latency_us + c.turns_us()) + far * c.links.node_latency_us,
        .bandwidth_us = near * us(c.bytes, near_gbps) + far * us(c.bytes, c.far_gbps(c.local)),
        .reduction_us = (near + far) * c.reduction_us(std::min(c.bytes, chunk)),
    };
}

// Who talks to whom is not known: in every round some message takes the slowest link.
Prediction anywhere(const TeamCost &cost, const Case &c, double chunk)
{
    const bool far = c.nodes > 1;
    return predict_rounds(cost, c, c.bytes,
                          far ? std::max(c.near_us(), c.links.node_latency_us) : c.near_us(),
                          far ? std::min(pair_gbps(c), c.far_gbps(c.local)) : pair_gbps(c), chunk);
}

// The messages of a round are under way together, but each takes its processor's time.
Prediction of_radix(int k, const TeamAlgorithm &algorithm, const Case &c, double chunk)
{
    Prediction cost = anywhere(algorithm.cost(c.ranks), c, chunk);
    const int more = std::min(k, c.ranks) - 2;
    cost.latency_us += algorithm.cost(c.ranks).rounds * std::max(more, 0) * c.links.message_us;
    cost.bandwidth_us *= kCrossing;
    return cost;
}

// The first rounds move the most, and stay on the node: 1 - 2^-near of the vector twice.
Prediction rabenseifner(const Case &c, double chunk)
{
    const Rounds rounds(c);
    if (rounds.folds > 0) {
        return of_radix(2, kRabenseifnerOfTeam, c, chunk);
    }
    const double near_rest = 1.0 / static_cast<double>(1u << rounds.near);
    const double rest = near_rest / static_cast<double>(1u << rounds.far);
    const double near_bytes = 2 * kCrossing * (1 - near_rest) * c.bytes;
    const double far_bytes = 2 * kCrossing * (near_rest - rest) * c.bytes;
    return {
        .latency_us = 2 * rounds.near * c.near_us() + 2 * rounds.far * c.links.node_latency_us,
        .bandwidth_us = us(near_bytes, pair_gbps(c)) + us(far_bytes, c.far_gbps(c.local)),
        .reduction_us = (rounds.near + rounds.far) * c.reduction_us(std::min(c.bytes / 2, chunk)),
    };
}

Prediction ring(const Case &c, double chunk)
{
    const double n = c.ranks;
    double step_us = c.near_us(), gbps = c.ring_gbps();
    if (c.nodes > 1) {
        step_us =
            c.local > 1 ? std::max(step_us, c.links.node_latency_us) : c.links.node_latency_us;
        gbps = c.local > 1 ? std::min(gbps, c.far_gbps(1)) : c.far_gbps(1);
    }
    Prediction cost = predict_rounds(kRingOfTeam.cost(c.ranks), c, c.bytes, step_us, gbps, chunk);
    if (c.sharing > 1) {
        const double memory = c.memory_us(kRingTraffic * (n - 1) / n * c.bytes * c.sharing);
        cost.bandwidth_us = std::max(cost.bandwidth_us, memory);
    }
    return cost;
}

// A direct kernel reads, reduces and writes at the same time: what takes longer, the links or the
// memory, sets its pace.
Prediction direct(double latency_us, double wire_us, double memory_us)
{
    return {
        .latency_us = latency_us,
        .bandwidth_us = wire_us,
        .reduction_us = std::max(memory_us - wire_us, 0.0),
    };
}

// Both handshakes around kernels that write to other GPUs.
double direct_us(const Case &c)
{
    return 2 * c.links.handshake_us + (c.one_gpu ? 0 : kRemoteWriteUs);
}

Prediction one_shot(const Case &c, double /*chunk*/)
{
    const double remote = static_cast<double>(c.local - c.sharing) * c.bytes * c.sharing;
    return direct(2 * c.links.handshake_us + c.sharing * c.links.launch_us, c.all_to_all_us(remote),
                  c.memory_us((c.local + 1.0) * c.bytes * c.sharing));
}

Prediction two_shot(const Case &c, double /*chunk*/)
{
    const double remote = 2.0 * (c.local - c.sharing) / c.local * c.bytes * c.sharing;
    return direct(direct_us(c) + c.sharing * c.links.launch_us, c.all_to_all_us(remote),
                  c.memory_us(2 * c.bytes * c.sharing));
}

// Inputs arrive and results leave at the same time, in the two directions of the owner's port.
Prediction leader(const Case &c, double /*chunk*/)
{
    const double remote = static_cast<double>(c.local - c.sharing) * c.bytes;
    return direct(direct_us(c) + c.links.launch_us,
                  us(remote, c.mapped() ? c.links.gpu_gbps : c.links.host_gbps),
                  c.memory_us(2 * c.bytes * c.sharing));
}

Prediction copy_in(const Case &c, double chunk)
{
    Prediction cost = one_shot(c, chunk);
    cost.latency_us += c.sharing * c.links.launch_us;
    cost.reduction_us += c.memory_us(2 * c.bytes * c.sharing);
    return cost;
}

// A tree of one branch, along which a vector goes up and down; ranks of a node are neighbours. A
// node's cards carry both ways to both neighbours: a vector up and one down in each direction.
Prediction chain_of_ranks(const Case &c, double chunk)
{
    const double hops = 2.0 * (c.ranks - 1), far_hops = 2.0 * (c.nodes - 1);
    const double far = c.chain_far_gbps(c.local > 1 ? 1 : 2);
    const double gbps = c.nodes == 1  ? c.chain_gbps()
                        : c.local > 1 ? std::min(c.chain_gbps(), far)
                                      : far;
    const double first = std::min(c.bytes, chunk);
    return {
        .latency_us =
            (hops - far_hops) * (c.near_us() + c.turns_us()) + far_hops * c.links.node_latency_us,
        .bandwidth_us = us(hops * first, gbps) + us(c.bytes, gbps),
        .reduction_us = (c.ranks - 1.0) * c.reduction_us(first),
    };
}

// The first rank of each node reads those of all others of it, and they read the result there.
Prediction chain_of_nodes(const Case &c, double chunk)
{
    const double hops = 2.0 * (c.nodes - 1), first = std::min(c.bytes, chunk);
    const double near = us((c.local - 1) * c.bytes, c.near_gbps());
    const double far_gbps = c.chain_far_gbps(2);
    const double far = c.nodes > 1 ? us(c.bytes, far_gbps) : 0;
    return {
        .latency_us = hops * c.links.node_latency_us + (c.nodes + 1) * c.near_us(),
        .bandwidth_us = (c.nodes > 1 ? us(hops * first, far_gbps) : 0) + std::max(near, far),
        .reduction_us = c.nodes * c.reduction_us(first),
    };
}

bool node_by_node(const Case &c, double chunk)
{
    return c.mapped() && c.local > 1 &&
           chain_of_nodes(c, chunk).total_us() < chain_of_ranks(c, chunk).total_us();
}

Prediction ordered(const Case &c, double chunk)
{
    return node_by_node(c, chunk) ? chain_of_nodes(c, chunk) : chain_of_ranks(c, chunk);
}

// Both phases run at once, except for the first segment to be reduced and the last one to be
// gathered. A rank that comes late hands over its vector and takes the result; the others have
// added theirs by then, or have begun to.
Prediction weighted(const Case &c, double /*chunk*/)
{
    const double n = c.ranks;
    const double segments = weighted_segments(c.query.bytes, c.ranks);
    double step_us = c.near_us(), vector_us = us(c.bytes, std::max(c.links.weighted_gbps, 1e-3));
    if (c.nodes > 1) {
        step_us = std::max(step_us, c.links.node_latency_us);
    }
    if (c.query.late_us > 0 && n > 1) {
        const double own_us = us(c.bytes, c.nodes > 1 ? c.far_gbps(1) : c.near_gbps());
        const double early_us = (n - 2) / (n - 1) * own_us;
        vector_us = own_us + std::max(early_us - c.query.late_us, 0.0);
    }
    return {
        .latency_us = 2 * (n - 1) * step_us,
        .bandwidth_us = vector_us * (1 + 1 / segments),
        .reduction_us = c.reduction_us(c.bytes / n / segments),
    };
}

// The pipeline of every tree fills with one chunk a level, up and down, at that tree's part of the
// rate. Trees follow links that are mapped, even where other pairs of GPUs are not.
Prediction tree(const Case &c, double chunk)
{
    const double gbps = c.links.tree_gbps > 0 ? c.links.tree_gbps : c.ring_gbps() / 2;
    const double levels = 2.0 * c.links.tree_depth;
    const double trees = c.links.tree_count;
    const double first = std::min(c.bytes / trees, chunk);
    return {
        .latency_us = levels * (c.links.gpu_latency_us + c.turns_us()),
        .bandwidth_us = us(levels * first * trees, gbps) + us(c.bytes, gbps),
        .reduction_us = c.links.tree_depth * c.reduction_us(first),
    };
}

// Copies out, a sum by processors, an exchange of the nodes' leaders, and copies in.
Prediction host(const Case &c, double /*chunk*/)
{
    const int exchanges = c.nodes > 1 ? log2_ceil(c.nodes) : 0;
    return {
        .latency_us = 2 * c.links.copy_us + 2 * c.links.handshake_us +
                      exchanges * (c.links.message_us + c.links.handshake_us),
        .bandwidth_us =
            us(2 * c.bytes, c.links.host_gbps) + exchanges * us(c.bytes, c.links.node_gbps),
        .reduction_us = us((c.local + exchanges) * c.bytes, kHostSumGbps),
    };
}

// Every rank's vector, or its slice of its node's sum, goes to its aggregator and comes back, the
// two directions at once; with several aggregators their sums meet in one above them. The last
// message is alone on its way. An aggregator is a program on a processor, which adds up all that
// its ranks send. The network cards of aggregators are taken to carry what is sent to them. On the
// node the slices go round a ring, through host memory, before and after.
Prediction in_network(const Case &c, double chunk)
{
    const double slices = std::max(c.query.slices, 1), slice = c.bytes / slices;
    const double levels = c.query.aggregators > 1 ? 2 : 1, gbps = c.far_gbps(c.local);
    const double served = std::max(c.ranks / slices / std::max(c.query.aggregators, 1), 1.0);
    const double wire = us(slice, gbps) + (2 * levels - 1) * us(std::min(slice, chunk), gbps);
    return {
        .latency_us = 2 * levels * c.links.node_latency_us +
                      2 * (slices - 1) * (c.links.host_latency_us + c.turns_us()),
        .bandwidth_us = wire + us(2 * (slices - 1) * slice, c.links.host_gbps / c.sharing),
        .reduction_us = std::max(us(served * c.bytes, kHostSumGbps) - wire, 0.0) +
                        (slices - 1) * c.reduction_us(std::min(slice, chunk)),
    };
}

// ---- chunks ----

std::uint64_t chunk_of_vector(const Case &c) { return c.query.bytes / kChunksPerMessage; }
std::uint64_t chunk_of_half(const Case &c) { return chunk_of_vector(c) / (c.ranks > 1 ? 2 : 1); }
std::uint64_t chunk_of_tree(const Case &c)
{
    return c.query.bytes / kChunksPerTree / unsigned(c.links.tree_count);
}
std::uint64_t chunk_of_slice(const Case &c) { return chunk_of_vector(c) / unsigned(lanes_of(c)); }
std::uint64_t chunk_of_chain(const Case &c) { return c.query.bytes / kChunksPerTree; }
std::uint64_t chunk_of_message(const Case & /*c*/) { return kInNetworkMessageBytes; }

std::uint64_t chunk_of_rings(const Case &c)
{
    return chunk_of_vector(c) / unsigned(c.ranks) / unsigned(std::max(c.links.link_rings, 1));
}

// ---- the list's models ----

template <const TeamAlgorithm &algorithm> Prediction of_rounds(const Case &c, double chunk)
{
    return anywhere(algorithm.cost(c.ranks), c, chunk);
}
template <const TeamAlgorithm &algorithm> std::uint64_t chunk_of_rounds(const Case &c)
{
    return chunk_of_vector(c) / unsigned(algorithm.cost(c.ranks).parts);
}
template <const TeamAlgorithm &algorithm>
constexpr Model kRoundsModel{of_rounds<algorithm>, chunk_of_rounds<algorithm>};

// The largest message of a round with k-1 partners is a k-th of the vector.
template <int k> std::uint64_t chunk_of_digit(const Case &c)
{
    return chunk_of_vector(c) / unsigned(std::min(k, c.ranks));
}
template <int k, const TeamAlgorithm &algorithm> Prediction of_digits(const Case &c, double chunk)
{
    return of_radix(k, algorithm, c, chunk);
}
template <int k, const TeamAlgorithm &algorithm>
constexpr Model kRadixModel{of_digits<k, algorithm>, chunk_of_digit<k>};
constexpr Model kRadix3Model = kRadixModel<3, kRadix3OfTeam>;
constexpr Model kRadix4Model = kRadixModel<4, kRadix4OfTeam>;
constexpr Model kRadix8Model = kRadixModel<8, kRadix8OfTeam>;

constexpr Model kRecursiveDoublingModel{recursive_doubling, chunk_of_vector};
constexpr Model kRabenseifnerModel{rabenseifner, chunk_of_half};
constexpr Model kRingModel{ring, chunk_of_rings};
constexpr Model kOneShotModel{one_shot, chunk_of_vector};
constexpr Model kTwoShotModel{two_shot, chunk_of_vector};
constexpr Model kLeaderModel{leader, chunk_of_vector};
constexpr Model kTreeModel{tree, chunk_of_tree};
constexpr Model kHierarchicalModel{hierarchical, chunk_of_slice};
constexpr Model kHostModel{host, chunk_of_vector};
constexpr Model kCopyInModel{copy_in, chunk_of_vector};
constexpr Model kOrderedModel{ordered, chunk_of_chain};
constexpr Model kInNetworkModel{in_network, chunk_of_message};
constexpr Model kWeightedModel{weighted, chunk_of_vector};

#define HETCOLL_MODEL(constant, enumerator, name, counter, form, needs, sizes, traits, model, \
                      help)                                                                   \
    model,
constexpr Model kModels[] = {HETCOLL_ALGORITHMS(HETCOLL_MODEL)};
#undef HETCOLL_MODEL

const Model &model_of(Algorithm algorithm) { return kModels[static_cast<std::size_t>(algorithm)]; }

} // namespace

Prediction predict_rounds(const TeamCost &cost, const Case &c, double bytes, double step_us,
                          double gbps, double chunk)
{
    const double parts = cost.parts, part = bytes / parts;
    return {
        .latency_us = cost.rounds * step_us,
        .bandwidth_us = us(cost.parts_sent / parts * bytes, gbps),
        .reduction_us = cost.parts_reduced * c.reduction_us(std::min(part, chunk)),
    };
}

std::size_t model_chunk(Algorithm algorithm, const Query &query) noexcept
{
    const std::uint64_t chunk = model_of(algorithm).chunk(Case(query));
    return std::clamp<std::uint64_t>(chunk / kChunkMultiple * kChunkMultiple, kMinChunkBytes,
                                     kLargestChunkBytes);
}

Prediction predict(Algorithm algorithm, const Query &query) noexcept
{
    const Case c(query);
    if (c.ranks == 1) {
        return {};
    }
    const double chunk = static_cast<double>(
        query.chunk_bytes != 0 ? query.chunk_bytes : model_chunk(algorithm, query));
    return model_of(algorithm).predict(c, chunk);
}

AlgorithmSet allowed(const Query &query) noexcept
{
    if (query.reproducible) { // leaders of nodes exchange sums, and two ranks have but one order
        const bool sums = query.nodes > 1 && query.ranks > 2;
        const AlgorithmSet fold = query.available & kReproducibleAlgorithms;
        return sums ? without(fold, Algorithm::kHost) : fold;
    }
    const AlgorithmSet asked = query.forced ? bit(*query.forced) : AlgorithmSet{0};
    return query.available & static_cast<AlgorithmSet>(~kWhenAskedAlgorithms | asked);
}

Algorithm fastest(AlgorithmSet set, const Query &query) noexcept
{
    Algorithm best = Algorithm::kHost;
    double best_us = 0;
    bool found = false;
    for (int i = 0; i < kAlgorithmCount; ++i) {
        const auto algorithm = static_cast<Algorithm>(i);
        if (!contains(set, algorithm)) {
            continue;
        }
        const double total = predict_us(algorithm, query);
        if (!found || total < best_us) {
            best = algorithm;
            best_us = total;
            found = true;
        }
    }
    return best;
}

bool adds_node_by_node(const Query &query) noexcept
{
    const std::size_t chunk =
        query.chunk_bytes != 0 ? query.chunk_bytes : model_chunk(Algorithm::kOrdered, query);
    return node_by_node(Case(query), static_cast<double>(chunk));
}

Algorithm fastest_between_nodes(const Query &query) noexcept
{
    const Case c(query);
    return best_between_nodes(c, static_cast<double>(model_chunk(Algorithm::kHierarchical, query)));
}

bool goes_over_trees(const Query &query) noexcept
{
    const Case c(query);
    return over_trees(c, static_cast<double>(model_chunk(Algorithm::kHierarchical, query)));
}

} // namespace hetcoll
