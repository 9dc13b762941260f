#include "process_network.h"

#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

namespace hetcoll::test {
namespace {

constexpr int kTruncated = -15; // MPI_ERR_TRUNCATE

struct Header {
    std::uint64_t bytes;
    std::int64_t tag;
};

} // namespace

// One writer and one reader. Both counts only grow.
struct ProcessNetwork::Ring {
    static constexpr std::size_t kBytes = 256 << 10;
    alignas(64) std::atomic<std::uint64_t> written;
    alignas(64) std::atomic<std::uint64_t> read;
    alignas(64) std::byte data[kBytes];

    [[nodiscard]] std::size_t room() const noexcept
    {
        return kBytes - (written.load(std::memory_order_relaxed) - // only its writer asks
                         read.load(std::memory_order_acquire));
    }
    [[nodiscard]] std::size_t filled() const noexcept
    {
        return written.load(std::memory_order_acquire) - read.load(std::memory_order_relaxed);
    }
    // Requires room for them.
    void put(const void *from, std::size_t bytes) noexcept
    {
        const std::uint64_t at = written.load(std::memory_order_relaxed);
        const std::size_t first = std::min(bytes, kBytes - at % kBytes);
        std::memcpy(data + at % kBytes, from, first);
        std::memcpy(data, static_cast<const std::byte *>(from) + first, bytes - first);
        written.store(at + bytes, std::memory_order_release);
    }
    // Requires that they are there. `to` may be null.
    void take(void *to, std::size_t bytes) noexcept
    {
        const std::uint64_t at = read.load(std::memory_order_relaxed);
        const std::size_t first = std::min(bytes, kBytes - at % kBytes);
        if (to != nullptr) {
            std::memcpy(to, data + at % kBytes, first);
            std::memcpy(static_cast<std::byte *>(to) + first, data, bytes - first);
        }
        read.store(at + bytes, std::memory_order_release);
    }
};

struct ProcessNetwork::Board {
    static constexpr int kMostRanks = 64;
    alignas(64) std::atomic<std::uint32_t> arrived;
    alignas(64) std::atomic<std::uint32_t> round;
    char message[kMostRanks][512];
    std::byte gathered[kMostRanks][kMostGathered];
};

Result<std::unique_ptr<ProcessNetwork>> ProcessNetwork::create(int size)
{
    if (size < 1 || size > Board::kMostRanks) {
        return error(Errc::kInvalid, "a network of %d processes: 1 to %d are possible", size,
                     Board::kMostRanks);
    }
    std::unique_ptr<ProcessNetwork> network(new ProcessNetwork);
    network->size_ = size;
    network->bytes_ = sizeof(Board) + sizeof(Ring) * static_cast<std::size_t>(size * size);
    // Zeroes are empty rings. Pages are taken when they are written.
    void *memory = mmap(nullptr, network->bytes_, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        return error(Errc::kNoMemory, "no %zu bytes that processes share: %s", network->bytes_,
                     std::strerror(errno));
    }
    network->memory_ = memory;
    network->board_ = static_cast<Board *>(memory);
    network->rings_ = reinterpret_cast<Ring *>(static_cast<std::byte *>(memory) + sizeof(Board));
    return network;
}

ProcessNetwork::~ProcessNetwork()
{
    if (memory_ != nullptr) {
        munmap(memory_, bytes_);
    }
}

ProcessNetwork::Ring &ProcessNetwork::ring(int from, int to) const noexcept
{
    return rings_[from * size_ + to];
}

void ProcessNetwork::set_message(int rank, const std::string &text) noexcept
{
    std::snprintf(board_->message[rank], sizeof board_->message[rank], "%s", text.c_str());
}

std::string ProcessNetwork::message(int rank) const { return board_->message[rank]; }

struct NetworkRank::Request {
    int tag = 0;
    std::size_t bytes = 0, done = 0; // done: of a send, with its header
    const std::byte *from = nullptr;
    std::byte *to = nullptr;
    int state = 0; // as hetcoll_p2p::test()
};

// A message, as far as it is here. Without a request its bytes are kept.
struct NetworkRank::Arrival {
    Header header{};
    std::size_t done = 0;
    Request *request = nullptr;
    std::vector<std::byte> kept;

