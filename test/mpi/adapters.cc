// adapters used|unused: trees with a share of the vector through network adapters, where
// coll_hetcoll_adapters has the ranks try them. Every sum is right, whatever kind of memory, and
// the counter says whether anything went that way.
#include "test/mpi/check.h"

#include <cstdio>
#include <string_view>

namespace hetcoll::test {
namespace {

constexpr std::size_t kMany = (16u << 20) / sizeof(float) + 3; // enough for a share to pay

class Adapters {
public:
    Adapters(Program &program, bool used) : program_(program), used_(used) {}

    void reduce(MPI_Comm comm, const Call &call, bool may_be_used = true)
    {
        const CounterValues before = program_.counters().read();
        check_allreduce(program_, comm, call);
        const CounterValues used = program_.counters().read() - before;
        const auto bytes = static_cast<unsigned long long>(used[HETCOLL_BYTES_ADAPTER]);
        program_.check((bytes != 0) == (used_ && may_be_used), "%llu bytes by adapter: %s", bytes,
                       describe(call).c_str());
    }

    void one(MPI_Comm comm) { reduce(comm, {sum(), kMany}); }

    void all_memory(MPI_Comm comm)
    {
        one(comm);
        reduce(comm, {sum(), kMany, Memory::kDevice, Memory::kDevice, true});
        if (has(program_.gpu(), MemoryType::kVmm)) {
            Call call{sum(), kMany};
            call.device_memory = MemoryType::kVmm;
            reduce(comm, call);
        }
        reduce(comm, {sum(), kMany, Memory::kManaged, Memory::kManaged});
        // Host memory on one rank: no adapter reads it.
        const Memory mixed = program_.rank() == 0 ? Memory::kHost : Memory::kDevice;
        reduce(comm, {sum(), kMany, mixed, mixed}, false);
    }

private:
    static Pattern sum() { return {ElementKind::kFloat32, ReduceOp::kSum, Values::kExact, 1}; }

    Program &program_;
    const bool used_;
};

int run(int argc, char **argv)
{
    Program program(argc, argv, "adapters");
    if (argc != 2) {
        std::fprintf(stderr, "usage: adapters used|unused\n");
        return 2;
    }
    const bool used = std::string_view(argv[1]) == "used";
    Adapters adapters(program, used);
    if (!used) {
        adapters.one(MPI_COMM_WORLD);
        program.check_algorithm();
        return program.finish();
    }
    adapters.all_memory(MPI_COMM_WORLD);
    MPI_Comm other = MPI_COMM_NULL; // has connections of its own
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    adapters.one(other);
    MPI_Comm_free(&other);
    adapters.one(MPI_COMM_WORLD);
    program.check_algorithm();
    return program.finish();
}

} // namespace
} // namespace hetcoll::test

int main(int argc, char **argv) { return hetcoll::test::run(argc, argv); }
