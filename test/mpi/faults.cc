// R22: every driver call that an Allreduce makes fails on one rank: the first time, later times,
// and from the first time on; in calls for which hetcoll has all that it needs, and in calls that
// must make it. The outcome is the right result on all ranks or an MPI error on all of them; never
// a hang, a crash or a wrong result. The rank whose calls fail may return an error alone if what
// failed was the copy of its finished result; then the others' results are right. Afterwards the
// same communicator must work.
//
// "random SEED COUNT": COUNT faults, drawn from all shapes, the driver calls that the victim
// makes in the shape, times (first, second, fifth, twentieth, all) and codes, by the seed. "ruined
// SEED": one such fault that ruins its context, with a hostile driver. Nothing on the victim's
// device can be read or written after it.
#include "test/mpi/check.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace hetcoll::test {
namespace {

// Calls that may happen; those that do not are skipped.
constexpr std::array kCalls = {
#define HETCOLL_CALL_NAME(name) #name,
    HETCOLL_DRIVER_CALLS(HETCOLL_CALL_NAME)
#undef HETCOLL_CALL_NAME
};
using CallCounts = std::array<std::uint64_t, kCalls.size()>;

enum class When {
    kFresh, // streams, kernels and pinned memory are made in this call
    kFirst, // the first call of a communicator
    kLater,
    kMaps,   // the processor's view of a small buffer is made in this call,
    kViewed, // or used
};
constexpr int kCallsBeforeView = 8;

enum class Victims { kAsCall, kMixed }; // where a rank's buffers are

struct Shape {
    const char *name;
    Call call;
    When when;
    Victims victims_recv = Victims::kAsCall;
};

// Every other rank has its data on the host.
Memory memory_of_mixed(int rank) { return rank % 2 == 0 ? Memory::kDevice : Memory::kHost; }

class Faults {
public:
    explicit Faults(Program &program) : program_(program)
    {
        program.gpu();
        emulated_ = Emulated();
    }

    [[nodiscard]] bool possible() const { return emulated_.present(); }

    // One fault of those that a seed says, the same on all ranks. With a hostile driver 700 and 719
    // ruin the context.
    void draw(const std::vector<Shape> &shapes, std::mt19937 &random, bool ruins)
    {
        static constexpr std::array kTimes = {1, 2, 5, 20, 0};
        const std::vector<int> codes = ruins          ? std::vector{700, 719}
                                       : is_hostile() ? std::vector{2, 709, 999}
                                                      : std::vector{2, 700, 709, 719, 999};
        const auto one_of = [&random](const auto &list) -> const auto &
        {
            return list[random() % list.size()];
        };
        const Shape &shape = one_of(shapes);
        const auto victim = random() % static_cast<unsigned>(program_.ranks());
        const CallCounts &made = calls_of(shape)[victim];
        std::vector<std::size_t> called;
        for (std::size_t i = 0; i < kCalls.size(); ++i) {
            if (made[i] > 0) {
                called.push_back(i);
            }
        }
        if (called.empty()) { // its data is on the host
            return;
        }
        const std::size_t call = one_of(called);
        const int time = one_of(kTimes), code = one_of(codes);
        const std::uint64_t nth = std::min(static_cast<std::uint64_t>(time), made[call]);
        inject(shape, static_cast<int>(victim),
               std::string(kCalls[call]) + (nth == 0 ? ":+1" : ":" + std::to_string(nth)), code,
               ruins);
    }

    // Fails each call that `victim` makes in this shape, several times over.
    void run(const Shape &shape, int victim)
    {
        const CallCounts made = count_calls(shape);
        for (std::size_t i = 0; i < kCalls.size(); ++i) {
            std::uint64_t times = made[i]; // the victim's counts are what matters
            MPI_Bcast(&times, 1, MPI_UINT64_T, victim, MPI_COMM_WORLD);
            if (times == 0) {
                continue;
            }
            for (const std::uint64_t n :
                 std::set<std::uint64_t>{1, std::min<std::uint64_t>(2, times), times}) {
                inject(shape, victim, std::string(kCalls[i]) + ":" + std::to_string(n));
            }
            inject(shape, victim, std::string(kCalls[i]) + ":+1");
        }
    }

