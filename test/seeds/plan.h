// A plan is all that a seed draws before anything runs: ranks, nodes and GPUs, settings, the calls
// that all ranks make, and what goes wrong.
#pragma once

#include "engine/types/call.h"
#include "engine/types/settings.h"
#include "test/unit/failing_allocations.h"
#include "test/unit/float_modes.h"

#include <array>
#include <cstddef>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace hetcoll::test {

class Random {
public:
    explicit Random(unsigned seed) : bits_(seed) {}
    // 0 to n - 1. Not a distribution of the library: these differ between libraries.
    unsigned below(unsigned n) { return static_cast<unsigned>(bits_() % n); }
    bool once_in(unsigned n) { return below(n) == 0; }
    template <class T, std::size_t n> const T &of(const std::array<T, n> &list)
    {
        return list[below(n)];
    }

private:
    std::mt19937 bits_;
};

struct Type {
    hetcoll_kind kind;
    hetcoll_op op;
    std::size_t bytes;
};

struct PlannedCall {
    hetcoll_collective collective = HETCOLL_ALLREDUCE;
    Type type{};
    int root = 0;
    std::size_t count = 0;
    int communicator = 0;
    bool blocking = true, persistent = false;
    int again = -1;         // the call whose persistent request is started once more
    int differs = -1;       // a rank that calls with another count
    bool subnormal = false; // floats: all numbers are
    unsigned salt = 0;
};

enum class Trouble { kNone, kDriver, kDeath, kMessage, kMemory };

// One thing goes wrong at most.
struct Plan {
    struct Network {
        bool synchronous;
        unsigned seed;
    };

    int ranks = 0, devices = 0;
    hetcoll_settings settings{};
    bool hostile = false;                 // the driver is
    std::vector<unsigned> weights, nodes; // of each rank: how often it goes on, where it is
    std::vector<Network> networks;        // of each communicator
    std::vector<PlannedCall> calls;       // of all ranks, in this order
    Trouble trouble = Trouble::kNone;
    bool tolerant = false; // ranks learn of it, each at its time, as under --with-ft
    std::size_t trouble_turn = 0;
    std::string driver_fault; // as in EMU_FAIL
    int dying_rank = -1;
    int failing_send = 0; // from that turn on
    int hungry_rank = -1; // whose allocations fail, from one of those after that turn on
    int failing_allocation = 0;
    Blocks blocks = Blocks::kSmall; // kAll: the reserve is not filled again
    std::size_t hungry_turns = 0;
    std::vector<std::optional<FloatMode>> modes; // of each rank: its control register
    std::size_t environment_turn = 0; // when a variable changes that rules which GPUs there are
    const char *visible_devices = nullptr; // to this; null: it goes
    std::string about;                     // all of it, in words
};

[[nodiscard]] Plan draw_plan(Random &random);

} // namespace hetcoll::test
