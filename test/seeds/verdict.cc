#include "test/seeds/verdict.h"

#include "test/seeds/report.h"

#include <algorithm>

namespace hetcoll::test {
namespace {

constexpr int kNoResult = -1000000;

} // namespace

Verdict::Verdict(const World &world)
    : world_(world),
      results_(world.plan().calls.size(),
               std::vector<int>(static_cast<std::size_t>(world.plan().ranks), kNoResult))
{
}

void Verdict::of_call(int rank, const Running &call)
{
    const int result = call.operation->result();
    results_[call.number][static_cast<std::size_t>(rank)] = result;
    say("turn %zu: rank %d ends call %zu: %d", world_.turn, rank, call.number, result);
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
        fail("call %zu of rank %d wrote beside its buffer", call.number, rank);
    }
}

void Verdict::of_memory(int rank, const Buffer &buffer)
{
    if (!buffer.in_use && !buffer.has_kept()) {
        const std::size_t byte = buffer.first_changed();
        fail("rank %d's buffer was written after its call: byte %zu, at %p", rank, byte,
             static_cast<void *>(buffer.data() + byte));
    }
}

bool Verdict::may_fail() const
{
    return world_.plan().trouble == Trouble::kDriver || world_.some_dead || world_.network_fails;
}

// All ranks agree whether a call has succeeded.
void Verdict::of_results(std::size_t call) const
{
    int good = 0, bad = 0;
    for (const int result : results_[call]) {
        good += result == HETCOLL_SUCCESS;
        bad += result != HETCOLL_SUCCESS && result != kNoResult;
    }
    const bool differs = world_.plan().calls[call].differs >= 0;
    if (bad > 0 && !may_fail() && !differs) {
        const auto code = *std::find_if(results_[call].begin(), results_[call].end(),
                                        [](int result) { return result != 0; });
        if ((code != HETCOLL_DECLINED && code != HETCOLL_DECLINED_TO_STAGE) || good > 0) {
            fail("call %zu failed with %d, though nothing did", call, code);
        }
    }
    if (differs && good > 0 && !may_fail()) {
        fail("call %zu: ranks call differently, and %d of them succeed", call, good);
    }
}

void Verdict::of_all_calls() const
{
    for (std::size_t call = 0; call < results_.size(); ++call) {
        of_results(call);
    }
}

} // namespace hetcoll::test
