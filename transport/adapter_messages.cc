#include "transport/adapter_messages.h"

#include "hetcoll_config.h"

#if HETCOLL_WITH_UCX

#include "base/hash.h"
#include "base/request_pool.h"
#include "transport/ucp_context.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

namespace hetcoll {
namespace {

// In front of UCX's address: UCX follows offsets in what it is given without a look at its length.
struct Preamble {
    std::array<char, 8> magic;
    std::uint64_t bytes, hash; // of what follows
};
constexpr std::array<char, 8> kMagic = {'h', 'c', 'a', 'd', 'a', 'p', 't', '1'};

Preamble preamble_of(std::span<const std::byte> address)
{
    Hash hash;
    hash.add(std::string_view(reinterpret_cast<const char *>(address.data()), address.size()));
    return {.magic = kMagic, .bytes = address.size(), .hash = hash.value()};
}

// UCX's address in what address() returned; empty: it is something else.
std::span<const std::byte> checked(std::span<const std::byte> address)
{
    Preamble found{};
    if (address.size() <= sizeof found || address.size() > AdapterMessages::kMostAddressBytes) {
        return {};
    }
    std::memcpy(&found, address.data(), sizeof found);
    const std::span<const std::byte> rest = address.subspan(sizeof found);
    const Preamble wanted = preamble_of(rest);
    return std::memcmp(&found, &wanted, sizeof found) == 0 ? rest : std::span<const std::byte>();
}

class Messages final : public AdapterMessages {
public:
    Messages(const UcpCalls &calls, Options options) : ucp_(calls), options_(std::move(options))
    {
        unsigned major = 0, release = 0;
        ucp_.ucp_get_version(&major, &minor_, &release);
    }
    ~Messages() override { end(any_open()); }
    Status open();

    Status check(std::span<const std::byte> device_memory) override
    {
        return check_device_memory(ucp_, options_, context_, device_memory);
    }
    std::span<const std::byte> address() const noexcept override { return address_; }
    Status connect(std::span<const std::span<const std::byte>> addresses, int rank) override;
    const hetcoll_p2p &table() const noexcept override { return table_; }
    const char *problem() const noexcept override
    {
        return problem_[0] != '\0' ? problem_.data() : nullptr;
    }
    void progress() noexcept override;
    void abandon() noexcept override { end(true); }

private:
    struct Peer {
        ucp_ep_h endpoint = nullptr;
        bool lost = false;
    };
    struct Request {
        void *ucx = nullptr;            // null: it has ended
        ucs_status_t ended_as = UCS_OK; // then
        int peer = 0;
        bool open = false, receives = false, cancelled = false;
        std::size_t bytes = 0;
    };

    Status failed(ucs_status_t status, const char *doing) const
    {
        return ucx_failed(ucp_, options_, status, doing);
    }
    Status open_worker();
    Status connect_to(int rank, std::span<const std::byte> address);

    // A tag of UCX: whose message it is, and its channel.
    static ucp_tag_t tag_of(int sender, int tag)
    {
        return static_cast<ucp_tag_t>(sender) << 32 | static_cast<std::uint32_t>(tag);
    }
    bool can_reach(int peer) const
    {
        return peer >= 0 && static_cast<std::size_t>(peer) < peers_.size() &&
               peers_[peer].endpoint != nullptr && !peers_[peer].lost;
    }
    ucp_request_param_t parameters() const
    {
        ucp_request_param_t param{};
        param.op_attr_mask = UCP_OP_ATTR_FIELD_MEMORY_TYPE; // else UCX asks the driver each time
        param.memory_type = options_.cuda ? UCS_MEMORY_TYPE_CUDA : UCS_MEMORY_TYPE_HOST;
        return param;
    }
    ucs_status_t status_of(Request &request);
    bool any_open() noexcept;
    void end(bool in_the_middle) noexcept;
    void close_all() noexcept;
    void settle() noexcept;
    int fail(int peer, ucs_status_t status) noexcept;
    int started(Request *request, ucs_status_ptr_t result, void **out);
    int send(const void *buffer, std::size_t bytes, int peer, int tag, void **out);
    int receive(void *buffer, std::size_t bytes, int peer, int tag, void **out);
    int test(Request *request, void **out);

