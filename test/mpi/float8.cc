// Sums of 8-bit floats are kept in float and rounded once, whatever the algorithm, the memory, the
// number of nodes and the size; minima and maxima are one of the ranks' numbers. With "foreign"
// another component reduces host memory by the functions of hetcoll_types.h.
#include "cuda_kernels/numbers.h"
#include "cuda_kernels/reduction.h"
#include "measure/buffer.h"
#include "measure/persistent.h"
#include "test/mpi/check.h"

#include <cmath>
#include <cstring>
#include <string_view>
#include <vector>

namespace hetcoll::test {
namespace {

using Numbers = std::vector<std::uint8_t>;
constexpr ElementKind kKinds[] = {ElementKind::kFloat8E4m3, ElementKind::kFloat8E5m2};

float value_of(ElementKind kind, std::uint8_t bits)
{
    return kind == ElementKind::kFloat8E4m3 ? widen(Float8E4m3{bits}) : widen(Float8E5m2{bits});
}

std::uint8_t bits_of(ElementKind kind, float value)
{
    Float8E4m3 e4m3;
    Float8E5m2 e5m2;
    narrow(value, e4m3);
    narrow(value, e5m2);
    return kind == ElementKind::kFloat8E4m3 ? e4m3.bits : e5m2.bits;
}

// Multiples of 1/64 below 64, of both signs, so that floats add them exactly; now and then the
// largest number, so that sums are too large.
std::uint8_t number(ElementKind kind, int rank, std::size_t i)
{
    std::uint64_t bits =
        (i + 1) * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(rank) * 0xbf58476d1ce4e5b9u;
    bits ^= bits >> 29;
    bits *= 0x94d049bb133111ebu;
    bits ^= bits >> 32;
    if (i % 97 == 13) {
        return kind == ElementKind::kFloat8E4m3 ? 0x7e : 0x7b;
    }
    const int digits = kind == ElementKind::kFloat8E4m3 ? 16 : 8;
    const int whole = static_cast<int>(bits >> 8 & 0xff) % digits;
    const float value = std::ldexp(static_cast<float>(whole), static_cast<int>(bits % 8) - 6);
    return bits_of(kind, (bits & 0x80) != 0 ? -value : value);
}

std::uint8_t wanted(ElementKind kind, ReduceOp op, int ranks, std::size_t i)
{
    std::uint8_t kept = number(kind, 0, i);
    float sum = value_of(kind, kept);
    for (int rank = 1; rank < ranks; ++rank) {
        const std::uint8_t next = number(kind, rank, i);
        sum += value_of(kind, next);
        host_reduce(op, kind)(&kept, &kept, &next, 1);
    }
    return op == ReduceOp::kSum ? bits_of(kind, sum) : kept;
}

enum class How { kBlocking, kNonblocking, kPersistent };
enum class Where { kDevice, kHost, kMixed, kForeign };
constexpr const char *kWhere[] = {"device", "host", "mixed", "device to host"};

Buffer allocate(Program &program, Memory memory, std::size_t bytes)
{
    auto buffer = Buffer::allocate(&program.gpu(), memory, bytes);
    program.require(buffer.ok() ? Status() : buffer.take_status());
    return std::move(*buffer);
}

void reduce(How how, const void *from, void *to, std::size_t count, MPI_Datatype type, MPI_Op op)
{
    MPI_Request request = MPI_REQUEST_NULL;
    const int elements = static_cast<int>(count);
    switch (how) {
    case How::kBlocking: MPI_Allreduce(from, to, elements, type, op, MPI_COMM_WORLD); return;
    case How::kNonblocking:
        MPI_Iallreduce(from, to, elements, type, op, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        return;
    case How::kPersistent:
        HETCOLL_ALLREDUCE_INIT(from, to, elements, type, op, MPI_COMM_WORLD, MPI_INFO_NULL,
                               &request);
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Request_free(&request);
        return;
    }
}

void check(Program &program, ElementKind kind, ReduceOp op, std::size_t count, Where where, How how)
{
    const bool host = where == Where::kHost || (where == Where::kMixed && program.rank() % 2 == 0);
    const Memory out = host || where == Where::kForeign ? Memory::kHost : Memory::kDevice;
    const Buffer send = allocate(program, host ? Memory::kHost : Memory::kDevice, count),
                 recv = allocate(program, out, count);
    Numbers numbers(count);
    for (std::size_t i = 0; i < count; ++i) {
        numbers[i] = number(kind, program.rank(), i);
    }
    const bool in_place = where != Where::kForeign && how != How::kNonblocking;
    program.require((in_place ? recv : send).write(0, numbers.data(), count));
    reduce(how, in_place ? MPI_IN_PLACE : send.data(), recv.data(), count,
           program.names().datatype(kind), program.names().op(op, kind));
    Numbers got(count);
    program.require(recv.read(0, got.data(), count));
    for (std::size_t i = 0; i < count; ++i) {
        const std::uint8_t right = wanted(kind, op, program.ranks(), i);
        if (!program.check(got[i] == right,
                           "%s of %zu %s, %s memory, call %d: element %zu is %02x, not %02x",
                           op_name(op), count, element_name(kind), kWhere[static_cast<int>(where)],
                           static_cast<int>(how), i, got[i], right)) {
            break;
        }
    }
    if (!in_place) {
        Numbers kept(count);
        program.require(send.read(0, kept.data(), count));
        program.check(kept == numbers, "the send buffer has changed");
    }
}

// By another component, on the host: exact sums of few small numbers, and what a pair of ranks has.
void foreign(Program &program)
{
    for (const ElementKind kind : kKinds) {
        const Numbers ones(1000, bits_of(kind, 1));
        Numbers got(ones.size());
        MPI_Allreduce(ones.data(), got.data(), 1000, program.names().datatype(kind),
                      program.names().op(ReduceOp::kSum, kind), MPI_COMM_WORLD);
        program.check(got == Numbers(1000, bits_of(kind, static_cast<float>(program.ranks()))),
                      "a sum of ones is wrong");
        for (const ReduceOp op : {ReduceOp::kMin, ReduceOp::kMax}) {
            Numbers numbers(1000), kept(1000);
            for (std::size_t i = 0; i < numbers.size(); ++i) {
                numbers[i] = number(kind, program.rank(), i);
                kept[i] = wanted(kind, op, program.ranks(), i);
            }
            MPI_Allreduce(MPI_IN_PLACE, numbers.data(), 1000, program.names().datatype(kind),
                          program.names().op(op, kind), MPI_COMM_WORLD);
            program.check(numbers == kept, "%s is wrong", op_name(op));
        }
    }
}

void run(Program &program)
{
    for (const ElementKind kind : kKinds) {
        for (const std::size_t count : {std::size_t{1}, std::size_t{1'000}, std::size_t{8'192},
                                        std::size_t{8'193}, std::size_t{100'003}}) {
            for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMin, ReduceOp::kMax}) {
                for (const How how : {How::kBlocking, How::kNonblocking, How::kPersistent}) {
                    check(program, kind, op, count, Where::kDevice, how);
                }
                check(program, kind, op, count, Where::kHost, How::kNonblocking);
                check(program, kind, op, count, Where::kHost, How::kBlocking);
                check(program, kind, op, count, Where::kMixed, How::kBlocking);
                check(program, kind, op, count, Where::kForeign, How::kBlocking);
            }
        }
    }
}

} // namespace
} // namespace hetcoll::test

int main(int argc, char **argv)
{
    using namespace hetcoll::test;
    Program program(argc, argv, "float8");
    if (argc > 1 && std::string_view(argv[1]) == "foreign") {
        foreign(program);
        return program.finish();
    }
    run(program);
    program.close_gpu();
    return program.finish();
}
