#include "schedule/match.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace hetcoll {
namespace {

// The ranks of one node.
class Node {
public:
    explicit Node(std::span<const LocalSchedule> ranks)
    {
        for (const LocalSchedule &local : ranks) {
            add(local.rank);
        }
    }

    void add(int rank)
    {
        if (rank >= static_cast<int>(has_.size())) {
            has_.resize(rank + 1);
        }
        has_[rank] = true;
    }

    [[nodiscard]] bool has(int rank) const
    {
        return rank < static_cast<int>(has_.size()) && has_[rank];
    }

private:
    std::vector<bool> has_;
};

// By step: its word, or -1.
std::vector<int> number_steps(const Schedule &schedule, const Node &node)
{
    std::vector<int> words;
    words.reserve(schedule.steps.size());
    int next = 0;
    for (const Step &step : schedule.steps) {
        words.push_back(node.has(step.peer) ? next++ : -1);
    }
    return words;
}

// The steps of a schedule with one peer, of one direction and channel, in list order.
class StepsWith {
public:
    StepsWith(const Schedule &schedule, int peer) : lanes_(schedule.channel_count)
    {
        int index = 0;
        for (const Step &step : schedule.steps) {
            if (step.peer == peer) {
                steps_of(step.kind == StepKind::kSend, step.channel).push_back(index);
            }
            ++index;
        }
    }

    [[nodiscard]] std::vector<int> &steps_of(bool sends, int channel)
    {
        return lanes_[channel][sends ? 1 : 0];
    }

private:
    std::vector<std::array<std::vector<int>, 2>> lanes_;
};

} // namespace

std::vector<LocalStep> match_local_steps(int rank, const Schedule &mine,
                                         std::span<const LocalSchedule> peers)
{
    Node node(peers);
    node.add(rank);
    const std::vector<int> words = number_steps(mine, node);
    std::vector<LocalStep> matched(mine.steps.size());
    for (const auto &[peer, schedule] : peers) {
        const std::vector<int> peer_words = number_steps(*schedule, node);
        StepsWith here(mine, peer), there(*schedule, rank);
        for (int channel = 0; channel < mine.channel_count; ++channel) {
            for (const bool sends : {false, true}) {
                const std::vector<int> &ours = here.steps_of(sends, channel);
                const std::vector<int> &theirs = there.steps_of(!sends, channel);
                for (std::size_t i = 0; i < ours.size(); ++i) {
                    matched[ours[i]] = {.word = words[ours[i]],
                                        .peer_word = peer_words[theirs[i]],
                                        .peer_from_input = schedule->steps[theirs[i]].from_input};
                }
            }
        }
    }
    return matched;
}

int word_count(std::span<const LocalStep> steps) noexcept
{
    return static_cast<int>(std::count_if(steps.begin(), steps.end(),
                                          [](const LocalStep &step) { return step.word >= 0; }));
}

} // namespace hetcoll
