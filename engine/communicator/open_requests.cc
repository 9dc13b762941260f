#include "engine/communicator/open_requests.h"

#include "engine/types/call.h"

#include <algorithm>
#include <cstddef>
#include <new>

namespace hetcoll {
namespace {

OpenRequests &self(void *context) { return *static_cast<OpenRequests *>(context); }

} // namespace

OpenRequests::OpenRequests(const hetcoll_p2p &ranks) noexcept : ranks_(ranks), table_(ranks)
{
    if (ranks.broken == nullptr) {
        return;
    }
    table_.context = this;
    table_.isend = [](void *context, const void *buffer, std::size_t bytes, int peer, int tag,
                      void **request) {
        return self(context).start(request, [&](const hetcoll_p2p &by, void **started) {
            return by.isend(by.context, buffer, bytes, peer, tag, started);
        });
    };
    table_.irecv = [](void *context, void *buffer, std::size_t bytes, int peer, int tag,
                      void **request) {
        return self(context).start(request, [&](const hetcoll_p2p &by, void **started) {
            return by.irecv(by.context, buffer, bytes, peer, tag, started);
        });
    };
    table_.test = [](void *context, void **request) { return self(context).test(request); };
    table_.progress = [](void *context) {
        const hetcoll_p2p &by = self(context).ranks_;
        by.progress(by.context);
    };
    table_.broken = [](void *context) {
        const hetcoll_p2p &by = self(context).ranks_;
        return by.broken(by.context);
    };
}

template <class Start> int OpenRequests::start(void **request, Start how)
{
    if (ranks_.broken(ranks_.context) != 0) {
        *request = this; // none that is open
        return 0;
    }
    try {
        open_.push_back(nullptr);
    } catch (const std::bad_alloc &) {
        return HETCOLL_ERROR_NO_MEMORY;
    }
    const int code = how(ranks_, request);
    if (code == 0) {
        open_.back() = *request;
        return 0;
    }
    open_.pop_back();
    *request = this;
    return ranks_.broken(ranks_.context) != 0 ? 0 : code;
}

int OpenRequests::test(void **request)
{
    const auto tested = std::find(open_.begin(), open_.end(), *request);
    if (tested == open_.end()) {
        return 0;
    }
    const int state = ranks_.test(ranks_.context, &*tested);
    if (state == 0) {
        return 0;
    }
    *tested = open_.back();
    open_.pop_back();
    if (state < 0 && ranks_.broken(ranks_.context) != 0) {
        *request = this;
        return 0;
    }
    *request = nullptr;
    return state;
}

bool OpenRequests::drain() noexcept
{
    std::erase_if(open_,
                  [this](void *request) { return ranks_.test(ranks_.context, &request) != 0; });
    return open_.empty();
}

} // namespace hetcoll
