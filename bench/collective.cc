#include "bench/collective.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

namespace hetcoll {
namespace {

constexpr char kGarbage = '\xee';
constexpr int kRoot = 0;

// Who has what. A whole vector, or a block of it for each rank.
enum class Holds : std::uint8_t {
    kWhole,     // every rank, of its own
    kBlock,     // every rank, of its own
    kBlocksFor, // every rank: a block for each rank
};
struct Kind {
    const char *word, *call;
    Holds input, result;
    bool reduces, rooted;   // rooted: of the result, or of the input of a scatter, the root alone
    bool neighbors = false; // blocks are of the two neighbors in a ring, and not of all ranks
};
constexpr Kind kRows[] = {
    {"allreduce", "MPI_Allreduce", Holds::kWhole, Holds::kWhole, true, false},
    {"bcast", "MPI_Bcast", Holds::kWhole, Holds::kWhole, false, true},
    {"reduce", "MPI_Reduce", Holds::kWhole, Holds::kWhole, true, true},
    {"allgather", "MPI_Allgather", Holds::kBlock, Holds::kWhole, false, false},
    {"allgatherv", "MPI_Allgatherv", Holds::kBlock, Holds::kWhole, false, false},
    {"reduce_scatter", "MPI_Reduce_scatter", Holds::kBlocksFor, Holds::kBlock, true, false},
    {"reduce_scatter_block", "MPI_Reduce_scatter_block", Holds::kBlocksFor, Holds::kBlock, true,
     false},
    {"alltoall", "MPI_Alltoall", Holds::kBlocksFor, Holds::kWhole, false, false},
    {"alltoallv", "MPI_Alltoallv", Holds::kBlocksFor, Holds::kWhole, false, false},
    {"alltoallw", "MPI_Alltoallw", Holds::kBlocksFor, Holds::kWhole, false, false},
    {"gather", "MPI_Gather", Holds::kBlock, Holds::kWhole, false, true},
    {"gatherv", "MPI_Gatherv", Holds::kBlock, Holds::kWhole, false, true},
    {"scatter", "MPI_Scatter", Holds::kBlocksFor, Holds::kBlock, false, true},
    {"scatterv", "MPI_Scatterv", Holds::kBlocksFor, Holds::kBlock, false, true},
    {"scan", "MPI_Scan", Holds::kWhole, Holds::kWhole, true, false},
    {"exscan", "MPI_Exscan", Holds::kWhole, Holds::kWhole, true, false},
    {"neighbor_allgather", "MPI_Neighbor_allgather", Holds::kBlock, Holds::kWhole, false, false,
     true},
    {"neighbor_allgatherv", "MPI_Neighbor_allgatherv", Holds::kBlock, Holds::kWhole, false, false,
     true},
    {"neighbor_alltoall", "MPI_Neighbor_alltoall", Holds::kBlocksFor, Holds::kWhole, false, false,
     true},
    {"neighbor_alltoallv", "MPI_Neighbor_alltoallv", Holds::kBlocksFor, Holds::kWhole, false, false,
     true},
    {"neighbor_alltoallw", "MPI_Neighbor_alltoallw", Holds::kBlocksFor, Holds::kWhole, false, false,
     true},
};
static_assert(std::size(kRows) == kCollectiveCount);

const Kind &row_of(Collective collective) { return kRows[static_cast<std::size_t>(collective)]; }

// A ring of the ranks as a graph: what a rank sends first goes to the rank after it, and what it
// receives first comes from the one before it. Then block i is block i of its sender on one and two
// ranks too, where both neighbors are the same rank; a periodic Cartesian communicator leaves that
// to the release of MPI.
class Ring {
public:
    Ring(MPI_Comm comm, int rank, int ranks) : sources_(of(rank, ranks))
    {
        const int targets[] = {sources_[1], sources_[0]};
        MPI_Dist_graph_create_adjacent(comm, 2, sources_.data(), MPI_UNWEIGHTED, 2, targets,
                                       MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm_);
    }
    Ring(const Ring &) = delete;
    Ring &operator=(const Ring &) = delete;
    ~Ring() { MPI_Comm_free(&comm_); }

