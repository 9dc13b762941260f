#include "schedule/rings.h"

#include "schedule/rounds.h"

#include <algorithm>

namespace hetcoll {
namespace {

class Rings : public Program {
public:
    Rings(int rank, const RingOrders &rings) : rings_(rings)
    {
        for (const std::vector<int> &ring : rings) {
            places_.push_back(
                static_cast<int>(std::find(ring.begin(), ring.end(), rank) - ring.begin()));
        }
    }

    [[nodiscard]] int block_count() const override { return channel_count() * ring_blocks(); }
    [[nodiscard]] int channel_count() const override { return static_cast<int>(rings_.size()); }
    [[nodiscard]] int round_count() const override { return kRingOfTeam.cost(size(), 0).rounds; }
    void add_round(ScheduleBuilder &to, int channel, int round) const override
    {
        const auto ring = static_cast<std::size_t>(channel);
        for (const Move &move : kRingOfTeam.round(
                 {rings_[ring], places_[ring]}, {channel * ring_blocks(), ring_blocks()}, round)) {
            to.add(move);
        }
    }

private:
    [[nodiscard]] int size() const { return static_cast<int>(rings_.front().size()); }
    [[nodiscard]] int ring_blocks() const { return kRingOfTeam.cost(size(), 0).parts; }

    const RingOrders &rings_;
    std::vector<int> places_; // of the rank, by ring
};

} // namespace

std::unique_ptr<Program> rings_program(int rank, const RingOrders &rings)
{
    return std::make_unique<Rings>(rank, rings);
}

Schedule build_rings(int rank, const RingOrders &rings)
{
    return build_program(Rings(rank, rings));
}

} // namespace hetcoll
