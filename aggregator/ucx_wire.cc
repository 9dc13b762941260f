// UCX's callbacks only queue what UCX tells; it is handed on when UCX's progress function has
// returned. So nothing here calls UCX from inside UCX.
#include "aggregator/ucx_wire.h"

#include "hetcoll_config.h"

#if HETCOLL_WITH_UCX

#include "aggregator/ucx_library.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unordered_map>
#include <vector>

namespace hetcoll {
namespace {

constexpr unsigned kActiveMessage = 1; // UCX's number for ours

struct Address {
    sockaddr_storage storage{};
    socklen_t length = 0;
};

// Which address UCX's TCP takes of a network device that has both kinds: IPv4, unless UCX's setting
// says otherwise.
bool takes_ipv6()
{
    const char *const kinds = std::getenv("UCX_TCP_AF_PRIO"); // for UCX it has no other name
    return kinds != nullptr && std::strncmp(kinds, "inet6", 5) == 0;
}

bool is_ipv6_loopback(const addrinfo &found)
{
    sockaddr_in6 address;
    std::memcpy(&address, found.ai_addr, std::min<std::size_t>(found.ai_addrlen, sizeof address));
    return found.ai_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&address.sin6_addr);
}

enum class Side : std::uint8_t { kListens, kConnects };

// An address of the host, of the kind that carries the data: UCX 1.13 overruns its own memory if a
// connection is made by the other kind.
Result<Address> look_up(const Endpoint &endpoint, Side side)
{
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = side == Side::kListens ? AI_PASSIVE : 0;
    addrinfo *found = nullptr;
    const int code =
        getaddrinfo(endpoint.host.c_str(), std::to_string(endpoint.port).c_str(), &hints, &found);
    if (code != 0) {
        return error(Errc::kInvalid, "aggregator %s: its host is not known: %s",
                     endpoint.text().c_str(), gai_strerror(code));
    }
    const bool ipv6 = takes_ipv6();
    const addrinfo *chosen = found;
    while (chosen != nullptr && chosen->ai_family != (ipv6 ? AF_INET6 : AF_INET)) {
        chosen = chosen->ai_next;
    }
    Address address;
    const bool loopback = is_ipv6_loopback(chosen != nullptr ? *chosen : *found);
    if (chosen != nullptr) {
        address.length = chosen->ai_addrlen;
        std::memcpy(&address.storage, chosen->ai_addr, chosen->ai_addrlen);
    }
    freeaddrinfo(found);
    if (loopback) {
        return error(Errc::kInvalid,
                     "aggregator %s: UCX carries no data over ::1: name another address of that "
                     "machine",
                     endpoint.text().c_str());
    }
    if (address.length == 0) {
        return error(Errc::kInvalid,
                     "aggregator %s has no IPv%d address, which is what UCX takes here: set "
                     "UCX_TCP_AF_PRIO=%s for all ranks and aggregators, or name an address of the "
                     "other kind",
                     endpoint.text().c_str(), ipv6 ? 6 : 4, ipv6 ? "inet" : "inet6");
    }
    return address;
}

ucs_sock_addr_t ucx_address(const Address &address)
{
    return {.addr = reinterpret_cast<const sockaddr *>(&address.storage),
            .addrlen = address.length};
}

class UcxWire final : public Wire, private Payload::Owner {
public:
    explicit UcxWire(const UcxCalls &calls) : ucx_(calls) {}
    ~UcxWire() override;
    Status open(const std::optional<Endpoint> &listen);

    Result<Connection> connect(const Endpoint &to) override;
    void send(Connection to, const HeaderBytes &header, std::span<const std::byte> payload,
              SendBuffer *buffer) override;
    void close(Connection connection) override;
    bool progress(WireEvents &events) override;
    void wait(int milliseconds, int fd) override;

private:
    // One message on its way out. UCX reads the header until it is done.
    struct Outgoing {
        UcxWire *wire = nullptr;
        Connection to = kNoConnection;
        HeaderBytes header;
        SendBuffer *buffer = nullptr;
    };
    struct Event {
        enum class Kind { kMessage, kLost } kind = Kind::kMessage;
        Connection connection = kNoConnection;
        HeaderBytes header;
        Payload payload;
        std::string why;
    };

