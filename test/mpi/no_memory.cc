// One rank has no memory for an allocation of hetcoll's own, at each in turn: in the making of a
// communicator, its first call, and later ones, of every kind. Either all ranks have the right
// result, or all get an error; and then they have right results again. "once": that allocation
// alone fails; "short": all from there on, until hetcoll gives up its reserve; "none": all, from
// the first to the call's end, of those whose ranks meet. With HETCOLL_EVERY_ALLOCATION in the
// environment at each indeed, else at some. With the name of a collective: of that one alone.
#include "test/mpi/check.h"
#include "test/mpi/own_allocations.h"

#include "engine/hetcoll.h"
#include "engine/process/memory_reserve.h"
#include "measure/persistent.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace hetcoll::test {
namespace {

long left = 0; // allocations until the one that fails
bool have_failed = false;
enum class Lack { kOnce, kShort, kNone } lack = Lack::kOnce;

bool has_memory()
{
    if (left > 0 && --left > 0) {
        return true;
    }
    const bool fails = lack == Lack::kNone ||
                       (lack == Lack::kOnce ? !have_failed : largest_freed() < kReserveBytes);
    have_failed = have_failed || fails;
    return !fails;
}

// While one lives the rank is short of memory from its nth allocation on.
class Shortage {
public:
    Shortage(bool is_here, long nth)
    {
        left = nth;
        have_failed = false;
        watch_own_allocations(is_here ? has_memory : nullptr);
    }
    ~Shortage() { watch_own_allocations(nullptr); }
    Shortage(const Shortage &) = delete;
    Shortage &operator=(const Shortage &) = delete;
};

// A call of all ranks on vectors of `count` elements, of which each rank gives its number + 1, and
// the number that has to be in the first element of this rank's block b of the result.
struct Kind {
    const char *name;
    int (*call)(const void *in, void *out, int count, MPI_Comm comm);
    int (*want)(int rank, int ranks, int block);
    bool all_blocks = false; // the result has a block of each rank
    // Of at least so many bytes: the ranks meet. Otherwise a rank without memory ends the job.
    int least_bytes = std::numeric_limits<int>::max();
};
constexpr int kLeastCollective = HETCOLL_LEAST_COLLECTIVE;

int wait_for(int code, MPI_Request *request)
{
    return code != MPI_SUCCESS ? code : MPI_Wait(request, MPI_STATUS_IGNORE);
}

int sum_of(int, int ranks, int) { return ranks * (ranks + 1) / 2; }
int sum_at_root(int rank, int ranks, int) { return rank == 0 ? sum_of(0, ranks, 0) : 0; }
int part(int, int, int block) { return block + 1; }
int part_at_root(int rank, int, int block) { return rank == 0 ? block + 1 : 0; }
int of_root(int, int, int) { return 1; }
int of_first(int, int, int) { return 1; }
int sum_before(int rank, int, int) { return sum_of(0, rank, 0); }
int sum_so_far(int rank, int, int) { return sum_of(0, rank + 1, 0); }

const Kind kKinds[] = {
    {"Allreduce",
     [](const void *in, void *out, int count, MPI_Comm comm) {
         return MPI_Allreduce(in, out, count, MPI_INT, MPI_SUM, comm);
     },
     sum_of, false, 0},
    {"Iallreduce",
     [](const void *in, void *out, int count, MPI_Comm comm) {
         MPI_Request request = MPI_REQUEST_NULL;
         return wait_for(MPI_Iallreduce(in, out, count, MPI_INT, MPI_SUM, comm, &request),
                         &request);
     },
     sum_of, false, 0},
    {"Allreduce_init",
     [](const void *in, void *out, int count, MPI_Comm comm) {
         MPI_Request request = MPI_REQUEST_NULL;
         int code = HETCOLL_ALLREDUCE_INIT(in, out, count, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL,
                                           &request);
         for (int start = 0; start < 2 && code == MPI_SUCCESS; ++start) {
             code = wait_for(MPI_Start(&request), &request);
         }
         if (request != MPI_REQUEST_NULL) {
             MPI_Request_free(&request);
         }
         return code;
     },
     sum_of, false, 0},
    {"Bcast",
     [](const void *, void *out, int count, MPI_Comm comm) {
         return MPI_Bcast(out, count, MPI_INT, 0, comm);
     },
     of_root, false, kLeastCollective},
    {"Ibcast",
     [](const void *, void *out, int count, MPI_Comm comm) {
         MPI_Request request = MPI_REQUEST_NULL;
         return wait_for(MPI_Ibcast(out, count, MPI_INT, 0, comm, &request), &request);
     },
     of_root},
    {"Reduce",
     [](const void *in, void *out, int count, MPI_Comm comm) {
         return MPI_Reduce(in, out, count, MPI_INT, MPI_SUM, 0, comm);
     },
     sum_at_root, false, kLeastCollective},
    {"Reduce_scatter_block",
     [](const void *in, void *out, int count, MPI_Comm comm) {
         int ranks = 1;
         MPI_Comm_size(comm, &ranks);
         return MPI_Reduce_scatter_block(in, out, count / ranks, MPI_INT, MPI_SUM, comm);
     },
     sum_of, false, kLeastCollective},
    {"Scan",
     [](const void *in, void *out, int count, MPI_Comm comm) {
         return MPI_Scan(in, out, count, MPI_INT, MPI_SUM, comm);
     },
     sum_so_far},
    {"Reduce_scatter",
     [](const void *in, void *out, int count, MPI_Comm comm) {
         int ranks = 1;
         MPI_Comm_size(comm, &ranks);
         const std::vector<int> counts(static_cast<std::size_t>(ranks), count / ranks);
         return MPI_Reduce_scatter(in, out, counts.data(), MPI_INT, MPI_SUM, comm);
     },
     sum_of, false, kLeastCollective},
    {"Exscan",
     [](const void *in, void *out, int count, MPI_Comm comm) {
         return MPI_Exscan(in, out, count, MPI_INT, MPI_SUM, comm);
     },
     sum_before},
    {"Ireduce_scatter_block",
     [](const void *in, void *out, int count, MPI_Comm comm) {
         int ranks = 1;
         MPI_Comm_size(comm, &ranks);
         MPI_Request request = MPI_REQUEST_NULL;
         return wait_for(
             MPI_Ireduce_scatter_block(in, out, count / ranks, MPI_INT, MPI_SUM, comm, &request),
             &request);
     },
     sum_of},
    {"Scatter",
     [](const void *in, void *out, int count, MPI_Comm comm) {
         return MPI_Scatter(in, count, MPI_INT, out, count, MPI_INT, 0, comm);
     },
     of_first},
    {"Alltoall",
     [](const void *in, void *out, int count, MPI_Comm comm) {
         return MPI_Alltoall(in, count, MPI_INT, out, count, MPI_INT, comm);
     },
     part, true},
    {"Ialltoall",
     [](const void *in, void *out, int count, MPI_Comm comm) {
         MPI_Request request = MPI_REQUEST_NULL;
         return wait_for(MPI_Ialltoall(in, count, MPI_INT, out, count, MPI_INT, comm, &request),
                         &request);
     },
     part, true},
    {"Gather",
     [](const void *in, void *out, int count, MPI_Comm comm) {
         return MPI_Gather(in, count, MPI_INT, out, count, MPI_INT, 0, comm);
     },
     part_at_root, true},
    {"Allgather",
     [](const void *in, void *out, int count, MPI_Comm comm) {
         return MPI_Allgather(in, count, MPI_INT, out, count, MPI_INT, comm);
     },
     part, true, kLeastCollective},
    {"Iallgather",
     [](const void *in, void *out, int count, MPI_Comm comm) {
         MPI_Request request = MPI_REQUEST_NULL;
         return wait_for(MPI_Iallgather(in, count, MPI_INT, out, count, MPI_INT, comm, &request),
                         &request);
     },
     part, true},
};

class Calls {
public:
    Calls(Program &program, const Kind &kind, Memory memory, int count)
        : program_(program), kind_(kind), count_(count), in_(allocate(memory)),
          out_(allocate(memory))
    {
        const std::vector<int> own(elements(), program.rank() + 1);
        program.require(in_.write(0, own.data(), own.size() * sizeof(int)));
    }
    // MPI's code; or that of a success with a wrong result.
    int make(MPI_Comm comm)
    {
        const bool is_bcast = kind_.want == of_root;
        const std::vector<int> before(elements(), is_bcast ? program_.rank() + 1 : 0);
        program_.require(out_.write(0, before.data(), before.size() * sizeof(int)));
        const int code = kind_.call(in_.data(), out_.data(), count_, comm);
        return code == MPI_SUCCESS && !is_right() ? kWrong : code;
    }
    static constexpr int kWrong = -1;

private:
    [[nodiscard]] std::size_t elements() const
    {
        return static_cast<std::size_t>(count_) * static_cast<std::size_t>(program_.ranks());
    }
    [[nodiscard]] Buffer allocate(Memory memory)
    {
        auto buffer = Buffer::allocate(memory == Memory::kHost ? nullptr : &program_.gpu(), memory,
                                       elements() * sizeof(int));
        if (!buffer.ok()) {
            program_.require(buffer.status());
        }
        return std::move(*buffer);
    }
    [[nodiscard]] bool is_right() const
    {
        std::vector<int> found(elements());
        program_.require(out_.read(0, found.data(), found.size() * sizeof(int)));
        for (int block = 0; block < (kind_.all_blocks ? program_.ranks() : 1); ++block) {
            const int want = kind_.want(program_.rank(), program_.ranks(), block);
            if (found[static_cast<std::size_t>(block) * static_cast<std::size_t>(count_)] != want) {
                return false;
            }
        }
        return true;
    }

