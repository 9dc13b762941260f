// The messages of a rank whose schedule has an aggregator among its peers (schedule/in_network.h):
// those to other ranks are the communicator's, those to the aggregator go over the connection to
// it. Where that is lost its messages end immediately, with whatever is in their memory, and the
// rank goes on serving the others. In their next meeting it says that its sums are wrong.
#pragma once

#include "base/p2p.h"
#include "base/request_pool.h"

namespace hetcoll {

class AggregatorMessages {
public:
    // `ranks` outlives it.
    explicit AggregatorMessages(const hetcoll_p2p &ranks);
    AggregatorMessages(const AggregatorMessages &) = delete;
    AggregatorMessages &operator=(const AggregatorMessages &) = delete;

    // Peers from ranks.size on are the aggregator, which the connection's table calls `peer`.
    void connect(const hetcoll_p2p &connection, int peer) noexcept;
    // Messages that are on their way end as the connection lets them: it lives until they have.
    void disconnect() noexcept { connected_ = false; }
    // False from the first message on that was not the aggregator's.
    [[nodiscard]] bool connected() const noexcept { return connected_; }

    [[nodiscard]] const hetcoll_p2p &table() const noexcept { return table_; }

private:
    struct Request {
        const hetcoll_p2p *by = nullptr; // null: it has ended
        void *request = nullptr;
    };

    template <class Start> int start(int peer, void **request, Start how);
    int test(void **request);

    const hetcoll_p2p &ranks_;
    hetcoll_p2p connection_{}, table_{};
    int aggregator_ = 0;
    bool connected_ = false;
    RequestPool<Request> requests_;
};

} // namespace hetcoll
