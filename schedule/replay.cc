#include "schedule/replay.h"

#include "schedule/print.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace hetcoll {
namespace {

// What a block holds: a rank's part, or op(lhs, rhs) of two such expressions. Equal expressions
// have equal numbers; operands have smaller numbers than what is made of them.
using Expression = int;
constexpr Expression kUnwritten = -1;

constexpr int kNone = -1;

class Expressions {
public:
    // The part of rank r is expression r.
    explicit Expressions(int ranks) : ranks_(ranks) {}

    Expression combine(Expression lhs, Expression rhs)
    {
        const auto [it, is_new] =
            known_.try_emplace(std::pair(lhs, rhs), ranks_ + operands_.size());
        if (is_new) {
            operands_.emplace_back(lhs, rhs);
        }
        return it->second;
    }

    // How often each rank's part is in an expression; 2 stands for any larger number.
    [[nodiscard]] std::vector<int> count_parts(Expression expression) const
    {
        std::vector<int> times(ranks_ + operands_.size(), 0);
        times[expression] = 1;
        for (Expression e = static_cast<Expression>(times.size()) - 1; e >= ranks_; --e) {
            const auto [lhs, rhs] = operands_[e - ranks_];
            times[lhs] = std::min(2, times[lhs] + times[e]);
            times[rhs] = std::min(2, times[rhs] + times[e]);
        }
        times.resize(ranks_);
        return times;
    }

private:
    int ranks_;
    std::vector<std::pair<Expression, Expression>> operands_; // of expression ranks_ + index
    std::map<std::pair<Expression, Expression>, Expression> known_;
};

struct Lane {
    std::vector<int> sends, receives; // steps of one channel in list order
    std::size_t next_send = 0, next_receive = 0;
    // For the receive at next_receive, and those that go together with it, by step.
    std::map<int, std::vector<Expression>> arrived;
};

struct Rank {
    std::vector<Lane> lanes;        // by channel
    std::vector<bool> complete;     // by step
    std::vector<bool> offered;      // by step: a send whose blocks may be read by a group
    std::vector<Expression> result; // by block
    std::vector<int> last_writer;   // by block
};

// A kRecvReduce and the fused steps after it: one by one, as messages arrive, or as one kernel that
// reads the memory of all peers.
enum class Groups : bool { kApart, kTogether };

class Replay {
public:
    Replay(std::span<const Schedule> schedules, const StepMatches &matches,
           const Contract &contract, Groups groups);

    Status run();
    Status check_results();

private:
    [[nodiscard]] const Step &step_of(int rank, int index) const
    {
        return schedules_[rank].steps[index];
    }
    // The participants that are not switches.
    [[nodiscard]] int rank_count() const
    {
        return contract_.ranks > 0 ? contract_.ranks : static_cast<int>(ranks_.size());
    }
    [[nodiscard]] bool may_begin(int rank, int index) const;
    [[nodiscard]] bool has_turn(int rank, int channel, bool sends) const;
    [[nodiscard]] int group_size(int rank, int index) const;
    [[nodiscard]] bool is_posted(int rank, int channel, int receive) const;
    bool try_send(int rank, int channel);
    bool try_receive(int rank, int channel);
    bool try_group(int rank, Lane &lane, int size);
    [[nodiscard]] bool may_begin_group(int rank, const Lane &lane, int first, int size) const;
    [[nodiscard]] Expression operand(int rank, const Lane &lane, int index, int block) const;
    [[nodiscard]] std::string name_block(int rank, int block) const;
    Status deadlock() const;
    [[nodiscard]] bool holds(Holders holders, int rank, int block) const;
    [[nodiscard]] bool stays_right(int rank, int block) const;
    Status check_parts(int rank, int block) const;
    Status check_order(int rank, int block);
    Status check_block(int block);