    Program &program_;
    const Kind &kind_;
    const int count_;
    Buffer in_, out_;
};

enum class When { kFirst, kLater };

class Test {
public:
    Test(Program &program, int victim) : program_(program), victim_(victim) {}

    void run(const Kind &kind, When when, Memory memory, int count)
    {
        const bool every = std::getenv("HETCOLL_EVERY_ALLOCATION") != nullptr;
        Calls calls(program_, kind, memory, count);
        bool more = true;
        for (long nth = 1; more && (lack != Lack::kNone || nth == 1);
             nth += every ? 1 : (nth + 2) / 2) {
            const std::string what = std::string(kind.name) +
                                     (when == When::kFirst ? ", first" : "") + " of " +
                                     std::to_string(count) + " on " + memory_name(memory) +
                                     " memory, allocation " + std::to_string(nth);
            more = run_one(calls, when, nth, what.c_str());
        }
    }

    [[nodiscard]] int shortages() const { return shortages_; }

private:
    // False: there was no such allocation, or a check has failed.
    bool run_one(Calls &calls, When when, long nth, const char *what)
    {
        MPI_Comm comm = MPI_COMM_NULL;
        if (when == When::kLater) {
            duplicate(comm);
            // The second small call on device memory finds the peers, as a large one does at once.
            for (int before = 0; before < (lack == Lack::kNone ? 3 : 1); ++before) {
                check(calls.make(comm), what, false);
            }
        }
        int code = MPI_SUCCESS;
        {
            const Shortage shortage(program_.rank() == victim_, nth);
            if (when == When::kFirst) {
                duplicate(comm);
            }
            code = calls.make(comm);
        }
        int reached = program_.rank() == victim_ && have_failed ? 1 : 0;
        const bool was_right = check(code, what, true);
        // A rank that has ended a call by itself meets the others in its next one, which fails too.
        const bool is_level = check(calls.make(comm), what, true);
        const bool is_right = check(calls.make(comm), what, false);
        MPI_Comm_free(&comm);
        MPI_Bcast(&reached, 1, MPI_INT, victim_, MPI_COMM_WORLD);
        shortages_ += reached;
        return reached != 0 && was_right && is_level && is_right;
    }
    void duplicate(MPI_Comm &comm)
    {
        program_.check(MPI_Comm_dup(MPI_COMM_WORLD, &comm) == MPI_SUCCESS, "no communicator");
        MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    }
    // All succeed with right results, or, if they may, all fail. The same on all ranks.
    bool check(int code, const char *what, bool may_fail)
    {
        const int mine = code == Calls::kWrong ? 4 : code == MPI_SUCCESS ? 1 : 2;
        std::vector<int> of_rank(static_cast<std::size_t>(program_.ranks()));
        MPI_Allgather(&mine, 1, MPI_INT, of_rank.data(), 1, MPI_INT, MPI_COMM_WORLD);
        int all = 0;
        for (const int one : of_rank) {
            all |= one;
        }
        return program_.check(all == 1 || (may_fail && all == 2), "%s: rank %d %s", what,
                              program_.rank(),
                              mine == 4   ? "has a wrong result"
                              : mine == 1 ? "succeeds, others do not"
                                          : "fails");
    }

