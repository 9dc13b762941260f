// adapters used|unused: trees with a share of the vector through network adapters, where
// coll_hetcoll_adapters has the ranks try them. Every sum is right, whatever kind of memory, and
// the counter says whether anything went that way.
#include "include/hetcoll_stream.h"
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

    // Calls in the order of the legacy stream: the adapters' streams would wait for that.
    void attached(MPI_Comm comm)
    {
        const auto check = [this](int code, const char *what) {
            program_.check(code == MPI_SUCCESS, "%s: MPI error %d", what, code);
        };
        check(hetcoll_stream_attach(comm, nullptr, 2 * kMany * sizeof(float)), "attach");
        reduce(comm, {sum(), kMany}, false);
        Buffers buffers(program_, comm, {sum(), kMany});
        buffers.fill();
        check(hetcoll_allreduce_enqueue(buffers.send(), buffers.recv(), static_cast<int>(kMany),
                                        MPI_FLOAT, MPI_SUM, comm, nullptr),
              "enqueue");
        const Driver &driver = program_.gpu().driver();
        program_.require(driver_status(driver, driver.cuStreamSynchronize(nullptr),
                                       "cuStreamSynchronize", "testing adapters"));
        check(hetcoll_stream_check(comm, nullptr), "check");
        buffers.check();
        check(hetcoll_stream_detach(comm, nullptr), "detach");
    }

private:
    static Pattern sum() { return {ElementKind::kFloat32, ReduceOp::kSum, Values::kExact, 1}; }

    Program &program_;
    const bool used_;
};

int run(int argc, char **argv)
{
    Program program(argc, argv, "adapters", MPI_THREAD_MULTIPLE);
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
    adapters.attached(other);
    MPI_Comm_free(&other);
    adapters.one(MPI_COMM_WORLD);
    program.check_algorithm();
    return program.finish();
}

} // namespace
} // namespace hetcoll::test

int main(int argc, char **argv) { return hetcoll::test::run(argc, argv); }
