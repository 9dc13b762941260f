#include "aggregator/rdma_device.h"

#include "hetcoll_config.h"

#if HETCOLL_WITH_UCX

#include "aggregator/uct_library.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <vector>

namespace hetcoll {
namespace {

constexpr const char *kTransport = "rc_verbs";
constexpr std::uint8_t kActiveMessage = 1; // UCT's number for ours
constexpr std::uint64_t kNeeded =
    UCT_IFACE_FLAG_CONNECT_TO_EP | UCT_IFACE_FLAG_AM_BCOPY | UCT_IFACE_FLAG_ERRHANDLE_PEER_FAILURE;
constexpr std::uint64_t kNeededEvents =
    UCT_IFACE_FLAG_EVENT_SEND_COMP | UCT_IFACE_FLAG_EVENT_RECV | UCT_IFACE_FLAG_EVENT_FD;

// UCT reads addresses without their length: what is behind it is zero.
using Padded = std::array<std::byte, kMostRdmaAddressBytes * 4>;

Padded padded(const std::string &address)
{
    Padded bytes{};
    std::memcpy(bytes.data(), address.data(), std::min(address.size(), bytes.size()));
    return bytes;
}

class Device final : public RdmaDevice {
public:
    Device(const UctCalls &calls, Events &events) : uct_(calls), events_(events) {}
    ~Device() override;
    Status open(const std::string &name);

    const std::string &name() const noexcept override { return name_; }
    Result<Queue> add(RdmaAddress &address) override;
    Status connect(Queue queue, const RdmaAddress &to) override;
    void remove(Queue queue) override { uct_.uct_ep_destroy(queue); }
    Result<std::size_t> send(Queue queue, const RdmaToken &token, std::span<const std::byte> head,
                             std::span<const std::byte> payload) override;
    bool progress() override;
    int arm() override;

private:
    struct Packet {
        const RdmaToken &token;
        std::span<const std::byte> head, payload;
    };

    Status failed(ucs_status_t status, const char *doing) const
    {
        return error(Errc::kUnsupported, "UCX failed: %s, while %s", uct_.ucs_status_string(status),
                     doing);
    }
    bool find(std::string_view transport, std::string_view device);
    bool find_in(uct_component_h component, std::string_view transport, std::string_view device);
    bool has(uct_md_h domain, std::string_view transport, std::string_view device);
    Status open_interface(const std::string &transport);
    Status look_at_interface(const std::string &transport);

    static std::size_t pack(void *to, void *packet);
    static ucs_status_t on_message(void *self, void *data, std::size_t bytes, unsigned flags);
    static ucs_status_t on_error(void *self, uct_ep_h queue, ucs_status_t status);

