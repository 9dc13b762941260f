#include "engine/communicator/aggregator_messages.h"

namespace hetcoll {
namespace {

AggregatorMessages &self(void *context) { return *static_cast<AggregatorMessages *>(context); }

} // namespace

AggregatorMessages::AggregatorMessages(const hetcoll_p2p &ranks) : ranks_(ranks)
{
    table_ = {
        .context = this,
        .rank = ranks.rank,
        .size = ranks.size,
        .isend =
            [](void *context, const void *buffer, std::size_t bytes, int peer, int tag,
               void **request) {
                return self(context).start(
                    peer, request, [&](const hetcoll_p2p &by, int to, void **started) {
                        return by.isend(by.context, buffer, bytes, to, tag, started);
                    });
            },
        .irecv =
            [](void *context, void *buffer, std::size_t bytes, int peer, int tag, void **request) {
                return self(context).start(
                    peer, request, [&](const hetcoll_p2p &by, int from, void **started) {
                        return by.irecv(by.context, buffer, bytes, from, tag, started);
                    });
            },
        .test = [](void *context, void **request) { return self(context).test(request); },
        .progress =
            [](void *context) {
                const hetcoll_p2p &by = self(context).ranks_;
                by.progress(by.context);
            },
        .shares_processor = ranks.shares_processor,
        .comm_id = ranks.comm_id,
        .broken = nullptr,
        .end_job = nullptr,
    };
}

void AggregatorMessages::connect(const hetcoll_p2p &connection, int peer) noexcept
{
    connection_ = connection;
    aggregator_ = peer;
    connected_ = true;
}

template <class Start> int AggregatorMessages::start(int peer, void **request, Start how)
{
    Request *const made = requests_.take();
    if (peer < ranks_.size) {
        made->by = &ranks_;
        if (const int code = how(ranks_, peer, &made->request); code != 0) {
            requests_.give_back(made);
            return code;
        }
    } else if (connected_) {
        connected_ = how(connection_, aggregator_, &made->request) == 0;
        made->by = connected_ ? &connection_ : nullptr;
    }
    *request = made;
    return 0;
}

int AggregatorMessages::test(void **request)
{
    auto *const tested = static_cast<Request *>(*request);
    int state = tested->by == nullptr ? 1 : tested->by->test(tested->by->context, &tested->request);
    if (state == 0) {
        return 0;
    }
    if (state < 0 && tested->by == &connection_) {
        connected_ = false;
        state = 1;
    }
    requests_.give_back(tested);
    *request = nullptr;
    return state;
}

} // namespace hetcoll