    // The neighbors, in the order of the blocks that they send.
    static std::array<int, 2> of(int rank, int ranks)
    {
        return {(rank + ranks - 1) % ranks, (rank + 1) % ranks};
    }
    [[nodiscard]] MPI_Comm comm() const noexcept { return comm_; }

private:
    std::array<int, 2> sources_;
    MPI_Comm comm_ = MPI_COMM_NULL;
};

// The call, with all that it needs. Blocks are equal, also where MPI would let them differ.
struct Arguments {
    Collective collective;
    const void *send;
    void *recv;
    int count, block; // elements of the vector, and of a block
    MPI_Datatype type;
    MPI_Op op;
    MPI_Comm comm;
    std::vector<int> counts, first, first_bytes; // of all blocks
    std::vector<MPI_Aint> offsets;               // the same bytes, as neighbors want them
    std::vector<MPI_Datatype> types;
    std::shared_ptr<const Ring> ring; // null: no neighbors
};

void call_neighbors(const Arguments &a)
{
    const int *const counts = a.counts.data(), *const first = a.first.data();
    const MPI_Aint *const offsets = a.offsets.data();
    const MPI_Datatype *const types = a.types.data();
    const MPI_Comm ring = a.ring->comm();
    switch (a.collective) {
    case Collective::kNeighborAllgather:
        MPI_Neighbor_allgather(a.send, a.block, a.type, a.recv, a.block, a.type, ring);
        break;
    case Collective::kNeighborAllgatherv:
        MPI_Neighbor_allgatherv(a.send, a.block, a.type, a.recv, counts, first, a.type, ring);
        break;
    case Collective::kNeighborAlltoall:
        MPI_Neighbor_alltoall(a.send, a.block, a.type, a.recv, a.block, a.type, ring);
        break;
    case Collective::kNeighborAlltoallv:
        MPI_Neighbor_alltoallv(a.send, counts, first, a.type, a.recv, counts, first, a.type, ring);
        break;
    case Collective::kNeighborAlltoallw:
        MPI_Neighbor_alltoallw(a.send, counts, offsets, types, a.recv, counts, offsets, types,
                               ring);
        break;
    default: break;
    }
}

void call_moving(const Arguments &a)
{
    const int *const counts = a.counts.data(), *const first = a.first.data();
    switch (a.collective) {
    case Collective::kBcast: MPI_Bcast(a.recv, a.count, a.type, kRoot, a.comm); break;
    case Collective::kAllgather:
        MPI_Allgather(a.send, a.block, a.type, a.recv, a.block, a.type, a.comm);
        break;
    case Collective::kAllgatherv:
        MPI_Allgatherv(a.send, a.block, a.type, a.recv, counts, first, a.type, a.comm);
        break;
    case Collective::kAlltoall:
        MPI_Alltoall(a.send, a.block, a.type, a.recv, a.block, a.type, a.comm);
        break;
    case Collective::kAlltoallv:
        MPI_Alltoallv(a.send, counts, first, a.type, a.recv, counts, first, a.type, a.comm);
        break;
    case Collective::kAlltoallw:
        MPI_Alltoallw(a.send, counts, a.first_bytes.data(), a.types.data(), a.recv, counts,
                      a.first_bytes.data(), a.types.data(), a.comm);
        break;
    case Collective::kGather:
        MPI_Gather(a.send, a.block, a.type, a.recv, a.block, a.type, kRoot, a.comm);
        break;
    case Collective::kGatherv:
        MPI_Gatherv(a.send, a.block, a.type, a.recv, counts, first, a.type, kRoot, a.comm);
        break;
    case Collective::kScatter:
        MPI_Scatter(a.send, a.block, a.type, a.recv, a.block, a.type, kRoot, a.comm);
        break;
    case Collective::kScatterv:
        MPI_Scatterv(a.send, counts, first, a.type, a.recv, a.block, a.type, kRoot, a.comm);
        break;
    default: break;
    }
}

void call(const Arguments &a)
{
    switch (a.collective) {
    case Collective::kReduce:
        MPI_Reduce(a.send, a.recv, a.count, a.type, a.op, kRoot, a.comm);
        break;
    case Collective::kReduceScatter:
        MPI_Reduce_scatter(a.send, a.recv, a.counts.data(), a.type, a.op, a.comm);
        break;
    case Collective::kReduceScatterBlock:
        MPI_Reduce_scatter_block(a.send, a.recv, a.block, a.type, a.op, a.comm);
        break;
    case Collective::kScan: MPI_Scan(a.send, a.recv, a.count, a.type, a.op, a.comm); break;
    case Collective::kExscan: MPI_Exscan(a.send, a.recv, a.count, a.type, a.op, a.comm); break;
    default: a.ring != nullptr ? call_neighbors(a) : call_moving(a);
    }
}

class CollectiveWorkload : public Workload {
public:
    CollectiveWorkload(Collective collective, const VectorSpec &spec, int rank, int ranks,
                       Buffer send, Buffer recv)
        : collective_(collective), row_(row_of(collective)), spec_(spec), rank_(rank),
          ranks_(ranks), blocks_(block_count(collective, ranks)),
          block_(spec.count / static_cast<std::size_t>(blocks_)), send_(std::move(send)),
          recv_(std::move(recv))
    {
    }

