// UCX's libucp, found at run time by dlopen like the CUDA driver: the component needs no UCX unless
// aggregators are named.
#pragma once

#include "base/status.h"

#include <ucp/api/ucp.h>

// clang-format off
#define HETCOLL_UCX_CALLS(X)                                                                       \
    X(ucp_config_read) X(ucp_config_release) X(ucp_init_version) X(ucp_cleanup)                    \
    X(ucp_worker_create) X(ucp_worker_destroy) X(ucp_worker_progress) X(ucp_worker_arm)            \
    X(ucp_worker_get_efd) X(ucp_worker_set_am_recv_handler) X(ucp_listener_create)                 \
    X(ucp_listener_destroy) X(ucp_ep_create) X(ucp_ep_close_nbx) X(ucp_am_send_nbx)                \
    X(ucp_am_data_release) X(ucp_request_free) X(ucs_status_string)
// clang-format on

namespace hetcoll {

struct UcxCalls {
#define HETCOLL_UCX_FIELD(name) decltype(&::name) name = nullptr;
    HETCOLL_UCX_CALLS(HETCOLL_UCX_FIELD)
#undef HETCOLL_UCX_FIELD
};

// Never closed: it has threads and exit handlers of its own.
[[nodiscard]] Result<UcxCalls> load_ucx();

} // namespace hetcoll
