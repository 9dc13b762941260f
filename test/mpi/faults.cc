// R22: every driver call that an Allreduce makes fails on one rank: the first time, later times,
// and from the first time on; in calls for which hetcoll has all that it needs, and in calls that
// must make it. The outcome is the right result or an MPI error on every affected rank; never a
// hang, a crash or a wrong result. Afterwards the same communicator must work.
#include "test/mpi/check.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <set>
#include <string>
#include <vector>

namespace hetcoll::test {
namespace {

// What may be called; those that are not are skipped.
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
};

struct Shape {
    const char *name;
    Call call;
    When when;
};

class Faults {
public:
    explicit Faults(Program &program) : program_(program)
    {
        program.gpu();
        emulated_ = Emulated();
    }

    [[nodiscard]] bool possible() const { return emulated_.present(); }

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

private:
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
        if (shape.when == When::kLater) {
            buffers.fill();
            buffers.reduce();
        } else if (shape.when == When::kFresh) {
            forget_all();
        }
        buffers.fill();
    }

    // Contexts that could not be popped stay on the stack.
    void empty_context_stack()
    {
        const Gpu &gpu = program_.gpu();
        CUcontext left = nullptr;
        while (gpu.driver().cuCtxPopCurrent(&left) == CUDA_SUCCESS) {
        }
        gpu.driver().cuCtxSetCurrent(gpu.context());
    }

    // After an error hetcoll makes everything in the context anew.
    void forget_all()
    {
        MPI_Comm comm = new_comm();
        {
            Buffers buffers(program_, comm,
                            {{ElementKind::kFloat32, ReduceOp::kSum, Values::kExact, 1}, 5'000});
            buffers.fill();
            buffers.reduce(); // what a failed call made incomplete is made now
            emulated_.set_faults("cuStreamQuery:+1:999,cuEventRecord:+1:999,cuLaunchKernel:+1:999");
            program_.check(buffers.reduce() != MPI_SUCCESS, "no error although nothing can work");
            emulated_.set_faults(nullptr);
        }
        MPI_Comm_free(&comm);
    }

    void inject(const Shape &shape, int victim, const std::string &where)
    {
        MPI_Comm comm = new_comm();
        {
            Buffers buffers(program_, comm, shape.call);
            prepare(buffers, shape);
            MPI_Barrier(MPI_COMM_WORLD);
            if (program_.rank() == victim) {
                emulated_.set_faults((where + ":" + std::to_string(CUDA_ERROR_UNKNOWN)).c_str());
            }
            const int result = buffers.reduce();
            emulated_.set_faults(nullptr);
            empty_context_stack();
            program_.check(result != MPI_SUCCESS || buffers.is_right(),
                           "%s with %s failing on rank %d: success with a wrong result", shape.name,
                           where.c_str(), victim);
            ++injected_;
            errors_ += result != MPI_SUCCESS ? 1 : 0;
            // The communicator is still in step: nobody waits for a message that does not come.
            buffers.fill();
            const int second = buffers.reduce();
            program_.check(second != MPI_SUCCESS || buffers.is_right(),
                           "%s after %s had failed on rank %d: success with a wrong result",
                           shape.name, where.c_str(), victim);
        }
        MPI_Comm_free(&comm);
    }

    Program &program_;
    Emulated emulated_;
    long injected_ = 0, errors_ = 0;
};

void run_all(Program &program, Faults &faults)
{
    const Pattern sum{ElementKind::kFloat32, ReduceOp::kSum, Values::kExact, 1};
    std::vector<Shape> shapes;
    for (const When when : {When::kFresh, When::kFirst, When::kLater}) {
        for (const std::size_t count : {2, 3'000, 300'000}) {
            shapes.push_back({"device", {sum, count}, when});
        }
        shapes.push_back(
            {"device in place", {sum, 100'000, Memory::kDevice, Memory::kDevice, true}, when});
        shapes.push_back({"host to device", {sum, 40'000, Memory::kHost, Memory::kDevice}, when});
        // Every other rank has its data on the host.
        const Memory mixed = program.rank() % 2 == 0 ? Memory::kDevice : Memory::kHost;
        shapes.push_back({"mixed", {sum, 2, mixed, mixed}, when});
        shapes.push_back({"mixed", {sum, 50'000, mixed, mixed}, when});
    }
    for (const Shape &shape : shapes) {
        faults.run(shape, 0);
        if (program.ranks() > 1 && shape.when != When::kFirst) {
            faults.run(shape, program.ranks() - 1);
        }
    }
    check_allreduce(program, MPI_COMM_WORLD, {sum, 70'000});
}

} // namespace
} // namespace hetcoll::test

int main(int argc, char **argv)
{
    using namespace hetcoll::test;
    Program program(argc, argv, "faults");
    Faults faults(program);
    if (faults.possible()) {
        run_all(program, faults);
        program.check(faults.errors() > 0, "no fault ended in an error: the test shows nothing");
    } else {
        std::printf("skip faults: only the emulated driver fails on request\n");
    }
    if (program.rank() == 0) {
        std::printf("note faults: %ld injected, %ld of them ended in an MPI error on rank 0\n",
                    faults.injected(), faults.errors());
    }
    return program.finish();
}
