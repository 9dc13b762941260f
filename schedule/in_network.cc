#include "schedule/in_network.h"

#include "schedule/builder.h"
#include "schedule/rounds.h"

#include <numeric>
#include <utility>

namespace hetcoll {
namespace {

constexpr int kUp = 0, kDown = 1, kChannels = 2;

Schedule build_rank(const SwitchTree &tree, int rank)
{
    const int size = tree.ranks_per_node, node = rank / size, slice = rank % size;
    std::vector<int> on_node(static_cast<std::size_t>(size));
    std::iota(on_node.begin(), on_node.end(), node * size);
    const Team team{on_node, slice};
    const BlockRange all{0, tree.block_count()};
    const int leaf = tree.leaf(tree.leaf_of[static_cast<std::size_t>(node)]);

    ScheduleBuilder steps(all.count, kChannels);
    add_rounds(steps, kRingReduceScatterOfTeam, team, all);
    std::vector<int> arrived; // by message: the step that receives its result
    for (int message = 0; message < tree.messages; ++message) {
        const BlockRange block{slice * tree.messages + message, 1};
        steps.set_channel(kUp);
        if (message >= tree.window) {
            steps.let_next_wait_for(arrived[static_cast<std::size_t>(message - tree.window)]);
        }
        steps.send(leaf, block);
        steps.set_channel(kDown);
        arrived.push_back(steps.recv(leaf, block));
    }
    steps.set_channel(kUp);
    add_rounds(steps, kRingAllgatherOfTeam, team, all);
    return std::move(steps).finish();
}

} // namespace

SwitchSteps::SwitchSteps(const SwitchTree &tree, int participant)
    : slices_(tree.ranks_per_node), messages_(tree.messages), ports_(tree.leaf_count),
      is_spine_(tree.leaf_count > 1 && participant == tree.spine()), first_leaf_(tree.leaf(0))
{
    if (is_spine_) {
        return;
    }
    above_ = tree.leaf_count > 1 ? tree.spine() : -1;
    for (int node = 0; node < tree.nodes(); ++node) {
        if (tree.leaf(tree.leaf_of[static_cast<std::size_t>(node)]) == participant) {
            nodes_.push_back(node);
        }
    }
    ports_ = static_cast<int>(nodes_.size());
}

int SwitchSteps::peer(int port, int slice) const noexcept
{
    return is_spine_ ? first_leaf_ + port
                     : nodes_[static_cast<std::size_t>(port)] * slices_ + slice;
}

SwitchSteps::LazyStep SwitchSteps::at(std::int64_t index) const noexcept
{
    const auto message = static_cast<int>(index / steps_per_round());
    const auto within = static_cast<int>(index % steps_per_round());
    const int slice = within / steps_per_message(), place = within % steps_per_message();
    LazyStep lazy{.step = {.kind = StepKind::kRecv,
                           .peer = above_,
                           .blocks = {slice * messages_ + message, 1},
                           .from_input = false,
                           .after_first = 0,
                           .after_count = 0,
                           .channel = kUp},
                  .after = index - 1};
    Step &step = lazy.step;
    const int first_down = ports_ + (above_ < 0 ? 0 : 2);
    if (place < ports_) { // the first port's part is taken as it is, the others' are added
        step.peer = peer(place, slice);
        step.from_input = place == 0;
        if (place == 0) {
            lazy.after = -1;
        } else {
            step.kind = StepKind::kRecvReduce;
            step.local_first = true;
        }
    } else if (place >= first_down) { // all of them wait for the sum, not for each other
        step.kind = StepKind::kSend;
        step.peer = peer(place - first_down, slice);
        step.channel = kDown;
        lazy.after = index - place + first_down - 1;
    } else if (place == ports_) {
        step.kind = StepKind::kSend;
    } else {
        step.channel = kDown;
    }
    return lazy;
}

Schedule build_in_network(const SwitchTree &tree, int participant)
{
    if (participant < tree.ranks()) {
        return build_rank(tree, participant);
    }
    const SwitchSteps steps(tree, participant);
    Schedule schedule{
        .block_count = tree.block_count(), .steps = {}, .after = {}, .channel_count = kChannels};
    for (std::int64_t index = 0; index < steps.count(); ++index) {
        auto [step, after] = steps.at(index);
        step.after_first = static_cast<int>(schedule.after.size());
        if (after >= 0) {
            step.after_count = 1;
            schedule.after.push_back(static_cast<int>(after));
        }
        schedule.steps.push_back(step);
    }
    return schedule;
}

} // namespace hetcoll
