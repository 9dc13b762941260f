// MPI_Iallreduce and persistent MPI_Allreduce on device buffers: many in flight, on several
// communicators, in any order of completion, among blocking calls.
#include "test/mpi/check.h"

#include "include/hetcoll_types.h"
#include "measure/persistent.h"

#include <algorithm>
#include <deque>
#include <random>
#include <vector>

namespace hetcoll::test {
namespace {

// One call's buffers and request.
class Started {
public:
    Started(Program &program, MPI_Comm comm, const Call &call)
        : program_(program), call_(call), comm_(comm), buffers_(program, comm, call)
    {
        buffers_.fill();
    }

    MPI_Request *start()
    {
        const int code =
            MPI_Iallreduce(send(), buffers_.recv(), count(), type(), op(), comm_, &request_);
        program_.check(code == MPI_SUCCESS, "MPI_Iallreduce of %s failed", describe(call_).c_str());
        return &request_;
    }
    MPI_Request *prepare()
    {
        const int code = HETCOLL_ALLREDUCE_INIT(send(), buffers_.recv(), count(), type(), op(),
                                                comm_, MPI_INFO_NULL, &request_);
        program_.check(code == MPI_SUCCESS, "MPI_Allreduce_init of %s failed",
                       describe(call_).c_str());
        return &request_;
    }
    void refill() { buffers_.fill(); }
    void check() { buffers_.check(); }

private:
    [[nodiscard]] const void *send() const
    {
        return call_.in_place ? MPI_IN_PLACE : buffers_.send();
    }
    [[nodiscard]] int count() const { return static_cast<int>(call_.count); }
    [[nodiscard]] MPI_Datatype type() const
    {
        return program_.names().datatype(call_.pattern.kind);
    }
    [[nodiscard]] MPI_Op op() const
    {
        return program_.names().op(call_.pattern.op, call_.pattern.kind);
    }

