// The algorithms of base/algorithm_list.h, and sets of them.
#pragma once

#include "base/algorithm_list.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hetcoll {

// In the order of the list.
#define HETCOLL_ENUMERATOR(constant, enumerator, ...) enumerator,
enum class Algorithm : std::uint8_t { HETCOLL_ALGORITHMS(HETCOLL_ENUMERATOR) };
#undef HETCOLL_ENUMERATOR

// How an algorithm runs.
enum class Form : std::uint8_t {
    kTeam,    // a schedule made of the ranks' numbers alone
    kSteps,   // a schedule that is made of more: plan/build_schedule.h
    kKernel,  // one kernel a rank that reads, and may write, the memory of all ranks
    kHost,    // no kernel: processors sum, on a node in the pinned control page
    kServers, // a schedule among ranks and aggregators
};

// Where it can run.
enum class Needs : std::uint8_t {
    kMessages,    // anywhere
    kOneNode,     // few ranks of one node that map each other's memory
    kTrees,       // packed trees over the links of one node
    kGroups,      // several nodes, or ranks that share a GPU
    kShares,      // a share of the vector for each rank
    kAggregators, // that all ranks have joined
};

// Which calls it serves: those up to coll_hetcoll_small_limit, larger ones, or both.
enum class Sizes : std::uint8_t { kSmall, kLarge, kAnySize };

enum class Trait : std::uint16_t {
    kPlain = 0,
    kBetweenNodes = 1, // may be the second phase of a hierarchy
    kWholeVectors = 2, // ranks exchange whole vectors: in mapped memory they would overwrite them
    kInRing = 4,       // each rank sends to its neighbour alone, all at the same time
    kLeftFold = 8,     // sums in rank order, whatever the size and placement (kHost: on one node)
    kOwnResult = 16,   // of a kernel: writes its rank's result alone
    kWhenAsked = 32,   // taken for reproducible sums only, or where it is forced
    kInChain = 64,     // one rank after the other
    kFolds = 128,      // ranks beyond a power of two hand their vectors to others first
    kMultiplies = 256, // groups whose sizes are factors of the number of ranks exchange vectors
    kLeads = 512,      // one rank's kernel does all
    kByShares = 1024,  // each rank's kernel reduces a share of the vector; else it reads all of it
    kCopiesIn = 2048,  // another kernel first copies to memory that all ranks map
};
[[nodiscard]] constexpr Trait operator|(Trait a, Trait b) noexcept
{
    return static_cast<Trait>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}

struct AlgorithmRow {
    const char *name; // "recursive_doubling" .. "weighted"
    Form form;
    Needs needs;
    Sizes sizes;
    Trait traits;

    [[nodiscard]] constexpr bool has(Trait trait) const noexcept
    {
        return (static_cast<unsigned>(traits) & static_cast<unsigned>(trait)) != 0;
    }
    [[nodiscard]] constexpr bool is_schedule() const noexcept
    {
        return form == Form::kTeam || form == Form::kSteps;
    }
    [[nodiscard]] constexpr bool is_one_kernel() const noexcept { return form == Form::kKernel; }
};

