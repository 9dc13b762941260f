#include "plan/algorithm.h"

namespace hetcoll {

const AlgorithmPlan kInNetworkPlan{.chunk_bytes = kInNetworkMessageBytes};

} // namespace hetcoll