    std::span<const Schedule> schedules_;
    const StepMatches &matches_;
    const Contract &contract_;
    Groups groups_;
    Expressions expressions_;
    std::vector<Rank> ranks_;
};

Replay::Replay(std::span<const Schedule> schedules, const StepMatches &matches,
               const Contract &contract, Groups groups)
    : schedules_(schedules), matches_(matches), contract_(contract), groups_(groups),
      expressions_(static_cast<int>(schedules.size())), ranks_(schedules.size())
{
    for (std::size_t rank = 0; rank < schedules.size(); ++rank) {
        Rank &state = ranks_[rank];
        state.complete.resize(schedules[rank].steps.size());
        state.offered.resize(schedules[rank].steps.size());
        state.result.resize(schedules[rank].block_count, kUnwritten);
        state.last_writer.resize(schedules[rank].block_count);
        state.lanes.resize(schedules[rank].channel_count);
        int index = 0;
        for (const Step &step : schedules[rank].steps) {
            Lane &lane = state.lanes[step.channel];
            (step.kind == StepKind::kSend ? lane.sends : lane.receives).push_back(index++);
        }
    }
}

bool Replay::may_begin(int rank, int index) const
{
    for (const int before : schedules_[rank].after_of(step_of(rank, index))) {
        if (!ranks_[rank].complete[before]) {
            return false;
        }
    }
    return true;
}

// Channels that share memory take turns, see Schedule::channels_at_once.
bool Replay::has_turn(int rank, int channel, bool sends) const
{
    const int at_once = schedules_[rank].channels_at_once;
    if (at_once == 0 || channel < at_once) {
        return true;
    }
    const Lane &before = ranks_[rank].lanes[channel - at_once];
    return sends ? before.next_send == before.sends.size()
                 : before.next_receive == before.receives.size();
}

// How many steps from `index` on are carried out as one.
int Replay::group_size(int rank, int index) const
{
    const std::vector<Step> &steps = schedules_[rank].steps;
    const int count = static_cast<int>(steps.size());
    int end = index + 1;
    while ((groups_ == Groups::kTogether || steps[index].together) && end < count &&
           steps[end].fused) {
        ++end;
    }
    return end - index;
}

// Whether a message may come for the receive: it is the one at the head of the rank's list, or goes
// together with that one.
bool Replay::is_posted(int rank, int channel, int receive) const
{
    const Lane &lane = ranks_[rank].lanes[channel];
    if (lane.next_receive == lane.receives.size() || !has_turn(rank, channel, false)) {
        return false;
    }
    const int head = lane.receives[lane.next_receive];
    const int posted = step_of(rank, head).together ? group_size(rank, head) : 1;
    return head <= receive && receive < head + posted;
}

// Lets the send at the head of the rank's list end if its receive is at the head at the peer and
// has started. A send to a group only offers its blocks. True if it did.
bool Replay::try_send(int rank, int channel)
{
    Rank &self = ranks_[rank];
    Lane &lane = self.lanes[channel];
    if (lane.next_send == lane.sends.size() || !may_begin(rank, lane.sends[lane.next_send]) ||
        !has_turn(rank, channel, true)) {
        return false;
    }
    const int index = lane.sends[lane.next_send];
    const Step &send = step_of(rank, index);
    Lane &peer = ranks_[send.peer].lanes[channel];
    const int receive = matches_[rank][index];
    if (groups_ == Groups::kTogether && !step_of(send.peer, receive).together &&
        (step_of(send.peer, receive).fused || group_size(send.peer, receive) > 1)) {
        self.offered[index] = true;
        ++lane.next_send;
        return true;
    }
    if (!is_posted(send.peer, channel, receive)) {
        return false;
    }
    if (step_of(send.peer, receive).kind == StepKind::kRecv && !may_begin(send.peer, receive)) {
        return false;
    }
    std::vector<Expression> &arrived = peer.arrived[receive];
    for (int block = send.blocks.first; block < send.blocks.first + send.blocks.count; ++block) {
        arrived.push_back(send.from_input ? rank : self.result[block]);
    }
    self.complete[index] = true;
    ++lane.next_send;
    return true;
}

// Lets the receive at the head of the rank's list end if its message is there. True if it did.
bool Replay::try_receive(int rank, int channel)
{
    Rank &self = ranks_[rank];
    Lane &lane = self.lanes[channel];
    if (lane.next_receive < lane.receives.size()) {
        const int size = group_size(rank, lane.receives[lane.next_receive]);
        if (size > 1) {
            return try_group(rank, lane, size);
        }
    }
    if (lane.arrived.empty() || !may_begin(rank, lane.receives[lane.next_receive])) {
        return false;
    }
    const int index = lane.receives[lane.next_receive];
    const Step &step = step_of(rank, index);
    for (int i = 0; i < step.blocks.count; ++i) {
        const int block = step.blocks.first + i;
        Expression value = lane.arrived[index][i];
        if (step.kind == StepKind::kRecvReduce) {
            const Expression mine = step.from_input ? rank : self.result[block];
            value = step.peer < rank && !step.local_first ? expressions_.combine(value, mine)
                                                          : expressions_.combine(mine, value);
        }
        self.result[block] = value;
        self.last_writer[block] = index;
    }
    lane.arrived.clear();
    self.complete[index] = true;
    ++lane.next_receive;
    return true;
}

bool Replay::may_begin_group(int rank, const Lane &lane, int first, int size) const
{
    for (int index = first; index < first + size; ++index) {
        for (const int before : schedules_[rank].after_of(step_of(rank, index))) {
            if (before < first && !ranks_[rank].complete[before]) {
                return false;
            }
        }
        const bool is_there =
            step_of(rank, index).together
                ? lane.arrived.count(index) > 0
                : ranks_[step_of(rank, index).peer].offered[matches_[rank][index]];
        if (!is_there) {
            return false;
        }
    }
    return true;
}

// What a step of a group brings: in its message, or from its peer's memory.
Expression Replay::operand(int rank, const Lane &lane, int index, int block) const
{
    const Step &step = step_of(rank, index);
    if (step.together) {
        return lane.arrived.at(index)[static_cast<std::size_t>(block - step.blocks.first)];
    }
    const bool from_input = step_of(step.peer, matches_[rank][index]).from_input;
    return from_input ? step.peer : ranks_[step.peer].result[block];
}

// Lets the group at the head of the rank's list end if all its peers offer their blocks, or their
// messages have come. True if it did.
bool Replay::try_group(int rank, Lane &lane, int size)
{
    Rank &self = ranks_[rank];
    const int first = lane.receives[lane.next_receive];
    if (!may_begin_group(rank, lane, first, size)) {
        return false;
    }
    const BlockRange blocks = step_of(rank, first).blocks;
    for (int block = blocks.first; block < blocks.first + blocks.count; ++block) {
        std::map<int, Expression> operands; // by rank
        operands[rank] = step_of(rank, first).from_input ? rank : self.result[block];
        for (int index = first; index < first + size; ++index) {
            operands[step_of(rank, index).peer] = operand(rank, lane, index, block);
        }
        Expression sum = kUnwritten;
        for (const auto &[from, operand] : operands) {
            sum = sum == kUnwritten ? operand : expressions_.combine(sum, operand);
        }
        self.result[block] = sum;
        self.last_writer[block] = first + size - 1;
    }
    for (int index = first; index < first + size; ++index) {
        self.complete[index] = true;
        ranks_[step_of(rank, index).peer].complete[matches_[rank][index]] = true;
    }
    lane.arrived.clear();
    lane.next_receive += size;
    return true;
}

// What can happen stays possible until it happens, so the order of trying does not matter.
Status Replay::run()
{
    for (bool moved = true; moved;) {
        moved = false;
        for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) {
            for (int channel = 0; channel < schedules_[rank].channel_count; ++channel) {
                while (try_send(rank, channel) || try_receive(rank, channel)) {
                    moved = true;
                }
            }
        }
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
        for (const Lane &lane : self.lanes) {
            if (lane.next_send < lane.sends.size()) {
                index = std::min(index, lane.sends[lane.next_send]);
            }
            if (lane.next_receive < lane.receives.size()) {
                index = std::min(index, lane.receives[lane.next_receive]);
            }
        }
        if (index < static_cast<int>(self.complete.size())) {
            stuck += (named++ == 0 ? "rank " : ", rank ") + std::to_string(rank) + " in step " +
                     std::to_string(index) + " (" + describe(step_of(rank, index)) + ")";
        }
    }
    const char *when = groups_ == Groups::kTogether ? " of steps that are fused" : "";
    return named == 0 ? Status() : error(Errc::kInvalid, "deadlock%s: %s", when, stuck.c_str());
}

