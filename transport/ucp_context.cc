#include "hetcoll_config.h"

#if HETCOLL_WITH_UCX

#include "transport/ucp_context.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <unistd.h>

namespace hetcoll {
namespace {

// UCX names ports of RDMA devices, and network interfaces. Ours have one port, the first.
std::string ucx_name(const std::string &device)
{
    const bool rdma =
        !device.empty() && access(("/sys/class/infiniband/" + device).c_str(), F_OK) == 0;
    return rdma ? device + ":1" : device;
}

// The environment must not change these. "self", which reaches nobody else, keeps UCX
// from printing an error where the transports are missing: look_for_transport() words that. UCX
// copies CUDA's memory by cuda_copy. With cuda_ipc a message would not go by an adapter. TCP, which
// stands for adapters in tests, aborts the process in UCX 1.13 if a peer is lost while it sends
// what it has not copied.
Status configure(const UcpCalls &ucp, const AdapterMessages::Options &options, ucp_config_t *config)
{
    const std::string transports =
        options.transports + (options.cuda ? ",cuda_copy,self" : ",self");
    const std::string device = ucx_name(options.device);
    struct {
        const char *name, *value;
    } const settings[] = {
        {"TLS", transports.c_str()},
        {"SELF_DEVICES", "all"},
        {"ACC_DEVICES", "all"},
        {"WARN_INVALID_CONFIG", "n"},
        {"UNIFIED_MODE", "n"}, // ranks have different adapters
        {"NUM_EPS", "auto"},   // a large number rules out rc
        {"NET_DEVICES", device.c_str()},
        {"ZCOPY_THRESH", options.transports == "tcp" ? "inf" : ""},
    };
    for (const auto &[name, value] : settings) {
        if (*value == '\0') {
            continue;
        }
        if (const ucs_status_t status = ucp.ucp_config_modify(config, name, value);
            status != UCS_OK) {
            return error(Errc::kUnsupported, "UCX refuses the setting %s=%s: %s", name, value,
                         ucp.ucs_status_string(status));
        }
    }
    return {};
}

Status look_at_memory(const UcpCalls &ucp, const AdapterMessages::Options &options,
                      ucp_context_h context)
{
    ucp_context_attr_t attributes{};
    attributes.field_mask = UCP_ATTR_FIELD_MEMORY_TYPES;
    if (const ucs_status_t status = ucp.ucp_context_query(context, &attributes); status != UCS_OK) {
        return ucx_failed(ucp, options, status, "its memory types were asked for");
    }
    if (options.cuda && (attributes.memory_types & UCS_BIT(UCS_MEMORY_TYPE_CUDA)) == 0) {
        return error(Errc::kUnsupported,
                     "this UCX was built without CUDA or finds no GPU, so adapters are not used "
                     "on the node: use the UCX of HPC-X, or one that is configured --with-cuda");
    }
    return {};
}

// UCX does not say by a call which transports it has found, but prints them: tcp/lo. Where it
// prints in a way that is not known, connecting finds out.
Status look_for_transport(const UcpCalls &ucp, const AdapterMessages::Options &options,
                          ucp_context_h context)
{
    char *text = nullptr;
    std::size_t bytes = 0;
    std::FILE *const file = open_memstream(&text, &bytes);
    if (file == nullptr) {
        return Status::out_of_memory();
    }
    ucp.ucp_context_print_info(context, file);
    (void)std::fclose(file);
    bool known = false, found = false;
    const std::string on_device =
        options.device.empty() ? "/" : "/" + ucx_name(options.device) + "\n";
    for (std::string_view rest = text == nullptr ? "" : text; !rest.empty();) {
        const std::string_view line = rest.substr(0, rest.find('\n') + 1);
        rest.remove_prefix(line.empty() ? rest.size() : line.size());
        if (line.find(" self/") != std::string_view::npos) {
            known = true;
        } else if (line.find("resource ") != std::string_view::npos &&
                   line.find(" cuda_copy/") == std::string_view::npos &&
                   line.find("flags a") == std::string_view::npos && // that only help to connect
                   line.find(on_device) != std::string_view::npos) {
            found = true;
        }
    }
    std::free(text);
    return found || !known
               ? Status()
               : error(Errc::kUnsupported, "UCX has no transport %s with a port that is up",
                       describe(options).c_str());
}

Result<ucp_context_h> start(const UcpCalls &ucp, const AdapterMessages::Options &options)
{
    ucp_config_t *config = nullptr;
    ucs_status_t status = ucp.ucp_config_read(nullptr, nullptr, &config);
    if (status != UCS_OK) {
        return ucx_failed(ucp, options, status, "settings were read");
    }
    Status configured = configure(ucp, options, config);
    if (!configured.ok()) {
        ucp.ucp_config_release(config);
        return configured;
    }
    ucp_context_h context = nullptr;
    ucp_params_t params{};
    params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_TAG_SENDER_MASK;
    params.features = UCP_FEATURE_TAG;
    params.tag_sender_mask = ~std::uint64_t{0} << 32;
    status = ucp.ucp_init_version(UCP_API_MAJOR, UCP_API_MINOR, &params, config, &context);
    ucp.ucp_config_release(config);
    return status == UCS_OK ? Result<ucp_context_h>(context)
                            : ucx_failed(ucp, options, status, "it was started");
}

} // namespace

Result<ucp_context_h> open_ucp_context(const UcpCalls &ucp, const AdapterMessages::Options &options)
{
    Result<ucp_context_h> context = start(ucp, options);
    if (!context.ok()) {
        return context;
    }
    Status status = look_at_memory(ucp, options, *context);
    if (status.ok()) {
        status = look_for_transport(ucp, options, *context);
    }
    if (!status.ok()) {
        ucp.ucp_cleanup(*context);
        return status;
    }
    return context;
}

Status check_device_memory(const UcpCalls &ucp, const AdapterMessages::Options &options,
                           ucp_context_h context, std::span<const std::byte> memory)
{
    ucp_mem_map_params_t params{};
    params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
    params.address = const_cast<std::byte *>(memory.data());
    params.length = memory.size();
    ucp_mem_h mapped = nullptr;
    ucs_status_t status = ucp.ucp_mem_map(context, &params, &mapped);
    if (status != UCS_OK) {
        return ucx_failed(ucp, options, status, "device memory was mapped");
    }
    ucp_mem_attr_t attributes{};
    attributes.field_mask = UCP_MEM_ATTR_FIELD_MEM_TYPE;
    status = ucp.ucp_mem_query(mapped, &attributes);
    (void)ucp.ucp_mem_unmap(context, mapped);
    if (status != UCS_OK) {
        return ucx_failed(ucp, options, status, "the type of device memory was asked for");
    }
    if (attributes.mem_type != UCS_MEMORY_TYPE_CUDA) {
        return error(Errc::kUnsupported,
                     "this UCX takes device memory for the host's, so adapters are not used on the "
                     "node: its libucm_cuda does not load, and UCX_LOG_LEVEL=debug says why");
    }
    return {};
}

std::string describe(const AdapterMessages::Options &options)
{
    return "'" + options.transports + "' on " +
           (options.device.empty() ? "any adapter" : "adapter " + options.device);
}

Status ucx_failed(const UcpCalls &ucp, const AdapterMessages::Options &options, ucs_status_t status,
                  const char *doing)
{
    return error(Errc::kUnsupported, "UCX failed: %s, while %s for messages by %s",
                 ucp.ucs_status_string(status), doing, describe(options).c_str());
}

} // namespace hetcoll

#endif
