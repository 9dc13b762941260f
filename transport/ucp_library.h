// UCX's upper layer, UCP, found at run time by dlopen: nobody needs UCX unless messages go by
// adapters of ours.
#pragma once

#include "base/status.h"

#include <ucp/api/ucp.h>

// clang-format off
#define HETCOLL_UCP_CALLS(X)                                                                       \
    X(ucp_get_version) X(ucp_config_read) X(ucp_config_modify) X(ucp_config_release)               \
    X(ucp_init_version) X(ucp_cleanup) X(ucp_context_query) X(ucp_context_print_info)              \
    X(ucp_mem_map) X(ucp_mem_query) X(ucp_mem_unmap)                                               \
    X(ucp_worker_create) X(ucp_worker_destroy) X(ucp_worker_query) X(ucp_worker_release_address)   \
    X(ucp_worker_progress) X(ucp_worker_flush_nbx) X(ucp_ep_create) X(ucp_ep_close_nbx)            \
    X(ucp_tag_send_nbx) X(ucp_tag_recv_nbx) X(ucp_tag_recv_request_test)                           \
    X(ucp_request_check_status) X(ucp_request_cancel) X(ucp_request_free) X(ucs_status_string)
// clang-format on

namespace hetcoll {

struct UcpCalls {
#define HETCOLL_UCP_FIELD(name) decltype(&::name) name = nullptr;
    HETCOLL_UCP_CALLS(HETCOLL_UCP_FIELD)
#undef HETCOLL_UCP_FIELD
};

// Never closed: it has exit handlers of its own. UCP only grows within a major release, so it may
// be newer than the headers that hetcoll was built with.
[[nodiscard]] Result<UcpCalls> load_ucp(const char *library = "libucp.so.0");

} // namespace hetcoll
