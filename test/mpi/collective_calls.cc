#include "test/mpi/collective_calls.h"

#include "measure/persistent.h"

#include <numeric>

namespace hetcoll::test {
namespace {

// A lambda with the three functions of one collective; the arguments may use send and recv.
#define HETCOLL_CALL(Name, name, ...)                                         \
    [=](const void *send, void *recv, How how, MPI_Request *request) -> int { \
        static_cast<void>(send);                                              \
        switch (how) {                                                        \
        case How::kBlocking: return MPI_##Name(__VA_ARGS__);                  \
        case How::kNonblocking: return MPI_I##name(__VA_ARGS__, request);     \
        case How::kPersistent: break;                                         \
        }                                                                     \
        return HETCOLL_PERSISTENT(Name)(__VA_ARGS__, MPI_INFO_NULL, request); \
    }

constexpr std::ptrdiff_t kInPlace = -1;

// A type for `count` elements, and the bytes that they span.
struct Elements {
    const char *name;
    MPI_Datatype type;
    std::ptrdiff_t bytes; // extent
};

Elements ints() { return {"ints", MPI_INT, sizeof(int)}; }

// Two ints, a hole before each but the first, and one behind.
Elements with_holes()
{
    static MPI_Datatype type = [] {
        MPI_Datatype pair = MPI_DATATYPE_NULL, made = MPI_DATATYPE_NULL;
        MPI_Type_vector(2, 1, 2, MPI_INT, &pair);
        MPI_Type_create_resized(pair, 0, 4 * sizeof(int), &made);
        MPI_Type_commit(&made);
        return made;
    }();
    return {"holes", type, 4 * sizeof(int)};
}

// As with_holes(), but beginning before the buffer's address plus an offset that is not the data's.
Elements shifted()
{
    static MPI_Datatype type = [] {
        MPI_Datatype made = MPI_DATATYPE_NULL;
        const int length = 2;
        const MPI_Aint place = 3 * sizeof(int);
        MPI_Type_create_hindexed(1, &length, &place, MPI_INT, &made);
        MPI_Type_commit(&made);
        return made;
    }();
    return {"shifted", type, 5 * sizeof(int)}; // enough for the shift
}

struct Comm {
    MPI_Comm comm;
    int rank = 0, size = 1;
    explicit Comm(MPI_Comm of) : comm(of)
    {
        MPI_Comm_rank(of, &rank);
        MPI_Comm_size(of, &size);
    }
};

// Counts that differ from rank to rank, some zero, and places with room between the blocks.
struct Blocks {
    std::vector<int> counts, places;
    int total = 0; // elements up to the end
};

Blocks uneven(int size, int count, int shift)
{
    Blocks blocks;
    for (int i = 0; i < size; ++i) {
        blocks.counts.push_back((i + shift) % 3 * count);
        blocks.places.push_back(blocks.total);
        blocks.total += blocks.counts.back() + 2;
    }
    return blocks;
}

Blocks even(int size, int count)
{
    Blocks blocks;
    for (int i = 0; i < size; ++i) {
        blocks.counts.push_back(count);
        blocks.places.push_back(blocks.total);
        blocks.total += count + 1;
    }
    return blocks;
}

void moves(std::vector<Collective> &calls, const Comm &of, int count, const Elements &elements)
{
    const MPI_Comm comm = of.comm;
    const MPI_Datatype type = elements.type;
    const int root = of.size - 1;
    const std::ptrdiff_t one = (count + 1) * elements.bytes, all = one * of.size;
    const bool is_root = of.rank == root;
    const auto add = [&](const char *name, std::ptrdiff_t send, std::ptrdiff_t recv, auto call) {
        calls.push_back({name, elements.name, send, recv, call});
    };
    add("Bcast", 0, one, HETCOLL_CALL(Bcast, bcast, recv, count, type, root, comm));
    add("Allgather", one, all,
        HETCOLL_CALL(Allgather, allgather, send, count, type, recv, count, type, comm));
    add("Alltoall", all, all,
        HETCOLL_CALL(Alltoall, alltoall, send, count, type, recv, count, type, comm));
    add("Gather", one, all,
        HETCOLL_CALL(Gather, gather, send, count, type, recv, count, type, root, comm));
    add("Scatter", all, one,
        HETCOLL_CALL(Scatter, scatter, send, count, type, recv, count, type, root, comm));
    // In place.
    const auto in_place_allgather = HETCOLL_CALL(Allgather, allgather, MPI_IN_PLACE, 0,
                                                 MPI_DATATYPE_NULL, recv, count, type, comm);
    add("Allgather", kInPlace, all, in_place_allgather);
    add("Alltoall", kInPlace, all,
        HETCOLL_CALL(Alltoall, alltoall, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, recv, count, type,
                     comm));
    add("Gather", is_root ? kInPlace : one, all,
        HETCOLL_CALL(Gather, gather, send, count, type, recv, count, type, root, comm));
    add("Scatter", all, is_root ? kInPlace : one,
        HETCOLL_CALL(Scatter, scatter, send, count, type, recv, count, type, root, comm));
}

void moves_with_counts(std::vector<Collective> &calls, const Comm &of, int count,
                       const Elements &elements)
{
    const MPI_Comm comm = of.comm;
    const MPI_Datatype type = elements.type;
    const int root = 0, rank = of.rank;
    const bool is_root = rank == root;
    const Blocks blocks = uneven(of.size, count, 1), pairs = even(of.size, count);
    const Blocks out = uneven(of.size, count, rank); // rank i sends (i + j) % 3 blocks to j
    const int mine = blocks.counts[static_cast<std::size_t>(rank)];
    const std::ptrdiff_t one = (mine + 1) * elements.bytes,
                         all = (blocks.total + 1) * elements.bytes,
                         exchanged = (out.total + 1) * elements.bytes,
                         even_bytes = (pairs.total + 1) * elements.bytes;
    const auto add = [&](const char *name, std::ptrdiff_t send, std::ptrdiff_t recv, auto call) {
        calls.push_back({name, elements.name, send, recv, call});
    };
    const auto allgatherv = HETCOLL_CALL(Allgatherv, allgatherv, send, mine, type, recv,
                                         blocks.counts.data(), blocks.places.data(), type, comm);
    add("Allgatherv", one, all, allgatherv);
    add("Allgatherv", kInPlace, all, allgatherv);
    const auto gatherv = HETCOLL_CALL(Gatherv, gatherv, send, mine, type, recv,
                                      blocks.counts.data(), blocks.places.data(), type, root, comm);
    add("Gatherv", one, all, gatherv);
    add("Gatherv", is_root ? kInPlace : one, all, gatherv);
    const auto scatterv = HETCOLL_CALL(Scatterv, scatterv, send, blocks.counts.data(),
                                       blocks.places.data(), type, recv, mine, type, root, comm);
    add("Scatterv", all, one, scatterv);
    add("Scatterv", all, is_root ? kInPlace : one, scatterv);
    const auto add_exchanges = [&](const Blocks &b, std::ptrdiff_t bytes,
                                   std::ptrdiff_t send_bytes) {
        const std::vector<MPI_Datatype> types(static_cast<std::size_t>(of.size), type);
        std::vector<int> offsets = b.places;
        for (int &offset : offsets) {
            offset *= static_cast<int>(elements.bytes == 5 * sizeof(int) ? 2 * sizeof(int)
                                                                         : elements.bytes);
        }
        add("Alltoallv", send_bytes, bytes,
            HETCOLL_CALL(Alltoallv, alltoallv, send, b.counts.data(), b.places.data(), type, recv,
                         b.counts.data(), b.places.data(), type, comm));
        add("Alltoallw", send_bytes, bytes,
            HETCOLL_CALL(Alltoallw, alltoallw, send, b.counts.data(), offsets.data(), types.data(),
                         recv, b.counts.data(), offsets.data(), types.data(), comm));
    };
    add_exchanges(pairs, even_bytes, even_bytes);
    add_exchanges(pairs, even_bytes, kInPlace);
    add_exchanges(out, exchanged, exchanged);
}

void reductions(std::vector<Collective> &calls, const Comm &of, int count, const char *detail,
                MPI_Datatype type, MPI_Op op, std::ptrdiff_t bytes)
{
    const MPI_Comm comm = of.comm;
    const int root = of.size / 2, rank = of.rank;
    const bool is_root = rank == root;
    const std::ptrdiff_t one = count * bytes, all = one * of.size;
    std::vector<int> counts;
    for (int i = 0; i < of.size; ++i) {
        counts.push_back(i % 2 == 0 ? count : count / 2);
    }
    const int total = std::accumulate(counts.begin(), counts.end(), 0);
    const std::ptrdiff_t mine = counts[static_cast<std::size_t>(rank)] * bytes;
    const auto add = [&](const char *name, std::ptrdiff_t send, std::ptrdiff_t recv, auto call) {
        calls.push_back({name, detail, send, recv, call});
    };
    const auto reduce = HETCOLL_CALL(Reduce, reduce, send, recv, count, type, op, root, comm);
    add("Reduce", one, one, reduce);
    add("Reduce", is_root ? kInPlace : one, one, reduce);
    const auto scan = HETCOLL_CALL(Scan, scan, send, recv, count, type, op, comm);
    add("Scan", one, one, scan);
    add("Scan", kInPlace, one, scan);
    const auto exscan = HETCOLL_CALL(Exscan, exscan, send, recv, count, type, op, comm);
    add("Exscan", one, one, exscan);
    add("Exscan", kInPlace, one, exscan);
    const auto scatter =
        HETCOLL_CALL(Reduce_scatter, reduce_scatter, send, recv, counts.data(), type, op, comm);
    add("Reduce_scatter", total * bytes, mine, scatter);
    const std::vector<int> equal(static_cast<std::size_t>(of.size), count);
    add("Reduce_scatter", all, one,
        HETCOLL_CALL(Reduce_scatter, reduce_scatter, send, recv, equal.data(), type, op, comm));
    add("Reduce_scatter", kInPlace, total * bytes, scatter);
    calls.back().result_bytes = mine; // Open MPI uses the rest for its work
    const auto block =
        HETCOLL_CALL(Reduce_scatter_block, reduce_scatter_block, send, recv, count, type, op, comm);
    add("Reduce_scatter_block", all, one, block);
    add("Reduce_scatter_block", kInPlace, all, block);
    calls.back().result_bytes = one;
}

// On a line of ranks: those at its ends lack a neighbour.
void neighbors(std::vector<Collective> &calls, const Comm &of, int count, const Elements &elements)
{
    const int size = of.size, periodic = 0;
    MPI_Comm line = MPI_COMM_NULL;
    MPI_Cart_create(of.comm, 1, &size, &periodic, 0, &line);
    const MPI_Datatype type = elements.type;
    const std::ptrdiff_t one = (count + 1) * elements.bytes, both = 2 * one + elements.bytes;
    const std::vector<int> counts = {count, count}, places = {0, count + 1};
    const std::vector<MPI_Aint> offsets = {0, one};
    const std::vector<MPI_Datatype> types = {type, type};
    const auto add = [&](const char *name, std::ptrdiff_t send, auto call) {
        calls.push_back({name, elements.name, send, both, call});
    };
    add("Neighbor_allgather", one,
        HETCOLL_CALL(Neighbor_allgather, neighbor_allgather, send, count, type, recv, count, type,
                     line));
    add("Neighbor_allgatherv", one,
        HETCOLL_CALL(Neighbor_allgatherv, neighbor_allgatherv, send, count, type, recv,
                     counts.data(), places.data(), type, line));
    add("Neighbor_alltoall", both,
        HETCOLL_CALL(Neighbor_alltoall, neighbor_alltoall, send, count, type, recv, count, type,
                     line));
    add("Neighbor_alltoallv", both,
        HETCOLL_CALL(Neighbor_alltoallv, neighbor_alltoallv, send, counts.data(), places.data(),
                     type, recv, counts.data(), places.data(), type, line));
    add("Neighbor_alltoallw", both,
        HETCOLL_CALL(Neighbor_alltoallw, neighbor_alltoallw, send, counts.data(), offsets.data(),
                     types.data(), recv, counts.data(), offsets.data(), types.data(), line));
}

// Rank 0 sends to all, itself too, and the others to nobody.
void star(std::vector<Collective> &calls, const Comm &of, int count)
{
    const int source = 0, destinations = of.rank == 0 ? of.size : 0;
    std::vector<int> all(static_cast<std::size_t>(of.size));
    std::iota(all.begin(), all.end(), 0);
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Dist_graph_create_adjacent(of.comm, 1, &source, MPI_UNWEIGHTED, destinations, all.data(),
                                   MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm);
    const std::ptrdiff_t one = count * static_cast<std::ptrdiff_t>(sizeof(int));
    calls.push_back({"Neighbor_alltoall", "a star", one * of.size, one,
                     HETCOLL_CALL(Neighbor_alltoall, neighbor_alltoall, send, count, MPI_INT, recv,
                                  count, MPI_INT, comm)});
    calls.push_back({"Neighbor_allgather", "a star", one, one,
                     HETCOLL_CALL(Neighbor_allgather, neighbor_allgather, send, count, MPI_INT,
                                  recv, count, MPI_INT, comm)});
}

// x -> a x + b modulo 2^32: composing two does not commute.
void compose(void *in, void *inout, int *count, MPI_Datatype *)
{
    const auto *first = static_cast<const std::uint32_t *>(in);
    auto *second = static_cast<std::uint32_t *>(inout);
    for (int i = 0; i < 2 * *count; i += 2) {
        second[i + 1] = second[i] * first[i + 1] + second[i + 1];
        second[i] *= first[i];
    }
}

} // namespace

const char *how_name(How how) noexcept
{
    switch (how) {
    case How::kBlocking: return "blocking";
    case How::kNonblocking: return "nonblocking";
    case How::kPersistent: break;
    }
    return "persistent";
}

int run(const Collective &collective, How how, const void *send, void *recv, int rounds)
{
    MPI_Request request = MPI_REQUEST_NULL;
    int error = collective.call(send, recv, how, &request);
    if (how == How::kBlocking || error != MPI_SUCCESS) {
        return error;
    }
    for (int round = 0; round < rounds; ++round) {
        if (how == How::kPersistent) {
            MPI_Start(&request);
        }
        const int waited = MPI_Wait(&request, MPI_STATUS_IGNORE);
        error = error == MPI_SUCCESS ? waited : error;
    }
    if (request != MPI_REQUEST_NULL) {
        MPI_Request_free(&request);
    }
    return error;
}

std::vector<Collective> plain_calls(MPI_Comm comm, int count)
{
    std::vector<Collective> calls;
    moves(calls, Comm(comm), count, ints());
    reductions(calls, Comm(comm), count, "ints", MPI_INT, MPI_SUM, sizeof(int));
    return calls;
}

std::vector<Collective> calls_of(MPI_Comm comm, int count, const char *name, MPI_Datatype type,
                                 std::ptrdiff_t bytes, MPI_Op op)
{
    const Comm of(comm);
    std::vector<Collective> calls;
    moves(calls, of, count, {name, type, bytes});
    moves_with_counts(calls, of, count, {name, type, bytes});
    reductions(calls, of, count, name, type, op, bytes);
    const auto allreduce = HETCOLL_CALL(Allreduce, allreduce, send, recv, count, type, op, comm);
    calls.push_back({"Allreduce", name, count * bytes, count * bytes, allreduce});
    calls.push_back({"Allreduce", name, kInPlace, count * bytes, allreduce});
    return calls;
}

std::vector<Collective> neighbor_calls(MPI_Comm comm, int count)
{
    std::vector<Collective> calls;
    neighbors(calls, Comm(comm), count, ints());
    return calls;
}

std::vector<Collective> all_calls(MPI_Comm comm, int count)
{
    static MPI_Op op = [] {
        MPI_Op made = MPI_OP_NULL;
        MPI_Op_create(compose, 0, &made);
        return made;
    }();
    static MPI_Datatype pair = [] {
        MPI_Datatype made = MPI_DATATYPE_NULL;
        MPI_Type_contiguous(2, MPI_UINT32_T, &made);
        MPI_Type_commit(&made);
        return made;
    }();
    const Comm of(comm);
    std::vector<Collective> calls;
    for (const Elements &elements : {ints(), with_holes(), shifted()}) {
        moves(calls, of, count, elements);
        moves_with_counts(calls, of, count, elements);
        neighbors(calls, of, count, elements);
    }
    reductions(calls, of, count, "ints", MPI_INT, MPI_SUM, sizeof(int));
    star(calls, of, count);
    reductions(calls, of, count, "own op", pair, op, 2 * sizeof(int));
    reductions(calls, of, count, "pairs", MPI_DOUBLE_INT, MPI_MINLOC, 16);
    return calls;
}

} // namespace hetcoll::test
