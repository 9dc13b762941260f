// What is sent is sealed at once as long as little waits for the socket; the rest waits in its
// owner's memory. If both sides have RDMA, they tell each other where before the first message, and
// all messages with a payload go that way: one that waits for the answer waits with them.
#include "aggregator/tcp_wire.h"

#include "hetcoll_config.h"

#if HETCOLL_WITH_OPENSSL

#include "aggregator/frame.h"
#include "aggregator/names.h"
#include "aggregator/rdma_lanes.h"
#include "aggregator/socket.h"
#include "aggregator/standstill.h"
#include "aggregator/tls.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <deque>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unordered_map>
#include <utility>

namespace hetcoll {
namespace {

using Clock = Standstill::Clock;

constexpr std::size_t kMostUnsentBytes = 128u << 10; // sealed, of one connection
constexpr std::size_t kMostWaiting = 4096;           // messages without a payload
constexpr std::size_t kReadBytesAtOnce = 1u << 20;   // before others have their turn
constexpr int kAcceptsAtOnce = 16;
constexpr int kMostDeviceWaitMs = 50;           // what a device tells of itself has no descriptor
constexpr int kMostNameWaitMs = 20;             // nor has a name's look-up
constexpr auto kAway = std::chrono::seconds(1); // without progress()
constexpr std::uint64_t kListener = 0;          // in place of a connection, to epoll

constexpr const char *kClosedByOthers = "this process has closed a descriptor that was not its own";

Outgoing no_rdma() { return Outgoing(encode(RdmaOffer{}), {}, nullptr, Outgoing::What::kOffer); }

class TcpConnections final : public TcpWire, private Payload::Owner {
public:
    explicit TcpConnections(const TcpOptions &options) : options_(options)
    {
        if (options_.names == nullptr) {
            options_.names = std::make_shared<Names>();
        }
    }
    ~TcpConnections() override
    {
        while (!channels_.empty()) {
            close(channels_.begin()->first);
        }
    }
    Status open();

    Result<Connection> connect(const Endpoint &to, const std::string &key) override;
    void allow_payload(Connection connection, std::size_t most_bytes) override;
    void send(Connection to, const HeaderBytes &header, std::span<const std::byte> payload,
              SendBuffer *buffer) override;
    std::size_t waiting(Connection connection) const override
    {
        const auto found = channels_.find(connection);
        return found == channels_.end()
                   ? 0
                   : found->second->out.size() + (lanes_ ? lanes_->waiting(connection) : 0);
    }
    void close(Connection connection) override;
    bool progress(WireEvents &events) override;
    void wait(int milliseconds, int fd) override;
    const GuestCounters &guests() const noexcept override { return guests_; }
    std::uint16_t port() const noexcept override { return listener_.port; }
    std::uint64_t by_rdma() const noexcept override { return lanes_ ? lanes_->messages() : 0; }
    std::string take_note() override { return std::exchange(note_, {}); }

private:
    struct Channel {
        Connection id = kNoConnection;
        Descriptor socket;
        std::unique_ptr<TlsStream> tls; // none until TCP is connected
        std::string key;
        Endpoint to; // of one that connects
        std::shared_ptr<const Names::LookUp> look_up;
        std::vector<Address> addresses; // to try yet
        bool is_guest = false;
        bool may_ask = false; // for RDMA: who has connected, once, before all else
        enum class Way : std::uint8_t { kTls, kAsked, kRdma } way = Way::kTls; // of payloads
        Clock::time_point deadline;                                            // of a guest
        std::size_t most_payload = 0;
        Incoming in;
        std::deque<Outgoing> out;
        std::size_t out_done = 0; // of the first one
        Standstill unread;        // the other side takes nothing
        std::uint32_t polled = 0; // what epoll looks for
        bool lost = false, told = false;
        std::string why;
        [[nodiscard]] bool is_open() const noexcept
        {
            return tls != nullptr && tls->state() == TlsStream::State::kOpen;
        }
    };

