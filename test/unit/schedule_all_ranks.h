// The schedules of all ranks, by an algorithm or by hand, and what the proof says of them, for
// tests.
#pragma once

#include "schedule/algorithms.h"
#include "schedule/builder.h"
#include "schedule/halves.h"
#include "schedule/verify.h"
#include "test/unit/hierarchy.h"

#include <initializer_list>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

namespace hetcoll::test {

struct NamedAlgorithm {
    const char *name;
    Schedule (*build)(int rank, int size);
    Contract (*contract)(int size) = [](int) { return kAllreduce; };

    // GoogleTest names a failing case by it.
    friend std::ostream &operator<<(std::ostream &to, const NamedAlgorithm &algorithm)
    {
        return to << algorithm.name;
    }
};

inline constexpr NamedAlgorithm kRecursiveDoubling{"recursive_doubling", build_recursive_doubling};
inline constexpr NamedAlgorithm kRabenseifner{"rabenseifner", build_rabenseifner};
inline constexpr NamedAlgorithm kRing{"ring", build_ring};
inline constexpr NamedAlgorithm kOrdered{"ordered", build_ordered};
inline constexpr NamedAlgorithm kRadix3{"radix3", build_radix3};
inline constexpr NamedAlgorithm kRadix4{"radix4", build_radix4};
inline constexpr NamedAlgorithm kRadix8{"radix8", build_radix8};
inline constexpr NamedAlgorithm kRecursiveMultiplying{"recursive_multiplying",
                                                      build_recursive_multiplying};
inline constexpr NamedAlgorithm kAlgorithms[] = {
    kRecursiveDoubling, kRabenseifner, kRadix3, kRadix4, kRadix8, kRing, kRecursiveMultiplying};

// Ranks 0..size-1 in order on GPUs of 1, 2, 1, 2, .. ranks, those on nodes of 1, 2, 3, 1, 2, 3, ..
// GPUs.
inline Groups uneven_groups(int size)
{
    Groups groups;
    int rank = 0;
    for (std::size_t gpus = 1; rank < size; gpus = gpus % 3 + 1) {
        NodeGroups &node = groups.nodes.emplace_back();
        while (rank < size && node.size() < gpus) {
            GpuGroup &gpu = node.emplace_back();
            for (std::size_t ranks = 2 - node.size() % 2; rank < size && gpu.size() < ranks;) {
                gpu.push_back(rank++);
            }
        }
    }
    return groups;
}

template <Algorithm kAlgorithm> Schedule build_uneven(int rank, int size)
{
    return build_hierarchical(rank, uneven_groups(size),
                              {.between_nodes = kAlgorithm, .segments = 2});
}

inline constexpr NamedAlgorithm kEveryKind[] = {
    kRecursiveDoubling,
    kRabenseifner,
    kRadix3,
    kRadix4,
    kRadix8,
    kRing,
    kRecursiveMultiplying,
    kOrdered,
    {"hierarchical_ring", build_uneven<Algorithm::kRing>},
    {"hierarchical_rabenseifner", build_uneven<Algorithm::kRabenseifner>},
    {"hierarchical_recursive_doubling", build_uneven<Algorithm::kRecursiveDoubling>},
    {"hierarchical_radix3", build_uneven<Algorithm::kRadix3>},
    {"hierarchical_radix8", build_uneven<Algorithm::kRadix8>},
    {"hierarchical_multiplying", build_uneven<Algorithm::kRecursiveMultiplying>},
};

// A root that is neither the first nor the last of many ranks.
template <Schedule (*kBuild)(int, int, int)> Schedule build_in_the_middle(int rank, int size)
{
    return kBuild(rank, size, size / 2);
}
inline Contract reduce_scatter(int) { return kReduceScatter; }
inline Contract allgather(int) { return kAllgather; }
inline Contract bcast_from_the_middle(int size) { return bcast_from(size / 2); }
inline Contract reduce_to_the_middle(int size) { return reduce_to(size / 2); }

inline constexpr NamedAlgorithm kHalves[] = {
    {"ring_reduce_scatter", build_ring_reduce_scatter, reduce_scatter},
    {"direct_reduce_scatter", build_direct_reduce_scatter, reduce_scatter},
    {"ring_allgather", build_ring_allgather, allgather},
    {"direct_allgather", build_direct_allgather, allgather},
    {"binomial_bcast", build_in_the_middle<build_binomial_bcast>, bcast_from_the_middle},
    {"direct_bcast", build_in_the_middle<build_direct_bcast>, bcast_from_the_middle},
    {"chain_bcast", build_in_the_middle<build_chain_bcast>, bcast_from_the_middle},
    {"binomial_reduce", build_in_the_middle<build_binomial_reduce>, reduce_to_the_middle},
    {"direct_reduce", build_in_the_middle<build_direct_reduce>, reduce_to_the_middle},
    {"chain_reduce", build_in_the_middle<build_chain_reduce>, reduce_to_the_middle},
};

// Whether a rank holds an element, said once more than in the proof.
inline bool holds(Holders holders, int root, int rank, int size, std::size_t count,
                  std::size_t element)
{
    const ElementSpan share = block_span(count, size, rank);
    return holders == Holders::kEveryRank || (holders == Holders::kRoot && rank == root) ||
           (holders == Holders::kOwner && share.first <= element &&
            element < share.first + share.count);
}

inline std::vector<Schedule> build_all(const NamedAlgorithm &algorithm, int size)
{
    std::vector<Schedule> schedules;
    for (int rank = 0; rank < size; ++rank) {
        schedules.push_back(algorithm.build(rank, size));
    }
    return schedules;
}

// Ranks written by hand, as one function a rank.
using Write = void (*)(ScheduleBuilder &);
inline std::vector<Schedule> write_all(int block_count, std::initializer_list<Write> ranks,
                                       int channel_count = 1)
{
    std::vector<Schedule> schedules;
    for (const Write write : ranks) {
        ScheduleBuilder builder(block_count, channel_count);
        write(builder);
        schedules.push_back(std::move(builder).finish());
    }
    return schedules;
}

// "ok", or what verify_schedules() objects to.
inline std::string verdict(const std::vector<Schedule> &schedules,
                           const Contract &contract = kAllreduce)
{
    const Status status = verify_schedules(schedules, contract);
    return status.ok() ? "ok" : status.message();
}

} // namespace hetcoll::test
