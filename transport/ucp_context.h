// A context of UCP that has the transports of some adapter, and nothing else that reaches another
// process.
#pragma once

#include "transport/adapter_messages.h"
#include "transport/ucp_library.h"

#include <string>

namespace hetcoll {

// The caller cleans it up.
[[nodiscard]] Result<ucp_context_h> open_ucp_context(const UcpCalls &ucp,
                                                     const AdapterMessages::Options &options);

// For errors: 'rc' on adapter mlx5_0.
[[nodiscard]] std::string describe(const AdapterMessages::Options &options);
[[nodiscard]] Status ucx_failed(const UcpCalls &ucp, const AdapterMessages::Options &options,
                                ucs_status_t status, const char *doing);

} // namespace hetcoll
