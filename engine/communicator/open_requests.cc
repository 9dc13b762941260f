#include "engine/communicator/open_requests.h"

#include "engine/types/call.h"

#include <algorithm>
#include <cstddef>
#include <new>

namespace hetcoll {

OpenRequests::OpenRequests(const hetcoll_p2p &ranks) : table_(ranks)
{
    if (ranks.broken == nullptr) {
        return;
    }
    open_ = std::make_unique<Open>(Open{ranks, {}});
    table_.context = open_.get();
    table_.isend = [](void *context, const void *buffer, std::size_t bytes, int peer, int tag,
                      void **request) {
        return Open::of(context).start(request, [&](const hetcoll_p2p &by, void **started) {
            return by.isend(by.context, buffer, bytes, peer, tag, started);
        });
    };
    table_.irecv = [](void *context, void *buffer, std::size_t bytes, int peer, int tag,
                      void **request) {
        return Open::of(context).start(request, [&](const hetcoll_p2p &by, void **started) {
            return by.irecv(by.context, buffer, bytes, peer, tag, started);
        });
    };
    table_.test = [](void *context, void **request) { return Open::of(context).test(request); };
    table_.progress = [](void *context) {
        const hetcoll_p2p &by = Open::of(context).ranks;
        by.progress(by.context);
    };
    table_.broken = [](void *context) {
        const hetcoll_p2p &by = Open::of(context).ranks;
        return by.broken(by.context);
    };
    table_.end_job = [](void *context, int code) {
        const hetcoll_p2p &by = Open::of(context).ranks;
        if (by.end_job != nullptr) {
            by.end_job(by.context, code);
        }
    };
}

template <class Start> int OpenRequests::Open::start(void **request, Start how)
{
    if (ranks.broken(ranks.context) != 0) {
        *request = this; // not an open one
        return 0;
    }
    try {
        requests.push_back(nullptr);
    } catch (const std::bad_alloc &) {
        return HETCOLL_ERROR_NO_MEMORY;
    }
    const int code = how(ranks, request);
    if (code == 0) {
        requests.back() = *request;
        return 0;
    }
    requests.pop_back();
    *request = this;
    return ranks.broken(ranks.context) != 0 ? 0 : code;
}

int OpenRequests::Open::test(void **request)
{
    const auto tested = std::find(requests.begin(), requests.end(), *request);
    if (tested == requests.end()) {
        return 0;
    }
    const int state = ranks.test(ranks.context, &*tested);
    if (state == 0) {
        return 0;
    }
    *tested = requests.back();
    requests.pop_back();
    if (state < 0 && ranks.broken(ranks.context) != 0) {
        *request = this;
        return 0;
    }
    *request = nullptr;
    return state;
}

bool OpenRequests::drain() noexcept
{
    std::erase_if(open_->requests, [this](void *request) {
        return open_->ranks.test(open_->ranks.context, &request) != 0;
    });
    return open_->requests.empty();
}

} // namespace hetcoll
