// R22: driver calls that fail on one rank within MPI_Iallreduce and persistent operations. "every":
// each call that such an operation makes fails the first time, the last time and from the first
// time on. The outcome is the right result or an MPI error from the wait, never a hang; the
// operation behind it in the queue and later ones stay in step. "launch": a kernel that is not
// launched is an error on all ranks.
#include "measure/persistent.h"
#include "test/mpi/check.h"

#include <array>
#include <cstdio>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace hetcoll::test {
namespace {

constexpr std::array kCalls = {
#define HETCOLL_CALL_NAME(name) #name,
    HETCOLL_DRIVER_CALLS(HETCOLL_CALL_NAME)
#undef HETCOLL_CALL_NAME
};
using CallCounts = std::array<std::uint64_t, kCalls.size()>;

enum class How { kNonblocking, kPersistent };

struct Shape {
    How how;
    std::size_t count;
    bool in_place, first; // the first operation of its communicator
};

// One operation; its request is freed with it.
class Started {
public:
    Started(Program &program, MPI_Comm comm, const Shape &shape)
        : program_(program), shape_(shape), comm_(comm), buffers_(program, comm, call_of(shape))
    {
        prepare();
    }
    ~Started()
    {
        if (request_ != MPI_REQUEST_NULL) {
            MPI_Request_free(&request_);
        }
    }
    Started(const Started &) = delete;
    Started &operator=(const Started &) = delete;

    void fill() { buffers_.fill(); } // calls the driver, which start() leaves to hetcoll
    void start()
    {
        if (shape_.how == How::kPersistent) {
            // On one rank alone: the others start theirs.
            program_.check(request_ != MPI_REQUEST_NULL, "an error has freed a persistent request");
            prepare();
            MPI_Start(&request_);
        } else {
            MPI_Iallreduce(send(), buffers_.recv(), count(), MPI_FLOAT, MPI_SUM, comm_, &request_);
        }
    }
    // MPI's error.
    [[nodiscard]] int wait() { return MPI_Wait(&request_, MPI_STATUS_IGNORE); }
    [[nodiscard]] bool is_right() { return buffers_.is_right(); }

private:
    void prepare()
    {
        if (shape_.how == How::kPersistent && request_ == MPI_REQUEST_NULL) {
            HETCOLL_ALLREDUCE_INIT(send(), buffers_.recv(), count(), MPI_FLOAT, MPI_SUM, comm_,
                                   MPI_INFO_NULL, &request_);
        }
    }
    static Call call_of(const Shape &shape)
    {
        return {{ElementKind::kFloat32, ReduceOp::kSum, Values::kExact, 1},
                shape.count,
                Memory::kDevice,
                Memory::kDevice,
                shape.in_place};
    }
    [[nodiscard]] const void *send() const
    {
        return shape_.in_place ? MPI_IN_PLACE : buffers_.send();
    }
    [[nodiscard]] int count() const { return static_cast<int>(shape_.count); }

    Program &program_;
    Shape shape_;
    MPI_Comm comm_;
    Buffers buffers_;
    MPI_Request request_ = MPI_REQUEST_NULL;
};

class Faults {
public:
    explicit Faults(Program &program) : program_(program)
    {
        program.gpu();
        emulated_ = Emulated();
        // Open MPI 4.1's MPI_Wait takes this communicator's handler for requests of collectives.
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    }

    void every(const Shape &shape, int victim)
    {
        const CallCounts made = count_calls(shape);
        for (std::size_t i = 0; i < kCalls.size(); ++i) {
            std::uint64_t times = made[i];
            MPI_Bcast(&times, 1, MPI_UINT64_T, victim, MPI_COMM_WORLD);
            if (times == 0) {
                continue;
            }
            for (const std::uint64_t n : std::set<std::uint64_t>{1, times}) {
                inject(shape, victim, std::string(kCalls[i]) + ":" + std::to_string(n));
            }
            inject(shape, victim, std::string(kCalls[i]) + ":+1");
        }
    }

    // All ranks learn of one rank's failure from their own waits. The communicator goes on.
    void launch(const Shape &shape, int victim)
    {
        MPI_Comm comm = new_comm();
        {
            warm_up(comm, shape);
            Started one(program_, comm, shape), behind(program_, comm, shape);
            one.fill();
            behind.fill();
            disturb(victim, "cuLaunchKernel:1:701");
            one.start();
            behind.start();
            const int error = one.wait(), next = behind.wait();
            emulated_.set_faults(nullptr);
            program_.check(error != MPI_SUCCESS, "success without a kernel, %zu elements%s",
                           shape.count, shape.in_place ? " in place" : "");
            expect_alike(next);
            program_.check(next != MPI_SUCCESS || behind.is_right(),
                           "the operation behind a failed one is wrong");
            for (int round = 0; round < 2; ++round) {
                one.fill();
                one.start();
                const int again = one.wait();
                program_.check(again == MPI_SUCCESS && one.is_right(),
                               "error %d or a wrong result after a failure", again);
            }
        }
        MPI_Comm_free(&comm);
    }

