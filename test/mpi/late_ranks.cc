// A rank comes later than the others to every call (coll_hetcoll_skew). They begin without it, and
// count that; every result is right, in place and not, whatever memory the late rank turns out to
// have and whatever fails meanwhile. The first argument chooses what else happens, the second one
// to which rank.
#include "test/mpi/check.h"

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <thread>

namespace hetcoll::test {
namespace {

constexpr std::size_t kCount = 300'001;
constexpr int kCallsUntilKnown = 20;
constexpr int kLate = 1;  // neither the first nor the last one
constexpr int kTries = 8; // each twice as late as the one before

// On a busy machine another rank may be later now and then, or all so late that none of them stands
// out. So a test asks for one call of several, and tries again with a rank that comes later still.
class LateRank {
public:
    LateRank(Program &program, int victim)
        : program_(program), is_victim_(program.rank() == victim),
          beside_(program, MPI_COMM_WORLD, call(Memory::kDevice, false)),
          in_place_(program, MPI_COMM_WORLD, call(Memory::kDevice, true))
    {
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    }

    void everything()
    {
        learn();
        expect("in place", 6, in_place_, {1, 6}, true);
        // The others' early work comes to nothing, and their vectors are as they were.
        for (const bool in_place : {true, false}) {
            Buffers host(program_, MPI_COMM_WORLD, call(Memory::kHost, in_place));
            Buffers &device = in_place ? in_place_ : beside_;
            expect("dropped", 4, is_me() ? host : device, {0, 0}, true);
        }
        expect("in place again", 6, in_place_, {1, 6}, true);
    }

    // Where there is no memory for a result in addition to the input, ranks wait, and then go the
    // same way.
    void without_memory()
    {
        learn();
        const CounterValues before = program_.counters().read();
        expect("without memory", 3, in_place_, {3, 3}, false);
        program_.check((program_.counters().read() - before)[HETCOLL_BYTES_BOUNCE] == 0,
                       "calls went by messages");
    }

    // One rank has other parameters: nobody goes by any.
    void differ() { expect("ranks differ", 10, beside_, {0, 0}, false); }

    // The rank that comes last has a vector that another one cannot map.
    void unmapped()
    {
        learn();
        delay_ *= 4; // there is one try
        {
            Buffers fresh(program_, MPI_COMM_WORLD, call(Memory::kDevice, false));
            fail("cuIpcOpenMemHandle:+1:999");
            expect("unmapped", 1, is_me() ? fresh : beside_, {0, 0}, true);
            Emulated().set_faults(nullptr);
        }
        reduce(beside_);
        reduce(in_place_);
    }

    // A rank's early work fails: an error on every rank, whether the call goes on that way or
    // another one, and the next one works.
    void launch()
    {
        Buffers host(program_, MPI_COMM_WORLD, call(Memory::kHost, false));
        for (Buffers *const of_late : {&beside_, &host}) {
            learn();
            const std::uint64_t early = calls(HETCOLL_CALLS_EARLY);
            Buffers &buffers = is_me() ? *of_late : beside_;
            buffers.fill();
            fail("cuLaunchKernel:1:701");
            delay_ *= 4; // there is one try
            come();
            delay_ /= 4;
            program_.check(buffers.reduce() != MPI_SUCCESS, "success without a kernel");
            Emulated().set_faults(nullptr);
            check_early("a launch that fails", calls(HETCOLL_CALLS_EARLY) - early, true);
        }
        reduce(beside_);
    }

    // Nonblocking calls on two communicators at the same time.
    void several()
    {
        std::array<MPI_Comm, 2> comms{};
        for (MPI_Comm &comm : comms) {
            MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        }
        {
            Buffers beside(program_, comms[0], call(Memory::kDevice, false)),
                in_place(program_, comms[1], call(Memory::kDevice, true));
            std::array<Buffers *, 2> buffers = {&beside, &in_place};
            const CounterValues used = try_later(
                [&] {
                    for (int i = 0; i < kCallsUntilKnown; ++i) {
                        std::array<MPI_Request, 2> requests{};
                        beside.fill();
                        in_place.fill();
                        come();
                        for (std::size_t k = 0; k < comms.size(); ++k) {
                            MPI_Iallreduce(buffers[k]->send(), buffers[k]->recv(), kCount,
                                           MPI_FLOAT, MPI_SUM, comms[k], &requests[k]);
                        }
                        const int result = MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE);
                        program_.check(result == MPI_SUCCESS, "a call failed");
                        beside.check();
                        in_place.check();
                    }
                },
                [&](const CounterValues &seen) {
                    return (seen[HETCOLL_CALLS_EARLY] != 0) == !is_me();
                });
            check_early("nonblocking", used[HETCOLL_CALLS_EARLY], true);
        }
        for (MPI_Comm &comm : comms) {
            MPI_Comm_free(&comm);
        }
    }

private:
    struct Range {
        int least, most;
    };

