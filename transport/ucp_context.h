// A context of UCP that has the transports of some adapter, and nothing else that reaches another
// process.
#pragma once

#include "transport/adapter_messages.h"
#include "transport/ucp_library.h"

#include <cstddef>
#include <span>
#include <string>

namespace hetcoll {

// The caller cleans it up.
[[nodiscard]] Result<ucp_context_h> open_ucp_context(const UcpCalls &ucp,
                                                     const AdapterMessages::Options &options);

// Whether UCX sees that `memory`, which it does not touch, is a GPU's. It may have been built with
// CUDA and find the GPU, and yet not see what is allocated there, where its library for that
// (libucm_cuda) does not load: then it takes all memory for the host's, and copies it with the
// processor, which ends the process.
[[nodiscard]] Status check_device_memory(const UcpCalls &ucp,
                                         const AdapterMessages::Options &options,
                                         ucp_context_h context, std::span<const std::byte> memory);

// For errors: 'rc' on adapter mlx5_0.
[[nodiscard]] std::string describe(const AdapterMessages::Options &options);
[[nodiscard]] Status ucx_failed(const UcpCalls &ucp, const AdapterMessages::Options &options,
                                ucs_status_t status, const char *doing);

} // namespace hetcoll
