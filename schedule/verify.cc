#include "schedule/verify.h"

#include "base/slots.h"
#include "schedule/print.h"
#include "schedule/replay.h"

#include <algorithm>
#include <limits>
#include <string>
#include <tuple>

namespace hetcoll {
namespace {

constexpr int kNone = -1;

// "rank 1, step 3 (send block 2 to rank 0)": how every message begins.
std::string name_step(int rank, const Schedule &schedule, int index)
{
    return "rank " + std::to_string(rank) + ", step " + std::to_string(index) + " (" +
           describe(schedule.steps[index]) + ")";
}

// The requirements of a fused step on the steps that it goes with.
bool goes_with_previous(const Schedule &schedule, int index)
{
    const Step &step = schedule.steps[index];
    int other = index;
    do {
        if (--other < 0) {
            return false;
        }
        const Step &before = schedule.steps[other];
        if (before.kind != step.kind || before.together != step.together ||
            before.blocks != step.blocks || before.channel != step.channel ||
            before.peer == step.peer || before.local_first) {
            return false;
        }
    } while (schedule.steps[other].fused);
    const bool may_send = step.together && step.kind == StepKind::kSend;
    return (may_send || step.kind == StepKind::kRecvReduce) && !step.local_first;
}

// Receives that go together have a slot each at the same time.
bool has_too_few_slots(const Schedule &schedule, int index)
{
    const Step &step = schedule.steps[index];
    if (!step.together || step.kind == StepKind::kSend) {
        return false;
    }
    const int channels = channels_with_slots(schedule.channel_count, schedule.channels_at_once);
    const auto first = schedule.steps.begin() + index;
    const auto end = std::find_if(first + 1, schedule.steps.end(),
                                  [](const Step &other) { return !other.fused; });
    return end - first > slots_of_channel(slots_for(channels), channels);
}

// Each field of each step alone.
Status check_steps(int rank, int size, const Schedule &schedule)
{
    const auto fail = [&](int index, const std::string &why) {
        return error(Errc::kInvalid, "%s: %s", name_step(rank, schedule, index).c_str(),
                     why.c_str());
    };
    for (int index = 0; index < static_cast<int>(schedule.steps.size()); ++index) {
        const Step &step = schedule.steps[index];
        if (step.channel >= schedule.channel_count) {
            return fail(index, "the schedule has " + std::to_string(schedule.channel_count) +
                                   " channels, " + std::to_string(step.channel) +
                                   " is not among them");
        }
        if (step.fused && !goes_with_previous(schedule, index)) {
            return fail(index, "is fused, but not with receive-and-reduces of the same blocks and "
                               "channel from other peers right before it");
        }
        if (step.together && step.kind == StepKind::kRecv) {
            return fail(index, "a receive that reduces nothing goes together with others");
        }
        if (has_too_few_slots(schedule, index)) {
            return fail(index, "goes together with more receives than its channel has slots");
        }
        if (step.peer < 0 || step.peer >= size || step.peer == rank) {
            return fail(index, "the peer is not another of the " + std::to_string(size) + " ranks");
        }
        const BlockRange blocks = step.blocks;
        if (blocks.first < 0 || blocks.count < 1 || blocks.first > schedule.block_count ||
            blocks.count > schedule.block_count - blocks.first) {
            return fail(index, "the schedule has " + std::to_string(schedule.block_count) +
                                   " blocks, these are not among them");
        }
        const int after_size = static_cast<int>(schedule.after.size());
        if (step.after_first < 0 || step.after_count < 0 || step.after_first > after_size ||
            step.after_count > after_size - step.after_first) {
            return fail(index, "its list of steps to wait for is not within Schedule::after");
        }
        for (const int before : schedule.after_of(step)) {
            if (before < 0 || before >= index) {
                return fail(index, "waits for step " + std::to_string(before) +
                                       ", which is not an earlier one");
            }
            if (schedule.channels_at_once > 0 && schedule.steps[before].channel > step.channel) {
                return fail(index, "waits for step " + std::to_string(before) +
                                       " of a later channel, which may wait for this one's turn");
            }
        }
    }
    return Status();
}

// The history of one block on one rank: the steps that touch it, in list order.
class BlockHistory {
public:
    [[nodiscard]] int last_writer() const noexcept { return last_writer_; }