    Program &program_;
    Call call_;
    MPI_Comm comm_;
    Buffers buffers_;
    MPI_Request request_ = MPI_REQUEST_NULL;
};

Call sum_of(std::size_t count, std::uint32_t seed, Memory memory = Memory::kDevice)
{
    return {{ElementKind::kFloat32, ReduceOp::kSum, Values::kExact, seed},
            count,
            memory,
            memory,
            seed % 2 == 0};
}

void every_memory_and_size(Program &program)
{
    std::uint32_t seed = 1;
    for (const Memory memory : {Memory::kDevice, Memory::kHost, Memory::kManaged}) {
        for (const std::size_t count : {1, 1'000, 5'000, 300'001}) {
            Started call(program, MPI_COMM_WORLD, sum_of(count, ++seed, memory));
            MPI_Wait(call.start(), MPI_STATUS_IGNORE);
            call.check();
        }
    }
    // Rank 0 has host memory, as one that has left a training loop.
    for (const std::size_t count : {10, 300'001}) {
        const Memory memory = program.rank() == 0 ? Memory::kHost : Memory::kDevice;
        Started call(program, MPI_COMM_WORLD, sum_of(count, ++seed, memory));
        MPI_Wait(call.start(), MPI_STATUS_IGNORE);
        call.check();
    }
}

// As many requests as a framework has layers, complete in whatever order the program asks for.
void many_at_once(Program &program)
{
    constexpr int kOutstanding = 64;
    std::mt19937 random(static_cast<unsigned>(program.rank())); // ranks differ in the order
    std::deque<Started> calls;
    std::vector<MPI_Request> requests;
    for (int i = 0; i < kOutstanding; ++i) {
        const Memory memory = i % 5 == 0 ? Memory::kHost : Memory::kDevice;
        calls.emplace_back(program, MPI_COMM_WORLD,
                           sum_of(i % 7 == 0 ? 100'000 : 17u * i + 1, 10u + i, memory));
        requests.push_back(*calls.back().start());
    }
    std::vector<int> order(kOutstanding);
    for (int i = 0; i < kOutstanding; ++i) {
        order[i] = i;
    }
    std::shuffle(order.begin(), order.end(), random);
    for (int i = 0; i < kOutstanding / 4; ++i) {
        MPI_Wait(&requests[order[i]], MPI_STATUS_IGNORE);
    }
    int index = 0, flag = 0;
    MPI_Waitany(kOutstanding, requests.data(), &index, MPI_STATUS_IGNORE);
    program.check(index != MPI_UNDEFINED, "Waitany found no request");
    std::vector<int> some(kOutstanding);
    int found = 0;
    MPI_Testsome(kOutstanding, requests.data(), &found, some.data(), MPI_STATUSES_IGNORE);
    MPI_Waitall(kOutstanding, requests.data(), MPI_STATUSES_IGNORE);
    MPI_Testall(kOutstanding, requests.data(), &flag, MPI_STATUSES_IGNORE);
    program.check(flag != 0, "Testall says that something is left after Waitall");
    for (Started &call : calls) {
        call.check();
    }
}

// The tags of blocking collectives and of Open MPI's own nonblocking ones are others than ours.
void among_other_collectives(Program &program)
{
    Started large(program, MPI_COMM_WORLD, sum_of(400'000, 90));
    Started small(program, MPI_COMM_WORLD, sum_of(100, 91));
    MPI_Request requests[3] = {*large.start(), MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    int word = program.rank() == 0 ? 17 : 0, sum = 0, one = 1;
    MPI_Ibcast(&word, 1, MPI_INT, 0, MPI_COMM_WORLD, &requests[1]);
    requests[2] = *small.start();
    std::vector<int> all(static_cast<std::size_t>(program.ranks()));
    const int mine = program.rank();
    MPI_Allgather(&mine, 1, MPI_INT, all.data(), 1, MPI_INT, MPI_COMM_WORLD);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD); // behind them
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    program.check(word == 17, "Ibcast between brought %d", word);
    program.check(sum == program.ranks(), "Allreduce behind brought %d", sum);
    for (int rank = 0; rank < program.ranks(); ++rank) {
        program.check(all[rank] == rank, "Allgather between brought %d for rank %d", all[rank],
                      rank);
    }
    large.check();
    small.check();
}

// MPI lets ranks start operations of different communicators in different orders, also the first
// of each, which makes the communicator's control page and finds its peers.
void opposite_orders(Program &program)
{
    MPI_Comm comms[2];
    for (MPI_Comm &comm : comms) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    }
    for (int round = 0; round < 3; ++round) {
        const int first = (program.rank() + round) % 2;
        std::deque<Started> calls;
        MPI_Request requests[2];
        for (int i = 0; i < 2; ++i) {
            calls.emplace_back(program, comms[i], sum_of(round == 1 ? 7 : 60'000, 200u + i));
        }
        requests[first] = *calls[first].start();
        requests[1 - first] = *calls[1 - first].start();
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        calls[0].check();
        calls[1].check();
    }
    for (MPI_Comm &comm : comms) {
        MPI_Comm_free(&comm);
    }
}

// An operation under way completes normally.
void freed_communicator(Program &program)
{
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    const Call call = sum_of(150'001, 301);
    Buffers buffers(program, MPI_COMM_WORLD, call);
    buffers.fill();
    MPI_Request request;
    MPI_Iallreduce(call.in_place ? MPI_IN_PLACE : buffers.send(), buffers.recv(),
                   static_cast<int>(call.count), MPI_FLOAT, MPI_SUM, comm, &request);
    MPI_Comm_free(&comm);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    buffers.check();
}

void persistent(Program &program)
{
    std::deque<Started> calls;
    std::vector<MPI_Request> requests;
    std::uint32_t seed = 400;
    for (const std::size_t count : {2, 1'000, 250'000}) {
        for (const Memory memory : {Memory::kDevice, Memory::kHost}) {
            calls.emplace_back(program, MPI_COMM_WORLD, sum_of(count, ++seed, memory));
            requests.push_back(*calls.back().prepare());
        }
    }
    const int count = static_cast<int>(requests.size());
    for (int round = 0; round < 4; ++round) {
        for (Started &call : calls) {
            call.refill();
        }
        MPI_Startall(count, requests.data());
        MPI_Waitall(count, requests.data(), MPI_STATUSES_IGNORE);
        for (Started &call : calls) {
            call.check();
        }
    }
    for (MPI_Request &request : requests) {
        program.check(request != MPI_REQUEST_NULL, "a persistent request is gone after Wait");
        MPI_Request_free(&request);
    }
}

void add_bytes(void *in, void *inout, int *count, MPI_Datatype *)
{
    for (int i = 0; i < 2 * *count; ++i) {
        static_cast<unsigned char *>(inout)[i] = static_cast<unsigned char>(
            static_cast<unsigned char *>(inout)[i] + static_cast<unsigned char *>(in)[i]);
    }
}

// Half by the operations of hetcoll_types.h; and an op on two bytes that nobody knows.
void user_operations(Program &program)
{
    hetcoll_types types;
    hetcoll_types_create(&types);
    MPI_Op unknown = MPI_OP_NULL;
    MPI_Op_create(add_bytes, 1, &unknown);
    const auto ranks = static_cast<std::uint16_t>(program.ranks());
    for (const int count : {3, 70'001}) {
        for (const MPI_Op op : {types.float16_sum, unknown}) {
            const auto bytes = static_cast<std::size_t>(count) * 2;
            auto made = Buffer::allocate(&program.gpu(), Memory::kDevice, bytes);
            program.require(made.status());
            const Buffer buffer = std::move(*made);
            const std::vector<std::uint16_t> ones(static_cast<std::size_t>(count),
                                                  op == unknown ? 0x0101 : 0x3c00);
            program.require(buffer.write(0, ones.data(), bytes));
            MPI_Request request;
            MPI_Iallreduce(MPI_IN_PLACE, buffer.data(), count, types.float16, op, MPI_COMM_WORLD,
                           &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            std::vector<std::uint16_t> sum(static_cast<std::size_t>(count));
            program.require(buffer.read(0, sum.data(), bytes));
            // 1.0 n times in half: exact small integers.
            static constexpr std::uint16_t kHalf[] = {0,      0x3c00, 0x4000, 0x4200, 0x4400,
                                                      0x4500, 0x4600, 0x4700, 0x4800};
            const std::uint16_t expected =
                op == unknown ? static_cast<std::uint16_t>(ranks * 0x0101) : kHalf[ranks];
            const bool right = std::all_of(sum.begin(), sum.end(),
                                           [&](std::uint16_t value) { return value == expected; });
            program.check(right, "a nonblocking user-defined op on %d elements is wrong", count);
        }
    }
    MPI_Op_free(&unknown);
    hetcoll_types_free(&types);
}

// A type that hetcoll does not reduce: staged, by Open MPI's own request.
void unreduced_type(Program &program)
{
    constexpr int kCount = 1000;
    constexpr auto kBytes = kCount * sizeof(long double);
    auto made = Buffer::allocate(&program.gpu(), Memory::kDevice, kBytes);
    program.require(made.status());
    const Buffer buffer = std::move(*made);
    const auto reduce = [&](bool persistent) {
        const std::vector<long double> ones(kCount, 1);
        program.require(buffer.write(0, ones.data(), kBytes));
        MPI_Request request;
        if (persistent) {
            HETCOLL_ALLREDUCE_INIT(MPI_IN_PLACE, buffer.data(), kCount, MPI_LONG_DOUBLE, MPI_SUM,
                                   MPI_COMM_WORLD, MPI_INFO_NULL, &request);
            MPI_Start(&request);
        } else {
            MPI_Iallreduce(MPI_IN_PLACE, buffer.data(), kCount, MPI_LONG_DOUBLE, MPI_SUM,
                           MPI_COMM_WORLD, &request);
        }
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (persistent) {
            MPI_Request_free(&request);
        }
        std::vector<long double> sum(kCount);
        program.require(buffer.read(0, sum.data(), kBytes));
        const bool right = std::all_of(sum.begin(), sum.end(), [&](long double value) {
            return value == static_cast<long double>(program.ranks());
        });
        program.check(right, "%s Allreduce of long double is wrong",
                      persistent ? "persistent" : "nonblocking");
    };
    reduce(false);
    reduce(true);
}

} // namespace
} // namespace hetcoll::test

int main(int argc, char **argv)
{
    using namespace hetcoll::test;
    Program program(argc, argv, "nonblocking", MPI_THREAD_MULTIPLE);
    every_memory_and_size(program);
    many_at_once(program);
    among_other_collectives(program);
    opposite_orders(program);
    freed_communicator(program);
    persistent(program);
    user_operations(program);
    unreduced_type(program);
    return program.finish();
}
