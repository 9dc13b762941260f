// hetcoll's own counters, read as any MPI tool reads them: performance variables of MPI_T. They are
// how a benchmark or a test knows which way a call went; without hetcoll they are absent.
#pragma once

#include "engine/types/counters.h"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace hetcoll {

// The values of all counters that only grow.
struct CounterValues {
    std::array<std::uint64_t, HETCOLL_COUNTER_COUNT> value{};
    [[nodiscard]] std::uint64_t operator[](hetcoll_counter counter) const noexcept
    {
        return value[counter];
    }
};
[[nodiscard]] CounterValues operator-(const CounterValues &after, const CounterValues &before);

// Create after MPI_Init, destroy before MPI_Finalize.
class JobCounters {
public:
    JobCounters();
    ~JobCounters();
    JobCounters(const JobCounters &) = delete;
    JobCounters &operator=(const JobCounters &) = delete;

    // True if hetcoll is in this job and counts.
    [[nodiscard]] bool available() const noexcept { return available_; }
    // Zeros where there is no hetcoll.
    [[nodiscard]] CounterValues read() const;

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
    bool available_ = false;
};

// Counts the calls that this algorithm, as coll_hetcoll_algorithm names it, has served.
[[nodiscard]] std::optional<hetcoll_counter> counter_of(std::string_view algorithm);

struct ServingRoute {
    std::string algorithm, path;
};

// Names what the calls between two readings used; "-" without hetcoll, "mixed" for several.
[[nodiscard]] ServingRoute name_route(const JobCounters &counters, const CounterValues &used);

} // namespace hetcoll
