// An aggregator that is a script: while one exists every AggregatorClient of this program's engines
// is connected to it. The linker puts it in the place of load_aggregator_clients() (local.mk).
#pragma once

#include "aggregator/client.h"
#include "test/unit/engine_scripted_peer.h"

#include <vector>

namespace hetcoll::test {

class ScriptedAggregator {
public:
    ScriptedAggregator();
    ~ScriptedAggregator();
    ScriptedAggregator(const ScriptedAggregator &) = delete;
    ScriptedAggregator &operator=(const ScriptedAggregator &) = delete;

    struct Begun {
        ReduceOp op;
        ElementKind kind;
        std::size_t count;
        friend bool operator==(const Begun &, const Begun &) = default;
    };

    ScriptedPeer messages;             // the sums; after a lost one the connection has failed
    bool refuses = false;              // nobody connects
    bool fails = false;                // who is connected hears that it has failed
    int joining_steps = 0;             // until a client has joined
    std::vector<AggregatorPlan> plans; // of all who have come
    std::vector<Begun> begun;
    int clients = 0; // that are connected now
};

} // namespace hetcoll::test