    [[nodiscard]] long injected() const { return injected_; }
    [[nodiscard]] long errors() const { return errors_; }
    [[nodiscard]] long alone() const { return alone_; } // errors on one rank
    // By which driver calls.
    [[nodiscard]] std::string alone_by() const
    {
        std::string names;
        for (const std::string &name : alone_by_) {
            names += " " + name;
        }
        return names;
    }

private:
    static bool is_hostile()
    {
        const char *set = std::getenv("EMU_HOSTILE");
        return set != nullptr && std::string_view(set) != "0";
    }

    // Each rank's.
    const std::vector<CallCounts> &calls_of(const Shape &shape)
    {
        std::vector<CallCounts> &all = counted_[&shape];
        if (all.empty()) {
            const CallCounts own = count_calls(shape);
            all.resize(static_cast<std::size_t>(program_.ranks()));
            MPI_Allgather(own.data(), static_cast<int>(own.size()), MPI_UINT64_T, all.data(),
                          static_cast<int>(own.size()), MPI_UINT64_T, MPI_COMM_WORLD);
        }
        return all;
    }

    // The calls of one undisturbed Allreduce of this shape.
    CallCounts count_calls(const Shape &shape)
    {
        MPI_Comm comm = new_comm();
        CallCounts counts{};
        {
            Buffers buffers(program_, comm, shape.call);
            prepare(buffers, shape);
            for (std::size_t i = 0; i < kCalls.size(); ++i) {
                counts[i] = emulated_.calls(kCalls[i]);
            }
            program_.check(buffers.reduce() == MPI_SUCCESS, "%s failed undisturbed", shape.name);
            for (std::size_t i = 0; i < kCalls.size(); ++i) {
                counts[i] = emulated_.calls(kCalls[i]) - counts[i];
            }
            buffers.check();
        }
        MPI_Comm_free(&comm);
        return counts;
    }

    static MPI_Comm new_comm()
    {
        MPI_Comm comm = MPI_COMM_NULL;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
        return comm;
    }

    void prepare(Buffers &buffers, const Shape &shape)
    {
        const int before = shape.when == When::kLater    ? 1
                           : shape.when == When::kMaps   ? kCallsBeforeView - 1
                           : shape.when == When::kViewed ? kCallsBeforeView
                                                         : 0;
        for (int i = 0; i < before; ++i) {
            buffers.fill();
            buffers.reduce();
        }
        if (shape.when == When::kFresh) {
            forget_all();
        }
        buffers.fill();
    }

