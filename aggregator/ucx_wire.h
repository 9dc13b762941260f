// A Wire over UCX: UCP endpoints by address and port, active messages, errors of a peer told by
// UCX.
#pragma once

#include "aggregator/wire.h"

#include <memory>
#include <optional>

namespace hetcoll {

struct UcxCalls; // aggregator/ucx_library.h

// `listen`: others may connect there. UCX's own settings hold (UCX_TLS, UCX_NET_DEVICES), or, where
// only this should have them, the same with HETCOLL_ before.
[[nodiscard]] Result<std::unique_ptr<Wire>> open_ucx_wire(const std::optional<Endpoint> &listen);

// The same by these calls, for tests of UCX's errors.
[[nodiscard]] Result<std::unique_ptr<Wire>> open_ucx_wire(const std::optional<Endpoint> &listen,
                                                          const UcxCalls &calls);

} // namespace hetcoll
