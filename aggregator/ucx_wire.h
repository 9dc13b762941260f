// A Wire over UCX: UCP endpoints by address and port, active messages, errors of a peer told by
// UCX.
#pragma once

#include "aggregator/wire.h"

#include <memory>
#include <optional>

namespace hetcoll {

class UcxWire : public Wire {
public:
    // `listen`: others may connect there. UCX's own settings hold (UCX_TLS, UCX_NET_DEVICES), or,
    // where only this should have them, the same with HETCOLL_ before.
    static Result<std::unique_ptr<UcxWire>> create(const std::optional<Endpoint> &listen);

    // Waits until there may be something for progress() to do, `fd` can be read (-1: none), or so
    // long.
    virtual void wait(int milliseconds, int fd) = 0;
};

} // namespace hetcoll