    static Messages &self(void *context) { return *static_cast<Messages *>(context); }
    static void on_lost(void *peer, ucp_ep_h /*endpoint*/, ucs_status_t /*why*/)
    {
        static_cast<Peer *>(peer)->lost = true; // it is closed later: UCX still works with it
    }

    UcpCalls ucp_;
    unsigned minor_ = 0; // of UCX's version
    Options options_;
    ucp_context_h context_ = nullptr;
    ucp_worker_h worker_ = nullptr;
    std::vector<std::byte> address_;
    std::vector<Peer> peers_; // by rank; they stay where they are, as UCX knows them
    RequestPool<Request> requests_;
    hetcoll_p2p table_{};
    std::array<char, 128> problem_{};
};

// ---- opening ----

Status Messages::open()
{
    Result<ucp_context_h> context = open_ucp_context(ucp_, options_);
    if (!context.ok()) {
        return context.take_status();
    }
    context_ = *context;
    return open_worker();
}

Status Messages::open_worker()
{
    ucp_worker_params_t params{};
    params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
    if (const ucs_status_t status = ucp_.ucp_worker_create(context_, &params, &worker_);
        status != UCS_OK) {
        worker_ = nullptr;
        return failed(status, "a worker was made");
    }
    ucp_worker_attr_t attributes{};
    attributes.field_mask = UCP_WORKER_ATTR_FIELD_ADDRESS | UCP_WORKER_ATTR_FIELD_ADDRESS_FLAGS;
    attributes.address_flags = UCP_WORKER_ADDRESS_FLAG_NET_ONLY; // without self
    if (const ucs_status_t status = ucp_.ucp_worker_query(worker_, &attributes); status != UCS_OK) {
        return failed(status, "its address was asked for");
    }
    const std::span<const std::byte> bytes(reinterpret_cast<const std::byte *>(attributes.address),
                                           attributes.address_length);
    const Preamble preamble = preamble_of(bytes);
    address_.resize(sizeof preamble + bytes.size());
    std::memcpy(address_.data(), &preamble, sizeof preamble);
    std::memcpy(address_.data() + sizeof preamble, bytes.data(), bytes.size());
    ucp_.ucp_worker_release_address(worker_, attributes.address);
    if (address_.size() > kMostAddressBytes) {
        return error(Errc::kUnsupported, "UCX's address for %s has %zu bytes, and %zu are sent",
                     describe(options_).c_str(), address_.size(), kMostAddressBytes);
    }
    return {};
}

// ---- connections ----

Status Messages::connect(std::span<const std::span<const std::byte>> addresses, int rank)
{
    peers_.resize(addresses.size());
    table_ = {
        .context = this,
        .rank = rank,
        .size = static_cast<int>(addresses.size()),
        .isend = [](void *context, const void *buffer, std::size_t bytes, int peer, int tag,
                    void **out) { return self(context).send(buffer, bytes, peer, tag, out); },
        .irecv = [](void *context, void *buffer, std::size_t bytes, int peer, int tag,
                    void **out) { return self(context).receive(buffer, bytes, peer, tag, out); },
        .test = [](void *context,
                   void **out) { return self(context).test(static_cast<Request *>(*out), out); },
        .progress = [](void *context) { self(context).progress(); },
        .shares_processor = 0,
        .comm_id = 0,
        .broken = nullptr,
        .end_job = nullptr};
    for (int peer = 0; peer < table_.size; ++peer) {
        if (peer == rank || addresses[peer].empty()) {
            continue;
        }
        if (Status status = connect_to(peer, addresses[peer]); !status.ok()) {
            abandon();
            return status;
        }
    }
    return {};
}

Status Messages::connect_to(int rank, std::span<const std::byte> address)
{
    const std::span<const std::byte> known = checked(address);
    if (known.empty()) {
        return error(Errc::kInvalid, "rank %d has sent %zu bytes that are no adapter's address",
                     rank, address.size());
    }
    Peer &peer = peers_[rank];
    ucp_ep_params_t params{};
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                        UCP_EP_PARAM_FIELD_ERR_HANDLER;
    params.address = reinterpret_cast<const ucp_address_t *>(known.data());
    params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    params.err_handler = {.cb = &Messages::on_lost, .arg = &peer};
    const ucs_status_t status = ucp_.ucp_ep_create(worker_, &params, &peer.endpoint);
    if (status != UCS_OK) {
        peer.endpoint = nullptr;
        return error(
            Errc::kUnsupported,
            "UCX cannot connect to rank %d by %s: %s (the transport must report lost peers)", rank,
            describe(options_).c_str(), ucp_.ucs_status_string(status));
    }
    return {};
}

// ---- messages ----

void Messages::progress() noexcept
{
    if (worker_ != nullptr) {
        (void)ucp_.ucp_worker_progress(worker_);
    }
}

// Its code. The first failure is worded.
int Messages::fail(int peer, ucs_status_t status) noexcept
{
    if (problem_[0] == '\0' && worker_ != nullptr) {
        std::snprintf(problem_.data(), problem_.size(), "UCX says of rank %d: %s", peer,
                      ucp_.ucs_status_string(status));
    }
    return kAdapterFailed;
}

int Messages::send(const void *buffer, std::size_t bytes, int peer, int tag, void **out)
{
    if (!can_reach(peer)) {
        return fail(peer, UCS_ERR_CONNECTION_RESET);
    }
    Request *const request = requests_.take();
    *request = {.peer = peer, .bytes = bytes};
    const ucp_request_param_t param = parameters();
    return started(request,
                   ucp_.ucp_tag_send_nbx(peers_[peer].endpoint, buffer, bytes,
                                         tag_of(table_.rank, tag), &param),
                   out);
}

int Messages::receive(void *buffer, std::size_t bytes, int peer, int tag, void **out)
{
    if (!can_reach(peer)) {
        return fail(peer, UCS_ERR_CONNECTION_RESET);
    }
    Request *const request = requests_.take();
    *request = {.peer = peer, .receives = true, .bytes = bytes};
    // UCX (1.13) does not tell the size of a receive that completes immediately.
    ucp_request_param_t param = parameters();
    param.op_attr_mask |= UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
    return started(
        request,
        ucp_.ucp_tag_recv_nbx(worker_, buffer, bytes, tag_of(peer, tag), ~ucp_tag_t{0}, &param),
        out);
}

int Messages::started(Request *request, ucs_status_ptr_t result, void **out)
{
    if (UCS_PTR_IS_ERR(result)) {
        const int peer = request->peer;
        requests_.give_back(request);
        return fail(peer, UCS_PTR_STATUS(result));
    }
    request->ucx = result;
    request->open = true;
    *out = request;
    return 0;
}

ucs_status_t Messages::status_of(Request &request)
{
    if (request.ucx == nullptr) {
        return request.ended_as;
    }
    if (!request.receives) {
        return ucp_.ucp_request_check_status(request.ucx);
    }
    ucp_tag_recv_info_t info{};
    ucs_status_t status = ucp_.ucp_tag_recv_request_test(request.ucx, &info);
    // UCX does not know whom a receive waits for, so it ends none when a peer is lost.
    if (status == UCS_INPROGRESS && !request.cancelled && peers_[request.peer].lost) {
        request.cancelled = true;
        ucp_.ucp_request_cancel(worker_, request.ucx);
        status = ucp_.ucp_tag_recv_request_test(request.ucx, &info);
    }
    return status == UCS_OK && info.length != request.bytes ? UCS_ERR_MESSAGE_TRUNCATED : status;
}

int Messages::test(Request *request, void **out)
{
    const ucs_status_t status = status_of(*request);
    if (status == UCS_INPROGRESS) {
        return 0;
    }
    if (request->ucx != nullptr) {
        ucp_.ucp_request_free(request->ucx);
    }
    request->open = false;
    *out = nullptr;
    const int peer = request->peer;
    requests_.give_back(request);
    return status == UCS_OK ? 1 : fail(peer, status);
}

// ---- the end ----

bool Messages::any_open() noexcept
{
    const auto &all = requests_.all();
    return std::any_of(all.begin(), all.end(), [this](const std::unique_ptr<Request> &request) {
        return request->open && status_of(*request) == UCS_INPROGRESS;
    });
}

// UCX 1.13 aborts the process if it ends while it owes a peer the answer to an attempt to connect,
// which an endpoint that is closed no longer takes with it. In the middle of messages such attempts
// come, so nothing may read them any more. The price is that UCX prints warnings.
void Messages::end(bool in_the_middle) noexcept
{
    constexpr unsigned kMayOweAnswers = 14;
    close_all();
    if (worker_ != nullptr && (minor_ >= kMayOweAnswers || !in_the_middle)) {
        settle();
    }
    for (const std::unique_ptr<Request> &request : requests_.all()) {
        if (request->open && request->ucx != nullptr) {
            const ucs_status_t status = status_of(*request);
            request->ended_as = status == UCS_INPROGRESS ? UCS_ERR_CANCELED : status;
            ucp_.ucp_request_free(std::exchange(request->ucx, nullptr));
        }
    }
    if (worker_ != nullptr) {
        ucp_.ucp_worker_destroy(std::exchange(worker_, nullptr));
    }
    if (context_ != nullptr) {
        ucp_.ucp_cleanup(std::exchange(context_, nullptr));
    }
}

void Messages::close_all() noexcept
{
    ucp_request_param_t force{};
    force.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    force.flags = UCP_EP_CLOSE_FLAG_FORCE;
    for (Peer &peer : peers_) {
        if (peer.endpoint != nullptr) {
            const ucs_status_ptr_t closed = ucp_.ucp_ep_close_nbx(peer.endpoint, &force);
            if (UCS_PTR_IS_PTR(closed)) {
                ucp_.ucp_request_free(closed);
            }
        }
        peer = {.endpoint = nullptr, .lost = true};
    }
}

// Closed endpoints go as UCX makes progress, and requests with them. Adapters take a moment to drop
// what they have; no peer need do anything.
void Messages::settle() noexcept
{
    constexpr std::chrono::milliseconds kMost{200};
    const ucp_request_param_t plain{};
    const ucs_status_ptr_t flush = ucp_.ucp_worker_flush_nbx(worker_, &plain);
    const auto end = std::chrono::steady_clock::now() + kMost;
    bool settled = false;
    while (!settled && std::chrono::steady_clock::now() < end) {
        progress();
        settled = !any_open() && (!UCS_PTR_IS_PTR(flush) ||
                                  ucp_.ucp_request_check_status(flush) != UCS_INPROGRESS);
    }
    if (UCS_PTR_IS_PTR(flush)) {
        ucp_.ucp_request_free(flush);
    }
}

} // namespace

Result<std::unique_ptr<AdapterMessages>> AdapterMessages::create(const Options &options)
{
    Result<UcpCalls> calls = load_ucp();
    if (!calls.ok()) {
        return calls.take_status();
    }
    auto messages = std::make_unique<Messages>(*calls, options);
    if (Status status = messages->open(); !status.ok()) {
        return status;
    }
    return std::unique_ptr<AdapterMessages>(std::move(messages));
}

} // namespace hetcoll

#else

namespace hetcoll {

Result<std::unique_ptr<AdapterMessages>> AdapterMessages::create(const Options & /*options*/)
{
    return error(Errc::kUnsupported, "this hetcoll was built without UCX, so adapters are not used "
                                     "on the node: install libucx-dev and configure again");
}

} // namespace hetcoll

#endif
