#include "schedule/rounds.h"

#include <numeric>
#include <utility>

namespace hetcoll {
namespace {

class ForAll : public Program {
public:
    ForAll(const TeamAlgorithm &algorithm, int rank, int size, int rack)
        : algorithm_(algorithm), rank_(rank), rack_(rack), everyone_(static_cast<std::size_t>(size))
    {
        std::iota(everyone_.begin(), everyone_.end(), 0);
    }

    [[nodiscard]] int block_count() const override { return cost().parts; }
    [[nodiscard]] int channel_count() const override { return 1; }
    [[nodiscard]] int round_count() const override { return cost().rounds; }
    void add_round(ScheduleBuilder &to, int /*channel*/, int round) const override
    {
        const Team team{everyone_, rank_, rack_};
        for (const Move &move : algorithm_.round(team, {0, block_count()}, round)) {
            to.add(move);
        }
    }

private:
    [[nodiscard]] TeamCost cost() const
    {
        return algorithm_.cost(static_cast<int>(everyone_.size()), rack_);
    }

    const TeamAlgorithm &algorithm_;
    int rank_, rack_;
    std::vector<int> everyone_;
};

} // namespace

Schedule build_program(const Program &program)
{
    ScheduleBuilder steps(program.block_count(), program.channel_count());
    const int rounds = program.round_count();
    std::vector<int> last_receive; // by channel and round; -1: there is none
    for (int channel = 0; channel < program.channel_count(); ++channel) {
        steps.set_channel(channel);
        for (int round = 0; round < rounds; ++round) {
            const auto before = program.waits_for(channel, round);
            const int earlier = steps.last_receive();
            steps.let_next_receive_wait_for(before ? last_receive[static_cast<std::size_t>(
                                                         before->channel * rounds + before->round)]
                                                   : -1);
            program.add_round(steps, channel, round);
            last_receive.push_back(steps.last_receive() == earlier ? -1 : steps.last_receive());
        }
    }
    Schedule schedule = std::move(steps).finish();
    schedule.channels_at_once = program.channels_at_once();
    return schedule;
}

void add_rounds(ScheduleBuilder &to, const TeamAlgorithm &algorithm, const Team &team,
                BlockRange blocks)
{
    const int rounds = algorithm.cost(static_cast<int>(team.ranks.size()), team.rack).rounds;
    for (int number = 0; number < rounds; ++number) {
        for (const Move &move : algorithm.round(team, blocks, number)) {
            to.add(move);
        }
    }
}

std::unique_ptr<Program> program_for_all(const TeamAlgorithm &algorithm, int rank, int size,
                                         int rack)
{
    return std::make_unique<ForAll>(algorithm, rank, size, rack);
}

Schedule build_for_all(const TeamAlgorithm &algorithm, int rank, int size, int rack)
{
    return build_program(ForAll(algorithm, rank, size, rack));
}

} // namespace hetcoll