std::string Replay::name_block(int rank, int block) const
{
    const int writer = ranks_[rank].last_writer[block];
    return "rank " + std::to_string(rank) + ", block " + std::to_string(block) +
           ", last written by step " + std::to_string(writer) + " (" +
           describe(step_of(rank, writer)) + ")";
}

bool Replay::holds(Holders holders, int rank, int block) const
{
    const int ranks = rank_count();
    if (rank >= ranks) {
        return false;
    }
    switch (holders) {
    case Holders::kEveryRank: return true;
    case Holders::kOwner: return block / (schedules_[0].block_count / ranks) == rank;
    case Holders::kRoot: return rank == contract_.root;
    }
    return false;
}

// Whether what the rank holds at first is the sum already: nobody else has a part of it.
bool Replay::stays_right(int rank, int block) const
{
    const bool alone = contract_.first != Holders::kEveryRank || rank_count() == 1;
    return alone && holds(contract_.first, rank, block);
}

Status Replay::check_parts(int rank, int block) const
{
    const std::vector<int> times = expressions_.count_parts(ranks_[rank].result[block]);
    for (int part = 0; part < static_cast<int>(times.size()); ++part) {
        const bool belongs = holds(contract_.first, part, block);
        if (times[part] != (belongs ? 1 : 0)) {
            return error(Errc::kInvalid, "%s: the part of rank %d is in it%s",
                         name_block(rank, block).c_str(), part,
                         !belongs           ? ", which has none at first"
                         : times[part] == 0 ? " not at all"
                                            : " more than once");
        }
    }
    return Status();
}

