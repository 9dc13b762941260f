// Counts the cost of calls on device memory in the emulated driver, over all ranks: bytes between
// the devices, kernels, driver calls. The first argument says what is counted, the second names the
// algorithm that coll_hetcoll_algorithm forces.
#include "test/mpi/check.h"

#include <array>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace hetcoll::test {
namespace {

constexpr int kDevices = 8;

// Counters of all ranks together, and of the rank that has most.
struct Sum {
    std::uint64_t all, most;
};

class Counts {
public:
    Counts(Program &program, std::string algorithm)
        : program_(program), algorithm_(std::move(algorithm))
    {
        program_.gpu();
        emulated_ = Emulated();
        check_allreduce(program_, MPI_COMM_WORLD, {sum(ElementKind::kFloat32), 100'000});
    }
    [[nodiscard]] bool possible() const { return emulated_.present(); }

    // n inputs are read and n results written, once each, by one kernel in all.
    void leader()
    {
        for (const std::size_t count : {std::size_t{1'000}, std::size_t{123'457}}) {
            const Sums used =
                count_call({sum(ElementKind::kFloat32), count},
                           {"kernel_read_bytes", "kernel_write_bytes", "launches", "dtod_bytes"});
            const std::uint64_t bytes = used[0].all + used[1].all;
            const std::uint64_t wanted = 2 * ranks() * count * sizeof(float);
            program_.check(bytes == wanted, "%llu bytes by kernels, not 2nS, %llu", number(bytes),
                           number(wanted));
            program_.check(used[2].all == 1, "%llu kernels on all ranks", number(used[2].all));
            program_.check(used[3].all == 0, "%llu bytes copied", number(used[3].all));
        }
    }

    // Every rank on a device of its own sends and receives 2(n-1)/n of the vector over its links.
    void two_shot()
    {
        const std::size_t count = 3'360 * 128; // divisible into whole lines for 2 to 8 ranks
        const std::vector<std::uint64_t> moved = pairs(ElementKind::kFloat32, count);
        const std::uint64_t wanted = 2 * (ranks() - 1) * count * sizeof(float) / ranks();
        for (int device = 0; device < program_.ranks(); ++device) {
            std::uint64_t out = 0, in = 0;
            for (int other = 0; other < kDevices; ++other) {
                out += moved[pair(device, other)];
                in += moved[pair(other, device)];
            }
            program_.check(out == wanted && in == wanted,
                           "device %d sends %llu and receives %llu bytes, not 2(n-1)/n S, %llu",
                           device, number(out), number(in), number(wanted));
        }
    }

    // Between any two devices, and between each and the host, half moves half of what float does.
    void halves()
    {
        const std::size_t count = 3'360 * 128;
        const std::vector<std::uint64_t> full = pairs(ElementKind::kFloat32, count);
        const std::vector<std::uint64_t> half = pairs(ElementKind::kFloat16, count);
        std::uint64_t all = 0;
        for (std::size_t i = 0; i < full.size(); ++i) {
            all += full[i];
            program_.check(2 * half[i] == full[i],
                           "from %s to %s float moves %llu bytes, half %llu",
                           place(i / kPlaces).c_str(), place(i % kPlaces).c_str(), number(full[i]),
                           number(half[i]));
        }
        program_.check(all != 0 || program_.ranks() == 1, "nothing was moved between devices");
    }

    // Up to 8 KiB at most four driver calls a call and rank, besides those that only look.
    void driver_calls()
    {
        constexpr std::array kLooks = {
            "cuPointerGetAttribute",
            "cuPointerGetAttributes",
            "cuCtxGetCurrent",
            "cuCtxSetCurrent",
            "cuCtxPushCurrent",
            "cuCtxPopCurrent",
            "cuThreadExchangeStreamCaptureMode",
            "cuDriverGetVersion",
            "cuEventQuery",
            "cuStreamQuery",
        };
        constexpr int kCalls = 10;
        const auto working_calls = [&] {
            std::uint64_t calls = emulated_.calls("all_calls");
            for (const char *look : kLooks) {
                calls -= emulated_.calls(look);
            }
            return calls;
        };
        for (const std::size_t count : {1, 2, 250, 2'048}) {
            for (const bool in_place : {false, true}) {
                Buffers buffers(program_, MPI_COMM_WORLD,
                                {sum(ElementKind::kFloat32), count, Memory::kDevice,
                                 Memory::kDevice, in_place});
                buffers.fill();
                buffers.reduce();
                buffers.reduce();
                const std::uint64_t before = working_calls();
                const CounterValues served = program_.counters().read();
                for (int i = 0; i < kCalls; ++i) {
                    buffers.reduce();
                }
                const std::uint64_t calls = working_calls() - before;
                check_algorithm(program_.counters().read() - served, kCalls);
                program_.check(calls <= 4 * kCalls, "%llu driver calls in %d calls of %zu floats%s",
                               number(calls), kCalls, count, in_place ? " in place" : "");
                if (program_.rank() == 0) {
                    std::printf("note counts: %s, %zu floats%s: %.1f driver calls\n",
                                algorithm_.c_str(), count, in_place ? " in place" : "",
                                static_cast<double>(calls) / kCalls);
                }
            }
        }
    }

private:
    using Sums = std::vector<Sum>;
    static constexpr int kPlaces = kDevices + 1; // and the host

    Pattern sum(ElementKind kind) { return {kind, ReduceOp::kSum, Values::kExact, ++seed_}; }
    [[nodiscard]] std::uint64_t ranks() const
    {
        return static_cast<std::uint64_t>(program_.ranks());
    }
    static unsigned long long number(std::uint64_t value) { return value; }
    static std::size_t pair(int from, int to)
    {
        return static_cast<std::size_t>(from) * kPlaces + static_cast<std::size_t>(to);
    }
    static std::string place(std::size_t number)
    {
        return number == kDevices ? "h" : std::to_string(number);
    }

    void check_algorithm(const CounterValues &used, std::uint64_t calls)
    {
        const hetcoll_counter counter = algorithm_ == "leader"     ? HETCOLL_CALLS_LEADER
                                        : algorithm_ == "two_shot" ? HETCOLL_CALLS_TWO_SHOT
                                        : algorithm_ == "one_shot" ? HETCOLL_CALLS_ONE_SHOT
                                        : algorithm_ == "copy_in"  ? HETCOLL_CALLS_COPY_IN
                                        : algorithm_ == "tree"     ? HETCOLL_CALLS_TREE
                                        : algorithm_ == "ring"     ? HETCOLL_CALLS_RING
                                        : algorithm_ == "host"     ? HETCOLL_CALLS_HOST
                                                                   : HETCOLL_CALLS_RABENSEIFNER;
        program_.check(used[counter] == calls, "%llu of %llu calls served by %s",
                       number(used[counter]), number(calls), algorithm_.c_str());
    }

    // The resources that the third call of this shape uses.
    Sums count_call(const Call &call, const std::vector<std::string> &names)
    {
        Buffers buffers(program_, MPI_COMM_WORLD, call);
        buffers.fill();
        buffers.reduce();
        buffers.fill();
        buffers.reduce();
        buffers.fill();
        MPI_Barrier(MPI_COMM_WORLD);
        std::vector<std::uint64_t> used(names.size());
        for (std::size_t i = 0; i < names.size(); ++i) {
            used[i] = emulated_.calls(names[i].c_str());
        }
        const CounterValues served = program_.counters().read();
        program_.check(buffers.reduce() == MPI_SUCCESS, "MPI failed: %s", describe(call).c_str());
        check_algorithm(program_.counters().read() - served, 1);
        for (std::size_t i = 0; i < names.size(); ++i) {
            used[i] = emulated_.calls(names[i].c_str()) - used[i];
        }
        buffers.check();
        Sums sums(names.size());
        for (std::size_t i = 0; i < names.size(); ++i) { // not MPI_Allreduce, which is counted
            MPI_Reduce(&used[i], &sums[i].all, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
            MPI_Reduce(&used[i], &sums[i].most, 1, MPI_UINT64_T, MPI_MAX, 0, MPI_COMM_WORLD);
        }
        MPI_Bcast(sums.data(), static_cast<int>(2 * sums.size()), MPI_UINT64_T, 0, MPI_COMM_WORLD);
        return sums;
    }

    // Bytes of one call from each place to each other one: devices, then the host.
    std::vector<std::uint64_t> pairs(ElementKind kind, std::size_t count)
    {
        std::vector<std::string> names;
        for (std::size_t from = 0; from < kPlaces; ++from) {
            for (std::size_t to = 0; to < kPlaces; ++to) {
                names.push_back("bytes_" + place(from) + "_" + place(to));
            }
        }
        std::vector<std::uint64_t> moved;
        for (const Sum &sum : count_call({this->sum(kind), count}, names)) {
            moved.push_back(sum.all);
        }
        for (std::size_t i = 0; i < kPlaces; ++i) { // within a device
            moved[i * kPlaces + i] = 0;
        }
        return moved;
    }

    Program &program_;
    std::string algorithm_;
    Emulated emulated_;
    std::uint32_t seed_ = 0;
};

} // namespace
} // namespace hetcoll::test

int main(int argc, char **argv)
{
    using namespace hetcoll::test;
    const std::string_view what = argc > 1 ? argv[1] : "";
    Program program(argc, argv, "counts");
    Counts counts(program, argc > 2 ? argv[2] : "");
    if (!counts.possible()) {
        std::printf("skip counts: only the emulated driver counts\n");
    } else if (what == "leader") {
        counts.leader();
    } else if (what == "two_shot") {
        counts.two_shot();
    } else if (what == "halves") {
        counts.halves();
    } else if (what == "driver_calls") {
        counts.driver_calls();
    } else {
        program.check(false, "usage: counts leader|two_shot|halves|driver_calls ALGORITHM");
    }
    return program.finish();
}
