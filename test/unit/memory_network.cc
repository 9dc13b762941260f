#include "memory_network.h"

#include <algorithm>
#include <cstring>
#include <thread>

namespace hetcoll {

MemoryNetwork::MemoryNetwork(int size, bool synchronous, unsigned seed)
    : size_(size), synchronous_(synchronous), random_(seed)
{
    for (int rank = 0; rank < size; ++rank) {
        ranks_.push_back({this, rank});
    }
}

hetcoll_p2p MemoryNetwork::rank(int rank)
{
    return {&ranks_[rank], rank,     size_, isend, irecv,
            test,          progress, 0,     0,     may_break_ ? broken : nullptr,
            end_job};
}

void MemoryNetwork::fail_send(int nth)
{
    const std::lock_guard lock(mutex_);
    failing_send_ = sends_ + nth;
}

void MemoryNetwork::break_for(int rank, int code)
{
    const std::lock_guard lock(mutex_);
    ranks_[rank].broken = code;
}

void MemoryNetwork::end_requests(int rank)
{
    const std::lock_guard lock(mutex_);
    ranks_[rank].ends_requests = true;
}

void MemoryNetwork::end_job(void *context, int code)
{
    Rank &rank = *static_cast<Rank *>(context);
    const std::lock_guard lock(rank.network->mutex_);
    rank.ended_job = code;
}

int MemoryNetwork::ended_job(int rank) const
{
    const std::lock_guard lock(mutex_);
    return ranks_[rank].ended_job;
}

int MemoryNetwork::broken(void *context)
{
    const Rank &rank = *static_cast<Rank *>(context);
    const std::lock_guard lock(rank.network->mutex_);
    return rank.broken;
}

int MemoryNetwork::sends() const
{
    const std::lock_guard lock(mutex_);
    return sends_;
}

int MemoryNetwork::unmatched() const
{
    const std::lock_guard lock(mutex_);
    int count = 0;
    for (const Pair &pair : pairs_) {
        count += static_cast<int>(pair.sends.size() + pair.receives.size());
    }
    return count;
}

int MemoryNetwork::isend(void *context, const void *buffer, std::size_t bytes, int peer, int tag,
                         void **request)
{
    MemoryNetwork *const network = static_cast<Rank *>(context)->network;
    const int rank = static_cast<Rank *>(context)->rank;
    const std::lock_guard lock(network->mutex_);
    if (++network->sends_ == network->failing_send_) {
        return -7;
    }
    auto send = std::make_shared<Request>();
    send->bytes = bytes;
    send->from = static_cast<const std::byte *>(buffer);
    if (!network->synchronous_) {
        send->buffered.reset(static_cast<std::byte *>(std::malloc(bytes)));
        std::copy_n(send->from, bytes, send->buffered.get());
        send->from = send->buffered.get();
        send->state = 1;
    }
    network->pair(rank, peer, tag).sends.push_back(send);
    *request = network->keep(std::move(send));
    return 0;
}

int MemoryNetwork::irecv(void *context, void *buffer, std::size_t bytes, int peer, int tag,
                         void **request)
{
    MemoryNetwork *const network = static_cast<Rank *>(context)->network;
    const int rank = static_cast<Rank *>(context)->rank;
    const std::lock_guard lock(network->mutex_);
    auto receive = std::make_shared<Request>();
    receive->bytes = bytes;
    receive->to = static_cast<std::byte *>(buffer);
    network->pair(peer, rank, tag).receives.push_back(receive);
    *request = network->keep(std::move(receive));
    return 0;
}

int MemoryNetwork::test(void *context, void **request)
{
    const Rank &rank = *static_cast<Rank *>(context);
    MemoryNetwork &network = *rank.network;
    const std::lock_guard lock(network.mutex_);
    int state = static_cast<const Request *>(*request)->state;
    if (state == 0 && rank.ends_requests) {
        network.forget(*static_cast<const Request *>(*request));
        state = rank.broken;
    }
    if (state != 0) {
        network.requests_.erase(*request);
        *request = nullptr;
    }
    return state;
}

// Requires the lock. Nobody is to find it any more.
void MemoryNetwork::forget(const Request &request)
{
    const auto is_it = [&](const std::shared_ptr<Request> &other) {
        return other.get() == &request;
    };
    for (Pair &pair : pairs_) {
        std::erase_if(pair.sends, is_it);
        std::erase_if(pair.receives, is_it);
    }
}

// Requires the lock.
void *MemoryNetwork::keep(std::shared_ptr<Request> request)
{
    void *key = request.get();
    requests_.emplace(key, std::move(request));
    return key;
}

void MemoryNetwork::progress(void *context)
{
    MemoryNetwork &network = *static_cast<Rank *>(context)->network;
    network.deliver_some();
    if (!network.one_thread_) {
        std::this_thread::yield();
    }
}

// Requires the lock.
MemoryNetwork::Pair &MemoryNetwork::pair(int from, int to, int tag)
{
    const auto same = [&](const Pair &known) {
        return known.from == from && known.to == to && known.tag == tag;
    };
    const auto known = std::find_if(pairs_.begin(), pairs_.end(), same);
    return known != pairs_.end() ? *known : pairs_.emplace_back(Pair{from, to, tag, {}, {}});
}

// Delivers the oldest message of pairs picked at random.
void MemoryNetwork::deliver_some()
{
    const std::lock_guard lock(mutex_);
    for (int tries = 0; tries < size_ && !pairs_.empty(); ++tries) {
        Pair &picked = pairs_[random_() % pairs_.size()];
        if (picked.sends.empty() || picked.receives.empty()) {
            continue;
        }
        Request &send = *picked.sends.front(), &receive = *picked.receives.front();
        std::memcpy(receive.to, send.from, std::min(send.bytes, receive.bytes));
        send.state = 1;
        const bool fits = send.bytes == receive.bytes || (shorter_ && send.bytes < receive.bytes);
        receive.state = fits ? 1 : -15; // MPI_ERR_TRUNCATE
        picked.sends.pop_front();
        picked.receives.pop_front();
    }
}

} // namespace hetcoll
