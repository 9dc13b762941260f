// Communicators, buffers and handles that come and go: nothing of them stays, and what comes to
// their addresses later is not taken for them. The argument chooses:
//   communicators   1,000 made, used in every way and freed (R16)
//   splits          into parts of one rank, of all, of some and of none
//   buffers         freed as soon as MPI lets go of them; others at their addresses
//   handles         operations and types made at the address of freed ones (R18)
#include "include/hetcoll_types.h"
#include "measure/persistent.h"
#include "test/mpi/check.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace hetcoll::test {
namespace {

Call sum_of(std::size_t count, std::uint32_t seed)
{
    return {{ElementKind::kFloat32, ReduceOp::kSum, Values::kExact, seed},
            count,
            Memory::kDevice,
            Memory::kDevice,
            seed % 2 == 0};
}

Buffer allocate(Program &program, Memory memory, std::size_t bytes)
{
    auto made = Buffer::allocate(memory == Memory::kHost ? nullptr : &program.gpu(), memory, bytes);
    if (!made.ok()) {
        program.require(made.status());
    }
    return std::move(*made);
}

// ---- communicators ----

// The resources that a process holds. Device and page-locked memory are counted by calls, the
// test's own too.
struct Held {
    long resident_kb = 0, descriptors = 0, threads = 0;
    long long device = 0, pinned = 0, streams = 0, events = 0, mappings = 0;
};

long entries_of(const char *folder)
{
    const std::filesystem::directory_iterator entries(folder);
    return static_cast<long>(std::distance(begin(entries), end(entries)));
}

Held what_is_held()
{
    Held held{.descriptors = entries_of("/proc/self/fd"), .threads = entries_of("/proc/self/task")};
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;) {
        if (word == "VmRSS:") {
            status >> held.resident_kb;
            break;
        }
    }
    const Emulated emulated;
    const auto made = [&](const char *make, const char *unmake) {
        return static_cast<long long>(emulated.calls(make)) -
               static_cast<long long>(emulated.calls(unmake));
    };
    held.device = made("cuMemAlloc", "cuMemFree");
    held.pinned = made("cuMemHostAlloc", "cuMemFreeHost");
    held.streams = made("cuStreamCreate", "cuStreamDestroy") +
                   static_cast<long long>(emulated.calls("cuStreamCreateWithPriority"));
    held.events = made("cuEventCreate", "cuEventDestroy");
    held.mappings = made("cuIpcOpenMemHandle", "cuIpcCloseMemHandle");
    return held;
}

class Churn {
public:
    explicit Churn(Program &program)
        : program_(program), vector_(allocate(program, Memory::kDevice, kCount * sizeof(int))),
          zeros_(kCount)
    {
    }

