// The chunks that a simulated rank lets its peers read.
#include "base/slots.h"
#include "price/rank.h"

#include <algorithm>
#include <utility>

namespace hetcoll {

// Before it is the channel's last step.
void SimRank::queue_offer(Channel &channel, const Live &live)
{
    const int index = channel.fed;
    const auto last =
        std::find_if(channel.last_offered.begin(), channel.last_offered.end(),
                     [&](const std::pair<int, int> &of) { return of.first == live.peer; });
    if (last == channel.last_offered.end()) {
        channel.last_offered.emplace_back(live.peer, index);
        channel.offering.push_back(index);
        return;
    }
    const int before = std::exchange(last->second, index);
    if (before >= channel.base && channel.at(before).offered < channel.at(before).bytes) {
        channel.at(before).offered_next = index;
    } else {
        channel.offering.push_back(index);
    }
}

// Peers read in the order of their steps, and a few chunks in flight.
void SimRank::offer_sends(int number)
{
    Channel &channel = channels_[static_cast<std::size_t>(number)];
    for (std::size_t i = 0; i < channel.offering.size();) {
        const int index = channel.offering[i];
        Live &live = channel.at(index);
        const std::size_t ready = live.offers < kWindowSlots ? ready_bytes(live) : 0;
        while (live.offered < live.bytes && live.offers < kWindowSlots) {
            const std::size_t bytes = std::min(live.bytes - live.offered, plan_.chunk_bytes);
            if (ready < live.offered + bytes) {
                break;
            }
            const int token = start({Kind::kOffer, number, index, live.offered, bytes});
            live.offered += bytes;
            ++live.offers;
            transfers_->send(live.actor, number, static_cast<double>(bytes), token);
        }
        if (live.offered < live.bytes) {
            ++i;
            continue;
        }
        channel.offering.erase(channel.offering.begin() + static_cast<std::ptrdiff_t>(i));
        if (live.offered_next >= 0) { // its turn is among the later ones
            channel.offering.insert(std::lower_bound(channel.offering.begin(),
                                                     channel.offering.end(), live.offered_next),
                                    live.offered_next);
        }
    }
}

} // namespace hetcoll
