// The smallest possible executor, for tests: all ranks in one process, in random order. It obeys
// `after` and nothing else, and block by block: a step deals with each of its blocks as soon as the
// steps it comes after have dealt with the same block, as the real executor does with chunks.
#pragma once

#include "schedule/schedule.h"

#include <algorithm>
#include <map>
#include <random>
#include <utility>
#include <vector>

namespace hetcoll::test {

template <class T> using Vectors = std::vector<std::vector<T>>; // by rank, then element

// True where a rank's input and result are one buffer, as with MPI_IN_PLACE.
enum class InPlace : bool { kNo, kYes };

// Runs the schedules of all ranks and returns their results. `op(lower, higher)` gets the operand
// of the lower rank first. Elements that no step writes stay as `unwritten`. Gives up, with what
// has been written so far, when no step can go on.
template <class T, class Op> Vectors<T> run_all(const std::vector<Schedule> &schedules,
                                                const Vectors<T> &input, Op op, InPlace in_place,
                                                unsigned seed, const T &unwritten = T{})
{
    struct Part { // one block of one step
        int rank, step, block, place;
    };
    Vectors<T> memory = input; // the send buffers
    Vectors<T> separate(input.size());
    std::vector<Part> waiting;
    // By rank and step; then by block.
    std::vector<std::vector<std::map<int, bool>>> dealt_with(input.size());
    // Number of each step among the messages between the same two ranks in the same direction.
    std::vector<std::vector<int>> order(input.size());
    for (int rank = 0; rank < static_cast<int>(schedules.size()); ++rank) {
        separate[rank].assign(input[rank].size(), unwritten);
        const std::vector<Step> &steps = schedules[rank].steps;
        std::map<std::pair<int, bool>, int> seen;
        for (int i = 0; i < static_cast<int>(steps.size()); ++i) {
            dealt_with[rank].emplace_back();
            order[rank].push_back(seen[{steps[i].peer, steps[i].kind == StepKind::kSend}]++);
            for (int place = 0; place < steps[i].blocks.count; ++place) {
                dealt_with[rank][i][steps[i].blocks.first + place] = false;
                waiting.push_back({rank, i, steps[i].blocks.first + place, place});
            }
        }
    }
    Vectors<T> &result = in_place == InPlace::kYes ? memory : separate;

    // What is under way, by sender, receiver, number of the message and place of the block in it.
    using Address = std::pair<std::pair<int, int>, std::pair<int, int>>;
    std::map<Address, std::vector<T>> wire;
    const auto try_part = [&](const Part &part) {
        const Schedule &schedule = schedules[part.rank];
        const Step &step = schedule.steps[part.step];
        for (const int before : schedule.after_of(step)) {
            const auto it = dealt_with[part.rank][before].find(part.block);
            if (it != dealt_with[part.rank][before].end() && !it->second) {
                return false;
            }
        }
        const bool sends = step.kind == StepKind::kSend;
        const std::pair<int, int> message{order[part.rank][part.step], part.place};
        const Address address{
            sends ? std::pair(part.rank, step.peer) : std::pair(step.peer, part.rank), message};
        const ElementSpan span =
            block_span(input[part.rank].size(), schedule.block_count, part.block);
        const auto mine = (step.from_input ? memory : result)[part.rank].begin() + span.first;
        if (sends) {
            wire[address].assign(mine, mine + span.count);
            return true;
        }
        const auto arrived = wire.find(address);
        if (arrived == wire.end()) {
            return false;
        }
        const auto to = result[part.rank].begin() + span.first;
        for (std::size_t i = 0; i < span.count; ++i) {
            const T &theirs = arrived->second[i];
            to[i] = step.kind == StepKind::kRecv ? theirs
                    : step.peer < part.rank      ? op(theirs, mine[i])
                                                 : op(mine[i], theirs);
        }
        wire.erase(arrived);
        return true;
    };

    std::mt19937 random(seed);
    for (bool moved = true; moved;) {
        moved = false;
        std::shuffle(waiting.begin(), waiting.end(), random);
        std::vector<Part> still_waiting;
        for (const Part &part : waiting) {
            if (try_part(part)) {
                dealt_with[part.rank][part.step][part.block] = true;
                moved = true;
            } else {
                still_waiting.push_back(part);
            }
        }
        waiting = std::move(still_waiting);
    }
    return result;
}

} // namespace hetcoll::test