Status Replay::check_order(int rank, int block)
{
    Expression fold = kNone;
    for (int part = 0; part < static_cast<int>(ranks_.size()); ++part) {
        if (holds(contract_.first, part, block)) {
            fold = fold == kNone ? part : expressions_.combine(fold, part);
        }
    }
    if (ranks_[rank].result[block] != fold) {
        return error(Errc::kInvalid, "%s: not the left fold of the parts in rank order",
                     name_block(rank, block).c_str());
    }
    return Status();
}

// Every rank that is to hold the block at the end has the sum, by the same expression.
Status Replay::check_block(int block)
{
    int first = kNone;
    for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) {
        if (!holds(contract_.last, rank, block)) {
            continue;
        }
        Expression &result = ranks_[rank].result[block];
        if (result == kUnwritten) {
            if (!stays_right(rank, block)) {
                return error(Errc::kInvalid, "rank %d never writes block %d: %s", rank, block,
                             holds(contract_.first, rank, block) ? "its result stays in the input"
                                                                 : "it has none at first");
            }
            result = rank;
        } else if (first == kNone || result != ranks_[first].result[block]) {
            if (Status status = check_parts(rank, block); !status.ok()) {
                return status;
            }
        }
        if (first == kNone) {
            first = rank;
        } else if (result != ranks_[first].result[block]) {
            return error(Errc::kInvalid,
                         "%s: computed by another expression than on rank %d, so the bits may "
                         "differ",
                         name_block(rank, block).c_str(), first);
        }
    }
    return contract_.in_rank_order && first != kNone ? check_order(first, block) : Status();
}

Status Replay::check_results()
{
    for (int block = 0; !schedules_.empty() && block < schedules_[0].block_count; ++block) {
        if (Status status = check_block(block); !status.ok()) {
            return status;
        }
    }
    return Status();
}

} // namespace

Status replay_schedules(std::span<const Schedule> schedules, const StepMatches &matches,
                        const Contract &contract)
{
    const auto has_groups = [](const Schedule &schedule) {
        return std::any_of(schedule.steps.begin(), schedule.steps.end(),
                           [](const Step &step) { return step.fused; });
    };
    const bool both = std::any_of(schedules.begin(), schedules.end(), has_groups);
    for (const Groups groups : {Groups::kApart, Groups::kTogether}) {
        Replay replay(schedules, matches, contract, groups);
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
