#include "test/seeds/verdict.h"

#include "test/seeds/report.h"

#include <algorithm>

namespace hetcoll::test {
namespace {

bool is_declined(int result)
{
    return result == HETCOLL_DECLINED || result == HETCOLL_DECLINED_TO_STAGE;
}

} // namespace

Verdict::Verdict(const World &world)
    : world_(world), outcomes_(world.plan().calls.size(),
                               std::vector<Outcome>(static_cast<std::size_t>(world.plan().ranks)))
{
}

void Verdict::of_call(int rank, const Running &call)
{
    const int result = call.operation->result();
    outcomes_[call.number][static_cast<std::size_t>(rank)] = {result, call.lost_result};
    say("turn %zu: rank %d ends call %zu: %d%s", world_.turn, rank, call.number, result,
        call.lost_result ? ", its result is lost" : "");
    if (call.send != call.recv && !call.send->has_kept()) {
        fail("call %zu changed rank %d's input", call.number, rank);
    }
    if (result != HETCOLL_SUCCESS) {
        return;
    }
    if (call.spoiled) {
        fail("call %zu of rank %d: the previous module got other numbers, yet success", call.number,
             rank);
    }
    const auto now = call.recv->read();
    const bool right = now.empty() || std::equal(call.expected.begin(), call.expected.end(),
                                                 now.begin() + Buffer::kGuard);
    if (!right) {
        fail("call %zu of rank %d: success with a wrong result", call.number, rank);
    }
    if (!call.recv->has_kept(0, call.recv->bytes())) {
        fail("call %zu of rank %d wrote outside its buffer", call.number, rank);
    }
}

void Verdict::of_memory(int rank, const Buffer &buffer)
{
    if (buffer.user != User::kCall && !buffer.has_kept()) {
        const std::size_t byte = buffer.first_changed();
        fail("rank %d's buffer was written after its call: byte %zu, at %p", rank, byte,
             static_cast<void *>(buffer.data() + byte));
    }
}

bool Verdict::may_fail() const
{
    const Trouble trouble = world_.plan().trouble;
    return trouble == Trouble::kDriver || trouble == Trouble::kMemory || world_.some_dead ||
           world_.network_fails;
}

// All ranks agree whether a call has succeeded.
void Verdict::of_outcomes(std::size_t call) const
{
    int good = 0, bad = 0, code = 0;
    for (const Outcome &outcome : outcomes_[call]) {
        good += outcome.result == HETCOLL_SUCCESS;
        if (outcome.result != HETCOLL_SUCCESS && outcome.result != kNone) {
            ++bad;
            code = outcome.result;
        }
    }
    const bool differs = world_.plan().calls[call].differs >= 0;
    if (bad > 0 && !may_fail() && !differs && (!is_declined(code) || good > 0)) {
        fail("call %zu failed with %d, though nothing did", call, code);
    }
    if (differs && good > 0 && !may_fail()) {
        fail("call %zu: ranks call differently, and %d of them succeed", call, good);
    }
    if (may_fail() && !world_.some_dead && !world_.network_fails) {
        of_errors(call);
    }
}

// Where the driver has failed or memory, all ranks agree too, but for a rank that has lost its
// result.
void Verdict::of_errors(std::size_t call) const
{
    const std::vector<Outcome> &outcomes = outcomes_[call];
    const auto first = std::find_if(outcomes.begin(), outcomes.end(), [](const Outcome &outcome) {
        return outcome.result != HETCOLL_SUCCESS && !outcome.lost_result;
    });
    if (first == outcomes.end()) {
        return;
    }
    const auto rank = first - outcomes.begin();
    for (const Outcome &other : outcomes) {
        if (other.result == HETCOLL_SUCCESS) {
            fail("call %zu ends on rank %td with %d, though others could have been told, and they "
                 "go on as if it had not",
                 call, rank, first->result);
        }
        if (is_declined(other.result) != is_declined(first->result)) {
            fail("call %zu is declined on some ranks, and ends with %d or %d on others", call,
                 first->result, other.result);
        }
    }
}

void Verdict::of_all_calls() const
{
    for (std::size_t call = 0; call < outcomes_.size(); ++call) {
        of_outcomes(call);
    }
}

} // namespace hetcoll::test
