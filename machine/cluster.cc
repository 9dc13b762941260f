#include "machine/cluster.h"

namespace hetcoll {

int Cluster::node_count() const noexcept
{
    int nodes = 0;
    for (const NodeKind &kind : kinds) {
        nodes += kind.count;
    }
    return nodes;
}

const NodeKind &Cluster::kind_of(int node) const noexcept
{
    std::size_t kind = 0;
    for (; node >= kinds[kind].count; ++kind) {
        node -= kinds[kind].count;
    }
    return kinds[kind];
}

} // namespace hetcoll
