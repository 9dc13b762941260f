// A Wire over UCX: UCP endpoints by address and port, active messages, and UCX's reports of a
// peer's errors.
#pragma once

#include "aggregator/wire.h"

#include <memory>
#include <optional>

namespace hetcoll {

struct UcxCalls; // aggregator/ucx_library.h

// `listen`: where others may connect. UCX's own settings apply (UCX_TLS, UCX_NET_DEVICES); with
// HETCOLL_ before their names they apply to this wire alone.
[[nodiscard]] Result<std::unique_ptr<Wire>> open_ucx_wire(const std::optional<Endpoint> &listen);

// The same with these calls in place of UCX's, for tests of its errors.
[[nodiscard]] Result<std::unique_ptr<Wire>> open_ucx_wire(const std::optional<Endpoint> &listen,
                                                          const UcxCalls &calls);

} // namespace hetcoll
