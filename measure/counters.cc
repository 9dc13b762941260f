#include "measure/counters.h"

#include "schedule/algorithm_rows.h"

#include <mpi.h>

namespace hetcoll {

namespace {

struct Variable {
    const char *name;
    int kind;
};
#define HETCOLL_COUNTER(constant, name, kind, help) \
    {"coll_hetcoll_" #name, MPI_T_PVAR_CLASS_##kind},
constexpr Variable kVariables[] = {HETCOLL_COUNTERS};
#undef HETCOLL_COUNTER

} // namespace

struct JobCounters::Impl {
    MPI_T_pvar_session session = MPI_T_PVAR_SESSION_NULL;
    std::array<MPI_T_pvar_handle, HETCOLL_COUNTER_COUNT> handle{};
};

CounterValues operator-(const CounterValues &after, const CounterValues &before)
{
    CounterValues difference;
    for (std::size_t i = 0; i < difference.value.size(); ++i) {
        difference.value[i] = after.value[i] - before.value[i];
    }
    return difference;
}

JobCounters::JobCounters() : impl_(std::make_unique<Impl>())
{
    int provided = 0;
    MPI_Query_thread(&provided); // Open MPI 4.1 takes a lower level as MPI's own
    MPI_T_init_thread(provided, &provided);
    MPI_T_pvar_session_create(&impl_->session);
    for (std::size_t i = 0; i < impl_->handle.size(); ++i) {
        int index = 0, count = 0;
        const bool found = kVariables[i].kind == MPI_T_PVAR_CLASS_COUNTER &&
                           MPI_T_pvar_get_index(kVariables[i].name, MPI_T_PVAR_CLASS_COUNTER,
                                                &index) == MPI_SUCCESS &&
                           MPI_T_pvar_handle_alloc(impl_->session, index, nullptr,
                                                   &impl_->handle[i], &count) == MPI_SUCCESS;
        if (!found) {
            impl_->handle[i] = MPI_T_PVAR_HANDLE_NULL;
        }
    }
    MPI_T_pvar_handle any = impl_->handle[HETCOLL_CALLS_PREVIOUS];
    unsigned long long value = 0; // which cannot be read where hetcoll is off
    available_ = any != MPI_T_PVAR_HANDLE_NULL &&
                 MPI_T_pvar_read(impl_->session, any, &value) == MPI_SUCCESS;
}

JobCounters::~JobCounters()
{
    for (MPI_T_pvar_handle &handle : impl_->handle) {
        if (handle != MPI_T_PVAR_HANDLE_NULL) {
            MPI_T_pvar_handle_free(impl_->session, &handle);
        }
    }
    MPI_T_pvar_session_free(&impl_->session);
    MPI_T_finalize();
}

CounterValues JobCounters::read() const
{
    CounterValues values;
    for (std::size_t i = 0; i < values.value.size(); ++i) {
        unsigned long long value = 0;
        if (impl_->handle[i] != MPI_T_PVAR_HANDLE_NULL &&
            MPI_T_pvar_read(impl_->session, impl_->handle[i], &value) == MPI_SUCCESS) {
            values.value[i] = value;
        }
    }
    return values;
}

std::optional<hetcoll_counter> counter_of(std::string_view algorithm)
{
    const std::optional<Algorithm> found = find_algorithm(algorithm);
    return found ? std::optional(HETCOLL_CALLS_OF(*found)) : std::nullopt;
}

ServingRoute name_route(const JobCounters &counters, const CounterValues &used)
{
    if (!counters.available()) {
        return {"-", "-"};
    }
    ServingRoute route;
    const bool messages = used[HETCOLL_BYTES_DIRECT] != 0 || used[HETCOLL_BYTES_BOUNCE] != 0 ||
                          used[HETCOLL_BYTES_ADAPTER] != 0;
    const bool mapped = used[HETCOLL_BYTES_MAPPED] != 0;
    const char *mover = messages && mapped                ? "mixed"
                        : mapped                          ? "mapped"
                        : used[HETCOLL_BYTES_DIRECT] != 0 ? "direct"
                        : messages                        ? "bounce"
                                                          : "host";
    const bool by_cpu = used[HETCOLL_CPU_READS] != 0 || used[HETCOLL_CPU_WRITES] != 0;
    const char *small = by_cpu ? "cpu" : "small";
    const auto add = [&](hetcoll_counter counter, const char *algorithm, const char *path) {
        if (used[counter] != 0) {
            const bool first = route.algorithm.empty();
            route = {first ? algorithm : "mixed", first ? path : "mixed"};
        }
    };
    add(HETCOLL_CALLS_PREVIOUS, "open_mpi", "host");
    add(HETCOLL_CALLS_STAGED, "open_mpi", "staged");
    for (int i = 0; i < kAlgorithmCount; ++i) {
        const AlgorithmRow &row = row_of(static_cast<Algorithm>(i));
        const char *path = row.is_one_kernel() ? "mapped" : row.form == Form::kHost ? small : mover;
        add(HETCOLL_CALLS_OF(i), row.name, path);
    }
    add(HETCOLL_CALLS_COLLECTIVE, "hetcoll", mover); // other collectives
    add(HETCOLL_STAGED_COLLECTIVE, "open_mpi", "staged");
    // hetcoll leaves a communicator on which no rank can have a GPU, and counts nothing there.
    return route.algorithm.empty() ? ServingRoute{"open_mpi", "host"} : route;
}

} // namespace hetcoll
