#pragma once

namespace hetcoll {

// The means of a call in addition to messages: peers' memory, if the ranks have found out that it
// can; aggregators, if the ranks have joined them; adapters on a node, if the ranks have tried
// them.
struct Means {
    bool mapped = false, aggregators = false, adapters = false;
    bool mixed = false; // some ranks reduce host memory
};

} // namespace hetcoll
