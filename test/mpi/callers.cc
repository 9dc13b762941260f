// Arguments of calls that no other test has. The argument chooses:
//   contexts        threads without a CUDA context, or with that of another device (R13)
//   padding         vectors with stretches of memory that nobody has written (R8)
//   level LEVEL     MPI on a side thread at every thread level, single to multiple (R14)
//   tables FILE     one rank has read another tuning table than the others (R4)
#include "test/mpi/check.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace hetcoll::test {
namespace {

constexpr std::size_t kCounts[] = {5, 1'000, 3'000, 200'000};

Call sum_of(std::size_t count, std::uint32_t seed)
{
    return {{ElementKind::kFloat32, ReduceOp::kSum, Values::kExact, seed}, count};
}

// ---- contexts ----

// mpi4jax calls from a thread that has made no context, Horovod from one that has another thread's.
void contexts(Program &program)
{
    const Driver &driver = program.gpu().driver();
    Result<std::unique_ptr<Gpu>> other = Gpu::open(program.gpu().ordinal() + 1);
    program.require(other.status());
    const std::pair<CUcontext, const char *> all[] = {{nullptr, "no context"},
                                                      {program.gpu().context(), "the buffer's"},
                                                      {(*other)->context(), "another device's"}};
    for (const auto &[context, whose] : all) {
        for (const std::size_t count : kCounts) {
            driver.cuCtxSetCurrent(program.gpu().context());
            Buffers buffers(program, MPI_COMM_WORLD, sum_of(count, 1));
            buffers.fill();
            std::thread caller([&, context = context, whose = whose] {
                driver.cuCtxSetCurrent(context);
                program.check(buffers.reduce() == MPI_SUCCESS, "MPI failed, current was %s", whose);
                MPI_Request request = MPI_REQUEST_NULL;
                MPI_Iallreduce(buffers.send(), buffers.recv(), static_cast<int>(count), MPI_FLOAT,
                               MPI_SUM, MPI_COMM_WORLD, &request);
                MPI_Wait(&request, MPI_STATUS_IGNORE);
                CUcontext now = nullptr;
                driver.cuCtxGetCurrent(&now);
                program.check(now == context, "current was %s, and is no more", whose);
            });
            caller.join();
            buffers.check();
        }
    }
}

// ---- padding ----

// Horovod's fusion buffer has up to 16 bytes between tensors that were never written: any bits,
// also those of signalling NaN, infinity and denormals. The elements next to them are exact and no
// call fails.
void padding(Program &program)
{
    constexpr std::array<std::uint32_t, 8> kSpecial = {0x7f800001, 0x7fc00000, 0xffffffff,
                                                       0x7f800000, 0xff800000, 0x00000001,
                                                       0x807fffff, 0xcdcdcdcd};
    std::mt19937 random(static_cast<unsigned>(program.rank()));
    const auto ranks = static_cast<float>(program.ranks());
    for (const std::size_t count : kCounts) {
        std::vector<float> values(count), sum(count);
        const auto is_padding = [](std::size_t i) { return i % 11 >= 7; };
        for (std::size_t i = 0; i < count; ++i) {
            const std::uint32_t bits = i % 3 == 0 ? random() : kSpecial[random() % kSpecial.size()];
            std::memcpy(&values[i], &bits, sizeof bits);
            if (!is_padding(i)) {
                values[i] = static_cast<float>(i % 1000);
            }
        }
        for (const bool in_place : {true, false}) {
            auto made = Buffer::allocate(&program.gpu(), Memory::kDevice, count * sizeof(float));
            auto input = Buffer::allocate(&program.gpu(), Memory::kDevice, count * sizeof(float));
            program.require(made.status());
            program.require(input.status());
            program.require(made->write(0, values.data(), made->bytes()));
            program.require(input->write(0, values.data(), made->bytes()));
            const int error =
                MPI_Allreduce(in_place ? MPI_IN_PLACE : input->data(), made->data(),
                              static_cast<int>(count), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
            program.check(error == MPI_SUCCESS, "error %d of %zu elements", error, count);
            program.require(made->read(0, sum.data(), made->bytes()));
            std::size_t wrong = 0;
            for (std::size_t i = 0; i < count; ++i) {
                wrong += !is_padding(i) && sum[i] != ranks * static_cast<float>(i % 1000) ? 1 : 0;
            }
            program.check(wrong == 0, "%zu of %zu elements next to padding are wrong", wrong,
                          count);
            const std::uint64_t mine = checksum(ElementKind::kFloat32, count, sum.data());
            std::uint64_t first = mine;
            MPI_Bcast(&first, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
            program.check(mine == first, "other bits than on rank 0, of %zu elements", count);
        }
    }
}

// ---- a tuning table ----

void tables(Program &program)
{
    for (const std::size_t count : kCounts) {
        check_allreduce(program, MPI_COMM_WORLD, sum_of(count, 2));
        Call mixed = sum_of(count, 3);
        mixed.send = mixed.recv = program.rank() == 0 ? Memory::kHost : Memory::kDevice;
        check_allreduce(program, MPI_COMM_WORLD, mixed);
    }
}

// ---- levels ----

int level(int argc, char **argv)
{
    const std::string name = argc > 2 ? argv[2] : "";
    const int wanted = name == "single"       ? MPI_THREAD_SINGLE
                       : name == "funneled"   ? MPI_THREAD_FUNNELED
                       : name == "serialized" ? MPI_THREAD_SERIALIZED
                                              : MPI_THREAD_MULTIPLE;
    int exit_code = 1;
    std::thread mpi([&] { // the only thread that calls MPI
        Program program(argc, argv, "callers level", wanted);
        for (const std::size_t count : kCounts) {
            check_allreduce(program, MPI_COMM_WORLD, sum_of(count, 4));
        }
        MPI_Comm comm = MPI_COMM_NULL;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        check_allreduce(program, comm, sum_of(30'000, 5));
        MPI_Comm_free(&comm);
        exit_code = program.finish();
    });
    mpi.join();
    return exit_code;
}

} // namespace
} // namespace hetcoll::test

int main(int argc, char **argv)
{
    using namespace hetcoll::test;
    const std::string what = argc > 1 ? argv[1] : "";
    if (what == "level") {
        return level(argc, argv);
    }
    const char *rank = std::getenv("OMPI_COMM_WORLD_RANK");
    if (what == "tables" && argc > 2 && rank != nullptr && std::atoi(rank) == 1) {
        setenv("OMPI_MCA_coll_hetcoll_tuning_table", argv[2], 1);
    }
    Program program(argc, argv, "callers");
    if (what == "contexts") {
        contexts(program);
    } else if (what == "padding") {
        padding(program);
    } else if (program.check(what == "tables", "which test?")) {
        tables(program);
    }
    return program.finish();
}
