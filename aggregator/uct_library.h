// UCX's lower layer, UCT, found at run time by dlopen like OpenSSL: nobody needs UCX unless RDMA is
// asked for.
#pragma once

#include "base/status.h"

#include <ucp/api/ucp.h>
#include <ucs/async/async_fwd.h>
#include <uct/api/uct.h>

// clang-format off
#define HETCOLL_UCT_CALLS(X)                                                                       \
    X(uct_query_components) X(uct_release_component_list) X(uct_component_query)                   \
    X(uct_md_config_read) X(uct_config_modify) X(uct_config_release) X(uct_md_open)                \
    X(uct_md_close) X(uct_md_query_tl_resources) X(uct_release_tl_resource_list)                   \
    X(uct_md_iface_config_read) X(uct_iface_open) X(uct_iface_close) X(uct_iface_query)            \
    X(uct_iface_set_am_handler) X(uct_iface_get_device_address) X(uct_iface_get_address)           \
    X(uct_iface_is_reachable) X(uct_iface_event_fd_get) X(uct_iface_event_arm)                     \
    X(uct_worker_create) X(uct_worker_destroy) X(uct_ep_create) X(uct_ep_destroy)                  \
    X(uct_ep_get_address) X(uct_ep_connect_to_ep) X(ucs_async_context_create)                      \
    X(ucs_async_context_destroy) X(ucs_async_poll) X(ucs_status_string) X(ucp_get_version)
// clang-format on

namespace hetcoll {

struct UctCalls {
#define HETCOLL_UCT_FIELD(name) decltype(&::name) name = nullptr;
    HETCOLL_UCT_CALLS(HETCOLL_UCT_FIELD)
#undef HETCOLL_UCT_FIELD
};

// Never closed: it has exit handlers of its own. UCT's structures differ from release to release,
// so it must be of the one whose headers hetcoll was built with.
[[nodiscard]] Result<UctCalls> load_uct(const char *library = "libucp.so.0");

} // namespace hetcoll