    UctCalls uct_;
    Events &events_;
    std::string name_, device_;
    ucs_async_context_t *async_ = nullptr;
    uct_worker_h worker_ = nullptr;
    uct_md_h domain_ = nullptr;
    uct_iface_h interface_ = nullptr;
    std::string kind_;
    std::size_t packet_bytes_ = 0;
    std::string address_;
    int fd_ = -1;
};

Device::~Device()
{
    if (interface_ != nullptr) {
        uct_.uct_iface_close(interface_);
    }
    if (domain_ != nullptr) {
        uct_.uct_md_close(domain_);
    }
    if (worker_ != nullptr) {
        uct_.uct_worker_destroy(worker_);
    }
    if (async_ != nullptr) {
        uct_.ucs_async_context_destroy(async_);
    }
}

Status Device::open(const std::string &name)
{
    const std::size_t slash = name.find('/');
    const std::string transport = slash == std::string::npos ? kTransport : name.substr(0, slash);
    const std::string wanted = slash == std::string::npos ? name : name.substr(slash + 1);
    // No thread of UCX's: progress() looks at what a device tells.
    ucs_status_t status = uct_.ucs_async_context_create(UCS_ASYNC_MODE_POLL, &async_);
    if (status == UCS_OK) {
        status = uct_.uct_worker_create(async_, UCS_THREAD_MODE_SERIALIZED, &worker_);
    }
    if (status != UCS_OK) {
        return failed(status, "it was started");
    }
    if (!find(transport, wanted == "any" ? "" : wanted)) {
        return error(Errc::kUnsupported, "UCX finds no device%s%s for %s with a port that is up",
                     wanted == "any" ? "" : " ", wanted == "any" ? "" : wanted.c_str(),
                     transport.c_str());
    }
    name_ = transport + "/" + device_;
    Status opened = open_interface(transport);
    return opened.ok() ? look_at_interface(transport) : std::move(opened);
}

bool Device::find(std::string_view transport, std::string_view device)
{
    uct_component_h *components = nullptr;
    unsigned count = 0;
    if (uct_.uct_query_components(&components, &count) != UCS_OK) {
        return false;
    }
    bool found = false;
    for (unsigned i = 0; i < count && !found; ++i) {
        found = find_in(components[i], transport, device);
    }
    uct_.uct_release_component_list(components);
    return found;
}

bool Device::find_in(uct_component_h component, std::string_view transport, std::string_view device)
{
    uct_component_attr_t attributes{};
    attributes.field_mask =
        UCT_COMPONENT_ATTR_FIELD_NAME | UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT;
    if (uct_.uct_component_query(component, &attributes) != UCS_OK ||
        attributes.md_resource_count == 0) {
        return false;
    }
    std::vector<uct_md_resource_desc_t> domains(attributes.md_resource_count);
    attributes.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
    attributes.md_resources = domains.data();
    if (uct_.uct_component_query(component, &attributes) != UCS_OK) {
        return false;
    }
    for (const uct_md_resource_desc_t &domain : domains) {
        uct_md_config_t *config = nullptr;
        if (uct_.uct_md_config_read(component, nullptr, nullptr, &config) != UCS_OK) {
            continue;
        }
        // No cache of registered memory, for which UCX would patch the process's memory calls. Only
        // InfiniBand has the option.
        (void)uct_.uct_config_modify(config, "REG_METHODS", "direct");
        const ucs_status_t status = uct_.uct_md_open(component, domain.md_name, config, &domain_);
        uct_.uct_config_release(config);
        if (status == UCS_OK && has(domain_, transport, device)) {
            return true;
        }
        if (status == UCS_OK) {
            uct_.uct_md_close(domain_);
        }
        domain_ = nullptr;
    }
    return false;
}

bool Device::has(uct_md_h domain, std::string_view transport, std::string_view device)
{
    uct_tl_resource_desc_t *resources = nullptr;
    unsigned count = 0;
    if (uct_.uct_md_query_tl_resources(domain, &resources, &count) != UCS_OK) {
        return false;
    }
    for (unsigned i = 0; i < count && device_.empty(); ++i) {
        if (transport == resources[i].tl_name &&
            (device.empty() || device == resources[i].dev_name)) {
            device_ = resources[i].dev_name;
        }
    }
    uct_.uct_release_tl_resource_list(resources);
    return !device_.empty();
}

Status Device::open_interface(const std::string &transport)
{
    uct_iface_config_t *config = nullptr;
    ucs_status_t status =
        uct_.uct_md_iface_config_read(domain_, transport.c_str(), nullptr, nullptr, &config);
    if (status != UCS_OK) {
        return failed(status, "a device's settings were read");
    }
    uct_iface_params_t params{};
    params.field_mask = UCT_IFACE_PARAM_FIELD_OPEN_MODE | UCT_IFACE_PARAM_FIELD_DEVICE |
                        UCT_IFACE_PARAM_FIELD_RX_HEADROOM | UCT_IFACE_PARAM_FIELD_ERR_HANDLER |
                        UCT_IFACE_PARAM_FIELD_ERR_HANDLER_ARG |
                        UCT_IFACE_PARAM_FIELD_ERR_HANDLER_FLAGS;
    params.open_mode = UCT_IFACE_OPEN_MODE_DEVICE;
    params.mode.device.tl_name = transport.c_str();
    params.mode.device.dev_name = device_.c_str();
    params.err_handler = &Device::on_error;
    params.err_handler_arg = this;
    params.err_handler_flags = UCT_CB_FLAG_ASYNC; // from progress(): there is no thread
    status = uct_.uct_iface_open(domain_, worker_, &params, config, &interface_);
    uct_.uct_config_release(config);
    return status == UCS_OK ? Status() : failed(status, "a device was opened");
}

Status Device::look_at_interface(const std::string &transport)
{
    uct_iface_attr_t attributes{};
    ucs_status_t status = uct_.uct_iface_query(interface_, &attributes);
    if (status != UCS_OK) {
        return failed(status, "a device was looked at");
    }
    if ((attributes.cap.flags & kNeeded) != kNeeded ||
        (attributes.cap.event_flags & kNeededEvents) != kNeededEvents ||
        attributes.cap.am.max_bcopy <= sizeof(RdmaToken) ||
        attributes.device_addr_len > kMostRdmaAddressBytes ||
        attributes.ep_addr_len > kMostRdmaAddressBytes ||
        attributes.iface_addr_len > kMostRdmaAddressBytes) {
        return error(Errc::kUnsupported, "%s has no reliable connections", name_.c_str());
    }
    packet_bytes_ = attributes.cap.am.max_bcopy;
    kind_ = transport + " " + std::to_string(UCP_API_MAJOR) + "." + std::to_string(UCP_API_MINOR) +
            " " + std::to_string(packet_bytes_) + " " + std::to_string(attributes.device_addr_len) +
            " " + std::to_string(attributes.ep_addr_len);
    address_.resize(attributes.device_addr_len);
    status = uct_.uct_iface_get_device_address(
        interface_, reinterpret_cast<uct_device_addr_t *>(address_.data()));
    if (status == UCS_OK) {
        status = uct_.uct_iface_event_fd_get(interface_, &fd_);
    }
    if (status == UCS_OK) {
        status =
            uct_.uct_iface_set_am_handler(interface_, kActiveMessage, &Device::on_message, this, 0);
    }
    if (status != UCS_OK) {
        return failed(status, "a device was made ready");
    }
    uct_iface_progress_enable(interface_, UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
    return {};
}

Result<RdmaDevice::Queue> Device::add(RdmaAddress &address)
{
    uct_ep_params_t params{};
    params.field_mask = UCT_EP_PARAM_FIELD_IFACE;
    params.iface = interface_;
    uct_ep_h queue = nullptr;
    ucs_status_t status = uct_.uct_ep_create(&params, &queue);
    if (status != UCS_OK) {
        return failed(status, "a queue pair was made");
    }
    uct_iface_attr_t attributes{};
    status = uct_.uct_iface_query(interface_, &attributes);
    address = {.kind = kind_, .device = address_, .queue = {}};
    address.queue.resize(attributes.ep_addr_len);
    if (status == UCS_OK) {
        status =
            uct_.uct_ep_get_address(queue, reinterpret_cast<uct_ep_addr_t *>(address.queue.data()));
    }
    if (status != UCS_OK) {
        uct_.uct_ep_destroy(queue);
        return failed(status, "a queue pair was made");
    }
    return queue;
}

Status Device::connect(Queue queue, const RdmaAddress &to)
{
    if (to.kind != kind_) {
        return error(Errc::kUnsupported, "it has %s, and this side %s", to.kind.c_str(),
                     kind_.c_str());
    }
    uct_iface_attr_t attributes{};
    const ucs_status_t queried = uct_.uct_iface_query(interface_, &attributes);
    if (queried != UCS_OK) {
        return failed(queried, "a device was looked at");
    }
    const Padded device = padded(to.device), pair = padded(to.queue), none{};
    const auto *const there = reinterpret_cast<const uct_device_addr_t *>(device.data());
    if (to.device.size() != address_.size() || to.queue.size() != attributes.ep_addr_len ||
        uct_.uct_iface_is_reachable(interface_, there,
                                    reinterpret_cast<const uct_iface_addr_t *>(none.data())) == 0) {
        return error(Errc::kUnsupported, "its device cannot be reached from %s", name_.c_str());
    }
    const ucs_status_t status = uct_.uct_ep_connect_to_ep(
        queue, there, reinterpret_cast<const uct_ep_addr_t *>(pair.data()));
    return status == UCS_OK ? Status() : failed(status, "queue pairs were connected");
}

std::size_t Device::pack(void *to, void *packed)
{
    const auto &packet = *static_cast<const Packet *>(packed);
    auto *at = static_cast<std::byte *>(to);
    std::memcpy(at, &packet.token, sizeof packet.token);
    at += sizeof packet.token;
    at = std::copy(packet.head.begin(), packet.head.end(), at);
    at = std::copy(packet.payload.begin(), packet.payload.end(), at);
    return static_cast<std::size_t>(at - static_cast<std::byte *>(to));
}

Result<std::size_t> Device::send(Queue queue, const RdmaToken &token,
                                 std::span<const std::byte> head,
                                 std::span<const std::byte> payload)
{
    std::size_t space = packet_bytes_ - sizeof token;
    head = head.first(std::min(head.size(), space));
    space -= head.size();
    Packet packet{
        .token = token, .head = head, .payload = payload.first(std::min(payload.size(), space))};
    const ssize_t sent = uct_ep_am_bcopy(queue, kActiveMessage, &Device::pack, &packet, 0);
    if (sent == UCS_ERR_NO_RESOURCE) {
        return std::size_t{0};
    }
    if (sent < 0) {
        return failed(static_cast<ucs_status_t>(sent), "a packet was sent");
    }
    return packet.head.size() + packet.payload.size();
}

ucs_status_t Device::on_message(void *self, void *data, std::size_t bytes, unsigned /*flags*/)
{
    RdmaToken token;
    if (bytes >= sizeof token) {
        std::memcpy(&token, data, sizeof token);
        static_cast<Device *>(self)->events_.on_packet(
            token, std::span(static_cast<const std::byte *>(data), bytes).subspan(sizeof token));
    }
    return UCS_OK;
}

ucs_status_t Device::on_error(void *self, uct_ep_h queue, ucs_status_t status)
{
    auto &device = *static_cast<Device *>(self);
    device.events_.on_broken(queue, device.uct_.ucs_status_string(status));
    return UCS_OK;
}

bool Device::progress()
{
    uct_.ucs_async_poll(async_);
    return uct_worker_progress(worker_) != 0;
}

int Device::arm()
{
    constexpr unsigned kEvents = UCT_EVENT_SEND_COMP | UCT_EVENT_RECV;
    return uct_.uct_iface_event_arm(interface_, kEvents) == UCS_OK ? fd_ : -1;
}

} // namespace

Result<std::unique_ptr<RdmaDevice>> RdmaDevice::open(const std::string &name, Events &events)
{
    Result<UctCalls> calls = load_uct();
    if (!calls.ok()) {
        return calls.take_status();
    }
    auto device = std::make_unique<Device>(*calls, events);
    if (Status status = device->open(name); !status.ok()) {
        return status;
    }
    return std::unique_ptr<RdmaDevice>(std::move(device));
}

} // namespace hetcoll

#else

namespace hetcoll {

Result<std::unique_ptr<RdmaDevice>> RdmaDevice::open(const std::string & /*name*/,
                                                     Events & /*events*/)
{
    return error(Errc::kUnsupported, "this hetcoll was built without UCX: configure it --with-ucx");
}

} // namespace hetcoll

#endif
