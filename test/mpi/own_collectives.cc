// R1: Bcast, Reduce, Allgather and Reduce_scatter of device memory by hetcoll's own schedules: from
// every root, in place, with shares of all sizes. Ranks with other memory or with holes in their
// types still get the right result, from the staged path.
#include "test/mpi/check.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace hetcoll::test {
namespace {

constexpr std::size_t kLeast = 128u << 10; // bytes; smaller calls are not hetcoll's own

using Vector = std::vector<int>;

Vector vector_of(int rank, std::size_t count)
{
    Vector values(count);
    for (std::size_t i = 0; i < count; ++i) {
        values[i] = static_cast<int>((i * 7 + static_cast<std::size_t>(rank) * 31) % 1000);
    }
    return values;
}

Vector sum_of_all(int ranks, std::size_t count)
{
    Vector sum(count);
    for (int rank = 0; rank < ranks; ++rank) {
        const Vector one = vector_of(rank, count);
        std::transform(sum.begin(), sum.end(), one.begin(), sum.begin(), std::plus<int>());
    }
    return sum;
}

class Ints {
public:
    Ints(Program &program, Memory memory, const Vector &values) : program_(program)
    {
        auto made = Buffer::allocate(memory == Memory::kHost ? nullptr : &program.gpu(), memory,
                                     values.size() * sizeof(int));
        if (!made.ok()) {
            program.require(made.status());
        }
        buffer_ = std::move(*made);
        program.require(buffer_.write(0, values.data(), values.size() * sizeof(int)));
    }
    [[nodiscard]] Vector values() const
    {
        Vector values(buffer_.bytes() / sizeof(int));
        program_.require(buffer_.read(0, values.data(), buffer_.bytes()));
        return values;
    }
    [[nodiscard]] void *data() const { return buffer_.data(); }

private:
    Program &program_;
    Buffer buffer_;
};

// Where this rank's buffers lie, and whether hetcoll's own schedules serve the call on all ranks.
struct Where {
    Memory memory = Memory::kDevice;
    bool own = true;
};

void expect_own(Program &p, const CounterValues &before, bool own, const char *what)
{
    const CounterValues used = p.counters().read() - before;
    p.check((used[HETCOLL_CALLS_COLLECTIVE] != 0) == own, "%s: hetcoll's own schedules served %s",
            what, own ? "no call" : "it");
}

void broadcasts(Program &p, std::size_t count, Where where)
{
    for (int root = 0; root < p.ranks(); ++root) {
        const Ints buffer(p, where.memory, vector_of(p.rank(), count));
        const CounterValues before = p.counters().read();
        MPI_Bcast(buffer.data(), static_cast<int>(count), MPI_INT, root, MPI_COMM_WORLD);
        expect_own(p, before, where.own, "Bcast");
        p.check(buffer.values() == vector_of(root, count), "Bcast of %zu from %d", count, root);
    }
}

void reduces(Program &p, std::size_t count, Where where)
{
    const Vector own = vector_of(p.rank(), count), untouched(count, -1);
    for (int root = 0; root < p.ranks(); ++root) {
        for (const bool in_place : {false, true}) {
            const bool here = in_place && p.rank() == root;
            const Ints send(p, where.memory, own), recv(p, where.memory, here ? own : untouched);
            const CounterValues before = p.counters().read();
            MPI_Reduce(here ? MPI_IN_PLACE : send.data(), recv.data(), static_cast<int>(count),
                       MPI_INT, MPI_SUM, root, MPI_COMM_WORLD);
            expect_own(p, before, where.own, "Reduce");
            p.check(recv.values() == (p.rank() == root ? sum_of_all(p.ranks(), count) : untouched),
                    "Reduce of %zu to %d%s", count, root, in_place ? " in place" : "");
            p.check(send.values() == own, "Reduce of %zu changed its input", count);
        }
    }
}

void allgathers(Program &p, std::size_t share, Where where)
{
    Vector all;
    for (int rank = 0; rank < p.ranks(); ++rank) {
        const Vector one = vector_of(rank, share);
        all.insert(all.end(), one.begin(), one.end());
    }
    const Vector own = vector_of(p.rank(), share);
    for (const bool in_place : {false, true}) {
        Vector start(all.size(), -1);
        if (in_place) {
            std::copy(own.begin(), own.end(),
                      start.begin() + p.rank() * static_cast<std::ptrdiff_t>(share));
        }
        const Ints send(p, where.memory, own), recv(p, where.memory, start);
        const CounterValues before = p.counters().read();
        MPI_Allgather(in_place ? MPI_IN_PLACE : send.data(), static_cast<int>(share), MPI_INT,
                      recv.data(), static_cast<int>(share), MPI_INT, MPI_COMM_WORLD);
        expect_own(p, before, where.own, "Allgather");
        p.check(recv.values() == all, "Allgather of %zu%s", share, in_place ? " in place" : "");
    }
}

void reduce_scatters(Program &p, std::size_t share, Where where)
{
    const std::size_t count = share * static_cast<std::size_t>(p.ranks());
    const Vector own = vector_of(p.rank(), count), sum = sum_of_all(p.ranks(), count);
    const auto first = sum.begin() + p.rank() * static_cast<std::ptrdiff_t>(share);
    const Vector want(first, first + static_cast<std::ptrdiff_t>(share));
    const std::vector<int> counts(static_cast<std::size_t>(p.ranks()), static_cast<int>(share));
    for (const bool block : {false, true}) {
        for (const bool in_place : {false, true}) {
            const Ints send(p, where.memory, own),
                recv(p, where.memory, in_place ? own : Vector(share, -1));
            const void *from = in_place ? MPI_IN_PLACE : send.data();
            const CounterValues before = p.counters().read();
            if (block) {
                MPI_Reduce_scatter_block(from, recv.data(), static_cast<int>(share), MPI_INT,
                                         MPI_SUM, MPI_COMM_WORLD);
            } else {
                MPI_Reduce_scatter(from, recv.data(), counts.data(), MPI_INT, MPI_SUM,
                                   MPI_COMM_WORLD);
            }
            expect_own(p, before, where.own, "Reduce_scatter");
            Vector got = recv.values();
            got.resize(share);
            p.check(got == want, "Reduce_scatter%s of %zu%s", block ? "_block" : "", share,
                    in_place ? " in place" : "");
            p.check(send.values() == own, "Reduce_scatter of %zu changed its input", share);
        }
    }
}

void everything(Program &p, std::size_t count, Where where)
{
    broadcasts(p, count, where);
    reduces(p, count, where);
    const std::size_t share = count / static_cast<std::size_t>(p.ranks()) + 1;
    allgathers(p, share, where);
    reduce_scatters(p, share, where);
}

// Every second element: a rank with such a type hands over a vector with holes.
void holes_on_one_rank(Program &p)
{
    constexpr std::size_t kCount = 50'000;
    MPI_Datatype sparse = MPI_DATATYPE_NULL;
    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &sparse);
    MPI_Type_commit(&sparse);
    const bool here = p.rank() == p.ranks() - 1;
    const Ints buffer(p, Memory::kDevice,
                      here ? Vector(2 * kCount, -1) : vector_of(p.rank(), kCount));
    MPI_Bcast(buffer.data(), kCount, here ? sparse : MPI_INT, 0, MPI_COMM_WORLD);
    const Vector want = vector_of(0, kCount), got = buffer.values();
    bool right = true;
    for (std::size_t i = 0; i < kCount; ++i) {
        right = right && got[here ? 2 * i : i] == want[i] && (!here || got[2 * i + 1] == -1);
    }
    p.check(right, "Bcast into a type with holes");
    MPI_Type_free(&sparse);
}

} // namespace
} // namespace hetcoll::test

int main(int argc, char **argv)
{
    using namespace hetcoll;
    using namespace hetcoll::test;
    Program program(argc, argv, "own_collectives");
    const bool several = program.ranks() > 1;
    everything(program, kLeast / sizeof(int), {Memory::kDevice, several});
    everything(program, 300'001, {Memory::kDevice, several});
    everything(program, 1'000'003, {Memory::kDevice, several});
    everything(program, 40'000, {Memory::kHost, false});
    if (several) {
        const Memory mixed = program.rank() == 0 ? Memory::kHost : Memory::kDevice;
        everything(program, 40'000, {mixed, false});
        holes_on_one_rank(program);
    }
    // Smaller ones are staged, and Allreduce goes on as before.
    everything(program, 1'000, {Memory::kDevice, false});
    check_allreduce(program, MPI_COMM_WORLD,
                    {{ElementKind::kFloat32, ReduceOp::kSum, Values::kExact, 5}, 70'000});
    program.close_gpu();
    return program.finish();
}
