// A mistake of the program's: the ranks of a meeting do not call the same. Which arguments differ,
// and on which ranks.
#pragma once

#include "engine/meeting/exchange.h"
#include "engine/meeting/node_group.h"

#include <cstdint>
#include <optional>

namespace hetcoll {

class CallMismatch {
public:
    // Before each meeting.
    void forget() noexcept
    {
        elsewhere_.rank = -1;
        differences_ = on_node_ = {};
    }
    // All ranks of the node have come: compares their calls with the first rank's, so that all find
    // the same.
    void compare_node(NodeGroup &group, unsigned turn) noexcept;
    // As all nodes have found.
    void learn(Differences differences, std::uint32_t newest) noexcept
    {
        differences_ = differences;
        newest_ = newest;
    }
    // True if one of the node's ranks from `first` on does not come, because it has handed this
    // call on to Open MPI, as another one.
    [[nodiscard]] bool find_elsewhere(NodeGroup &group, int first) noexcept;

    [[nodiscard]] Differences differences() const noexcept { return differences_; }
    [[nodiscard]] Differences on_node() const noexcept { return on_node_; }
    // If the calls' numbers differ: the last of all.
    [[nodiscard]] std::uint32_t newest() const noexcept { return newest_; }
    struct Call {
        int rank;
        CallSignature call;
        std::uint32_t number; // 0: not known
    };
    struct Calls {
        Call one, other;
        int more;               // further ranks of the node that do not call as `one`
        bool handed_on = false; // by `other`, which does not come to the meeting
    };
    // Returns two calls that differ if this rank is to say so: the one that most ranks make, and
    // another. The first rank of a node speaks for it. `turn` and `exchange` are the meeting's.
    [[nodiscard]] std::optional<Calls> calls(NodeGroup &group, unsigned turn,
                                             const Exchange &exchange) const noexcept;

private:
    Differences differences_{}, on_node_{};
    std::uint32_t newest_ = 0;
    Call elsewhere_{-1, {}, 0}; // a rank that does not come; -1: none
};

} // namespace hetcoll
