#include "measure/machine.h"

#include "hetcoll_config.h"
#include "measure/commit.h"
#include "measure/host.h"

#include <sched.h>

#include <algorithm>
#include <array>

namespace hetcoll {

namespace {

int cores_of_this_rank()
{
    cpu_set_t set;
    CPU_ZERO(&set);
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : cores_of_machine();
}

// "Open MPI v4.1.4" of the long text that names package and build date too.
std::string mpi_version()
{
    std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
    int length = 0;
    MPI_Get_library_version(text.data(), &length);
    const std::string all(text.data(), static_cast<std::size_t>(length));
    return all.substr(0, all.find(','));
}

std::string describe_placement(MPI_Comm comm, const RankPlace &place)
{
    int all_bound = cores_of_this_rank() < cores_of_machine() ? 1 : 0;
    int most_on_a_node = place.local_size;
    MPI_Allreduce(MPI_IN_PLACE, &all_bound, 1, MPI_INT, MPI_MIN, comm);
    MPI_Allreduce(MPI_IN_PLACE, &most_on_a_node, 1, MPI_INT, MPI_MAX, comm);
    std::string text = std::to_string(most_on_a_node) + " ranks a node, ";
    text += all_bound != 0 ? "bound" : "not bound";
    if (most_on_a_node > cores_of_machine()) {
        text += ", oversubscribed: times are upper bounds";
    }
    return text;
}

} // namespace

RankPlace find_placement(MPI_Comm comm)
{
    MPI_Comm node = MPI_COMM_NULL;
    MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    RankPlace place{};
    MPI_Comm_rank(node, &place.local_rank);
    MPI_Comm_size(node, &place.local_size);
    MPI_Comm_free(&node);
    place.nodes = place.local_rank == 0 ? 1 : 0;
    MPI_Allreduce(MPI_IN_PLACE, &place.nodes, 1, MPI_INT, MPI_SUM, comm);
    return place;
}

Facts machine_facts(MPI_Comm comm, const Gpu *gpu)
{
    const RankPlace place = find_placement(comm);
    int ranks = 0;
    MPI_Comm_size(comm, &ranks);
    Facts facts;
    facts.emplace_back("date", now_utc());
    facts.emplace_back("machine",
                       cpu_model() + ", " + std::to_string(cores_of_machine()) + " cores");
    if (gpu == nullptr) {
        facts.emplace_back("gpu", "not used");
    } else {
        facts.emplace_back("gpu",
                           gpu->name() +
                               (gpu->is_emulated() ? " (EMULATED: no time here is a GPU's)" : ""));
        facts.emplace_back("cuda_driver", gpu->driver_version());
    }
    facts.emplace_back("mpi", mpi_version());
    facts.emplace_back("version", HETCOLL_VERSION);
    facts.emplace_back("commit", HETCOLL_COMMIT);
    facts.emplace_back("ranks", std::to_string(ranks) + " on " + std::to_string(place.nodes) +
                                    (place.nodes == 1 ? " node" : " nodes"));
    facts.emplace_back("placement", describe_placement(comm, place));
    return facts;
}

} // namespace hetcoll