    // After an error hetcoll makes everything in the context again.
    void forget_all()
    {
        MPI_Comm comm = new_comm();
        {
            Buffers buffers(program_, comm,
                            {{ElementKind::kFloat32, ReduceOp::kSum, Values::kExact, 1}, 10'000});
            buffers.fill();
            buffers.reduce(); // what a failed call made incomplete is made now
            emulated_.set_faults("cuStreamQuery:+1:999,cuEventRecord:+1:999,cuLaunchKernel:+1:999");
            program_.check(buffers.reduce() != MPI_SUCCESS, "no error although nothing can work");
            emulated_.set_faults(nullptr);
        }
        MPI_Comm_free(&comm);
    }

    // All ranks succeed or none, but for a victim whose result was finished.
    void expect_alike(const Shape &shape, int victim, const std::string &where, int result)
    {
        const int failed = result != MPI_SUCCESS ? 1 : 0;
        std::vector<int> all(static_cast<std::size_t>(program_.ranks()));
        MPI_Allgather(&failed, 1, MPI_INT, all.data(), 1, MPI_INT, MPI_COMM_WORLD);
        const auto failures = std::count(all.begin(), all.end(), 1);
        if (failures == 0 || failures == program_.ranks()) {
            return;
        }
        program_.check(failures == 1 && all[static_cast<std::size_t>(victim)] == 1,
                       "%s of %zu with %s failing on rank %d: an error on %ld of the ranks",
                       shape.name, shape.call.count, where.c_str(), victim,
                       static_cast<long>(failures));
        const Memory recv =
            shape.victims_recv == Victims::kAsCall ? shape.call.recv : memory_of_mixed(victim);
        program_.check(recv != Memory::kHost && copies_result(where),
                       "%s of %zu with %s failing on rank %d: an error on that rank alone, which "
                       "has no copy of a finished result to fail",
                       shape.name, shape.call.count, where.c_str(), victim);
        ++alone_;
        alone_by_.insert(where.substr(0, where.find(':')));
    }
    // The driver calls that it takes to copy a result to device memory, and to learn that it is
    // there. A staged call without a bounce has to look for the buffer's context again, with memory
    // of hetcoll's there.
    static bool copies_result(const std::string &where)
    {
        static constexpr std::array kOfCopies = {
            "cuCtxPushCurrent", "cuEventQuery",  "cuEventRecord",
            "cuMemcpy",         "cuMemcpyAsync", "cuStreamQuery",
            "cuLaunchKernel",   "cuMemAlloc",    "cuPointerGetAttribute"};
        const std::string call = where.substr(0, where.find(':'));
        return std::find(kOfCopies.begin(), kOfCopies.end(), call) != kOfCopies.end();
    }

    // The device of this rank answers nothing but the error any more.
    [[nodiscard]] bool is_ruined() const
    {
        return program_.gpu().driver().cuCtxSynchronize() != CUDA_SUCCESS;
    }

    void inject(const Shape &shape, int victim, const std::string &where,
                int code = CUDA_ERROR_UNKNOWN, bool ruins = false)
    {
        MPI_Comm comm = new_comm();
        {
            Buffers buffers(program_, comm, shape.call);
            prepare(buffers, shape);
            MPI_Barrier(MPI_COMM_WORLD);
            if (program_.rank() == victim) {
                emulated_.set_faults((where + ":" + std::to_string(code)).c_str());
            }
            const int result = buffers.reduce();
            emulated_.end_faults(program_.gpu());
            const bool ruined = ruins && program_.rank() == victim && is_ruined();
            program_.check(result != MPI_SUCCESS || ruined || buffers.is_right(),
                           "%s with %s failing on rank %d: success with a wrong result", shape.name,
                           where.c_str(), victim);
            expect_alike(shape, victim, where, result);
            ++injected_;
            errors_ += result != MPI_SUCCESS ? 1 : 0;
            // The communicator is still in step: nobody waits for a message that does not come.
            if (!ruined) {
                buffers.fill();
            }
            const int second = buffers.reduce();
            program_.check(!ruined || second != MPI_SUCCESS || !shape_uses_device(shape, victim),
                           "%s after %s had ruined the context of rank %d: success there",
                           shape.name, where.c_str(), victim);
            program_.check(second != MPI_SUCCESS || ruined || buffers.is_right(),
                           "%s after %s had failed on rank %d: success with a wrong result",
                           shape.name, where.c_str(), victim);
        }
        MPI_Comm_free(&comm);
    }

    static bool shape_uses_device(const Shape &shape, int victim)
    {
        return shape.victims_recv == Victims::kAsCall || memory_of_mixed(victim) == Memory::kDevice;
    }

    Program &program_;
    Emulated emulated_;
    std::map<const Shape *, std::vector<CallCounts>> counted_;
    std::set<std::string> alone_by_;
    long injected_ = 0, errors_ = 0, alone_ = 0;
};

const Pattern kSum{ElementKind::kFloat32, ReduceOp::kSum, Values::kExact, 1};

std::vector<Shape> all_shapes(const Program &program)
{
    const Pattern &sum = kSum;
    std::vector<Shape> shapes;
    for (const When when : {When::kFresh, When::kFirst, When::kLater}) {
        for (const std::size_t count : {2, 3'000, 300'000}) {
            shapes.push_back({"device", {sum, count}, when});
        }
        shapes.push_back(
            {"device in place", {sum, 100'000, Memory::kDevice, Memory::kDevice, true}, when});
        shapes.push_back({"host to device", {sum, 40'000, Memory::kHost, Memory::kDevice}, when});
        const Memory mixed = memory_of_mixed(program.rank());
        shapes.push_back({"mixed", {sum, 2, mixed, mixed}, when, Victims::kMixed});
        shapes.push_back({"mixed", {sum, 50'000, mixed, mixed}, when, Victims::kMixed});
    }
    return shapes;
}

// Where the processor can map device memory: EMU_GDR.
std::vector<Shape> small_shapes()
{
    std::vector<Shape> shapes;
    for (const When when : {When::kMaps, When::kViewed}) {
        shapes.push_back({"device", {kSum, 2}, when});
        shapes.push_back(
            {"device in place", {kSum, 100, Memory::kDevice, Memory::kDevice, true}, when});
        shapes.push_back({"device", {kSum, 1'000}, when}); // read by a copy
        shapes.push_back({"host to device", {kSum, 30, Memory::kHost, Memory::kDevice}, when});
    }
    return shapes;
}

void run_all(Program &program, Faults &faults, const std::vector<Shape> &shapes)
{
    for (const Shape &shape : shapes) {
        faults.run(shape, 0);
        if (program.ranks() > 1 && shape.when != When::kFirst) {
            faults.run(shape, program.ranks() - 1);
        }
    }
    program.check(faults.errors() > 0, "no fault ended in an error: the test shows nothing");
}

void run_random(Program &program, Faults &faults, unsigned seed, long count, bool ruins)
{
    std::vector<Shape> shapes = all_shapes(program);
    for (const When when : {When::kFresh, When::kFirst, When::kLater}) {
        shapes.push_back({"managed", {kSum, 40'000, Memory::kManaged, Memory::kManaged}, when});
        shapes.push_back({"managed", {kSum, 30, Memory::kManaged, Memory::kManaged}, when});
        for (const std::size_t elements : {2, 300'000}) {
            for (const MemoryType type : {MemoryType::kVmm, MemoryType::kPool}) {
                shapes.push_back({type_name(type), {kSum, elements}, when});
                shapes.back().call.device_memory = type;
            }
        }
    }
    std::mt19937 random(seed);
    for (long i = 0; i < count; ++i) {
        faults.draw(shapes, random, ruins);
    }
}

} // namespace
} // namespace hetcoll::test

int main(int argc, char **argv)
{
    using namespace hetcoll::test;
    Program program(argc, argv, "faults");
    Faults faults(program);
    if (faults.possible()) {
        const std::string_view which = argc > 1 ? argv[1] : "";
        const auto seed = static_cast<unsigned>(argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 0);
        if (which == "random" && argc == 4) {
            run_random(program, faults, seed, std::strtol(argv[3], nullptr, 10), false);
        } else if (which == "ruined") {
            run_random(program, faults, seed, 1, true);
        } else {
            run_all(program, faults, which == "small" ? small_shapes() : all_shapes(program));
        }
        if (which != "ruined") {
            check_allreduce(program, MPI_COMM_WORLD, {kSum, 70'000});
        }
    } else {
        std::printf("skip faults: only the emulated driver fails on request\n");
    }
    if (program.rank() == 0) {
        std::printf(
            "note faults: %ld injected, %ld of them ended in an MPI error on rank 0, %ld in "
            "one on a single rank:%s\n",
            faults.injected(), faults.errors(), faults.alone(), faults.alone_by().c_str());
    }
    return program.finish();
}
