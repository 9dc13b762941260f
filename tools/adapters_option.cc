#include "tools/adapters_option.h"

#include "topology/adapters.h"

namespace hetcoll {

Status check_adapters(const Topology *node, int nodes)
{
    if (nodes > 1) {
        return error(Errc::kInvalid,
                     "--adapters is for one node, and on %d nodes the adapters carry what goes "
                     "between them: leave out --adapters, or write --nodes 1",
                     nodes);
    }
    if (node == nullptr) {
        return error(Errc::kInvalid, "--adapters needs to know the machine's network adapters: "
                                     "name a topology that has some, for example --topology dgx1v");
    }
    if (!reach_adapters(*node)) {
        return error(Errc::kInvalid,
                     "--adapters: %s has no network adapter that each of its GPUs reaches, so none "
                     "can carry a part of a vector: leave out --adapters, or add nics and their "
                     "links to the topology file",
                     node->machine.empty() ? "this topology" : node->machine.c_str());
    }
    return {};
}

} // namespace hetcoll