    [[nodiscard]] long injected() const { return injected_; }
    [[nodiscard]] long errors() const { return errors_; }

private:
    static MPI_Comm new_comm()
    {
        MPI_Comm comm = MPI_COMM_NULL;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
        return comm;
    }

    void warm_up(MPI_Comm comm, const Shape &shape)
    {
        Shape same = shape;
        same.how = How::kNonblocking;
        Started operation(program_, comm, same);
        operation.fill();
        operation.start();
        program_.check(operation.wait() == MPI_SUCCESS, "no success undisturbed");
    }

    CallCounts count_calls(const Shape &shape)
    {
        MPI_Comm comm = new_comm();
        CallCounts counts{};
        {
            if (!shape.first) {
                warm_up(comm, shape);
            }
            Started operation(program_, comm, shape);
            operation.fill();
            for (std::size_t i = 0; i < kCalls.size(); ++i) {
                counts[i] = emulated_.calls(kCalls[i]);
            }
            operation.start();
            program_.check(operation.wait() == MPI_SUCCESS, "no success undisturbed");
            for (std::size_t i = 0; i < kCalls.size(); ++i) {
                counts[i] = emulated_.calls(kCalls[i]) - counts[i];
            }
        }
        MPI_Comm_free(&comm);
        return counts;
    }

    void disturb(int victim, const std::string &fault)
    {
        MPI_Barrier(MPI_COMM_WORLD);
        if (program_.rank() == victim) {
            emulated_.set_faults(fault.c_str());
        }
    }

    // Success on one rank is success on all of them.
    void expect_alike(int error)
    {
        int failed = error != MPI_SUCCESS ? 1 : 0, most = 0;
        MPI_Allreduce(&failed, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        program_.check(failed == most, "success here, an error on another rank");
    }

    void expect(int error, Started &operation, const char *which, const std::string &fault)
    {
        program_.check(error != MPI_SUCCESS || operation.is_right(),
                       "%s, %s: success with a wrong result", fault.c_str(), which);
    }

    void inject(const Shape &shape, int victim, const std::string &where)
    {
        MPI_Comm comm = new_comm();
        {
            if (!shape.first) {
                warm_up(comm, shape);
            }
            Started one(program_, comm, shape), behind(program_, comm, shape);
            one.fill();
            behind.fill();
            disturb(victim, where + ":" + std::to_string(CUDA_ERROR_UNKNOWN));
            one.start();
            behind.start();
            const int error = one.wait(), next = behind.wait();
            emulated_.end_faults(program_.gpu());
            expect(error, one, "the operation", where);
            expect(next, behind, "the one behind it", where);
            one.fill();
            one.start();
            expect(one.wait(), one, "a later one", where);
            ++injected_;
            errors_ += error != MPI_SUCCESS ? 1 : 0;
        }
        MPI_Comm_free(&comm);
    }

    Program &program_;
    Emulated emulated_;
    long injected_ = 0, errors_ = 0;
};

void run(Program &program, std::string_view what)
{
    Faults faults(program);
    std::vector<Shape> shapes;
    for (const How how : {How::kNonblocking, How::kPersistent}) {
        shapes.push_back({how, 100'000, false, false});
        shapes.push_back({how, 30'000, true, false});
        if (what == "every") {
            shapes.push_back({how, 100, false, false});
            shapes.push_back({how, 100'000, false, true});
        }
    }
    const int last = program.ranks() - 1;
    for (const Shape &shape : shapes) {
        for (const int victim : std::set<int>{0, last}) {
            what == "every" ? faults.every(shape, victim) : faults.launch(shape, victim);
        }
    }
    check_allreduce(program, MPI_COMM_WORLD,
                    {{ElementKind::kFloat32, ReduceOp::kSum, Values::kExact, 1}, 70'000});
    program.check(what != "every" || faults.errors() > 0,
                  "no fault ended in an error: the test shows nothing");
    if (program.rank() == 0 && what == "every") {
        std::printf("note nonblocking_faults: %ld injected, %ld of them ended in an MPI error on "
                    "rank 0\n",
                    faults.injected(), faults.errors());
    }
}

} // namespace
} // namespace hetcoll::test

int main(int argc, char **argv)
{
    using namespace hetcoll::test;
    const std::string_view what = argc > 1 ? argv[1] : "";
    Program program(argc, argv, "nonblocking_faults", MPI_THREAD_MULTIPLE);
    program.gpu();
    if (!Emulated().present()) {
        std::printf("skip nonblocking_faults: only the emulated driver fails on request\n");
    } else if (program.check(what == "every" || what == "launch", "which test?")) {
        run(program, what);
    }
    program.close_gpu();
    return program.finish();
}