    Status fill(int rank) override
    {
        std::vector<char> garbage(recv_.bytes(), kGarbage);
        std::vector<char> input = input_of(rank);
        if (in_place()) { // its own block lies where the result will have it
            const bool own_block = row_.input == Holds::kBlock;
            std::copy(input.begin(), input.end(),
                      garbage.begin() + (own_block ? rank * block_bytes() : 0));
        } else if (Status status = send_.write(0, input.data(), input.size()); !status.ok()) {
            return status;
        }
        return recv_.write(0, garbage.data(), garbage.size());
    }

    Result<Outcome> check(int ranks) override
    {
        if (!has_result()) {
            return Outcome{};
        }
        std::vector<char> got(recv_.bytes());
        if (Status status = recv_.read(0, got.data(), got.size()); !status.ok()) {
            return status;
        }
        Outcome outcome{wrong_elements(got.data(), ranks), 0};
        if (!row_.rooted && !row_.neighbors && row_.result == Holds::kWhole &&
            row_.input == Holds::kBlock) {
            outcome.checksum = checksum(spec_.pattern.kind, spec_.count, got.data());
        }
        return outcome;
    }

    [[nodiscard]] WorkloadReduction reduction() const override
    {
        return {in_place() ? MPI_IN_PLACE : send_.data(),
                recv_.data(),
                spec_.count,
                spec_.count * element(),
                spec_.type,
                spec_.op};
    }

    [[nodiscard]] std::function<void()> own_call(MPI_Comm comm) const override
    {
        Arguments arguments = arguments_on(comm);
        const bool is_scatter =
            collective_ == Collective::kScatter || collective_ == Collective::kScatterv;
        if (spec_.in_place && row_.rooted && !is_scatter && rank_ != kRoot) {
            arguments.send = send_.data(); // only the root has its input in place
        } else if (spec_.in_place && is_scatter && rank_ == kRoot) {
            arguments.send = recv_.data();
            arguments.recv = MPI_IN_PLACE;
        }
        return [arguments] { call(arguments); };
    }

private:
    [[nodiscard]] Arguments arguments_on(MPI_Comm comm) const
    {
        Arguments arguments{};
        arguments.collective = collective_;
        arguments.send = in_place() ? MPI_IN_PLACE : send_.data();
        arguments.recv = recv_.data();
        arguments.count = static_cast<int>(spec_.count);
        arguments.block = static_cast<int>(block_);
        arguments.type = spec_.type;
        arguments.op = spec_.op;
        arguments.comm = comm;
        for (int i = 0; i < blocks_; ++i) {
            const auto first_bytes = static_cast<MPI_Aint>(i * block_bytes());
            arguments.counts.push_back(arguments.block);
            arguments.first.push_back(i * arguments.block);
            arguments.first_bytes.push_back(static_cast<int>(first_bytes));
            arguments.offsets.push_back(first_bytes);
            arguments.types.push_back(spec_.type);
        }
        if (row_.neighbors) {
            arguments.ring = std::make_shared<Ring>(comm, rank_, ranks_);
        }
        return arguments;
    }
    [[nodiscard]] std::size_t element() const { return element_bytes(spec_.pattern.kind); }
    [[nodiscard]] std::size_t block_bytes() const { return block_ * element(); }
    // This rank's buffers. Where there is a root, the others have a send buffer, or only a receive
    // buffer.
    [[nodiscard]] bool in_place() const
    {
        return collective_ == Collective::kBcast ||
               (spec_.in_place && !row_.neighbors && (!row_.rooted || rank_ == kRoot));
    }
    [[nodiscard]] bool has_result() const
    {
        const bool at_root = row_.rooted && row_.result == Holds::kWhole;
        return collective_ == Collective::kBcast ||
               !((at_root && rank_ != kRoot) || (collective_ == Collective::kExscan && rank_ == 0));
    }
    // Each of the blocks for others has a pattern of its own, so that one at the wrong place is
    // seen.
    [[nodiscard]] Pattern pattern_for(int block) const
    {
        Pattern pattern = spec_.pattern;
        pattern.seed += row_.input == Holds::kBlocksFor ? static_cast<std::uint32_t>(block) : 0;
        return pattern;
    }
    [[nodiscard]] std::vector<char> input_of(int rank) const
    {
        std::vector<char> input;
        if (row_.input == Holds::kBlocksFor) {
            input.resize(spec_.count * element());
            for (int to = 0; to < blocks_; ++to) {
                fill_input(pattern_for(to), rank, block_, input.data() + to * block_bytes());
            }
            return input;
        }
        input.resize(row_.input == Holds::kBlock ? block_bytes() : spec_.count * element());
        fill_input(spec_.pattern, rank, input.size() / element(), input.data());
        return input;
    }
    // What `from` has sent, or had, at `got`.
    [[nodiscard]] std::uint64_t differs(const Pattern &pattern, int from, std::size_t count,
                                        const char *got) const
    {
        std::vector<char> wanted(count * element());
        fill_input(pattern, from, count, wanted.data());
        const ElementKind kind = pattern.kind;
        return checksum(kind, count, got) == checksum(kind, count, wanted.data()) ? 0 : count;
    }
    [[nodiscard]] std::uint64_t wrong_elements(const char *got, int ranks) const
    {
        switch (collective_) {
        case Collective::kBcast: return differs(spec_.pattern, kRoot, spec_.count, got);
        case Collective::kScatter:
        case Collective::kScatterv: // in place the root's block stays where it was
            return differs(pattern_for(rank_), kRoot, block_,
                           in_place() ? got + rank_ * block_bytes() : got);
        case Collective::kScan:
            return compare_result(spec_.pattern, rank_ + 1, spec_.count, got).wrong;
        case Collective::kExscan:
            return compare_result(spec_.pattern, rank_, spec_.count, got).wrong;
        default: break;
        }
        if (row_.reduces) {
            return compare_result(pattern_for(rank_), ranks,
                                  row_.result == Holds::kBlock ? block_ : spec_.count, got)
                .wrong;
        }
        std::uint64_t wrong = 0;
        if (row_.neighbors) {
            const std::array<int, 2> from = Ring::of(rank_, ranks);
            for (int i = 0; i < blocks_; ++i) {
                wrong += differs(pattern_for(i), from.at(static_cast<std::size_t>(i)), block_,
                                 got + i * block_bytes());
            }
            return wrong;
        }
        for (int from = 0; from < ranks; ++from) {
            wrong += differs(pattern_for(rank_), from, block_, got + from * block_bytes());
        }
        return wrong;
    }

