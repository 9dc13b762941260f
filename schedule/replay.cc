#include "schedule/replay.h"

#include "schedule/print.h"
#include "schedule/replay_results.h"

#include <algorithm>
#include <map>
#include <string>

namespace hetcoll {
namespace {

constexpr int kNone = -1;

struct ChannelState {
    std::vector<int> sends, receives; // steps of one channel in list order
    std::size_t next_send = 0, next_receive = 0;
    // For the receive at next_receive, and those that go together with it, by step.
    std::map<int, std::vector<Expression>> arrived;
};

struct Rank {
    std::vector<ChannelState> channels; // by channel
    std::vector<bool> begun;            // by step: its first chunk has been dealt with
    std::vector<bool> flows;    // by step: it has begun and can go on to its end, see end_steps()
    std::vector<bool> complete; // by step
    std::vector<bool> offered;  // by step: a send whose blocks may be read by a pull
};

// A kRecvReduce and the fused steps after it: one by one, as messages arrive, or as one kernel that
// reads the memory of all peers.
enum class Fused : bool { kMessages, kPulls };

// Steps that go together, or one alone: at the head of a list.
struct Head {
    int rank;
    ChannelState *channel_state;
    bool sends;
    int first, size;
};

class Replay {
public:
    Replay(std::span<const Schedule> schedules, const StepMatches &matches,
           const Contract &contract, Fused fused);

    Status run();
    Status check_results()
    {
        return hetcoll::check_results(schedules_, contract_, expressions_, results_);
    }

private:
    [[nodiscard]] const Step &step_of(int rank, int index) const
    {
        return schedules_[rank].steps[index];
    }
    [[nodiscard]] bool may_follow(int rank, int index, int before) const;
    [[nodiscard]] bool may_begin(int rank, int index) const;
    [[nodiscard]] bool has_turn(int rank, int channel, bool sends) const;
    [[nodiscard]] int group_size(int rank, int index) const;
    [[nodiscard]] bool is_pull(int rank, int index) const;
    [[nodiscard]] bool may_arrive(int rank, int send) const;
    bool begin_sends(int rank, int channel);
    bool begin_receives(int rank, int channel);
    bool pull(int rank, ChannelState &channel_state, int first, int size);
    void reduce(int rank, int first, int size);
    [[nodiscard]] Expression operand(int rank, int index, int block) const;
    [[nodiscard]] std::vector<Head> begun_heads();
    [[nodiscard]] bool can_flow(const Head &head) const;
    bool end_steps();
    Status deadlock() const;

