#include "engine/meeting/subgroup.h"

#include <algorithm>
#include <utility>

namespace hetcoll {
Subgroup::Subgroup(const hetcoll_p2p &parent, std::vector<int> ranks)
    : parent_(parent), ranks_(std::move(ranks))
{
    const auto found = std::find(ranks_.begin(), ranks_.end(), parent_.rank);
    table_ = {
        .context = this,
        .rank = found == ranks_.end() ? -1 : static_cast<int>(found - ranks_.begin()),
        .size = static_cast<int>(ranks_.size()),
        .isend =
            [](void *context, const void *buffer, std::size_t bytes, int peer, int tag,
               void **request) {
                const auto *self = static_cast<Subgroup *>(context);
                return self->parent_.isend(self->parent_.context, buffer, bytes, self->ranks_[peer],
                                           tag, request);
            },
        .irecv =
            [](void *context, void *buffer, std::size_t bytes, int peer, int tag, void **request) {
                const auto *self = static_cast<Subgroup *>(context);
                return self->parent_.irecv(self->parent_.context, buffer, bytes, self->ranks_[peer],
                                           tag, request);
            },
        .test =
            [](void *context, void **request) {
                const auto *self = static_cast<Subgroup *>(context);
                return self->parent_.test(self->parent_.context, request);
            },
        .progress =
            [](void *context) {
                const auto *self = static_cast<Subgroup *>(context);
                self->parent_.progress(self->parent_.context);
            },
        .shares_processor = parent.shares_processor,
        .comm_id = parent.comm_id,
        .broken = nullptr,
        .end_job = nullptr,
    };
}

} // namespace hetcoll
