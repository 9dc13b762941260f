// Which steps a simulated rank looks at: its channels are fed as those before get done.
#include "price/rank.h"

#include <algorithm>
#include <bit>
#include <type_traits>
#include <utility>

namespace hetcoll {
namespace {

bool overlap(const BlockRange &a, const BlockRange &b)
{
    return a.first < b.first + b.count && b.first < a.first + a.count;
}

} // namespace

void SimRank::feed(int number)
{
    Channel &channel = channels_[static_cast<std::size_t>(number)];
    drop_done(channel);
    while (may_feed(channel)) {
        const std::span<const Step> fed = plan_.feed->next(number);
        channel.all_fed = fed.empty();
        channel.make_room_for(fed.size(), !plan_.feed->knows_order());
        for (const Step &step : fed) {
            take(channel, number, step);
        }
        drop_done(channel); // of empty blocks
    }
}

void SimRank::Channel::make_room_for(std::size_t more, bool with_own_after)
{
    const std::size_t needed = static_cast<std::size_t>(live()) + more;
    if (needed <= steps.size()) {
        return;
    }
    const std::size_t size = std::bit_ceil(needed);
    const int larger_mask = static_cast<int>(size) - 1;
    const auto enlarge = [&](auto &all) {
        std::remove_reference_t<decltype(all)> larger(size);
        for (int i = base; i < fed; ++i) {
            larger[static_cast<std::size_t>(i & larger_mask)] =
                std::move(all[static_cast<std::size_t>(i & mask)]);
        }
        all = std::move(larger);
    };
    enlarge(steps);
    if (with_own_after) {
        enlarge(own_after);
    }
    mask = larger_mask;
}

// The steps that its channel has before it, where the feed does not say.
void SimRank::find_order(Channel &channel, int number, Live &live)
{
    std::vector<StepPlace> &all =
        channel.own_after[static_cast<std::size_t>(channel.fed & channel.mask)];
    all.assign(live.after.begin(), live.after.end());
    for (int i = channel.base; i < channel.fed; ++i) {
        const Live &before = channel.at(i);
        const bool writes = before.kind != StepKind::kSend || live.kind != StepKind::kSend;
        if (writes && overlap(before.blocks, live.blocks)) {
            all.push_back({number, i});
        }
    }
    live.after = all;
}

bool SimRank::has_begun(const Cursor &cursor, int index)
{
    return cursor.index > index || (cursor.index == index && cursor.offset > 0);
}

void SimRank::take(Channel &channel, int number, const Step &step)
{
    const ElementSpan span = range_span(plan_.count, plan_.feed->block_count(), step.blocks);
    Live live{.kind = step.kind,
              .together = step.together,
              .fused = step.fused,
              .blocks = step.blocks,
              .peer = step.peer,
              .actor = plan_.actor_of(step.peer),
              .mapped = !step.by_message && !step.together && plan_.is_mapped(step.peer),
              .after = plan_.feed->after_of(step),
              .first = span.first * plan_.element_bytes,
              .bytes = span.count * plan_.element_bytes};
    for (const StepPlace &place : live.after) {
        std::vector<int> &waiting =
            channels_[static_cast<std::size_t>(place.channel)].waited_for_by;
        if (place.channel != number &&
            std::find(waiting.begin(), waiting.end(), number) == waiting.end()) {
            waiting.push_back(number);
        }
    }
    (live.mapped ? channel.has_mapped : channel.has_messages) = true;
    if (!plan_.feed->knows_order()) {
        find_order(channel, number, live);
    }
    if (step.fused && live.mapped) { // joins the pull before it, unless that has begun
        for (int i = channel.fed - 1; i >= channel.base; --i) {
            Live &head = channel.at(i);
            if (head.group > 0) {
                if (head.mapped && !has_begun(channel.pulls, i)) {
                    ++head.group;
                    live.group = 0;
                }
                break;
            }
        }
    }
    if (live.mapped && live.kind == StepKind::kSend && live.bytes > 0) {
        queue_offer(channel, live);
    }
    unfinished_ += channel.live() == 0 ? 1 : 0;
    channel.at(channel.fed) = live;
    ++channel.fed;
}

} // namespace hetcoll
