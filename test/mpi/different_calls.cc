// Ranks that do not call the same: every rank gets the error that tells which argument differs, and
// the communicator serves the next call. What MPI lets ranks call differently stays right. The
// first argument is "mistakes", then how many, or "one", then which, or "legal".
#include "include/hetcoll_types.h"
#include "measure/persistent.h"
#include "test/mpi/vector.h"

#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace hetcoll::test {
namespace {

constexpr std::size_t kMostBytes = 1u << 20;

enum class Way { kBlocking, kNonblocking, kPersistent };

struct Arguments {
    int count = 2;
    MPI_Datatype type = MPI_INT;
    MPI_Op op = MPI_SUM;
};

struct Mistake {
    const char *name;
    int error; // class
    Arguments right, wrong;
};

const std::vector<Mistake> &mistakes()
{
    static const std::vector<Mistake> all = {
        {"count", MPI_ERR_COUNT, {2}, {1}},
        {"count_by_far", MPI_ERR_COUNT, {2}, {2000}},
        {"count_beyond_small", MPI_ERR_COUNT, {2}, {100'000}},
        {"large_count", MPI_ERR_COUNT, {200'000}, {100'000}},
        {"type", MPI_ERR_TYPE, {2, MPI_INT}, {2, MPI_FLOAT}},
        {"longer_type", MPI_ERR_TYPE, {2, MPI_INT}, {2, MPI_DOUBLE}},
        {"large_type", MPI_ERR_TYPE, {100'000, MPI_INT}, {100'000, MPI_FLOAT}},
        {"unknown_type", MPI_ERR_TYPE, {2, MPI_DOUBLE}, {2, MPI_LONG_DOUBLE}},
        {"op", MPI_ERR_OP, {2, MPI_INT, MPI_SUM}, {2, MPI_INT, MPI_MAX}},
        {"large_op", MPI_ERR_OP, {100'000, MPI_INT, MPI_SUM}, {100'000, MPI_INT, MPI_MAX}},
    };
    return all;
}

int error_class(int code)
{
    int found = code;
    MPI_Error_class(code, &found);
    return found;
}

int reduce(Way way, void *buffer, const Arguments &call, MPI_Comm comm)
{
    if (way == Way::kBlocking) {
        return MPI_Allreduce(MPI_IN_PLACE, buffer, call.count, call.type, call.op, comm);
    }
    MPI_Request request = MPI_REQUEST_NULL;
    if (way == Way::kNonblocking) {
        MPI_Iallreduce(MPI_IN_PLACE, buffer, call.count, call.type, call.op, comm, &request);
        return MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    const int made = HETCOLL_ALLREDUCE_INIT(MPI_IN_PLACE, buffer, call.count, call.type, call.op,
                                            comm, MPI_INFO_NULL, &request);
    if (made != MPI_SUCCESS) {
        return made;
    }
    MPI_Start(&request);
    const int code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
    return code;
}

void expect(Program &program, int code, int error, const std::string &what)
{
    if (program.rank() == 0) {
        std::printf("note mistake: %s\n", what.c_str());
    }
    program.check(error_class(code) == error, "%s: error class %d on rank %d, not %d", what.c_str(),
                  error_class(code), program.rank(), error);
}

void check_next(Program &program, MPI_Comm comm, Memory memory, std::size_t count)
{
    check_allreduce(
        program, comm,
        {{ElementKind::kInt32, ReduceOp::kSum, Values::kExact, 3}, count, memory, memory});
}

void make_mistake(Program &program, MPI_Comm comm, const Mistake &mistake, Way way, int odd,
                  Memory memory)
{
    const Vector<char> buffer = zeros(program, kMostBytes, memory);
    const bool wrong = program.rank() == odd;
    const int code = reduce(way, buffer.data(), wrong ? mistake.wrong : mistake.right, comm);
    expect(program, code, mistake.error, std::string("'") + mistake.name + "'");
}

// Device memory, whose broadcasts and reductions hetcoll serves.
void mistake_collectives(Program &program, MPI_Comm comm, int odd)
{
    constexpr int kCount = 100'000;
    const Vector<char> buffer = zeros(program, kMostBytes, Memory::kDevice);
    const Vector<char> other = zeros(program, kMostBytes, Memory::kDevice);
    const bool wrong = program.rank() == odd;
    int code = wrong ? MPI_Bcast(buffer.data(), kCount, MPI_INT, 0, comm)
                     : MPI_Allreduce(MPI_IN_PLACE, buffer.data(), kCount, MPI_INT, MPI_SUM, comm);
    expect(program, code, MPI_ERR_OTHER, "a broadcast among sums");
    code = MPI_Bcast(buffer.data(), kCount, MPI_INT, wrong ? 1 : 0, comm);
    expect(program, code, MPI_ERR_ROOT, "another root of a broadcast");
    code = MPI_Reduce(buffer.data(), other.data(), kCount, MPI_INT, MPI_SUM, wrong ? 1 : 0, comm);
    expect(program, code, MPI_ERR_ROOT, "another root of a reduction");
    code = MPI_Reduce(buffer.data(), other.data(), kCount, MPI_INT, wrong ? MPI_MAX : MPI_SUM, 0,
                      comm);
    expect(program, code, MPI_ERR_OP, "another op of a reduction");
    code = MPI_Bcast(buffer.data(), wrong ? 2 * kCount : kCount, MPI_INT, 0, comm);
    expect(program, code, MPI_ERR_COUNT, "another count of a broadcast");
}

// In an order that all ranks draw alike.
void make_mistakes(Program &program, int count)
{
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); // of requests in Open MPI 4.1
    std::mt19937 random(7);
    const auto draw = [&random](std::size_t most) { return random() % most; };
    for (int made = 0; made < count; ++made) {
        const Mistake &mistake = mistakes()[draw(mistakes().size())];
        const auto way = std::string_view(mistake.name) == "unknown_type"
                             ? Way::kBlocking // others are left to Open MPI
                             : static_cast<Way>(draw(3));
        const int odd = static_cast<int>(draw(static_cast<std::size_t>(program.ranks())));
        Memory memory = Memory::kHost;
        if (const std::size_t where = draw(3); where == 1) {
            memory = Memory::kDevice;
        } else if (where == 2 && program.rank() % 2 == 0) {
            memory = Memory::kDevice;
        }
        if (made % 8 == 7) {
            mistake_collectives(program, comm, odd);
        } else {
            make_mistake(program, comm, mistake, way, odd, memory);
        }
        check_next(program, comm, Memory::kHost, 3);
        if (made % 4 == 1) {
            check_next(program, comm, Memory::kDevice, 50'000);
        }
    }
    MPI_Comm_free(&comm);
}

void make_one(Program &program, std::string_view name)
{
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (const Mistake &mistake : mistakes()) {
        if (name == mistake.name) {
            make_mistake(program, MPI_COMM_WORLD, mistake, Way::kBlocking, program.ranks() - 1,
                         Memory::kHost);
            check_next(program, MPI_COMM_WORLD, Memory::kHost, 3);
            return;
        }
    }
    program.check(false, "there is no such mistake");
}

void add(void *in, void *inout, int *count, MPI_Datatype *type)
{
    int size = 0;
    MPI_Type_size(*type, &size);
    for (int i = 0; i < *count * size / static_cast<int>(sizeof(float)); ++i) {
        static_cast<float *>(inout)[i] += static_cast<const float *>(in)[i];
    }
}
void add_too(void *in, void *inout, int *count, MPI_Datatype *type) { add(in, inout, count, type); }

// Differences that MPI allows between ranks; each call has to succeed.
void call_legally(Program &program)
{
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    const bool odd = program.rank() % 2 != 0;
    const int ranks = program.ranks();
    MPI_Datatype pair, same;
    MPI_Type_contiguous(2, MPI_FLOAT, &pair);
    MPI_Type_commit(&pair);
    MPI_Type_dup(MPI_FLOAT, &same);
    MPI_Op op;
    MPI_Op_create(odd ? add_too : add, 1, &op);
    const auto succeed = [&program](int code, const char *what) {
        program.check(code == MPI_SUCCESS, "%s: error %d", what, code);
    };
    for (const int count : {2, 20'000, 100'000}) {
        const Memory mixed = odd ? Memory::kHost : Memory::kDevice;
        for (const Memory memory : {Memory::kHost, Memory::kDevice, mixed}) {
            const Vector<char> buffer = zeros(program, kMostBytes, memory),
                               other = zeros(program, kMostBytes, memory);
            void *const at = buffer.data();
            const void *const send = odd ? MPI_IN_PLACE : other.data();
            succeed(MPI_Allreduce(send, at, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD),
                    "some ranks in place");
            succeed(MPI_Allreduce(MPI_IN_PLACE, at, count, odd ? MPI_LONG_LONG : MPI_INT64_T,
                                  MPI_SUM, MPI_COMM_WORLD),
                    "two names of a type");
            succeed(MPI_Allreduce(MPI_IN_PLACE, at, count, MPI_FLOAT, op, MPI_COMM_WORLD),
                    "a user-defined op by other handles and functions");
            succeed(
                MPI_Allreduce(MPI_IN_PLACE, at, count, odd ? same : MPI_FLOAT, op, MPI_COMM_WORLD),
                "a user-defined op on a duplicate of the type");
            succeed(
                MPI_Bcast(at, odd ? count / 2 : count, odd ? pair : MPI_FLOAT, 0, MPI_COMM_WORLD),
                "a broadcast of pairs to some ranks");
            const int share = count / ranks / 2 * 2;
            succeed(MPI_Allgather(other.data(), odd ? share / 2 : share, odd ? pair : MPI_FLOAT, at,
                                  odd ? share : share / 2, odd ? MPI_FLOAT : pair, MPI_COMM_WORLD),
                    "an allgather of pairs on some ranks");
            succeed(MPI_Reduce(program.rank() == 0 ? MPI_IN_PLACE : at,
                               program.rank() == 0 ? at : nullptr, count, MPI_FLOAT, MPI_SUM, 0,
                               MPI_COMM_WORLD),
                    "a reduction in place at the root");
            // The root's count and type of the receive side only; and parts of unequal size.
            succeed(MPI_Gather(at, share, MPI_FLOAT, odd ? nullptr : other.data(), odd ? 0 : share,
                               odd ? MPI_DATATYPE_NULL : MPI_FLOAT, 0, MPI_COMM_WORLD),
                    "a gather");
            succeed(MPI_Allreduce(MPI_IN_PLACE, at, 0, odd ? MPI_INT : MPI_FLOAT, MPI_SUM,
                                  MPI_COMM_WORLD),
                    "nothing, of any type");
        }
    }
    MPI_Op_free(&op);
    MPI_Type_free(&pair);
    MPI_Type_free(&same);
}

} // namespace
} // namespace hetcoll::test

int main(int argc, char **argv)
{
    using namespace hetcoll::test;
    Program program(argc, argv, "different_calls");
    const std::string_view what = argc > 1 ? argv[1] : "";
    if (what == "mistakes" && argc > 2) {
        make_mistakes(program, std::atoi(argv[2]));
    } else if (what == "one" && argc > 2) {
        make_one(program, argv[2]);
    } else if (what == "legal") {
        call_legally(program);
    } else {
        program.check(false, "usage: different_calls mistakes COUNT | one MISTAKE | legal");
    }
    return program.finish();
}