    Program &program_;
    const int victim_;
    int shortages_ = 0;
};

} // namespace
} // namespace hetcoll::test

int main(int argc, char **argv)
{
    using namespace hetcoll;
    using namespace hetcoll::test;
    Program program(argc, argv, "no_memory");
    if (argc != 3 && argc != 4) {
        program.check(false, "usage: no_memory VICTIM once|short|none [COLLECTIVE]");
        return program.finish();
    }
    const std::string_view what = argv[2];
    lack = what == "once" ? Lack::kOnce : what == "short" ? Lack::kShort : Lack::kNone;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); // of requests in Open MPI 4.1
    Test test(program, std::atoi(argv[1]));
    for (const Kind &kind : kKinds) {
        if (argc == 4 && std::string_view(argv[3]) != kind.name) {
            continue;
        }
        for (const int count : {12, 60'000}) {
            if (lack == Lack::kNone && count * static_cast<int>(sizeof(int)) < kind.least_bytes) {
                continue;
            }
            for (const When when : {When::kFirst, When::kLater}) {
                test.run(kind, when, Memory::kDevice, count);
                test.run(kind, when, Memory::kHost, count);
            }
        }
    }
    if (program.rank() == 0) {
        std::printf("note no_memory: %d shortages\n", test.shortages());
    }
    program.close_gpu();
    return program.finish();
}