    // Adds a step. Returns the earlier step that it races, or kNone.
    int add(const Schedule &schedule, int index)
    {
        const Step &step = schedule.steps[index];
        const bool writes = step.kind != StepKind::kSend;
        // Everything that has completed when this step begins. Closed under `after`, because the
        // steps in the list have such a set themselves.
        std::vector<bool> done(touches_.size());
        for (const int before : schedule.after_of(step)) {
            const auto it = std::lower_bound(
                touches_.begin(), touches_.end(), before,
                [](const Touch &touch, int wanted) { return touch.step < wanted; });
            if (it == touches_.end() || it->step != before) {
                continue; // does not touch this block, so it orders nothing on it
            }
            done[it - touches_.begin()] = true;
            for (std::size_t i = 0; i < it->done.size(); ++i) {
                done[i] = done[i] || it->done[i];
            }
        }
        int race = kNone;
        for (std::size_t i = 0; i < touches_.size() && race == kNone; ++i) {
            if (!done[i] && (writes || touches_[i].writes)) {
                race = touches_[i].step;
            }
        }
        touches_.push_back({index, writes, std::move(done)});
        last_writer_ = writes ? index : last_writer_;
        return race;
    }

private:
    struct Touch {
        int step;
        bool writes;
        std::vector<bool> done; // which of the touches before it have completed when it begins
    };
    std::vector<Touch> touches_;
    int last_writer_ = kNone;
};

// Races and from_input.
Status check_order(int rank, const Schedule &schedule)
{
    std::vector<BlockHistory> history(schedule.block_count);
    for (int index = 0; index < static_cast<int>(schedule.steps.size()); ++index) {
        const Step &step = schedule.steps[index];
        for (int block = step.blocks.first; block < step.blocks.first + step.blocks.count;
             ++block) {
            const int writer = history[block].last_writer();
            if (step.from_input != (writer == kNone)) {
                const std::string truth =
                    writer == kNone ? "no earlier step has written it"
                                    : "step " + std::to_string(writer) + " has written it";
                return error(Errc::kInvalid, "%s: takes block %d from the %s, but %s",
                             name_step(rank, schedule, index).c_str(), block,
                             step.from_input ? "input" : "result", truth.c_str());
            }
            const int race = history[block].add(schedule, index);
            if (race != kNone) {
                return error(Errc::kInvalid,
                             "%s races step %d (%s) on block %d: nothing orders them",
                             name_step(rank, schedule, index).c_str(), race,
                             describe(schedule.steps[race]).c_str(), block);
            }
        }
    }
    return Status();
}

struct Message {
    int from, to; // ranks
    int channel;
    int step; // at the sender for a send, at the receiver for a receive
};

struct Messages {
    std::vector<Message> sends, receives; // by sender and receiver, then in list order
};

Messages collect_messages(std::span<const Schedule> schedules)
{
    Messages all;
    for (int rank = 0; rank < static_cast<int>(schedules.size()); ++rank) {
        const Schedule &schedule = schedules[rank];
        for (int index = 0; index < static_cast<int>(schedule.steps.size()); ++index) {
            const Step &step = schedule.steps[index];
            if (step.kind == StepKind::kSend) {
                all.sends.push_back({rank, step.peer, step.channel, index});
            } else {
                all.receives.push_back({step.peer, rank, step.channel, index});
            }
        }
    }
    const auto by_pair = [](const Message &a, const Message &b) {
        return std::tie(a.from, a.to, a.channel) < std::tie(b.from, b.to, b.channel);
    };
    std::stable_sort(all.sends.begin(), all.sends.end(), by_pair);
    std::stable_sort(all.receives.begin(), all.receives.end(), by_pair);
    return all;
}

// Pairs sends with receives as the executor will: the i-th with the i-th between two ranks, in each
// channel.
Status match_messages(std::span<const Schedule> schedules, StepMatches &matches)
{
    for (const Schedule &schedule : schedules) {
        matches.emplace_back(schedule.steps.size(), kNone);
    }
    const auto [sends, receives] = collect_messages(schedules);
    const auto send_name = [&](const Message &send) {
        return name_step(send.from, schedules[send.from], send.step);
    };
    const auto receive_name = [&](const Message &receive) {
        return name_step(receive.to, schedules[receive.to], receive.step);
    };
    std::size_t s = 0, r = 0;
    while (s < sends.size() || r < receives.size()) {
        const auto pair_of = [](const std::vector<Message> &list, std::size_t i) {
            constexpr int kEnd = std::numeric_limits<int>::max();
            return i < list.size() ? std::tuple(list[i].from, list[i].to, list[i].channel)
                                   : std::tuple(kEnd, kEnd, kEnd);
        };
        if (pair_of(sends, s) < pair_of(receives, r)) {
            return error(Errc::kInvalid, "%s: rank %d has no receive for it",
                         send_name(sends[s]).c_str(), sends[s].to);
        }
        if (pair_of(receives, r) < pair_of(sends, s)) {
            return error(Errc::kInvalid, "%s: rank %d does not send it",
                         receive_name(receives[r]).c_str(), receives[r].from);
        }
        const Message &send = sends[s++], &receive = receives[r++];
        const Step &sent = schedules[send.from].steps[send.step];
        const Step &taken = schedules[receive.to].steps[receive.step];
        if (sent.blocks != taken.blocks || sent.together != taken.together) {
            return error(Errc::kInvalid, "%s meets %s: %s", send_name(send).c_str(),
                         receive_name(receive).c_str(),
                         sent.blocks != taken.blocks
                             ? "not the same blocks"
                             : "only one of them says that it goes together with others");
        }
        matches[send.from][send.step] = receive.step;
        matches[receive.to][receive.step] = send.step;
    }
    return Status();
}

// The contract's requirements on the schedules as a whole.
Status check_contract(std::span<const Schedule> schedules, const Contract &contract)
{
    const int participants = static_cast<int>(schedules.size());
    if (contract.ranks < 0 || contract.ranks > participants) {
        return error(Errc::kInvalid, "the contract names %d ranks, but there are %d schedules",
                     contract.ranks, participants);
    }
    const int size = contract.ranks > 0 ? contract.ranks : participants;
    const auto says = [&](Holders holders) {
        return contract.first == holders || contract.last == holders;
    };
    if (size > 0 && says(Holders::kRoot) && (contract.root < 0 || contract.root >= size)) {
        return error(Errc::kInvalid, "the root, rank %d, is not among the %d ranks", contract.root,
                     size);
    }
    if (size > 0 && says(Holders::kOwner) && schedules[0].block_count % size != 0) {
        return error(Errc::kInvalid,
                     "the number of blocks, %d, is not a multiple of the %d ranks: they have no "
                     "equal shares",
                     schedules[0].block_count, size);
    }
    return Status();
}

// Requires channels that exist.
Status check_adapters(std::span<const Schedule> schedules)
{
    std::vector<const Step *> first(static_cast<std::size_t>(schedules[0].channel_count));
    for (int rank = 0; rank < static_cast<int>(schedules.size()); ++rank) {
        const Schedule &schedule = schedules[rank];
        for (int index = 0; index < static_cast<int>(schedule.steps.size()); ++index) {
            const Step &step = schedule.steps[index];
            const Step *&known = first[step.channel];
            known = known == nullptr ? &step : known;
            if (step.by_adapter && !step.by_message) {
                return error(Errc::kInvalid, "%s: goes through adapters, but not by message",
                             name_step(rank, schedule, index).c_str());
            }
            if (step.by_adapter != known->by_adapter) {
                return error(Errc::kInvalid,
                             "%s: goes through %s, but another step of channel %d does not",
                             name_step(rank, schedule, index).c_str(),
                             step.by_adapter ? "adapters" : "mapped or host memory", step.channel);
            }
        }
    }
    return Status();
}

} // namespace

Status verify_schedules(std::span<const Schedule> schedules, const Contract &contract)
{
    if (Status status = check_contract(schedules, contract); !status.ok()) {
        return status;
    }
    const int size = static_cast<int>(schedules.size());
    for (int rank = 0; rank < size; ++rank) {
        const Schedule &schedule = schedules[rank];
        if (schedule.block_count < 1 || schedule.block_count != schedules[0].block_count) {
            return error(Errc::kInvalid, "rank %d has %d blocks, rank 0 has %d", rank,
                         schedule.block_count, schedules[0].block_count);
        }
        if (schedule.channel_count < 1 || schedule.channel_count != schedules[0].channel_count) {
            return error(Errc::kInvalid, "rank %d has %d channels, rank 0 has %d", rank,
                         schedule.channel_count, schedules[0].channel_count);
        }
        if (schedule.channels_at_once != schedules[0].channels_at_once) {
            return error(Errc::kInvalid,
                         "rank %d has messages in %d channels at the same time, rank 0 in %d", rank,
                         schedule.channels_at_once, schedules[0].channels_at_once);
        }
        if (Status status = check_steps(rank, size, schedule); !status.ok()) {
            return status;
        }
        if (Status status = check_order(rank, schedule); !status.ok()) {
            return status;
        }
    }
    if (Status status = size > 0 ? check_adapters(schedules) : Status(); !status.ok()) {
        return status;
    }
    StepMatches matches;
    if (Status status = match_messages(schedules, matches); !status.ok()) {
        return status;
    }
    return replay_schedules(schedules, matches, contract);
}

} // namespace hetcoll
