#include "bench/counters.h"

#include <mpi.h>

namespace hetcoll {

namespace {

constexpr std::array<const char *, kCounterCount> kNames = {
    "coll_hetcoll_calls_previous",     "coll_hetcoll_calls_small",
    "coll_hetcoll_calls_staged",       "coll_hetcoll_calls_recursive_doubling",
    "coll_hetcoll_calls_rabenseifner", "coll_hetcoll_calls_ring",
    "coll_hetcoll_calls_one_shot",     "coll_hetcoll_calls_two_shot",
    "coll_hetcoll_calls_leader",       "coll_hetcoll_calls_tree",
    "coll_hetcoll_calls_hierarchical", "coll_hetcoll_calls_copy_in",
    "coll_hetcoll_calls_ordered",      "coll_hetcoll_calls_in_network",
    "coll_hetcoll_calls_weighted",     "coll_hetcoll_calls_collective",
    "coll_hetcoll_calls_early",        "coll_hetcoll_calls_failed",
    "coll_hetcoll_bytes_bounce",       "coll_hetcoll_bytes_direct",
    "coll_hetcoll_bytes_mapped",       "coll_hetcoll_pointer_hits",
    "coll_hetcoll_pointer_misses",     "coll_hetcoll_pointer_queries",
    "coll_hetcoll_agreements",         "coll_hetcoll_allocations",
};
static_assert(kNames.back() != nullptr, "every counter has a name");

struct Served {
    Counter counter;
    const char *algorithm, *path; // path null: as the bytes went
};
constexpr std::array<Served, 15> kServed = {{
    {Counter::kCallsPrevious, "open_mpi", "host"},
    {Counter::kCallsSmall, "host", "small"},
    {Counter::kCallsStaged, "open_mpi", "staged"},
    {Counter::kCallsRecursiveDoubling, "recursive_doubling", nullptr},
    {Counter::kCallsRabenseifner, "rabenseifner", nullptr},
    {Counter::kCallsRing, "ring", nullptr},
    {Counter::kCallsOneShot, "one_shot", "mapped"},
    {Counter::kCallsTwoShot, "two_shot", "mapped"},
    {Counter::kCallsLeader, "leader", "mapped"},
    {Counter::kCallsTree, "tree", nullptr},
    {Counter::kCallsHierarchical, "hierarchical", nullptr},
    {Counter::kCallsCopyIn, "copy_in", "mapped"},
    {Counter::kCallsOrdered, "ordered", nullptr},
    {Counter::kCallsInNetwork, "in_network", nullptr},
    {Counter::kCallsWeighted, "weighted", nullptr},
}};

} // namespace

struct Counters::Impl {
    MPI_T_pvar_session session = MPI_T_PVAR_SESSION_NULL;
    std::array<MPI_T_pvar_handle, kCounterCount> handle{};
};

CounterValues operator-(const CounterValues &after, const CounterValues &before)
{
    CounterValues difference;
    for (std::size_t i = 0; i < kCounterCount; ++i) {
        difference.value[i] = after.value[i] - before.value[i];
    }
    return difference;
}

Counters::Counters() : impl_(std::make_unique<Impl>())
{
    int provided = 0;
    MPI_Query_thread(&provided); // Open MPI 4.1 takes a lower level as MPI's own
    MPI_T_init_thread(provided, &provided);
    MPI_T_pvar_session_create(&impl_->session);
    available_ = true;
    for (std::size_t i = 0; i < kCounterCount; ++i) {
        int index = 0, count = 0;
        const bool found =
            MPI_T_pvar_get_index(kNames[i], MPI_T_PVAR_CLASS_COUNTER, &index) == MPI_SUCCESS &&
            MPI_T_pvar_handle_alloc(impl_->session, index, nullptr, &impl_->handle[i], &count) ==
                MPI_SUCCESS;
        if (!found) {
            impl_->handle[i] = MPI_T_PVAR_HANDLE_NULL;
            available_ = available_ && i > static_cast<std::size_t>(Counter::kCallsRing);
        }
    }
}

Counters::~Counters()
{
    for (MPI_T_pvar_handle &handle : impl_->handle) {
        if (handle != MPI_T_PVAR_HANDLE_NULL) {
            MPI_T_pvar_handle_free(impl_->session, &handle);
        }
    }
    MPI_T_pvar_session_free(&impl_->session);
    MPI_T_finalize();
}

CounterValues Counters::read() const
{
    CounterValues values;
    for (std::size_t i = 0; i < kCounterCount; ++i) {
        unsigned long long value = 0;
        if (impl_->handle[i] != MPI_T_PVAR_HANDLE_NULL &&
            MPI_T_pvar_read(impl_->session, impl_->handle[i], &value) == MPI_SUCCESS) {
            values.value[i] = value;
        }
    }
    return values;
}

Route name_route(const Counters &counters, const CounterValues &used)
{
    if (!counters.available()) {
        return {"-", "-"};
    }
    Route route;
    const bool messages = used[Counter::kBytesDirect] != 0 || used[Counter::kBytesBounce] != 0;
    const bool mapped = used[Counter::kBytesMapped] != 0;
    const char *mover = messages && mapped                 ? "mixed"
                        : mapped                           ? "mapped"
                        : used[Counter::kBytesDirect] != 0 ? "direct"
                        : messages                         ? "bounce"
                                                           : "host";
    for (const Served &served : kServed) {
        if (used[served.counter] != 0) {
            const bool first = route.algorithm.empty();
            route.algorithm = first ? served.algorithm : "mixed";
            route.path = !first ? "mixed" : served.path != nullptr ? served.path : mover;
        }
    }
    // hetcoll leaves a communicator on which no rank can have a GPU, and counts nothing there.
    return route.algorithm.empty() ? Route{"open_mpi", "host"} : route;
}

} // namespace hetcoll