    [[nodiscard]] bool complete() const noexcept { return done == header.bytes; }
    void finish() const noexcept
    {
        if (!kept.empty()) {
            std::memcpy(request->to, kept.data(), std::min(request->bytes, kept.size()));
        }
        request->state = request->bytes == header.bytes ? 1 : kTruncated;
    }
};

struct NetworkRank::Peer {
    std::deque<Request *> sends, receives;         // not begun, or under way; not matched
    std::deque<std::unique_ptr<Arrival>> arrivals; // nobody has asked for, oldest first
    std::unique_ptr<Arrival> claimed;              // the one under way, if it has a request
    Arrival *current = nullptr;                    // under way: `claimed` or the last arrival
};

NetworkRank::NetworkRank(ProcessNetwork &network, int rank)
    : network_(network), rank_(rank), peers_(static_cast<std::size_t>(network.size()))
{
}

NetworkRank::~NetworkRank() = default;

hetcoll_p2p NetworkRank::table() noexcept
{
    return {this, rank_, size(), isend, irecv, test, progress, 0, 0, nullptr, nullptr};
}

void NetworkRank::barrier() noexcept
{
    ProcessNetwork::Board &board = *network_.board_;
    const std::uint32_t round = board.round.load();
    if (board.arrived.fetch_add(1) + 1 == static_cast<std::uint32_t>(size())) {
        board.arrived.store(0);
        board.round.store(round + 1);
        return;
    }
    while (board.round.load() == round) {
        sched_yield();
    }
}

void NetworkRank::gather(const void *mine, std::size_t bytes, void *all) noexcept
{
    ProcessNetwork::Board &board = *network_.board_;
    std::memcpy(board.gathered[rank_], mine, bytes);
    barrier();
    for (int rank = 0; rank < size(); ++rank) {
        std::memcpy(static_cast<std::byte *>(all) + static_cast<std::size_t>(rank) * bytes,
                    board.gathered[rank], bytes);
    }
    barrier();
}

int NetworkRank::isend(void *context, const void *buffer, std::size_t bytes, int peer, int tag,
                       void **request)
{
    auto &self = *static_cast<NetworkRank *>(context);
    auto send = std::make_unique<Request>();
    send->tag = tag;
    send->bytes = bytes;
    send->from = static_cast<const std::byte *>(buffer);
    *request = send.get();
    self.peers_[static_cast<std::size_t>(peer)].sends.push_back(send.release());
    self.push(peer);
    return 0;
}

int NetworkRank::irecv(void *context, void *buffer, std::size_t bytes, int peer, int tag,
                       void **request)
{
    auto &self = *static_cast<NetworkRank *>(context);
    Peer &from = self.peers_[static_cast<std::size_t>(peer)];
    auto receive = std::make_unique<Request>();
    receive->tag = tag;
    receive->bytes = bytes;
    receive->to = static_cast<std::byte *>(buffer);
    *request = receive.get();
    const auto known =
        std::find_if(from.arrivals.begin(), from.arrivals.end(),
                     [tag](const auto &arrival) { return arrival->header.tag == tag; });
    if (known == from.arrivals.end()) {
        from.receives.push_back(receive.release());
        return 0;
    }
    (*known)->request = receive.release();
    if ((*known)->complete()) {
        (*known)->finish();
    } else {
        from.claimed = std::move(*known);
    }
    from.arrivals.erase(known);
    return 0;
}

int NetworkRank::test(void *, void **request)
{
    const auto *tested = static_cast<const Request *>(*request);
    const int state = tested->state;
    if (state != 0) {
        delete tested;
        *request = nullptr;
    }
    return state;
}

void NetworkRank::progress(void *context)
{
    auto &self = *static_cast<NetworkRank *>(context);
    bool moved = false;
    for (int peer = 0; peer < self.size(); ++peer) {
        moved = self.push(peer) || moved;
        moved = self.pull(peer) || moved;
    }
    if (!moved) {
        sched_yield(); // there may be more ranks than cores
    }
}

// Writes what fits of the sends to a peer. True if anything moved.
bool NetworkRank::push(int peer) noexcept
{
    Peer &to = peers_[static_cast<std::size_t>(peer)];
    ProcessNetwork::Ring &ring = network_.ring(rank_, peer);
    bool moved = false;
    while (!to.sends.empty()) {
        Request &send = *to.sends.front();
        if (send.done == 0) {
            const Header header{send.bytes, send.tag};
            if (ring.room() < sizeof header) {
                return moved;
            }
            ring.put(&header, sizeof header);
            send.done = sizeof header;
            moved = true;
        }
        const std::size_t sent = send.done - sizeof(Header);
        const std::size_t now = std::min(send.bytes - sent, ring.room());
        if (now > 0) {
            ring.put(send.from + sent, now);
            send.done += now;
            moved = true;
        }
        if (sent + now < send.bytes) {
            return moved;
        }
        send.state = 1;
        to.sends.pop_front();
    }
    return moved;
}

// Reads what has come from a peer. True if anything moved.
bool NetworkRank::pull(int peer)
{
    Peer &from = peers_[static_cast<std::size_t>(peer)];
    ProcessNetwork::Ring &ring = network_.ring(peer, rank_);
    bool moved = false;
    for (;;) {
        if (from.current == nullptr) {
            if (ring.filled() < sizeof(Header)) {
                return moved;
            }
            auto arrival = std::make_unique<Arrival>();
            ring.take(&arrival->header, sizeof arrival->header);
            from.current = arrival.get();
            const auto wanted = std::find_if(
                from.receives.begin(), from.receives.end(),
                [&](const Request *receive) { return receive->tag == arrival->header.tag; });
            if (wanted != from.receives.end()) {
                arrival->request = *wanted;
                from.receives.erase(wanted);
                from.claimed = std::move(arrival);
            } else {
                arrival->kept.resize(arrival->header.bytes);
                from.arrivals.push_back(std::move(arrival));
            }
            moved = true;
        }
        Arrival &current = *from.current;
        const std::size_t now = std::min(current.header.bytes - current.done, ring.filled());
        if (!current.kept.empty()) {
            ring.take(current.kept.data() + current.done, now);
        } else if (current.request != nullptr && current.header.bytes <= current.request->bytes) {
            ring.take(current.request->to + current.done, now);
        } else {
            ring.take(nullptr, now); // longer than the receive: an error in any case
        }
        current.done += now;
        moved = moved || now > 0;
        if (!current.complete()) {
            return moved;
        }
        if (current.request != nullptr) {
            current.finish();
            from.claimed.reset();
        }
        from.current = nullptr;
    }
}

} // namespace hetcoll::test