    Channel *find(Connection connection)
    {
        const auto found = channels_.find(connection);
        return found == channels_.end() ? nullptr : found->second.get();
    }
    void poll_for(Channel &channel, std::uint32_t events);
    bool take_addresses(Channel &channel);
    void follow_look_ups();
    void try_next_address(Channel &channel, const char *why);
    void start_tls(Channel &channel, TlsStream::Side side);

    void accept_some(WireEvents &events);
    void add_guest(Descriptor socket, WireEvents &events);
    bool show_out_one();
    void listen(bool on);
    void pause_listening();
    void look_at_guests(Clock::time_point now);
    void note_guest_gone(const Channel &channel);

    void serve(Channel &channel, WireEvents &events);
    void shake_hands(Channel &channel, WireEvents &events);
    void receive(Channel &channel, WireEvents &events);
    void write_out(Channel &channel);
    bool write_some(Channel &channel);
    bool is_unread(Channel &channel, Clock::time_point now) const;
    void look_at_readers(Clock::time_point now);
    void look_at_clock();
    void ask_for_rdma(Channel &channel);
    void on_offer(Channel &channel, std::span<const std::byte> header);
    void answer(Channel &channel, const RdmaOffer &offer);
    void go_by_tls(Channel &channel, const std::string &why);
    bool progress_lanes(WireEvents &events);
    void push(Channel &channel, const Outgoing &message);

    void lose(Channel &channel, std::string why);
    void release(Channel &channel);
    void take_back(std::byte *data) noexcept override { delete[] data; }

