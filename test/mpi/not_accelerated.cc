// R5: what hetcoll does not reduce itself must still be right on device buffers: operations of the
// application (in order if they do not commute), derived and non-contiguous types, long double.
#include "test/mpi/check.h"

#include <array>
#include <cstring>
#include <vector>

namespace hetcoll::test {
namespace {

struct Affine { // x -> a x + b modulo 2^32: composing two does not commute
    std::uint32_t a, b;
};

void compose(void *in, void *inout, int *count, MPI_Datatype *)
{
    const auto *first = static_cast<const Affine *>(in);
    auto *second = static_cast<Affine *>(inout);
    for (int i = 0; i < *count; ++i) {
        second[i] = {second[i].a * first[i].a, second[i].a * first[i].b + second[i].b};
    }
}

void add_floats(void *in, void *inout, int *count, MPI_Datatype *)
{
    const auto *from = static_cast<const float *>(in);
    auto *to = static_cast<float *>(inout);
    for (int i = 0; i < *count; ++i) {
        to[i] += from[i];
    }
}

// A type of stride 3 floats: one used, two that nobody may touch.
void add_strided(void *in, void *inout, int *count, MPI_Datatype *)
{
    const auto *from = static_cast<const float *>(in);
    auto *to = static_cast<float *>(inout);
    for (int i = 0; i < *count; ++i) {
        to[3 * i] += from[3 * i];
    }
}

// Reduces `bytes` bytes from `input` and hands the result back, all through `memory`.
std::vector<char> reduce(Program &program, Memory memory, const std::vector<char> &input,
                         bool in_place, int count, MPI_Datatype type, MPI_Op op)
{
    const auto allocate = [&] {
        Result<Buffer> buffer = Buffer::allocate(memory == Memory::kHost ? nullptr : &program.gpu(),
                                                 memory, input.size());
        if (!buffer.ok()) {
            program.require(buffer.status());
        }
        return std::move(*buffer);
    };
    const Buffer send = allocate(), recv = allocate();
    const std::vector<char> garbage(input.size(), '\x77');
    program.require(send.write(0, input.data(), input.size()));
    program.require(recv.write(0, in_place ? input.data() : garbage.data(), input.size()));
    const int result = MPI_Allreduce(in_place ? MPI_IN_PLACE : send.data(), recv.data(), count,
                                     type, op, MPI_COMM_WORLD);
    program.check(result == MPI_SUCCESS, "MPI error %d", result);
    std::vector<char> output(input.size());
    program.require(recv.read(0, output.data(), output.size()));
    return output;
}

template <class T> std::vector<char> bytes_of(const std::vector<T> &values)
{
    std::vector<char> bytes(values.size() * sizeof(T));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
}
template <class T> std::vector<T> values_of(const std::vector<char> &bytes)
{
    std::vector<T> values(bytes.size() / sizeof(T));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
}

Affine affine_of(int rank, int i)
{
    return {static_cast<std::uint32_t>(2 * (rank * 31 + i) + 3),
            static_cast<std::uint32_t>(i + rank)};
}

void operation_that_does_not_commute(Program &program, Memory memory, int count, bool in_place)
{
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_Op op = MPI_OP_NULL;
    MPI_Type_contiguous(2, MPI_UINT32_T, &type);
    MPI_Type_commit(&type);
    MPI_Op_create(compose, 0, &op);
    std::vector<Affine> input(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) {
        input[static_cast<std::size_t>(i)] = affine_of(program.rank(), i);
    }
    const auto output =
        values_of<Affine>(reduce(program, memory, bytes_of(input), in_place, count, type, op));
    int wrong = 0;
    for (int i = 0; i < count; ++i) {
        Affine want = affine_of(0, i);
        for (int rank = 1; rank < program.ranks(); ++rank) {
            Affine next = affine_of(rank, i);
            int one = 1;
            compose(&want, &next, &one, nullptr);
            want = next;
        }
        const Affine got = output[static_cast<std::size_t>(i)];
        wrong += got.a != want.a || got.b != want.b ? 1 : 0;
    }
    program.check(wrong == 0, "not commuting: %d of %d wrong in %s memory", wrong, count,
                  memory_name(memory));
    MPI_Op_free(&op);
    MPI_Type_free(&type);
}

void operation_of_the_application(Program &program, Memory memory, int count)
{
    MPI_Op op = MPI_OP_NULL;
    MPI_Op_create(add_floats, 1, &op);
    std::vector<float> input(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) {
        input[static_cast<std::size_t>(i)] = static_cast<float>(program.rank() + i % 100);
    }
    const auto output =
        values_of<float>(reduce(program, memory, bytes_of(input), false, count, MPI_FLOAT, op));
    const int n = program.ranks();
    int wrong = 0;
    for (int i = 0; i < count; ++i) {
        wrong += output[static_cast<std::size_t>(i)] !=
                         static_cast<float>(n * (n - 1) / 2 + n * (i % 100))
                     ? 1
                     : 0;
    }
    program.check(wrong == 0, "own sum: %d of %d wrong in %s memory", wrong, count,
                  memory_name(memory));
    MPI_Op_free(&op);
}

void non_contiguous_type(Program &program, Memory memory, int count)
{
    MPI_Datatype one = MPI_DATATYPE_NULL, type = MPI_DATATYPE_NULL;
    MPI_Type_contiguous(1, MPI_FLOAT, &one);
    MPI_Type_create_resized(one, 0, 3 * sizeof(float), &type);
    MPI_Type_commit(&type);
    MPI_Op op = MPI_OP_NULL;
    MPI_Op_create(add_strided, 1, &op);
    std::vector<float> input(3 * static_cast<std::size_t>(count), -1.0F);
    for (std::size_t i = 0; i < input.size(); i += 3) {
        input[i] = static_cast<float>(program.rank() * 2 + static_cast<int>(i % 50));
    }
    for (const bool in_place : {false, true}) {
        const auto output =
            values_of<float>(reduce(program, memory, bytes_of(input), in_place, count, type, op));
        const int n = program.ranks();
        int wrong = 0;
        for (std::size_t i = 0; i < output.size(); ++i) {
            float want = static_cast<float>(n * (n - 1) + n * static_cast<int>(i % 50));
            if (i % 3 != 0) { // the gaps keep what was there: 0x77 bytes, or the input in place
                std::memset(&want, 0x77, sizeof want);
                want = in_place ? -1.0F : want;
            }
            wrong += std::memcmp(&want, &output[i], sizeof want) != 0 ? 1 : 0;
        }
        program.check(wrong == 0, "strided%s: %d of %d wrong in %s memory",
                      in_place ? " in place" : "", wrong, 3 * count, memory_name(memory));
    }
    MPI_Op_free(&op);
    MPI_Type_free(&type);
    MPI_Type_free(&one);
}

void long_double(Program &program, Memory memory, int count)
{
    std::vector<long double> input(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) {
        input[static_cast<std::size_t>(i)] = program.rank() + i;
    }
    const auto output = values_of<long double>(
        reduce(program, memory, bytes_of(input), true, count, MPI_LONG_DOUBLE, MPI_SUM));
    const int n = program.ranks();
    int wrong = 0;
    for (int i = 0; i < count; ++i) {
        const auto want = static_cast<long double>(n * (n - 1) / 2 + n * i);
        wrong += output[static_cast<std::size_t>(i)] != want ? 1 : 0;
    }
    program.check(wrong == 0, "long double: %d of %d wrong in %s memory", wrong, count,
                  memory_name(memory));
}

} // namespace
} // namespace hetcoll::test

int main(int argc, char **argv)
{
    using namespace hetcoll;
    test::Program program(argc, argv, "not_accelerated");
    // Also with host memory on every other rank.
    for (const bool mixed : {false, true}) {
        const Memory memory = mixed && program.rank() % 2 == 1 ? Memory::kHost : Memory::kDevice;
        for (const int count : {1, 1'000, 100'003}) {
            for (const bool in_place : {false, true}) {
                test::operation_that_does_not_commute(program, memory, count, in_place);
            }
            test::operation_of_the_application(program, memory, count);
            test::non_contiguous_type(program, memory, count);
            test::long_double(program, memory, count);
        }
    }
    return program.finish();
}