    std::span<const Schedule> schedules_;
    const StepMatches &matches_;
    const Contract &contract_;
    Fused fused_;
    Expressions expressions_;
    std::vector<Rank> ranks_;
    std::vector<RankResult> results_;
};

Replay::Replay(std::span<const Schedule> schedules, const StepMatches &matches,
               const Contract &contract, Fused fused)
    : schedules_(schedules), matches_(matches), contract_(contract), fused_(fused),
      expressions_(static_cast<int>(schedules.size())), ranks_(schedules.size()),
      results_(schedules.size())
{
    for (std::size_t rank = 0; rank < schedules.size(); ++rank) {
        Rank &state = ranks_[rank];
        for (std::vector<bool> *steps :
             {&state.begun, &state.flows, &state.complete, &state.offered}) {
            steps->resize(schedules[rank].steps.size());
        }
        results_[rank].expression.resize(schedules[rank].block_count, kUnwritten);
        results_[rank].writer.resize(schedules[rank].block_count);
        state.channels.resize(schedules[rank].channel_count);
        int index = 0;
        for (const Step &step : schedules[rank].steps) {
            ChannelState &channel_state = state.channels[step.channel];
            (step.kind == StepKind::kSend ? channel_state.sends : channel_state.receives)
                .push_back(index++);
        }
    }
}

// Chunk by chunk a step may follow one that has begun if that is not behind it in the vector.
bool Replay::may_follow(int rank, int index, int before) const
{
    const Rank &self = ranks_[rank];
    const BlockRange mine = step_of(rank, index).blocks, theirs = step_of(rank, before).blocks;
    const bool is_ahead = mine.first <= theirs.first && theirs.first < mine.first + mine.count;
    return self.complete[before] || (self.begun[before] && is_ahead);
}

bool Replay::may_begin(int rank, int index) const
{
    const auto after = schedules_[rank].after_of(step_of(rank, index));
    return std::all_of(after.begin(), after.end(),
                       [&](int before) { return may_follow(rank, index, before); });
}

// Channels that share memory take turns, see Schedule::channels_at_once.
bool Replay::has_turn(int rank, int channel, bool sends) const
{
    const int at_once = schedules_[rank].channels_at_once;
    if (at_once == 0 || channel < at_once) {
        return true;
    }
    const ChannelState &before = ranks_[rank].channels[channel - at_once];
    return sends ? before.next_send == before.sends.size()
                 : before.next_receive == before.receives.size();
}

// How many steps from `index` on are carried out as one.
int Replay::group_size(int rank, int index) const
{
    const std::vector<Step> &steps = schedules_[rank].steps;
    const int count = static_cast<int>(steps.size());
    int end = index + 1;
    while ((fused_ == Fused::kPulls || steps[index].together) && end < count && steps[end].fused) {
        ++end;
    }
    return end - index;
}

// Whether a receive reads its peer's memory, with others.
bool Replay::is_pull(int rank, int index) const
{
    const Step &step = step_of(rank, index);
    return fused_ == Fused::kPulls && !step.together && (step.fused || group_size(rank, index) > 1);
}

// Whether the message's first chunk has a place at the peer: its receive is the one at the head of
// the list, or goes together with that one, and may overwrite
// all that it does not receive next to the vector.
bool Replay::may_arrive(int rank, int send) const
{
    const Step &step = step_of(rank, send);
    const int receive = matches_[rank][send];
    const ChannelState &channel_state = ranks_[step.peer].channels[step.channel];
    if (channel_state.next_receive == channel_state.receives.size() ||
        !has_turn(step.peer, step.channel, false)) {
        return false;
    }
    const int head = channel_state.receives[channel_state.next_receive];
    const bool is_posted = head <= receive && receive < head + group_size(step.peer, head);
    return is_posted && (step_of(step.peer, receive).kind == StepKind::kRecvReduce ||
                         may_begin(step.peer, receive));
}

// Lets the sends at the head of the rank's list begin. One to a pull only offers its blocks. True
// if they did.
bool Replay::begin_sends(int rank, int channel)
{
    Rank &self = ranks_[rank];
    ChannelState &channel_state = self.channels[channel];
    if (channel_state.next_send == channel_state.sends.size() || !has_turn(rank, channel, true)) {
        return false;
    }
    const int first = channel_state.sends[channel_state.next_send], size = group_size(rank, first);
    if (is_pull(step_of(rank, first).peer, matches_[rank][first])) {
        const auto after = schedules_[rank].after_of(step_of(rank, first));
        if (!std::all_of(after.begin(), after.end(), [&](int b) { return self.complete[b]; })) {
            return false;
        }
        self.offered[first] = true;
        ++channel_state.next_send;
        return true;
    }
    for (int index = first; index < first + size; ++index) {
        if (self.begun[index] || !may_begin(rank, index) || !may_arrive(rank, index)) {
            return false;
        }
    }
    for (int index = first; index < first + size; ++index) {
        const Step &send = step_of(rank, index);
        std::vector<Expression> &arrived =
            ranks_[send.peer].channels[channel].arrived[matches_[rank][index]];
        for (int i = 0; i < send.blocks.count; ++i) {
            arrived.push_back(send.from_input ? rank
                                              : results_[rank].expression[send.blocks.first + i]);
        }
        self.begun[index] = true;
    }
    return true;
}

// Lets the receives at the head of the rank's list begin if all their messages have. True if they
// did.
bool Replay::begin_receives(int rank, int channel)
{
    Rank &self = ranks_[rank];
    ChannelState &channel_state = self.channels[channel];
    if (channel_state.next_receive == channel_state.receives.size()) {
        return false;
    }
    const int first = channel_state.receives[channel_state.next_receive],
              size = group_size(rank, first);
    if (is_pull(rank, first)) {
        return pull(rank, channel_state, first, size);
    }
    if (self.begun[first] || static_cast<int>(channel_state.arrived.size()) < size) {
        return false;
    }
    for (int index = first; index < first + size; ++index) {
        for (const int before : schedules_[rank].after_of(step_of(rank, index))) {
            if (before < first && !may_follow(rank, index, before)) {
                return false;
            }
        }
    }
    reduce(rank, first, size);
    std::fill_n(self.begun.begin() + first, size, true);
    return true;
}

// Lets the pull at the head of the rank's list end if all its peers offer their blocks. True if it
// did.
bool Replay::pull(int rank, ChannelState &channel_state, int first, int size)
{
    Rank &self = ranks_[rank];
    for (int index = first; index < first + size; ++index) {
        for (const int before : schedules_[rank].after_of(step_of(rank, index))) {
            if (before < first && !self.complete[before]) {
                return false;
            }
        }
        if (!ranks_[step_of(rank, index).peer].offered[matches_[rank][index]]) {
            return false;
        }
    }
    reduce(rank, first, size);
    for (int index = first; index < first + size; ++index) {
        self.complete[index] = true;
        ranks_[step_of(rank, index).peer].complete[matches_[rank][index]] = true;
    }
    channel_state.next_receive += static_cast<std::size_t>(size);
    return true;
}

// The results of these receives: the message, or op() of all operands in the order of the
// ranks.
void Replay::reduce(int rank, int first, int size)
{
    RankResult &self = results_[rank];
    const Step &head = step_of(rank, first);
    for (int block = head.blocks.first; block < head.blocks.first + head.blocks.count; ++block) {
        std::map<int, Expression> operands; // by rank
        if (head.kind == StepKind::kRecvReduce) {
            operands[head.local_first ? kNone : rank] =
                head.from_input ? rank : self.expression[block];
        }
        for (int index = first; index < first + size; ++index) {
            operands[step_of(rank, index).peer] = operand(rank, index, block);
        }
        Expression sum = kUnwritten;
        for (const auto &[from, operand] : operands) {
            sum = sum == kUnwritten ? operand : expressions_.combine(sum, operand);
        }
        self.expression[block] = sum;
        self.writer[block] = first + size - 1;
    }
}

// The data of a receive: from its message, or from its peer's memory.
Expression Replay::operand(int rank, int index, int block) const
{
    const Step &step = step_of(rank, index);
    if (!is_pull(rank, index)) {
        const ChannelState &channel_state = ranks_[rank].channels[step.channel];
        return channel_state.arrived.at(index)[static_cast<std::size_t>(block - step.blocks.first)];
    }
    const bool from_input = step_of(step.peer, matches_[rank][index]).from_input;
    return from_input ? step.peer : results_[step.peer].expression[block];
}

// The steps that have begun, but have not ended.
std::vector<Head> Replay::begun_heads()
{
    std::vector<Head> heads;
    for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) {
        for (ChannelState &channel_state : ranks_[rank].channels) {
            for (const bool sends : {true, false}) {
                const std::vector<int> &list = sends ? channel_state.sends : channel_state.receives;
                const std::size_t next =
                    sends ? channel_state.next_send : channel_state.next_receive;
                if (next < list.size() && ranks_[rank].begun[list[next]]) {
                    heads.push_back(
                        {rank, &channel_state, sends, list[next], group_size(rank, list[next])});
                }
            }
        }
    }
    return heads;
}

// Whether nothing that they wait for with their next chunk stands still.
bool Replay::can_flow(const Head &head) const
{
    const Rank &self = ranks_[head.rank];
    for (int index = head.first; index < head.first + head.size; ++index) {
        if (!ranks_[step_of(head.rank, index).peer].flows[matches_[head.rank][index]]) {
            return false;
        }
        for (const int before : schedules_[head.rank].after_of(step_of(head.rank, index))) {
            if (before < head.first && !self.complete[before] && !self.flows[before]) {
                return false;
            }
        }
    }
    return true;
}

// A vector may have any number of chunks. A step that has begun ends if its further chunks can go
// as the first one did, in the same order: each of the steps that it waits for is complete, or has
// begun and can go on itself. If not, it stays at the head of its list, for its chunks have all the
// slots. True if any has ended.
bool Replay::end_steps()
{
    std::vector<Head> heads = begun_heads();
    const auto set_flows = [this](const Head &head, bool flows) {
        std::fill_n(ranks_[head.rank].flows.begin() + head.first, head.size, flows);
    };
    for (const Head &head : heads) {
        set_flows(head, true);
    }
    for (bool fewer = true; fewer;) {
        fewer = std::erase_if(heads, [&](const Head &head) {
                    const bool stands = !can_flow(head);
                    if (stands) {
                        set_flows(head, false);
                    }
                    return stands;
                }) > 0;
    }
    for (const Head &head : heads) {
        set_flows(head, false);
        std::fill_n(ranks_[head.rank].complete.begin() + head.first, head.size, true);
        std::size_t &next =
            head.sends ? head.channel_state->next_send : head.channel_state->next_receive;
        next += static_cast<std::size_t>(head.size);
        if (!head.sends) {
            head.channel_state->arrived.clear();
        }
    }
    return !heads.empty();
}

// A possible step stays possible until it happens, so the order of trying does not matter.
Status Replay::run()
{
    for (bool moved = true; moved;) {
        moved = false;
        for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) {
            for (int channel = 0; channel < schedules_[rank].channel_count; ++channel) {
                while (begin_sends(rank, channel) || begin_receives(rank, channel)) {
                    moved = true;
                }
            }
        }
        moved = end_steps() || moved;
    }
    return deadlock();
}

