#include "tools/info_collective.h"

#include "base/counted.h"
#include "choice/collective_shape.h"
#include "engine/hetcoll.h"
#include "tools/info_call.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace hetcoll {
namespace {

// Who serves it if hetcoll has no schedule of its own for it.
enum class Kind : std::uint8_t { kMoves, kReduces, kNoBuffers };

struct Collective {
    const char *name, *mpi_name;
    Kind kind;
    bool own = false, rooted = false; // with schedules of hetcoll's; of one root
};

constexpr std::array kCollectives = {
    Collective{"bcast", "MPI_Bcast", Kind::kMoves, true, true},
    Collective{"reduce", "MPI_Reduce", Kind::kReduces, true, true},
    Collective{"allgather", "MPI_Allgather", Kind::kMoves, true},
    Collective{"reduce_scatter", "MPI_Reduce_scatter", Kind::kReduces, true},
    Collective{"reduce_scatter_block", "MPI_Reduce_scatter_block", Kind::kReduces, true},
    Collective{"allgatherv", "MPI_Allgatherv", Kind::kMoves},
    Collective{"alltoall", "MPI_Alltoall", Kind::kMoves},
    Collective{"alltoallv", "MPI_Alltoallv", Kind::kMoves},
    Collective{"alltoallw", "MPI_Alltoallw", Kind::kMoves},
    Collective{"gather", "MPI_Gather", Kind::kMoves},
    Collective{"gatherv", "MPI_Gatherv", Kind::kMoves},
    Collective{"scatter", "MPI_Scatter", Kind::kMoves},
    Collective{"scatterv", "MPI_Scatterv", Kind::kMoves},
    Collective{"scan", "MPI_Scan", Kind::kReduces},
    Collective{"exscan", "MPI_Exscan", Kind::kReduces},
    Collective{"reduce_local", "MPI_Reduce_local", Kind::kReduces},
    Collective{"neighbor_allgather", "MPI_Neighbor_allgather", Kind::kMoves},
    Collective{"neighbor_allgatherv", "MPI_Neighbor_allgatherv", Kind::kMoves},
    Collective{"neighbor_alltoall", "MPI_Neighbor_alltoall", Kind::kMoves},
    Collective{"neighbor_alltoallv", "MPI_Neighbor_alltoallv", Kind::kMoves},
    Collective{"neighbor_alltoallw", "MPI_Neighbor_alltoallw", Kind::kMoves},
    Collective{"barrier", "MPI_Barrier", Kind::kNoBuffers},
};

const char *describe(CollectiveShape shape, const Collective &collective)
{
    switch (shape) {
    case CollectiveShape::kTrees:
        return collective.kind == Kind::kReduces
                   ? "up packed trees to the root, which share the links between the GPUs"
                   : "down packed trees from the root, which share the links between the GPUs";
    case CollectiveShape::kDirect:
        return "every rank reads from every other, since all GPUs of the node reach each other";
    case CollectiveShape::kPipeline: break;
    }
    return collective.rooted ? "in chunks along a chain of the ranks"
                             : "in chunks around a ring of the ranks";
}

const char *served_by_others(Kind kind)
{
    switch (kind) {
    case Kind::kNoBuffers: return "Open MPI: there is no buffer";
    case Kind::kReduces:
        return "Open MPI in host memory, to which each rank copies what it has on a device "
               "(staged), also where Open MPI is CUDA-aware";
    case Kind::kMoves: break;
    }
    return "Open MPI in host memory, to which each rank copies what it has on a device (staged); "
           "by a CUDA-aware Open MPI itself";
}

} // namespace

std::vector<std::string> collective_names()
{
    std::vector<std::string> names;
    for (const Collective &collective : kCollectives) {
        names.emplace_back(collective.name);
    }
    return names;
}

std::string explain_collective(const std::string &name, const Query &query)
{
    const Collective &collective =
        *std::find_if(kCollectives.begin(), kCollectives.end(),
                      [&](const Collective &known) { return name == known.name; });
    std::string text =
        format("call       %s, %zu bytes%s, %s on %s\n", collective.mpi_name, query.bytes,
               collective.own && !collective.rooted ? " of all shares together" : "",
               counted(query.ranks, "rank").c_str(), counted(query.nodes, "node").c_str());
    if (collective.own && query.ranks > 1 && query.bytes >= HETCOLL_LEAST_COLLECTIVE) {
        const CollectiveShape shape = choose_shape(query.available, collective.rooted);
        return text +
               format("served by  hetcoll's own schedule, %s: %s\n", shape_name(shape),
                      describe(shape, collective)) +
               format("because    it is of %u bytes or more, and blocking\n"
                      "unless     some rank's buffer is host memory or has holes, %sor a rank "
                      "cannot use its GPU: then by %s\n",
                      HETCOLL_LEAST_COLLECTIVE,
                      collective.kind == Kind::kReduces
                          ? "hetcoll has no kernel for the type and op, "
                          : "",
                      served_by_others(collective.kind));
    }
    text += format("served by  %s\n", served_by_others(collective.kind));
    if (collective.kind == Kind::kNoBuffers) {
        return text;
    }
    text += "because    ";
    if (!collective.own) {
        return text + "hetcoll has no schedule for it\n";
    }
    return text + (query.ranks == 1 ? "one rank has nobody to share the work with\n"
                                    : format("it is of less than %u bytes, for which an agreement "
                                             "of all ranks would cost more than it saves\n",
                                             HETCOLL_LEAST_COLLECTIVE));
}

} // namespace hetcoll