    Status create_worker();
    Status listen_at(const Endpoint &endpoint);
    Status failed(ucs_status_t status, const char *doing) const;
    Result<Connection> add(ucp_ep_params_t params);
    void accept(WireEvents &events);
    void deliver(Event event, WireEvents &events);
    void take_back(std::byte *data) noexcept override { ucx_.ucp_am_data_release(worker_, data); }
    void done(Outgoing *op) noexcept;
    void lose_if(Connection connection, ucs_status_t status);

    static void on_request(ucp_conn_request_h request, void *self);
    static void on_error(void *self, ucp_ep_h ep, ucs_status_t status);
    static void on_send(void *request, ucs_status_t status, void *op);
    static ucs_status_t on_receive(void *self, const void *header, std::size_t header_bytes,
                                   void *data, std::size_t bytes, const ucp_am_recv_param_t *param);

    UcxCalls ucx_;
    ucp_context_h context_ = nullptr;
    ucp_worker_h worker_ = nullptr;
    ucp_listener_h listener_ = nullptr;
    int efd_ = -1;
    Connection next_ = 1;
    std::unordered_map<Connection, ucp_ep_h> endpoint_;
    std::unordered_map<ucp_ep_h, Connection> connection_;
    std::vector<ucp_conn_request_h> requests_;
    std::deque<Event> events_;
    std::vector<std::unique_ptr<Outgoing>> outgoing_;
    std::vector<Outgoing *> idle_;
};

Status UcxWire::failed(ucs_status_t status, const char *doing) const
{
    return error(Errc::kUnsupported, "UCX failed: %s, while %s", ucx_.ucs_status_string(status),
                 doing);
}

Status UcxWire::open(const std::optional<Endpoint> &listen)
{
    ucp_config_t *config = nullptr;
    ucs_status_t status = ucx_.ucp_config_read("HETCOLL", nullptr, &config);
    if (status != UCS_OK) {
        return failed(status, "its settings were read");
    }
    ucp_params_t params{};
    params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_NAME;
    params.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
    params.name = "hetcoll_aggregator";
    status = ucx_.ucp_init_version(UCP_API_MAJOR, UCP_API_MINOR, &params, config, &context_);
    ucx_.ucp_config_release(config);
    if (status != UCS_OK) {
        return failed(status, "a context was made");
    }
    if (Status made = create_worker(); !made.ok()) {
        return made;
    }
    return listen ? listen_at(*listen) : Status();
}

Status UcxWire::create_worker()
{
    ucp_worker_params_t params{};
    params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    params.thread_mode = UCS_THREAD_MODE_SERIALIZED; // any thread, one at a time
    ucs_status_t status = ucx_.ucp_worker_create(context_, &params, &worker_);
    if (status != UCS_OK) {
        return failed(status, "a worker was made");
    }
    status = ucx_.ucp_worker_get_efd(worker_, &efd_);
    if (status != UCS_OK) {
        return failed(status, "a worker was asked for its file descriptor");
    }
    ucp_am_handler_param_t handler{};
    handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                         UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
    handler.id = kActiveMessage;
    handler.flags = UCP_AM_FLAG_WHOLE_MSG | UCP_AM_FLAG_PERSISTENT_DATA;
    handler.cb = &UcxWire::on_receive;
    handler.arg = this;
    status = ucx_.ucp_worker_set_am_recv_handler(worker_, &handler);
    return status == UCS_OK ? Status() : failed(status, "a handler of messages was set");
}

Status UcxWire::listen_at(const Endpoint &endpoint)
{
    Result<Address> address = look_up(endpoint, Side::kListens);
    if (!address.ok()) {
        return address.take_status();
    }
    ucp_listener_params_t params{};
    params.field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR | UCP_LISTENER_PARAM_FIELD_CONN_HANDLER;
    params.sockaddr = ucx_address(*address);
    params.conn_handler.cb = &UcxWire::on_request;
    params.conn_handler.arg = this;
    const ucs_status_t status = ucx_.ucp_listener_create(worker_, &params, &listener_);
    if (status != UCS_OK) {
        return error(Errc::kInvalid,
                     "cannot listen at %s: %s: choose an address of this machine and a free port",
                     endpoint.text().c_str(), ucx_.ucs_status_string(status));
    }
    return {};
}

// UCX may have messages on their way until its worker is gone.
UcxWire::~UcxWire()
{
    events_.clear();
    while (!endpoint_.empty()) {
        close(endpoint_.begin()->first);
    }
    constexpr int kRounds = 1000; // closing by force needs a few
    for (int i = 0; i < kRounds && worker_ != nullptr && idle_.size() != outgoing_.size(); ++i) {
        ucx_.ucp_worker_progress(worker_);
    }
    events_.clear();
    if (listener_ != nullptr) {
        ucx_.ucp_listener_destroy(listener_);
    }
    if (worker_ != nullptr) {
        ucx_.ucp_worker_destroy(worker_);
    }
    if (context_ != nullptr) {
        ucx_.ucp_cleanup(context_);
    }
    for (const std::unique_ptr<Outgoing> &op : outgoing_) {
        if (op->buffer != nullptr) {
            op->buffer->on_sent();
        }
    }
}

Result<Connection> UcxWire::add(ucp_ep_params_t params)
{
    params.field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
    params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    params.err_handler.cb = &UcxWire::on_error;
    params.err_handler.arg = this;
    ucp_ep_h ep = nullptr;
    const ucs_status_t status = ucx_.ucp_ep_create(worker_, &params, &ep);
    if (status != UCS_OK) {
        return failed(status, "a connection was made");
    }
    const Connection connection = next_++;
    endpoint_[connection] = ep;
    connection_[ep] = connection;
    return connection;
}

Result<Connection> UcxWire::connect(const Endpoint &to)
{
    Result<Address> address = look_up(to, Side::kConnects);
    if (!address.ok()) {
        return address.take_status();
    }
    ucp_ep_params_t params{};
    params.field_mask = UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR;
    params.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER;
    params.sockaddr = ucx_address(*address);
    return add(params);
}

void UcxWire::accept(WireEvents &events)
{
    std::vector<ucp_conn_request_h> requests;
    requests.swap(requests_);
    for (const ucp_conn_request_h request : requests) {
        ucp_ep_params_t params{};
        params.field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST;
        params.conn_request = request;
        if (const Result<Connection> connection = add(params); connection.ok()) {
            events.on_accepted(*connection);
        }
    }
}

void UcxWire::send(Connection to, const HeaderBytes &header, std::span<const std::byte> payload,
                   SendBuffer *buffer)
{
    const auto found = endpoint_.find(to);
    if (found == endpoint_.end()) {
        if (buffer != nullptr) {
            buffer->on_sent();
        }
        return;
    }
    if (idle_.empty()) {
        outgoing_.push_back(std::make_unique<Outgoing>());
        idle_.push_back(outgoing_.back().get());
    }
    Outgoing *const op = idle_.back();
    idle_.pop_back();
    op->wire = this;
    op->to = to;
    op->header = header;
    op->buffer = buffer;
    ucp_request_param_t param{};
    param.op_attr_mask =
        UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
    param.cb.send = &UcxWire::on_send;
    param.user_data = op;
    // Eager: the window bounds what is on its way, and a worker that has not joined can make nobody
    // ask for more. The sender's endpoint goes along: the receiver knows the sender by it.
    param.flags = UCP_AM_SEND_FLAG_EAGER | UCP_AM_SEND_FLAG_REPLY;
    const ucs_status_ptr_t request =
        ucx_.ucp_am_send_nbx(found->second, kActiveMessage, op->header.view().data(),
                             op->header.view().size(), payload.data(), payload.size(), &param);
    if (!UCS_PTR_IS_PTR(request)) {
        lose_if(to, UCS_PTR_STATUS(request));
        done(op);
    }
}

void UcxWire::done(Outgoing *op) noexcept
{
    if (op->buffer != nullptr) {
        std::exchange(op->buffer, nullptr)->on_sent();
    }
    idle_.push_back(op);
}

void UcxWire::on_send(void *request, ucs_status_t status, void *data)
{
    auto *const op = static_cast<Outgoing *>(data);
    UcxWire &wire = *op->wire;
    wire.lose_if(op->to, status);
    wire.done(op);
    wire.ucx_.ucp_request_free(request);
}

void UcxWire::on_request(ucp_conn_request_h request, void *self)
{
    static_cast<UcxWire *>(self)->requests_.push_back(request);
}

void UcxWire::on_error(void *self, ucp_ep_h ep, ucs_status_t status)
{
    auto &wire = *static_cast<UcxWire *>(self);
    const auto found = wire.connection_.find(ep);
    if (found != wire.connection_.end()) {
        wire.lose_if(found->second, status);
    }
}

// Others wait for a message that could not be sent, so its connection is of no use any more.
void UcxWire::lose_if(Connection connection, ucs_status_t status)
{
    if (status != UCS_OK) {
        events_.push_back({.kind = Event::Kind::kLost,
                           .connection = connection,
                           .header = {},
                           .payload = {},
                           .why = ucx_.ucs_status_string(status)});
    }
}

ucs_status_t UcxWire::on_receive(void *self, const void *header, std::size_t header_bytes,
                                 void *data, std::size_t bytes, const ucp_am_recv_param_t *param)
{
    auto &wire = *static_cast<UcxWire *>(self);
    const bool named = (param->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP) != 0;
    const bool whole = (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_DATA) != 0;
    const auto found = named ? wire.connection_.find(param->reply_ep) : wire.connection_.end();
    if (found == wire.connection_.end() || (bytes > 0 && !whole)) {
        return UCS_OK; // not from one of ours
    }
    Event event{.kind = Event::Kind::kMessage,
                .connection = found->second,
                .header = {},
                .payload = {},
                .why = {}};
    if (header_bytes <= kMostHeaderBytes) { // else it stays empty, which is malformed too
        event.header.append(header, header_bytes);
    }
    if (whole) {
        event.payload = Payload(wire, static_cast<std::byte *>(data), bytes);
    }
    wire.events_.push_back(std::move(event));
    return whole ? UCS_INPROGRESS : UCS_OK; // in progress: until take_back()
}

void UcxWire::close(Connection connection)
{
    const auto found = endpoint_.find(connection);
    if (found == endpoint_.end()) {
        return;
    }
    const ucp_ep_h ep = found->second;
    endpoint_.erase(found);
    connection_.erase(ep);
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    param.flags = UCP_EP_CLOSE_FLAG_FORCE;
    const ucs_status_ptr_t request = ucx_.ucp_ep_close_nbx(ep, &param);
    if (UCS_PTR_IS_PTR(request)) {
        ucx_.ucp_request_free(request); // complete or not: it is UCX's from here on
    }
}

void UcxWire::deliver(Event event, WireEvents &events)
{
    if (endpoint_.find(event.connection) == endpoint_.end()) {
        return; // closed in the meantime
    }
    if (event.kind == Event::Kind::kMessage) {
        events.on_message(event.connection, event.header.view(), std::move(event.payload));
        return;
    }
    close(event.connection);
    events.on_lost(event.connection, event.why);
}

bool UcxWire::progress(WireEvents &events)
{
    bool moved = ucx_.ucp_worker_progress(worker_) != 0;
    if (!requests_.empty()) {
        accept(events);
        moved = true;
    }
    while (!events_.empty()) {
        Event event = std::move(events_.front());
        events_.pop_front();
        deliver(std::move(event), events);
        moved = true;
    }
    return moved;
}

void UcxWire::wait(int milliseconds, int fd)
{
    if (!events_.empty() || !requests_.empty() || ucx_.ucp_worker_arm(worker_) != UCS_OK) {
        return; // something is there already
    }
    pollfd polled[] = {{.fd = efd_, .events = POLLIN, .revents = 0},
                       {.fd = fd, .events = POLLIN, .revents = 0}};
    poll(polled, 2, milliseconds);
}

} // namespace

Result<std::unique_ptr<Wire>> open_ucx_wire(const std::optional<Endpoint> &listen)
{
    Result<UcxCalls> calls = load_ucx();
    return calls.ok() ? open_ucx_wire(listen, *calls) : calls.take_status();
}

Result<std::unique_ptr<Wire>> open_ucx_wire(const std::optional<Endpoint> &listen,
                                            const UcxCalls &calls)
{
    auto wire = std::make_unique<UcxWire>(calls);
    if (Status status = wire->open(listen); !status.ok()) {
        return status;
    }
    return std::unique_ptr<Wire>(std::move(wire));
}

} // namespace hetcoll

#else

namespace hetcoll {

Result<std::unique_ptr<Wire>> open_ucx_wire(const std::optional<Endpoint> & /*listen*/)
{
    return error(Errc::kUnsupported, "this hetcoll was built without UCX and OpenSSL, so it has no "
                                     "aggregators: configure it --with-ucx");
}

} // namespace hetcoll

#endif