[[nodiscard]] consteval auto make_algorithm_rows()
{
    using enum Form;
    using enum Needs;
    using enum Sizes;
    using enum Trait;
#define HETCOLL_ROW(constant, enumerator, name, counter, form, needs, sizes, traits, ...) \
    AlgorithmRow{#name, form, needs, sizes, traits},
    return std::to_array({HETCOLL_ALGORITHMS(HETCOLL_ROW)});
#undef HETCOLL_ROW
}
inline constexpr auto kAlgorithmRows = make_algorithm_rows();
inline constexpr int kAlgorithmCount = static_cast<int>(kAlgorithmRows.size());

[[nodiscard]] constexpr const AlgorithmRow &row_of(Algorithm algorithm) noexcept
{
    return kAlgorithmRows[static_cast<std::size_t>(algorithm)];
}
[[nodiscard]] constexpr const char *algorithm_name(Algorithm algorithm) noexcept
{
    return row_of(algorithm).name;
}
[[nodiscard]] std::optional<Algorithm> find_algorithm(std::string_view name) noexcept;
[[nodiscard]] constexpr bool is(Algorithm algorithm, Form form) noexcept
{
    return row_of(algorithm).form == form;
}
[[nodiscard]] constexpr bool needs(Algorithm algorithm, Needs what) noexcept
{
    return row_of(algorithm).needs == what;
}

[[nodiscard]] constexpr bool has(Algorithm algorithm, Trait trait) noexcept
{
    return row_of(algorithm).has(trait);
}

using AlgorithmSet = std::uint32_t; // a bit for each algorithm
static_assert(kAlgorithmCount <= 32);

[[nodiscard]] constexpr AlgorithmSet bit(Algorithm algorithm) noexcept
{
    return static_cast<AlgorithmSet>(1u << static_cast<unsigned>(algorithm));
}
[[nodiscard]] constexpr bool contains(AlgorithmSet set, Algorithm algorithm) noexcept
{
    return (set & bit(algorithm)) != 0;
}
[[nodiscard]] constexpr AlgorithmSet without(AlgorithmSet set, Algorithm algorithm) noexcept
{
    return static_cast<AlgorithmSet>(set & ~bit(algorithm));
}
[[nodiscard]] constexpr AlgorithmSet without(AlgorithmSet set, AlgorithmSet others) noexcept
{
    return set & ~others;
}
// Those whose row is as `is` says.
template <class Predicate> [[nodiscard]] constexpr AlgorithmSet algorithms_where(Predicate is)
{
    AlgorithmSet set = 0;
    for (int i = 0; i < kAlgorithmCount; ++i) {
        const auto algorithm = static_cast<Algorithm>(i);
        set |= is(row_of(algorithm)) ? bit(algorithm) : AlgorithmSet{0};
    }
    return set;
}
// "ring, tree", in the order of the list.
[[nodiscard]] std::string names_of(AlgorithmSet set, const char *before_last = ", ");

inline constexpr AlgorithmSet kAllAlgorithms = algorithms_where([](const auto &) { return true; });
[[nodiscard]] constexpr AlgorithmSet algorithms_of(Form form) noexcept
{
    return algorithms_where([form](const AlgorithmRow &row) { return row.form == form; });
}
[[nodiscard]] constexpr AlgorithmSet algorithms_that_need(Needs needs) noexcept
{
    return algorithms_where([needs](const AlgorithmRow &row) { return row.needs == needs; });
}
inline constexpr AlgorithmSet kBetweenNodesAlgorithms =
    algorithms_where([](const AlgorithmRow &row) { return row.has(Trait::kBetweenNodes); });
// Runs wherever messages do.
inline constexpr AlgorithmSet kMessageAlgorithms = algorithms_where(
    [](const AlgorithmRow &row) { return row.is_schedule() && row.needs == Needs::kMessages; });
// Runs where no rank maps another's memory.
inline constexpr AlgorithmSet kUnmappedAlgorithms = algorithms_where([](const AlgorithmRow &row) {
    return row.is_schedule() && (row.needs == Needs::kMessages || row.needs == Needs::kGroups);
});
// Can serve a call of up to coll_hetcoll_small_limit bytes, and no larger one.
inline constexpr AlgorithmSet kSmallAlgorithms =
    algorithms_where([](const AlgorithmRow &row) { return row.sizes != Sizes::kLarge; });
inline constexpr AlgorithmSet kSmallOnlyAlgorithms =
    algorithms_where([](const AlgorithmRow &row) { return row.sizes == Sizes::kSmall; });
// Sums every element as a left fold in rank order.
inline constexpr AlgorithmSet kReproducibleAlgorithms =
    algorithms_where([](const AlgorithmRow &row) { return row.has(Trait::kLeftFold); });
// Adds each element of all ranks in one pass, in one kernel or by a processor (kHost: on one node).
inline constexpr AlgorithmSet kAtOnceAlgorithms = algorithms_where(
    [](const AlgorithmRow &row) { return row.is_one_kernel() || row.form == Form::kHost; });
inline constexpr AlgorithmSet kWhenAskedAlgorithms =
    algorithms_where([](const AlgorithmRow &row) { return row.has(Trait::kWhenAsked); });

} // namespace hetcoll
