// A rank that comes later than the others to every call (coll_hetcoll_skew): they begin without it,
// and every result is right, in place and not, whatever memory it turns out to have.
#include "test/mpi/check.h"

#include <chrono>
#include <thread>

namespace hetcoll::test {
namespace {

constexpr std::size_t kCount = 300'001;
constexpr int kCallsUntilKnown = 20;

class LateRank {
public:
    explicit LateRank(Program &program) : program_(program) {}
    [[nodiscard]] bool is_me() const { return program_.rank() == program_.ranks() - 1; }

    // One allreduce to which it comes late.
    void reduce(Buffers &buffers)
    {
        buffers.fill();
        MPI_Barrier(MPI_COMM_WORLD);
        if (is_me()) {
            std::this_thread::sleep_for(std::chrono::milliseconds(100));
        }
        program_.check(buffers.reduce() == MPI_SUCCESS, "a call failed");
        buffers.check();
    }

    // Calls that went without it at first: as many on every rank, and so many at the least and the
    // most. (On a busy machine all ranks may be so late now and then that none of them stands out.)
    void expect_served(const Call &call, int calls, int fewest, int most_of_them)
    {
        const CounterValues before = program_.counters().read();
        {
            Buffers buffers(program_, MPI_COMM_WORLD, call);
            for (int i = 0; i < calls; ++i) {
                reduce(buffers);
            }
        }
        const auto served =
            static_cast<int>((program_.counters().read() - before)[Counter::kCallsWeighted]);
        int least = 0, most = 0;
        MPI_Allreduce(&served, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
        MPI_Allreduce(&served, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        program_.check(least == most, "ranks differ in how many calls were weighted");
        program_.check(fewest <= served && served <= most_of_them,
                       "%d of %d calls were weighted: %s", served, calls, describe(call).c_str());
    }

private:
    Program &program_;
};

} // namespace
} // namespace hetcoll::test

int main(int argc, char **argv)
{
    using namespace hetcoll;
    using namespace hetcoll::test;
    Program program(argc, argv, "late_ranks");
    LateRank late(program);
    const Pattern sum{ElementKind::kFloat32, ReduceOp::kSum, Values::kRandom, 1};
    const auto all = [&](Memory memory, bool in_place) {
        return Call{sum, kCount, memory, memory, in_place};
    };
    late.expect_served(all(Memory::kDevice, false), kCallsUntilKnown, 1, kCallsUntilKnown);
    late.expect_served(all(Memory::kDevice, true), 6, 0, 6);
    // What the others have begun comes to nothing, and their vectors are as they were.
    const Memory unlike = late.is_me() ? Memory::kHost : Memory::kDevice;
    late.expect_served(all(unlike, true), 3, 0, 0);
    late.expect_served(all(unlike, false), 3, 0, 0);
    late.expect_served(all(Memory::kDevice, true), 6, 0, 6);
    return program.finish();
}