    // One communicator's life: a call of the kind that comes next.
    void one(int i)
    {
        MPI_Comm comm = MPI_COMM_NULL;
        if (i % 3 == 0) {
            MPI_Comm_split(MPI_COMM_WORLD, 0, i % 2 == 0 ? -program_.rank() : 0, &comm);
        } else {
            MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        }
        program_.require(vector_.write(0, zeros_.data(), kCount * sizeof(int)));
        MPI_Request request = MPI_REQUEST_NULL;
        switch (i % 5) {
        case 0: reduce(comm, 3); break;
        case 1: reduce(comm, kCount); break;
        case 2:
            MPI_Iallreduce(MPI_IN_PLACE, vector_.data(), kCount, MPI_INT, MPI_MAX, comm, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            break;
        case 3: MPI_Bcast(vector_.data(), kCount, MPI_INT, 0, comm); break;
        default:
            HETCOLL_ALLREDUCE_INIT(MPI_IN_PLACE, vector_.data(), kCount, MPI_INT, MPI_MAX, comm,
                                   MPI_INFO_NULL, &request);
            MPI_Start(&request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            MPI_Request_free(&request);
        }
        MPI_Comm_free(&comm);
    }

private:
    static constexpr int kCount = 40'000; // 160 kB: hetcoll's own broadcast serves it

    void reduce(MPI_Comm comm, int count)
    {
        MPI_Allreduce(MPI_IN_PLACE, vector_.data(), count, MPI_INT, MPI_MAX, comm);
    }

    Program &program_;
    Buffer vector_;
    std::vector<int> zeros_;
};

// R16: as Horovod's process sets and mpi4py's tests make them.
void communicators(Program &program)
{
    constexpr int kAll = 1'000, kWarmUp = 300;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    constexpr long kMostKb = 1'000; // which keep freed memory for a while
#else
    constexpr long kMostKb = 1; // a communicator
#endif
    Churn churn(program);
    Held before;
    for (int i = 0; i < kAll; ++i) {
        if (i == kWarmUp) {
            before = what_is_held();
        }
        churn.one(i);
    }
    const Held after = what_is_held();
    const auto same = [&](long long was, long long is, const char *what) {
        program.check(was == is, "%lld %s after %d communicators, %lld after %d", was, what,
                      kWarmUp, is, kAll);
    };
    same(before.descriptors, after.descriptors, "descriptors");
    same(before.threads, after.threads, "threads");
    same(before.device, after.device, "allocations of device memory");
    same(before.pinned, after.pinned, "allocations of page-locked memory");
    same(before.streams, after.streams, "streams");
    same(before.events, after.events, "events");
    same(before.mappings, after.mappings, "mappings");
    const long grown_kb = after.resident_kb - before.resident_kb;
    program.check(grown_kb <= kMostKb * (kAll - kWarmUp), "%ld KB more after %d communicators",
                  grown_kb, kAll - kWarmUp);
    if (program.rank() == 0) {
        std::printf("note churn: %ld KB more than %ld after %d communicators\n", grown_kb,
                    before.resident_kb, kAll - kWarmUp);
    }
}

// ---- splits ----

void use(Program &program, MPI_Comm comm, std::uint32_t seed)
{
    if (comm == MPI_COMM_NULL) {
        return;
    }
    for (const std::size_t count : {7, 60'001}) {
        check_allreduce(program, comm, sum_of(count, seed));
        Call call = sum_of(count, seed + 1);
        Buffers buffers(program, comm, call);
        buffers.fill();
        MPI_Request request = MPI_REQUEST_NULL;
        MPI_Iallreduce(call.in_place ? MPI_IN_PLACE : buffers.send(), buffers.recv(),
                       static_cast<int>(count), MPI_FLOAT, MPI_SUM, comm, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        buffers.check();
    }
}

void splits(Program &program)
{
    const int rank = program.rank(), last = program.ranks() - 1;
    const auto split = [&](int color, int key, std::uint32_t seed) {
        MPI_Comm comm = MPI_COMM_NULL;
        MPI_Comm_split(MPI_COMM_WORLD, color, key, &comm);
        use(program, comm, seed);
        if (comm != MPI_COMM_NULL) {
            MPI_Comm_free(&comm);
        }
    };
    split(rank, 0, 1);                                // every rank alone
    split(0, rank, 3);                                // all together
    split(0, -rank, 5);                               // in the opposite order
    split(rank == last ? MPI_UNDEFINED : 0, rank, 7); // one stays out
    split(rank == 0 ? 0 : 1, rank, 9);                // one alone, the others together
    MPI_Comm node = MPI_COMM_NULL, some = MPI_COMM_NULL, inner = MPI_COMM_NULL;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    use(program, node, 11);
    MPI_Comm_split(node, rank % 2, 0, &inner); // a part of a part
    use(program, inner, 13);
    MPI_Comm_free(&inner);
    MPI_Comm_free(&node);
    // By the members of a group alone.
    MPI_Group world = MPI_GROUP_NULL, others = MPI_GROUP_NULL;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_excl(world, last > 0 ? 1 : 0, &last, &others);
    if (rank != last || last == 0) {
        MPI_Comm_create_group(MPI_COMM_WORLD, others, 5, &some);
        use(program, some, 15);
        MPI_Comm_free(&some);
    }
    MPI_Group_free(&others);
    MPI_Group_free(&world);
}

// ---- buffers ----

// A result must not depend on what happens to the send buffer after the call, on any rank: peers
// may have it mapped.
void freed_at_once(Program &program, std::size_t count)
{
    const Pattern pattern{ElementKind::kFloat32, ReduceOp::kSum, Values::kExact, 3};
    const std::size_t bytes = count * sizeof(float);
    std::vector<char> image(bytes);
    std::vector<char> spoilt(bytes, '\x7f');
    for (int i = 0; i < 10; ++i) {
        Buffer recv = allocate(program, Memory::kDevice, bytes);
        const void *was = nullptr;
        {
            const Buffer send = allocate(program, Memory::kDevice, bytes);
            was = send.data();
            fill_input(pattern, program.rank(), count, image.data());
            program.require(send.write(0, image.data(), bytes));
            MPI_Request request = MPI_REQUEST_NULL;
            if (i % 2 == 0) {
                MPI_Allreduce(was, recv.data(), static_cast<int>(count), MPI_FLOAT, MPI_SUM,
                              MPI_COMM_WORLD);
            } else {
                MPI_Iallreduce(was, recv.data(), static_cast<int>(count), MPI_FLOAT, MPI_SUM,
                               MPI_COMM_WORLD, &request);
                MPI_Wait(&request, MPI_STATUS_IGNORE);
            }
        }
        // Others use the address immediately, now and then as memory of another kind.
        const Buffer other =
            allocate(program, i % 3 == 2 ? Memory::kManaged : Memory::kDevice, bytes);
        program.require(other.write(0, spoilt.data(), bytes));
        program.require(recv.read(0, image.data(), bytes));
        const Mismatch mismatch = compare_result(pattern, program.ranks(), count, image.data());
        program.check(mismatch.wrong == 0, "%zu of %zu elements wrong after the input was freed",
                      mismatch.wrong, count);
    }
}

// A persistent request's buffer is freed first or last; the next request has another buffer at its
// address.
void persistent_at_the_same_address(Program &program, std::size_t count)
{
    const std::size_t bytes = count * sizeof(float);
    std::vector<char> image(bytes);
    MPI_Request old = MPI_REQUEST_NULL;
    const char *address = nullptr;
    int again = 0;
    for (int i = 0; i < 12; ++i) {
        const Pattern pattern{ElementKind::kFloat32, ReduceOp::kSum, Values::kExact,
                              static_cast<std::uint32_t>(i)};
        const Buffer buffer = allocate(program, Memory::kDevice, bytes);
        again += buffer.data() == address ? 1 : 0;
        address = buffer.data();
        MPI_Request request = MPI_REQUEST_NULL;
        HETCOLL_ALLREDUCE_INIT(MPI_IN_PLACE, buffer.data(), static_cast<int>(count), MPI_FLOAT,
                               MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
        if (old != MPI_REQUEST_NULL) {
            MPI_Request_free(&old); // whose buffer is gone
        }
        for (int start = 0; start < 2; ++start) {
            fill_input(pattern, program.rank(), count, image.data());
            program.require(buffer.write(0, image.data(), bytes));
            MPI_Start(&request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            program.require(buffer.read(0, image.data(), bytes));
            const Mismatch mismatch = compare_result(pattern, program.ranks(), count, image.data());
            program.check(mismatch.wrong == 0, "%zu of %zu elements wrong in buffer %d",
                          mismatch.wrong, count, i);
        }
        if (i % 2 == 0) {
            MPI_Request_free(&request);
        } else {
            old = request;
        }
    }
    if (old != MPI_REQUEST_NULL) {
        MPI_Request_free(&old);
    }
    program.check(again > 0, "no address came twice: the test shows nothing");
}

void buffers(Program &program)
{
    for (const std::size_t count : {10, 30'000, 400'000}) {
        freed_at_once(program, count);
        persistent_at_the_same_address(program, count);
    }
}

// ---- handles ----

void add_integers(void *in, void *inout, int *count, MPI_Datatype *)
{
    const auto *from = static_cast<const std::uint16_t *>(in);
    auto *to = static_cast<std::uint16_t *>(inout);
    for (int i = 0; i < *count; ++i) {
        to[i] = static_cast<std::uint16_t>(to[i] + from[i]);
    }
}

// Reduces the rank's number plus one, as half and as an integer: what comes out tells the
// operation.
std::uint16_t reduce_halves(Program &program, int count, MPI_User_function *function, bool integers)
{
    static constexpr std::uint16_t kHalf[] = {0x3c00, 0x4000, 0x4200, 0x4400, 0x4500};
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_Op op = MPI_OP_NULL;
    MPI_Type_contiguous(2, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    MPI_Op_create(function, 1, &op);
    const auto rank = static_cast<std::uint16_t>(program.rank());
    std::vector<std::uint16_t> values(static_cast<std::size_t>(count),
                                      integers ? static_cast<std::uint16_t>(rank + 1)
                                               : kHalf[rank]);
    const Buffer buffer = allocate(program, Memory::kDevice, values.size() * sizeof(values[0]));
    program.require(buffer.write(0, values.data(), buffer.bytes()));
    MPI_Allreduce(MPI_IN_PLACE, buffer.data(), count, type, op, MPI_COMM_WORLD);
    program.require(buffer.read(0, values.data(), buffer.bytes()));
    MPI_Op_free(&op);
    MPI_Type_free(&type);
    program.check(std::all_of(values.begin(), values.end(),
                              [&](std::uint16_t value) { return value == values[0]; }),
                  "elements differ");
    return values[0];
}

// R18: handles get the addresses of freed ones, as in a job that initialises Horovod again.
void handles(Program &program)
{
    static constexpr std::uint16_t kSum[] = {0x3c00, 0x4200, 0x4600, 0x4900, 0x4b80};
    static constexpr std::uint16_t kLargest[] = {0x3c00, 0x4000, 0x4200, 0x4400, 0x4500};
    const int n = program.ranks();
    for (int i = 0; i < 20; ++i) {
        for (const int count : {5, 20'001}) {
            program.check(reduce_halves(program, count, hetcoll_types_float16_sum_, false) ==
                              kSum[n - 1],
                          "round %d, %d elements: not the sum of halves", i, count);
            program.check(reduce_halves(program, count, add_integers, true) == n * (n + 1) / 2,
                          "round %d, %d elements: not the program's own operation", i, count);
            program.check(reduce_halves(program, count, hetcoll_types_float16_max_, false) ==
                              kLargest[n - 1],
                          "round %d, %d elements: not the largest half", i, count);
        }
    }
}

} // namespace
} // namespace hetcoll::test

int main(int argc, char **argv)
{
    using namespace hetcoll::test;
    const std::map<std::string, std::function<void(Program &)>> tests = {
        {"communicators", communicators},
        {"splits", splits},
        {"buffers", buffers},
        {"handles", handles},
    };
    const auto found = tests.find(argc > 1 ? argv[1] : "");
    if (found == tests.end()) {
        std::printf("BROKEN churn: which test?\n");
        return 2;
    }
    Program program(argc, argv, "churn");
    found->second(program);
    program.close_gpu();
    return program.finish();
}