    [[nodiscard]] static Call call(Memory memory, bool in_place)
    {
        const Pattern sum{ElementKind::kFloat32, ReduceOp::kSum, Values::kRandom, 1};
        return {sum, kCount, memory, memory, in_place};
    }
    [[nodiscard]] bool is_me() const { return program_.rank() == kLate; }
    [[nodiscard]] std::uint64_t calls(hetcoll_counter counter) const
    {
        return program_.counters().read()[counter];
    }

    // All come to a call.
    void come()
    {
        MPI_Barrier(MPI_COMM_WORLD);
        if (is_me()) {
            std::this_thread::sleep_for(delay_);
        }
    }

    void reduce(Buffers &buffers)
    {
        buffers.fill();
        come();
        program_.check(buffers.reduce() == MPI_SUCCESS, "a call failed");
        buffers.check();
    }

    void learn() { expect("until known", kCallsUntilKnown, beside_, {1, kCallsUntilKnown}, true); }

    // What `calls` have used once all ranks have seen what is `expected`, or in the last try.
    template <class Calls, class Expected> CounterValues try_later(Calls calls, Expected expected)
    {
        for (int tries = 1;; ++tries) {
            const CounterValues before = program_.counters().read();
            calls();
            const CounterValues used = program_.counters().read() - before;
            int right = expected(used) ? 1 : 0;
            MPI_Allreduce(MPI_IN_PLACE, &right, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
            if (right != 0 || tries == kTries) {
                return used;
            }
            delay_ *= 2;
        }
    }

    // `weighted`: calls that were served so, as many on every rank. `early`: the others began one
    // at the least without the late one. A single call has a single try.
    void expect(const char *what, int number, Buffers &buffers, Range weighted, bool early)
    {
        const CounterValues used = try_later(
            [&] {
                for (int i = 0; i < number; ++i) {
                    reduce(buffers);
                }
            },
            [&](const CounterValues &seen) {
                const auto served = static_cast<int>(seen[HETCOLL_CALLS_WEIGHTED]);
                return number == 1 || (weighted.least <= served && served <= weighted.most &&
                                       (seen[HETCOLL_CALLS_EARLY] != 0) == (early && !is_me()));
            });
        const auto served = static_cast<int>(used[HETCOLL_CALLS_WEIGHTED]);
        int least = 0, most = 0;
        MPI_Allreduce(&served, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
        MPI_Allreduce(&served, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        program_.check(least == most, "%s: ranks differ in how many calls were weighted", what);
        program_.check(weighted.least <= served && served <= weighted.most,
                       "%s: %d of %d calls were weighted", what, served, number);
        check_early(what, used[HETCOLL_CALLS_EARLY], early);
    }

    void check_early(const char *what, std::uint64_t early, bool expected)
    {
        program_.check((early != 0) == (expected && !is_me()), "%s: %llu calls began early", what,
                       static_cast<unsigned long long>(early));
    }

    void fail(const char *faults)
    {
        if (is_victim_) {
            Emulated().set_faults(faults);
        }
    }

    Program &program_;
    bool is_victim_;
    std::chrono::milliseconds delay_{100};
    Buffers beside_, in_place_;
};

} // namespace
} // namespace hetcoll::test

int main(int argc, char **argv)
{
    using namespace hetcoll::test;
    const std::string_view what = argc > 1 ? argv[1] : "everything";
    const char *const rank = std::getenv("OMPI_COMM_WORLD_RANK");
    if (what == "differ" && rank != nullptr) {
        const bool other = *rank == '1';
        setenv("OMPI_MCA_coll_hetcoll_skew", other ? "0" : "1", 1);
        setenv("OMPI_MCA_coll_hetcoll_shares", other ? "1,2,1" : "1,1,2", 1);
    }
    Program program(argc, argv, "late_ranks",
                    what == "several" ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE);
    const bool fails = what == "unmapped" || what == "launch";
    {
        LateRank late(program, argc > 2 ? std::atoi(argv[2]) : 0);
        if (fails && !Emulated().present()) {
            std::printf("skip late_ranks: only the emulated driver fails on request\n");
        } else if (what == "everything") {
            late.everything();
        } else if (what == "without_memory") {
            late.without_memory();
        } else if (what == "unmapped") {
            late.unmapped();
        } else if (what == "launch") {
            late.launch();
        } else if (what == "differ") {
            late.differ();
        } else if (what == "several") {
            late.several();
        } else {
            program.check(false,
                          "usage: late_ranks "
                          "[everything|without_memory|several|differ|unmapped|launch [RANK]]");
        }
    }
    return program.finish();
}
