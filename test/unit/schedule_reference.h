// The smallest possible executor, for tests: all ranks in one process, in random order. It obeys
// `after` and nothing else, block by block: a step handles each of its blocks as soon as the steps
// that it waits for have handled the same block, as the real executor does with chunks.
#pragma once

#include "schedule/schedule.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

namespace hetcoll::test {

template <class T> using Vectors = std::vector<std::vector<T>>; // by rank, then element

// Whether a rank's input and result are one buffer, as with MPI_IN_PLACE.
enum class InPlace : bool { kNo, kYes };

template <class T, class Op> class ReferenceExecutor {
public:
    // `op(lower, higher)` gets the operand of the lower rank first. Elements of the result that no
    // step writes stay as `unwritten`.
    ReferenceExecutor(const std::vector<Schedule> &schedules, const Vectors<T> &input, Op op,
                      InPlace in_place, const T &unwritten)
        : schedules_(schedules), op_(op), input_(input), result_(input), in_place_(in_place),
          message_number_(schedules.size())
    {
        for (int rank = 0; rank < static_cast<int>(schedules.size()); ++rank) {
            std::fill(result_[rank].begin(), result_[rank].end(), unwritten);
            add_parts(rank);
        }
    }

    // Returns when no step can go on, whether all are done or not.
    const Vectors<T> &run(unsigned seed)
    {
        std::mt19937 random(seed);
        for (bool moved = true; moved;) {
            std::shuffle(waiting_.begin(), waiting_.end(), random);
            const auto done = [this](const Part &part) { return try_part(part); };
            moved = std::erase_if(waiting_, done) > 0;
        }
        return in_place_ == InPlace::kYes ? input_ : result_;
    }

private:
    struct Part { // one block of one step
        int rank, step, block;
        int message; // number of its message between these two ranks in this direction and channel
    };
    using Address =
        std::tuple<int, int, int, int, int>; // sender, receiver, channel, message, block

    void add_parts(int rank)
    {
        std::map<std::tuple<int, StepKind, int>, int> messages; // of a peer, way and channel
        int index = 0;
        for (const Step &step : schedules_[rank].steps) {
            const StepKind way = step.kind == StepKind::kSend ? StepKind::kSend : StepKind::kRecv;
            const int message = messages[{step.peer, way, step.channel}]++;
            for (int i = 0; i < step.blocks.count; ++i) {
                waiting_.push_back({rank, index, step.blocks.first + i, message});
            }
            message_number_[rank].push_back(message);
            ++index;
        }
    }

    bool is_ready(const Part &part) const
    {
        const Schedule &schedule = schedules_[part.rank];
        const auto dealt_with = [&](int before) {
            const BlockRange blocks = schedule.steps[before].blocks;
            const bool touches =
                blocks.first <= part.block && part.block < blocks.first + blocks.count;
            if (touches) {
                return dealt_with_.contains({part.rank, before, part.block});
            }
            const BlockRange mine = schedule.steps[part.step].blocks;
            if (blocks.first < mine.first + mine.count &&
                mine.first < blocks.first + blocks.count) {
                return true; // other blocks of this step wait for it
            }
            int left = blocks.count;
            for (int block = blocks.first; block < blocks.first + blocks.count; ++block) {
                left -= dealt_with_.contains({part.rank, before, block}) ? 1 : 0;
            }
            return left == 0;
        };
        const auto after = schedule.after_of(schedule.steps[part.step]);
        return std::all_of(after.begin(), after.end(), dealt_with);
    }

    Address message_of(const Part &part) const
    {
        const Step &step = schedules_[part.rank].steps[part.step];
        return {step.peer, part.rank, step.channel, part.message, part.block};
    }

    // The receives that go together with this one, the first of them, in the order of their ranks.
    std::vector<Part> group_of(const Part &part) const
    {
        const std::vector<Step> &steps = schedules_[part.rank].steps;
        std::vector<Part> group{part};
        for (int step = part.step + 1; steps[part.step].together &&
                                       step < static_cast<int>(steps.size()) && steps[step].fused;
             ++step) {
            group.push_back({part.rank, step, part.block, message_number_[part.rank][step]});
        }
        std::sort(group.begin(), group.end(), [&](const Part &a, const Part &b) {
            return steps[a.step].peer < steps[b.step].peer;
        });
        return group;
    }

    std::vector<T> fold(const std::vector<Part> &group, std::vector<T> mine) const
    {
        const auto step_of = [&](const Part &part) -> const Step & {
            return schedules_[part.rank].steps[part.step];
        };
        std::vector<std::vector<T>> operands;
        const auto own = std::find_if(group.begin(), group.end(), [&](const Part &part) {
            return step_of(part).peer > part.rank || step_of(part).local_first;
        });
        for (auto part = group.begin(); part != group.end(); ++part) {
            if (part == own) {
                operands.push_back(mine);
            }
            operands.push_back(wire_.at(message_of(*part)));
        }
        if (own == group.end()) {
            operands.push_back(mine);
        }
        if (step_of(group.front()).kind == StepKind::kRecv) {
            return wire_.at(message_of(group.front()));
        }
        std::vector<T> sum = operands.front();
        for (std::size_t operand = 1; operand < operands.size(); ++operand) {
            for (std::size_t i = 0; i < sum.size(); ++i) {
                sum[i] = op_(sum[i], operands[operand][i]);
            }
        }
        return sum;
    }

    bool try_part(const Part &part)
    {
        const Schedule &schedule = schedules_[part.rank];
        const Step &step = schedule.steps[part.step];
        Vectors<T> &written = in_place_ == InPlace::kYes ? input_ : result_;
        const ElementSpan span =
            block_span(input_[part.rank].size(), schedule.block_count, part.block);
        const auto mine = (step.from_input ? input_ : written)[part.rank].begin() + span.first;
        if (dealt_with_.contains({part.rank, part.step, part.block})) {
            return true; // with another one
        }
        if (!is_ready(part)) {
            return false;
        }
        if (step.kind == StepKind::kSend) {
            wire_[{part.rank, step.peer, step.channel, part.message, part.block}].assign(
                mine, mine + span.count);
        } else {
            const std::vector<Part> group = group_of(part);
            for (const Part &other : group) {
                if (!wire_.contains(message_of(other))) {
                    return false;
                }
            }
            const auto to = written[part.rank].begin() + span.first;
            std::vector<T> sum = fold(group, {mine, mine + span.count});
            std::move(sum.begin(), sum.end(), to);
            for (const Part &other : group) {
                wire_.erase(message_of(other));
                dealt_with_.insert({other.rank, other.step, other.block});
            }
        }
        dealt_with_.insert({part.rank, part.step, part.block});
        return true;
    }

    const std::vector<Schedule> &schedules_;
    Op op_;
    Vectors<T> input_, result_;
    InPlace in_place_;
    std::vector<Part> waiting_;
    std::vector<std::vector<int>> message_number_;   // by rank and step: Part::message
    std::set<std::tuple<int, int, int>> dealt_with_; // rank, step, block
    std::map<Address, std::vector<T>> wire_;
};

// Runs the schedules of all ranks and returns their results.
template <class T, class Op> Vectors<T> run_all(const std::vector<Schedule> &schedules,
                                                const Vectors<T> &input, Op op, InPlace in_place,
                                                unsigned seed, const T &unwritten = T{})
{
    return ReferenceExecutor<T, Op>(schedules, input, op, in_place, unwritten).run(seed);
}

} // namespace hetcoll::test
