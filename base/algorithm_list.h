/* hetcoll's algorithms, one row each. Whatever knows all of them is made from this list: the enum,
 * names, help texts, counters, what can run where, and the schedules. Plain C, because
 * counters and parameters are; columns that C code does not use are C++ of the layers above.
 *
 *   constant     HETCOLL_CALLS_constant and HETCOLL_NS_constant are its counters
 *   enumerator   of enum class Algorithm
 *   name         in parameters, tuning tables and reports
 *   counter      calls_counter and time_counter are its counters for users
 *   form, needs, sizes, traits
 *                what runs and where: enums of schedule/algorithm_rows.h
 *   plan         an AlgorithmPlan (plan/algorithm.h): its ways, their schedules and their prices
 *   rounding     says how often sums of half and bfloat16 are rounded on one node
 *   help         completes "MPI_Allreduce calls ..."
 *
 * A row of the form kTeam brings enumerator##OfTeam, a TeamAlgorithm (schedule/rounds.h), and with
 * kTeamPlan needs nothing else. A new row goes last: the order decides between algorithms of equal
 * prices, and processes tell each other numbers.
 */
#ifndef HETCOLL_BASE_ALGORITHM_LIST_H
#define HETCOLL_BASE_ALGORITHM_LIST_H

#define HETCOLL_EACH_ADDITION "after every addition, of two numbers at a time"

/* clang-format off */
#define HETCOLL_ALGORITHMS(X)                                                                      \
    X(RECURSIVE_DOUBLING, kRecursiveDoubling, recursive_doubling, recursive_doubling,              \
      kTeam, kMessages, kLarge, kBetweenNodes | kWholeVectors | kFolds, kTeamPlan,                 \
      HETCOLL_EACH_ADDITION,                                                                       \
      "done by recursive doubling")                                                                \
    X(RABENSEIFNER, kRabenseifner, rabenseifner, rabenseifner,                                     \
      kTeam, kMessages, kLarge, kBetweenNodes, kRadixPlan,                                         \
      HETCOLL_EACH_ADDITION,                                                                       \
      "done by Rabenseifner's algorithm")                                                          \
    X(RING, kRing, ring, ring,                                                                     \
      kTeam, kMessages, kLarge, kBetweenNodes | kInRing, kRingPlan,                                \
      HETCOLL_EACH_ADDITION,                                                                       \
      "done by the ring algorithm")                                                                \
    X(ONE_SHOT, kOneShot, one_shot, one_shot,                                                      \
      kKernel, kOneNode, kAnySize, kLeftFold | kOwnResult, kKernelPlan,                            \
      "once",                                                                                      \
      "in which every rank's kernel read all inputs")                                              \
    X(TWO_SHOT, kTwoShot, two_shot, two_shot,                                                      \
      kKernel, kOneNode, kAnySize, kLeftFold | kByShares, kKernelPlan,                             \
      "once",                                                                                      \
      "in which every rank's kernel reduced a share for all")                                      \
    X(LEADER, kLeader, leader, leader,                                                             \
      kKernel, kOneNode, kAnySize, kLeftFold | kLeads, kKernelPlan,                                \
      "once",                                                                                      \
      "in which one rank's kernel reduced for all")                                                \
    X(TREE, kTree, tree, tree,                                                                     \
      kSteps, kTrees, kLarge, kPlain, kTreePlan,                                                   \
      "once at each rank, which adds what its children have to its own",                           \
      "done by packed trees")                                                                      \
    X(HIERARCHICAL, kHierarchical, hierarchical, hierarchical,                                     \
      kSteps, kGroups, kLarge, kPlain, kHierarchicalPlan,                                          \
      "once for the ranks of a GPU, and once for its node",                                        \
      "done on the nodes, between them, and on the nodes")                                         \
    X(HOST, kHost, host, small,                                                                    \
      kHost, kMessages, kSmall, kLeftFold, kHostPlan,                                              \
      "once",                                                                                      \
      "reduced by the processors")                                                                 \
    X(COPY_IN, kCopyIn, copy_in, copy_in,                                                          \
      kKernel, kOneNode, kSmall, kLeftFold | kOwnResult | kCopiesIn, kKernelPlan,                  \
      "once",                                                                                      \
      "through memory that all ranks map")                                                         \
    X(ORDERED, kOrdered, ordered, ordered,                                                         \
      kSteps, kMessages, kAnySize, kLeftFold | kInChain | kWhenAsked, kOrderedPlan,                \
      HETCOLL_EACH_ADDITION,                                                                       \
      "summed in the order of the ranks, along their chain")                                       \
    X(IN_NETWORK, kInNetwork, in_network, in_network,                                              \
      kServers, kAggregators, kLarge, kPlain, kInNetworkPlan,                                      \
      "once at each aggregator",                                                                   \
      "reduced by aggregators")                                                                    \
    X(WEIGHTED, kWeighted, weighted, weighted,                                                     \
      kSteps, kShares, kLarge, kPlain, kWeightedPlan,                                              \
      "once, by the rank that a share belongs to",                                                 \
      "in which each rank reduced a share by the rate of its links")                               \
    X(RADIX3, kRadix3, radix3, radix3,                                                             \
      kTeam, kMessages, kLarge, kBetweenNodes, kRadixPlan,                                         \
      HETCOLL_EACH_ADDITION,                                                                       \
      "reduced and gathered in rounds of two partners")                                            \
    X(RADIX4, kRadix4, radix4, radix4,                                                             \
      kTeam, kMessages, kLarge, kBetweenNodes, kRadixPlan,                                         \
      HETCOLL_EACH_ADDITION,                                                                       \
      "reduced and gathered in rounds of three partners")                                          \
    X(RADIX8, kRadix8, radix8, radix8,                                                             \
      kTeam, kMessages, kLarge, kBetweenNodes, kRadixPlan,                                         \
      HETCOLL_EACH_ADDITION,                                                                       \
      "reduced and gathered in rounds of seven partners")                                          \
    X(RECURSIVE_MULTIPLYING, kRecursiveMultiplying, recursive_multiplying, recursive_multiplying,  \
      kTeam, kMessages, kLarge, kBetweenNodes | kWholeVectors | kMultiplies, kTeamPlan,            \
      "once in each round",                                                                        \
      "done by recursive multiplying")
/* clang-format on */

/* `yes` in a row of the form kTeam, else `no`. */
#define HETCOLL_IF_TEAM(form, yes, no) HETCOLL_IF_##form(yes, no)
#define HETCOLL_IF_kTeam(yes, no) yes
#define HETCOLL_IF_kSteps(yes, no) no
#define HETCOLL_IF_kKernel(yes, no) no
#define HETCOLL_IF_kHost(yes, no) no
#define HETCOLL_IF_kServers(yes, no) no

#endif
