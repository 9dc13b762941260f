// One algorithm, named by coll_hetcoll_algorithm and as the first argument: it serves the calls
// itself (nothing falls back silently), and every result is right. With "any" only the results
// count. A second argument is one more number of floats to reduce.
#include "test/mpi/check.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

namespace hetcoll::test {
namespace {

class Algorithms {
public:
    Algorithms(Program &program, std::string_view name) : program_(program), name_(name)
    {
        // The first call with device memory finds out whose memory is within reach.
        check_allreduce(program_, MPI_COMM_WORLD, {sum(), 70'001});
    }

    // Each call is counted for the algorithm, where it serves the size.
    void reduce(const Call &call)
    {
        const std::size_t bytes = call.count * element_bytes(call.pattern.kind);
        const CounterValues before = program_.counters().read();
        check_allreduce(program_, MPI_COMM_WORLD, call);
        const CounterValues used = program_.counters().read() - before;
        const std::optional<hetcoll_counter> counter = counter_of_call(name_, bytes);
        program_.check(call.count == 0 || !counter || used[*counter] == 1, "not served by %s: %s",
                       name_.c_str(), describe(call).c_str());
    }

    // Around the small limit, around chunks, and fewer elements than ranks.
    void sizes()
    {
        const auto ranks = static_cast<std::size_t>(program_.ranks());
        for (const std::size_t count :
             {std::size_t{0}, std::size_t{1}, ranks - 1, ranks + 1, std::size_t{255},
              std::size_t{2'048}, std::size_t{2'049}, std::size_t{16'385}, std::size_t{262'147}}) {
            for (const bool in_place : {false, true}) {
                reduce({sum(), count, Memory::kDevice, Memory::kDevice, in_place});
            }
        }
    }

    void large(std::size_t count)
    {
        for (const bool in_place : {false, true}) {
            reduce({sum(), count, Memory::kDevice, Memory::kDevice, in_place});
        }
    }

    void kinds()
    {
        constexpr std::array kPairs = {
            std::pair{ElementKind::kInt8, ReduceOp::kMax},
            std::pair{ElementKind::kFloat16, ReduceOp::kSum},
            std::pair{ElementKind::kBfloat16, ReduceOp::kSum},
            std::pair{ElementKind::kFloat64, ReduceOp::kProd},
            std::pair{ElementKind::kComplex128, ReduceOp::kSum},
            std::pair{ElementKind::kFloat64Int32, ReduceOp::kMinloc},
            std::pair{ElementKind::kByte, ReduceOp::kBxor},
        };
        for (const auto &[kind, op] : kPairs) {
            if (program_.names().datatype(kind) == MPI_DATATYPE_NULL) {
                continue;
            }
            for (const std::size_t count : {std::size_t{31}, std::size_t{9'973}}) {
                ++seed_;
                reduce({{kind, op, seed_ % 2 == 0 ? Values::kExact : Values::kRandom, seed_},
                        count,
                        Memory::kDevice,
                        Memory::kDevice,
                        seed_ % 3 == 0});
            }
        }
    }

    // The two buffers, and those of different ranks, may lie differently.
    void misaligned()
    {
        const std::size_t here = static_cast<std::size_t>(program_.rank()) % 4;
        for (const std::size_t count : {std::size_t{7}, std::size_t{50'003}}) {
            reduce({sum(), count, Memory::kDevice, Memory::kDevice, false, 4 * here, 4});
            reduce({sum(), count, Memory::kDevice, Memory::kDevice, true, 0, 4 * here});
        }
    }

    // Memory that cannot be shared as it is, on all ranks or on one.
    void other_places()
    {
        for (const std::size_t count : {std::size_t{100}, std::size_t{60'001}}) {
            reduce({sum(), count, Memory::kManaged, Memory::kManaged});
            reduce({sum(), count, Memory::kManaged, Memory::kManaged, true});
            reduce({sum(), count, Memory::kManaged, Memory::kDevice});
            reduce({sum(), count, Memory::kDevice, Memory::kManaged});
            reduce({sum(), count, Memory::kHost, Memory::kDevice});
            const Memory mine = program_.rank() == 0 ? Memory::kManaged : Memory::kDevice;
            reduce({sum(), count, mine, mine});
            // Some ranks have no device memory: whatever serves that, the sum is right.
            const Memory mixed = program_.rank() == 0 ? Memory::kHost : Memory::kDevice;
            check_allreduce(program_, MPI_COMM_WORLD, {sum(), count, mixed, mixed});
        }
    }

    // Buffers freed and allocated again at each call: other memory at addresses that peers know.
    // The larger ones are allocations of their own, the smaller ones share one.
    void new_buffers()
    {
        for (int i = 0; i < 6; ++i) {
            const std::size_t count = 300'000 + 40'000 * static_cast<std::size_t>(i % 2);
            reduce({sum(), count, Memory::kDevice, Memory::kDevice, i % 3 == 0});
            if (program_.rank() % 2 == i % 2) { // and others in between
                const auto other = Buffer::allocate(&program_.gpu(), Memory::kDevice, 1'200'000);
                program_.check(other.ok(), "no memory");
                reduce({sum(), 10'000});
            } else {
                reduce({sum(), 10'000});
            }
        }
    }

    // The same buffers with other contents, as training does it.
    void repeated()
    {
        const Call call{sum(), 30'000};
        Buffers buffers(program_, MPI_COMM_WORLD, call);
        for (int i = 0; i < 5; ++i) {
            buffers.fill();
            program_.check(buffers.reduce() == MPI_SUCCESS, "call %d failed", i);
            buffers.check();
        }
    }

    void other_communicators()
    {
        MPI_Comm half = MPI_COMM_NULL, reversed = MPI_COMM_NULL;
        MPI_Comm_split(MPI_COMM_WORLD, program_.rank() % 2, program_.rank(), &half);
        MPI_Comm_split(MPI_COMM_WORLD, 0, -program_.rank(), &reversed);
        for (const std::size_t count : {std::size_t{5}, std::size_t{60'001}}) {
            for (const MPI_Comm comm : {half, reversed, MPI_COMM_WORLD, half}) {
                check_allreduce(program_, comm, {sum(), count});
            }
        }
        MPI_Comm_free(&half);
        MPI_Comm_free(&reversed);
    }

private:
    Pattern sum() { return {ElementKind::kFloat32, ReduceOp::kSum, Values::kExact, ++seed_}; }

    Program &program_;
    std::string name_;
    std::uint32_t seed_ = 0;
};

} // namespace
} // namespace hetcoll::test

int main(int argc, char **argv)
{
    using namespace hetcoll::test;
    const std::string_view name = argc > 1 ? argv[1] : "any";
    Program program(argc, argv, "algorithms");
    Algorithms algorithms(program, name);
    algorithms.sizes();
    algorithms.kinds();
    algorithms.misaligned();
    algorithms.new_buffers();
    algorithms.other_places();
    algorithms.repeated();
    algorithms.other_communicators();
    if (argc > 2) {
        algorithms.large(std::strtoull(argv[2], nullptr, 10));
    }
    return program.finish();
}
