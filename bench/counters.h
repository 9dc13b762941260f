// hetcoll's own counters, read as any MPI tool reads them: performance variables of MPI_T. They are
// how a benchmark or a test knows which way a call went; without hetcoll they are absent.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace hetcoll {

enum class Counter : std::uint8_t {
    kCallsPrevious,
    kCallsSmall,
    kCallsStaged,
    kCallsRecursiveDoubling,
    kCallsRabenseifner,
    kCallsRing,
    kCallsOneShot,
    kCallsTwoShot,
    kCallsLeader,
    kCallsTree,
    kCallsHierarchical,
    kCallsCopyIn,
    kCallsOrdered,
    kCallsInNetwork,
    kCallsWeighted,
    kCallsCollective,
    kCallsEarly,
    kCallsFailed,
    kBytesBounce,
    kBytesDirect,
    kBytesMapped,
    kPointerHits,
    kPointerMisses,
    kPointerQueries,
    kAgreements,
    kAllocations,
};
inline constexpr std::size_t kCounterCount = static_cast<std::size_t>(Counter::kAllocations) + 1;

struct CounterValues {
    std::array<std::uint64_t, kCounterCount> value{};
    [[nodiscard]] std::uint64_t operator[](Counter counter) const noexcept
    {
        return value[static_cast<std::size_t>(counter)];
    }
};
[[nodiscard]] CounterValues operator-(const CounterValues &after, const CounterValues &before);

// Create after MPI_Init, destroy before MPI_Finalize.
class Counters {
public:
    Counters();
    ~Counters();
    Counters(const Counters &) = delete;
    Counters &operator=(const Counters &) = delete;

    // True if hetcoll is in this job and counts.
    [[nodiscard]] bool available() const noexcept { return available_; }
    // Zeros where there is no hetcoll.
    [[nodiscard]] CounterValues read() const;

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
    bool available_ = false;
};

struct Route {
    std::string algorithm, path;
};

// Names what the calls between two readings used; "-" without hetcoll, "mixed" for several.
[[nodiscard]] Route name_route(const Counters &counters, const CounterValues &used);

} // namespace hetcoll