// Success if every step has completed.
Status Replay::deadlock() const
{
    constexpr int kMostNamed = 3;
    std::string stuck;
    int named = 0;
    for (int rank = 0; rank < static_cast<int>(ranks_.size()) && named < kMostNamed; ++rank) {
        const Rank &self = ranks_[rank];
        int index = static_cast<int>(self.complete.size());
        for (const ChannelState &channel_state : self.channels) {
            if (channel_state.next_send < channel_state.sends.size()) {
                index = std::min(index, channel_state.sends[channel_state.next_send]);
            }
            if (channel_state.next_receive < channel_state.receives.size()) {
                index = std::min(index, channel_state.receives[channel_state.next_receive]);
            }
        }
        if (index < static_cast<int>(self.complete.size())) {
            stuck += (named++ == 0 ? "rank " : ", rank ") + std::to_string(rank) + " in step " +
                     std::to_string(index) + " (" + describe(step_of(rank, index)) + ")";
        }
    }
    const char *when = fused_ == Fused::kPulls ? " of steps that are fused" : "";
    return named == 0 ? Status() : error(Errc::kInvalid, "deadlock%s: %s", when, stuck.c_str());
}

} // namespace

Status replay_schedules(std::span<const Schedule> schedules, const StepMatches &matches,
                        const Contract &contract)
{
    const auto has_fused = [](const Schedule &schedule) {
        return std::any_of(schedule.steps.begin(), schedule.steps.end(),
                           [](const Step &step) { return step.fused; });
    };
    const bool both = std::any_of(schedules.begin(), schedules.end(), has_fused);
    for (const Fused fused : {Fused::kMessages, Fused::kPulls}) {
        Replay replay(schedules, matches, contract, fused);
        Status status = replay.run();
        if (status.ok()) {
            status = replay.check_results();
        }
        if (!status.ok() || !both) {
            return status;
        }
    }
    return Status();
}

} // namespace hetcoll