    TcpOptions options_;
    std::shared_ptr<const TlsContext> tls_;
    Descriptor epoll_;
    Listener listener_;
    bool listening_ = false;
    Clock::time_point listen_again_{}, looked_{};
    Connection next_ = 1;
    std::unordered_map<Connection, std::unique_ptr<Channel>> channels_;
    std::vector<Connection> looking_up_;            // wait for the addresses of their hosts
    std::deque<Connection> waiting_room_;           // guests, the oldest first
    std::vector<Connection> unread_;                // have more than they could say at once
    std::vector<Connection> lost_;                  // to be told
    std::vector<std::unique_ptr<Channel>> closed_;  // until progress() returns
    std::array<std::byte, kTlsRecordBytes> record_; // too large for the stack of some threads
    GuestCounters guests_;
    std::unique_ptr<RdmaLanes> lanes_; // none: no RDMA
    std::string note_;                 // for the user
};

Status TcpConnections::open()
{
    Result<std::shared_ptr<const TlsContext>> tls = TlsContext::create(options_.keys);
    if (!tls.ok()) {
        return tls.take_status();
    }
    tls_ = std::move(*tls);
    epoll_ = Descriptor(epoll_create1(EPOLL_CLOEXEC));
    if (epoll_.get() < 0) {
        return error(Errc::kUnsupported, "epoll_create1 failed: %s: see ulimit -n",
                     std::strerror(errno));
    }
    // Guests leave most descriptors to those that are let in.
    rlimit files{};
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        options_.most_guests = std::clamp<std::size_t>(files.rlim_cur / 4, 1, options_.most_guests);
    }
    if (!options_.rdma.empty()) {
        Result<std::unique_ptr<RdmaLanes>> lanes = RdmaLanes::open(options_.rdma);
        if (lanes.ok()) {
            lanes_ = std::move(*lanes);
        } else {
            note_ = "no RDMA, vectors go over TLS: " + lanes.status().message();
        }
    }
    if (!options_.listen) {
        return {};
    }
    Result<Listener> listener = listen_at(*options_.listen);
    if (!listener.ok()) {
        return listener.take_status();
    }
    listener_ = std::move(*listener);
    listen(true);
    return {};
}

// Off: whoever connects waits in the system's queue.
void TcpConnections::listen(bool on)
{
    if (listening_ != on) {
        epoll_event event{};
        event.events = EPOLLIN;
        event.data.u64 = kListener;
        (void)epoll_ctl(epoll_.get(), on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, listener_.socket.get(),
                        &event);
        listening_ = on;
    }
}

// Else epoll would tell at once of whoever waits.
void TcpConnections::pause_listening()
{
    listen(false);
    listen_again_ = options_.clock() + std::chrono::seconds(1);
}

void TcpConnections::poll_for(Channel &channel, std::uint32_t events)
{
    if (channel.polled == events) {
        return;
    }
    epoll_event event{};
    event.events = events;
    event.data.u64 = channel.id;
    const int what = channel.polled == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
    if (epoll_ctl(epoll_.get(), what, channel.socket.get(), &event) != 0) {
        lose(channel, std::strerror(errno));
    }
    channel.polled = events;
}

// ---- those who connect ----

void TcpConnections::accept_some(WireEvents &events)
{
    for (int i = 0; i < kAcceptsAtOnce; ++i) {
        Descriptor socket(
            accept4(listener_.socket.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (socket.get() >= 0) {
            ++guests_.accepted;
            add_guest(std::move(socket), events);
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            return;
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            ++guests_.no_descriptors;
            if (!show_out_one()) {
                pause_listening();
                return;
            }
        } else if (errno == EPERM || errno == EACCES || errno == ENOSYS || errno == EBADF ||
                   errno == EINVAL || errno == ENOTSOCK || errno == EOPNOTSUPP) {
            note_ = std::string("nobody can be let in: accept4 fails: ") + std::strerror(errno);
            pause_listening();
            return;
        }
    }
}

void TcpConnections::add_guest(Descriptor socket, WireEvents &events)
{
    while (waiting_room_.size() >= options_.most_guests && show_out_one()) {
        ++guests_.crowded_out;
    }
    set_up_connection(socket.get(), options_.silence_seconds);
    auto channel = std::make_unique<Channel>();
    channel->id = next_++;
    channel->socket = std::move(socket);
    channel->is_guest = channel->may_ask = true;
    channel->deadline =
        options_.clock() + std::chrono::duration_cast<Clock::duration>(
                               std::chrono::duration<double>(options_.guest_seconds));
    Channel &guest = *channel;
    waiting_room_.push_back(guest.id);
    channels_[guest.id] = std::move(channel);
    start_tls(guest, TlsStream::Side::kAccepts);
    serve(guest, events); // its hello is there, most likely
}

// The oldest of those that have not begun to show a key, if there are such: in a crowd of silent
// ones a rank has its turn. False if there is nobody.
bool TcpConnections::show_out_one()
{
    if (waiting_room_.empty()) {
        return false;
    }
    const auto silent =
        std::find_if(waiting_room_.begin(), waiting_room_.end(), [this](Connection guest) {
            const Channel &channel = *channels_.at(guest);
            return channel.tls == nullptr || channel.tls->key().empty();
        });
    close(silent != waiting_room_.end() ? *silent : waiting_room_.front());
    return true;
}

void TcpConnections::look_at_guests(Clock::time_point now)
{
    if (listener_.socket.get() >= 0 && now >= listen_again_) {
        listen(true);
    }
    while (!waiting_room_.empty() && now > channels_.at(waiting_room_.front())->deadline) {
        ++guests_.late;
        close(waiting_room_.front());
    }
}

void TcpConnections::note_guest_gone(const Channel &channel)
{
    ++(channel.tls != nullptr && !channel.tls->key().empty() ? guests_.wrong_key : guests_.no_key);
}

// ---- connections ----

Result<Connection> TcpConnections::connect(const Endpoint &to, const std::string &key)
{
    auto made = std::make_unique<Channel>();
    made->id = next_++;
    made->key = key;
    made->to = to;
    made->look_up = options_.names->ask(to);
    Channel &channel = *made;
    channels_[channel.id] = std::move(made);
    ask_for_rdma(channel);
    if (!take_addresses(channel)) {
        looking_up_.push_back(channel.id);
    }
    return channel.id;
}

// False while its host is looked up.
bool TcpConnections::take_addresses(Channel &channel)
{
    if (!channel.look_up->is_over()) {
        return false;
    }
    const Result<std::vector<Address>> &answer = channel.look_up->answer();
    if (answer.ok()) {
        channel.addresses.assign(answer->rbegin(), answer->rend());
        try_next_address(channel, "no address");
    } else {
        lose(channel, answer.status().message());
    }
    return true;
}

void TcpConnections::follow_look_ups()
{
    std::erase_if(looking_up_, [this](Connection connection) {
        Channel *const channel = find(connection);
        return channel == nullptr || channel->lost || take_addresses(*channel);
    });
}

void TcpConnections::try_next_address(Channel &channel, const char *why)
{
    std::string reason = why;
    while (!channel.addresses.empty()) {
        const Address address = channel.addresses.back();
        channel.addresses.pop_back();
        channel.socket = open_socket(address.family);
        channel.polled = 0;
        if (channel.socket.get() >= 0) {
            set_up_connection(channel.socket.get(), options_.silence_seconds);
            if (::connect(channel.socket.get(), address.get(), address.length) == 0 ||
                errno == EINPROGRESS) {
                poll_for(channel, EPOLLOUT);
                return;
            }
        }
        reason = std::strerror(errno);
    }
    lose(channel, reason);
}

void TcpConnections::start_tls(Channel &channel, TlsStream::Side side)
{
    Result<std::unique_ptr<TlsStream>> tls =
        TlsStream::create(tls_, channel.socket.get(), side, channel.key);
    if (!tls.ok()) {
        lose(channel, tls.status().message());
        return;
    }
    channel.tls = std::move(*tls);
    poll_for(channel, EPOLLIN);
}

void TcpConnections::allow_payload(Connection connection, std::size_t most_bytes)
{
    if (Channel *const channel = find(connection); channel != nullptr) {
        channel->most_payload = most_bytes;
        if (lanes_ != nullptr) {
            lanes_->allow_payload(connection, most_bytes);
        }
    }
}

void TcpConnections::release(Channel &channel)
{
    std::deque<Outgoing> unsent = std::exchange(channel.out, {});
    if (lanes_ != nullptr) {
        std::ranges::copy(lanes_->remove(channel.id), std::back_inserter(unsent));
    }
    for (const Outgoing &message : unsent) {
        if (message.buffer != nullptr) {
            message.buffer->on_sent();
        }
    }
}

// It is told by progress(), if nobody closes it before.
void TcpConnections::lose(Channel &channel, std::string why)
{
    if (!channel.lost) {
        if (channel.look_up != nullptr && !channel.is_open()) {
            options_.names->forget(channel.to);
        }
        channel.lost = true;
        channel.why = std::move(why);
        lost_.push_back(channel.id);
    }
}

void TcpConnections::close(Connection connection)
{
    const auto found = channels_.find(connection);
    if (found == channels_.end()) {
        return;
    }
    std::unique_ptr<Channel> channel = std::move(found->second);
    channels_.erase(found);
    if (channel->is_guest) {
        std::erase(waiting_room_, connection);
    }
    channel->lost = true; // nothing more is done with it
    channel->socket = Descriptor();
    release(*channel);
    closed_.push_back(std::move(channel)); // somebody may be at work with it
}

// ---- sending ----

void TcpConnections::send(Connection to, const HeaderBytes &header,
                          std::span<const std::byte> payload, SendBuffer *buffer)
{
    Channel *const channel = find(to);
    if (channel == nullptr || channel->lost) {
        if (buffer != nullptr) {
            buffer->on_sent();
        }
        return;
    }
    const Outgoing message(header, payload, buffer);
    if (!payload.empty() && channel->way != Channel::Way::kTls) {
        lanes_->send(to, message);
    } else {
        push(*channel, message);
    }
}

void TcpConnections::push(Channel &channel, const Outgoing &message)
{
    channel.out.push_back(message);
    if (channel.out.size() > kMostWaiting) {
        lose(channel, kDoesNotRead);
        release(channel);
    } else if (channel.is_open()) {
        write_out(channel);
    }
}

void TcpConnections::write_out(Channel &channel)
{
    if (!channel.socket.is_ours()) {
        lose(channel, kClosedByOthers);
    }
    while (!channel.lost) {
        while (!channel.out.empty() && channel.tls->unsent() < kMostUnsentBytes) {
            if (!write_some(channel)) {
                lose(channel, channel.tls->why());
                return;
            }
        }
        if (!channel.tls->flush()) {
            lose(channel, channel.tls->why());
            return;
        }
        const bool waits = channel.tls->unsent() > 0;
        if (waits || channel.out.empty()) {
            poll_for(channel, waits ? EPOLLIN | EPOLLOUT : EPOLLIN);
            return;
        }
    }
}

// One record of the first message; the head goes with the beginning of the payload.
bool TcpConnections::write_some(Channel &channel)
{
    Outgoing &message = channel.out.front();
    const std::size_t all = message.size();
    std::size_t bytes = std::min(all - channel.out_done, kTlsRecordBytes);
    if (channel.out_done == 0) {
        std::memcpy(record_.data(), message.head.data(), message.head_bytes);
        if (bytes > message.head_bytes) {
            std::memcpy(&record_[message.head_bytes], message.payload.data(),
                        bytes - message.head_bytes);
        }
        if (!channel.tls->write({record_.data(), bytes})) {
            return false;
        }
    } else if (!channel.tls->write(
                   message.payload.subspan(channel.out_done - message.head_bytes, bytes))) {
        return false;
    }
    channel.out_done += bytes;
    if (channel.out_done == all) {
        SendBuffer *const buffer = message.buffer;
        channel.out.pop_front();
        channel.out_done = 0;
        if (buffer != nullptr) {
            buffer->on_sent();
        }
    }
    return true;
}

bool TcpConnections::is_unread(Channel &channel, Clock::time_point now) const
{
    return channel.is_open() && !channel.lost &&
           channel.unread.lasts(channel.tls->unsent() > 0, channel.tls->sent(), now,
                                std::chrono::seconds(options_.silence_seconds));
}

// TCP itself gives up a machine that does not answer. Of one that answers it waits for the process.
void TcpConnections::look_at_readers(Clock::time_point now)
{
    for (const auto &[connection, channel] : channels_) {
        if (is_unread(*channel, now)) {
            write_out(*channel); // epoll does not tell of a little room
            if (is_unread(*channel, now) &&
                has_answered(channel->socket.get(), options_.silence_seconds)) {
                lose(*channel, kDoesNotRead);
            }
        }
    }
}

// ---- receiving ----

void TcpConnections::serve(Channel &channel, WireEvents &events)
{
    if (!channel.socket.is_ours()) {
        lose(channel, kClosedByOthers);
    }
    if (channel.lost) {
        return;
    }
    if (channel.tls == nullptr) {
        int problem = 0;
        socklen_t length = sizeof problem;
        if (getsockopt(channel.socket.get(), SOL_SOCKET, SO_ERROR, &problem, &length) != 0 ||
            problem != 0) {
            try_next_address(channel, std::strerror(problem));
            return;
        }
        start_tls(channel, TlsStream::Side::kConnects);
        if (channel.lost) {
            return;
        }
    }
    if (!channel.is_open()) {
        shake_hands(channel, events);
    }
    if (channel.is_open() && !channel.lost) {
        write_out(channel);
        receive(channel, events);
    }
}

void TcpConnections::shake_hands(Channel &channel, WireEvents &events)
{
    const TlsStream::State state = channel.tls->advance();
    if (state == TlsStream::State::kLost) {
        if (channel.is_guest) {
            note_guest_gone(channel);
            close(channel.id);
        } else {
            lose(channel, channel.tls->why());
        }
        return;
    }
    if (state == TlsStream::State::kHandshake) {
        poll_for(channel, channel.tls->unsent() > 0 ? EPOLLIN | EPOLLOUT : EPOLLIN);
    } else if (channel.is_guest) {
        channel.is_guest = false;
        std::erase(waiting_room_, channel.id);
        ++guests_.let_in;
        events.on_accepted(channel.id, channel.tls->key());
    }
}

void TcpConnections::receive(Channel &channel, WireEvents &events)
{
    for (std::size_t received = 0; !channel.lost;) {
        const std::size_t got = channel.tls->read(channel.in.wanted());
        if (got == 0) {
            if (channel.tls->state() == TlsStream::State::kLost) {
                lose(channel, channel.tls->why());
            }
            return;
        }
        received += got;
        if (!channel.in.add(got, channel.most_payload)) {
            lose(channel, "it has sent a message that is too large, or none of hetcoll's");
            return;
        }
        if (channel.in.is_whole()) {
            Incoming whole = std::exchange(channel.in, {});
            if (whole.is_offer()) {
                on_offer(channel, whole.header());
            } else {
                channel.may_ask = false;
                events.on_message(channel.id, whole.header(), whole.take_payload(*this));
            }
        }
        if (received >= kReadBytesAtOnce && channel.tls->has_unread()) {
            unread_.push_back(channel.id);
            return;
        }
        if (received >= kReadBytesAtOnce) {
            return; // epoll tells if there is more
        }
    }
}

// ---- vectors by RDMA ----

void TcpConnections::ask_for_rdma(Channel &channel)
{
    if (lanes_ == nullptr) {
        return;
    }
    const Result<RdmaOffer> offer = lanes_->add(channel.id);
    if (!offer.ok()) {
        note_ = "no RDMA, vectors go over TLS: " + offer.status().message();
        return;
    }
    channel.way = Channel::Way::kAsked;
    push(channel, Outgoing(encode(*offer), {}, nullptr, Outgoing::What::kOffer));
}

void TcpConnections::on_offer(Channel &channel, std::span<const std::byte> header)
{
    const std::optional<RdmaOffer> offer = decode_offer(header);
    const bool refuses = offer && offer->address.kind.empty();
    if (offer && !refuses && channel.may_ask) {
        channel.may_ask = false;
        answer(channel, *offer);
    } else if (refuses && channel.way != Channel::Way::kTls) {
        go_by_tls(channel, channel.way == Channel::Way::kAsked
                               ? "the aggregator offers none that fits: start it with --rdma"
                               : "a rank cannot reach this device");
    } else if (offer && !refuses && channel.way == Channel::Way::kAsked) {
        if (Status connected = lanes_->connect(channel.id, *offer); connected.ok()) {
            channel.way = Channel::Way::kRdma;
        } else {
            push(channel, no_rdma());
            go_by_tls(channel, connected.message());
        }
    } else {
        lose(channel, "it has sent an offer of RDMA that is none, or out of turn");
    }
}

// Vectors go this way when the first one has come this way: the other side is connected then.
void TcpConnections::answer(Channel &channel, const RdmaOffer &offer)
{
    if (lanes_ == nullptr) {
        push(channel, no_rdma());
        return;
    }
    Result<RdmaOffer> own = lanes_->add(channel.id);
    Status status = own.ok() ? lanes_->connect(channel.id, offer) : own.take_status();
    if (!status.ok()) {
        push(channel, no_rdma());
        go_by_tls(channel, status.message());
        return;
    }
    channel.way = Channel::Way::kRdma;
    lanes_->allow_payload(channel.id, channel.most_payload);
    push(channel, Outgoing(encode(*own), {}, nullptr, Outgoing::What::kOffer));
}

void TcpConnections::go_by_tls(Channel &channel, const std::string &why)
{
    note_ = "no RDMA, vectors go over TLS: " + why;
    channel.way = Channel::Way::kTls;
    for (const Outgoing &message : lanes_->remove(channel.id)) {
        push(channel, message);
    }
}

bool TcpConnections::progress_lanes(WireEvents &events)
{
    std::vector<RdmaLanes::Arrived> arrived;
    std::vector<RdmaLanes::Lost> lost;
    const bool moved = lanes_->progress(arrived, lost);
    for (RdmaLanes::Arrived &one : arrived) {
        if (const Channel *const channel = find(one.connection);
            channel != nullptr && !channel->lost) {
            events.on_message(one.connection, one.message.header(),
                              one.message.take_payload(*this));
        }
    }
    for (RdmaLanes::Lost &one : lost) {
        if (Channel *const channel = find(one.connection); channel != nullptr) {
            lose(*channel, std::move(one.why));
        }
    }
    return moved;
}

void TcpConnections::look_at_clock()
{
    const Clock::time_point now = options_.clock();
    if (now - looked_ < std::chrono::milliseconds(250)) {
        return;
    }
    const bool away = now - std::exchange(looked_, now) > kAway;
    look_at_guests(now);
    if (options_.silence_seconds > 0) {
        look_at_readers(now);
        if (lanes_ != nullptr && !away) { // else the device may have more to tell
            lanes_->look_at_readers(now, std::chrono::seconds(options_.silence_seconds));
        }
    }
}

bool TcpConnections::progress(WireEvents &events)
{
    constexpr int kMost = 64;
    std::array<epoll_event, kMost> ready;
    const int count = epoll_wait(epoll_.get(), ready.data(), kMost, 0);
    if (count < 0 && errno != EINTR) {
        for (const auto &[connection, channel] : channels_) {
            lose(*channel, kClosedByOthers);
        }
    }
    if (!looking_up_.empty()) {
        follow_look_ups();
    }
    bool moved = count > 0 || !lost_.empty() || !unread_.empty();
    for (const Connection connection : std::exchange(unread_, {})) {
        if (Channel *const channel = find(connection); channel != nullptr) {
            serve(*channel, events);
        }
    }
    bool knock = false;
    for (int i = 0; i < count; ++i) {
        const Connection connection = ready[static_cast<std::size_t>(i)].data.u64;
        knock = knock || connection == kListener;
        if (Channel *const channel = find(connection); channel != nullptr) {
            serve(*channel, events);
        }
    }
    if (knock) {
        accept_some(events);
    }
    if (lanes_ != nullptr) {
        moved = progress_lanes(events) || moved;
    }
    look_at_clock();
    for (const Connection connection : std::exchange(lost_, {})) {
        Channel *const channel = find(connection);
        if (channel == nullptr) {
            continue;
        }
        const bool was_guest = channel->is_guest;
        const std::string why = channel->why;
        close(connection);
        if (!was_guest) {
            events.on_lost(connection, why);
        }
    }
    closed_.clear();
    return moved;
}

void TcpConnections::wait(int milliseconds, int fd)
{
    if (!lost_.empty() || !unread_.empty()) {
        return; // something is there already
    }
    if (!looking_up_.empty()) {
        milliseconds = std::min(milliseconds, kMostNameWaitMs);
    }
    int lanes = -1;
    if (lanes_ != nullptr) {
        lanes = lanes_->arm();
        if (lanes < 0) {
            return;
        }
        milliseconds = std::min(milliseconds, kMostDeviceWaitMs);
    }
    pollfd polled[] = {{.fd = epoll_.get(), .events = POLLIN, .revents = 0},
                       {.fd = fd, .events = POLLIN, .revents = 0},
                       {.fd = lanes, .events = POLLIN, .revents = 0}};
    ::poll(polled, 3, milliseconds);
}

} // namespace

Result<std::unique_ptr<TcpWire>> open_tcp_wire(const TcpOptions &options)
{
    auto wire = std::make_unique<TcpConnections>(options);
    if (Status status = wire->open(); !status.ok()) {
        return status;
    }
    return std::unique_ptr<TcpWire>(std::move(wire));
}

} // namespace hetcoll

#else

namespace hetcoll {

Result<std::unique_ptr<TcpWire>> open_tcp_wire(const TcpOptions & /*options*/)
{
    return error(Errc::kUnsupported, "this hetcoll was built without OpenSSL, so it has no "
                                     "aggregators: configure it --with-openssl");
}

} // namespace hetcoll

#endif