    Collective collective_;
    const Kind &row_;
    VectorSpec spec_;
    int rank_, ranks_, blocks_;
    std::size_t block_; // elements
    Buffer send_, recv_;
};

} // namespace

const char *collective_word(Collective collective) noexcept { return row_of(collective).word; }
const char *collective_call(Collective collective) noexcept { return row_of(collective).call; }

std::optional<Collective> find_collective(std::string_view word) noexcept
{
    const auto *const found = std::find_if(std::begin(kRows), std::end(kRows),
                                           [&](const Kind &r) { return word == r.word; });
    return found == std::end(kRows) ? std::nullopt
                                    : std::optional(static_cast<Collective>(found - kRows));
}

std::string collective_words()
{
    std::string words;
    for (const Kind &row : kRows) {
        words += (words.empty() ? "" : ", ") + std::string(row.word);
    }
    return words;
}

bool is_of_neighbors(Collective collective) noexcept { return row_of(collective).neighbors; }

bool has_both_places(Collective collective) noexcept
{
    return collective != Collective::kBcast && !row_of(collective).neighbors;
}

int block_count(Collective collective, int ranks) noexcept
{
    const Kind &row = row_of(collective);
    const bool blocks = row.input == Holds::kBlock || row.input == Holds::kBlocksFor;
    return !blocks ? 1 : row.neighbors ? 2 : ranks;
}

double bus_factor(Collective collective, int ranks) noexcept
{
    const Kind &row = row_of(collective);
    const bool whole = row.neighbors || row.input == Holds::kWhole;
    const double others = static_cast<double>(ranks - 1) / ranks;
    return collective == Collective::kAllreduce ? 2 * others : whole ? 1 : others;
}

Result<std::unique_ptr<Workload>> make_collective(const Gpu *gpu, Collective collective,
                                                  const VectorSpec &spec, int rank, int ranks)
{
    // In place, either buffer holds what either side has: the larger of both.
    const Kind &row = row_of(collective);
    const std::size_t whole = spec.count * element_bytes(spec.pattern.kind);
    const std::size_t block = whole / static_cast<std::size_t>(block_count(collective, ranks));
    const std::size_t sends = row.input == Holds::kBlock ? block : whole;
    const std::size_t receives =
        spec.in_place || row.result == Holds::kWhole ? std::max(whole, block) : block;
    Result<Buffer> send = Buffer::allocate(gpu, spec.memory, sends);
    if (!send.ok()) {
        return send.take_status();
    }
    Result<Buffer> recv = Buffer::allocate(gpu, spec.memory, receives);
    if (!recv.ok()) {
        return recv.take_status();
    }
    return std::unique_ptr<Workload>(std::make_unique<CollectiveWorkload>(
        collective, spec, rank, ranks, std::move(*send), std::move(*recv)));
}

} // namespace hetcoll
