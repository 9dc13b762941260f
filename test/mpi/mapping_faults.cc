// R4: peers' memory that cannot be mapped, kernels over it that cannot be launched, and kernels
// that fail while they run, on one rank only. The first argument chooses what breaks, the second
// the rank.
#include "test/mpi/check.h"

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace hetcoll::test {
namespace {

class Test {
public:
    Test(Program &program, int victim)
        : program_(program), is_victim_(program.rank() == victim), driver_(program.gpu().driver())
    {
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    }

    // Nothing fails any more, or the mapping fails from the first trial on (EMU_FAIL).
    void right_results()
    {
        for (const std::size_t count : {std::size_t{5}, std::size_t{3'000}, std::size_t{400'000}}) {
            for (const bool in_place : {false, true}) {
                check_allreduce(program_, MPI_COMM_WORLD,
                                {sum(), count, Memory::kDevice, Memory::kDevice, in_place});
            }
        }
    }

    // The trial goes well; a new buffer of a later call cannot be mapped. The call ends with the
    // right result all the same. That buffer's owner shares other memory from then on, and all
    // other buffers are mapped.
    void later()
    {
        right_results();
        Buffers buffers(program_, MPI_COMM_WORLD, {sum(), 700'000});
        unmapped_call(buffers, "cuIpcOpenMemHandle:+1:999");
        const CounterValues before = program_.counters().read();
        for (int call = 0; call < 2; ++call) {
            buffers.fill();
            program_.check(buffers.reduce() == MPI_SUCCESS, "no result with other memory");
            buffers.check();
        }
        check_mapped(before, true);
        right_results();
    }

    // From some call on nothing at all can be mapped.
    void never()
    {
        right_results();
        Buffers buffers(program_, MPI_COMM_WORLD, {sum(), 700'000});
        unmapped_call(buffers, "cuIpcOpenMemHandle:*:999");
        unmapped_call(buffers, "cuIpcOpenMemHandle:*:999");
        const CounterValues before = program_.counters().read();
        right_results();
        check_mapped(before, false);
    }

    // A rank's kernel is not launched: an error on every rank, and the next call works.
    void launch()
    {
        for (const std::size_t count : {std::size_t{200'000}, std::size_t{2'000}}) {
            MPI_Comm comm = MPI_COMM_NULL;
            MPI_Comm_dup(MPI_COMM_WORLD, &comm);
            const Call call{sum(), count};
            check_allreduce(program_, comm, {sum(), 50'000});
            check_allreduce(program_, comm, call);
            {
                Buffers buffers(program_, comm, call);
                buffers.fill();
                fail("cuLaunchKernel:1:701");
                program_.check(buffers.reduce() != MPI_SUCCESS, "success without a kernel: %s",
                               describe(call).c_str());
                Emulated().set_faults(nullptr);
            }
            check_allreduce(program_, comm, call);
            MPI_Comm_free(&comm);
        }
    }

    // A rank's result lies in memory that its GPU may not write: its kernel dies, and the flag that
    // it would set last stays as it was. An error on every rank. Its context is lost, so the job's
    // end is all that follows.
    void kernel()
    {
        right_results();
        const Call call{sum(), kBytes / sizeof(float)};
        Buffers buffers(program_, MPI_COMM_WORLD, call);
        buffers.fill();
        void *recv = buffers.recv();
        if (is_victim_) {
            recv = memory_without_access();
        }
        const int result = MPI_Allreduce(buffers.send(), recv, static_cast<int>(call.count),
                                         MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        program_.check(result != MPI_SUCCESS, "success although a kernel failed");
        std::printf("note mapping_faults: rank %d had its error\n", program_.rank());
        std::fflush(stdout);
    }

private:
    static constexpr std::size_t kBytes = std::size_t{2} << 20; // a whole VMM granule

    Pattern sum() { return {ElementKind::kFloat32, ReduceOp::kSum, Values::kExact, ++seed_}; }

    // On one rank.
    void unmapped_call(Buffers &buffers, const char *faults)
    {
        const CounterValues before = program_.counters().read();
        buffers.fill();
        fail(faults);
        program_.check(buffers.reduce() == MPI_SUCCESS, "no result without mapping");
        Emulated().set_faults(nullptr);
        buffers.check();
        check_mapped(before, false);
    }

    // Whether some rank has read or written another's memory since then.
    void check_mapped(const CounterValues &before, bool expected)
    {
        const CounterValues used = program_.counters().read() - before;
        program_.check(used[HETCOLL_CALLS_FAILED] == 0, "a call failed");
        int mapped = used[HETCOLL_BYTES_MAPPED] != 0 ? 1 : 0;
        MPI_Allreduce(MPI_IN_PLACE, &mapped, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        program_.check((mapped != 0) == expected, "%s was mapped",
                       expected ? "nothing" : "something");
    }

    void fail(const char *faults)
    {
        MPI_Barrier(MPI_COMM_WORLD);
        if (is_victim_) {
            Emulated().set_faults(faults);
        }
    }

    void must(CUresult result, const char *call)
    {
        program_.require(driver_status(driver_, result, call, "preparing a test"));
    }

    void *memory_without_access()
    {
        CUmemAllocationProp prop{};
        prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
        prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        prop.location.id = program_.gpu().ordinal();
        prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
        CUmemAccessDesc access{};
        access.location = prop.location;
        access.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
        const auto create =
            reinterpret_cast<decltype(&::cuMemCreate)>(Emulated().find("cuMemCreate"));
        program_.check(create != nullptr, "the driver lacks an entry point");
        CUmemGenericAllocationHandle handle = 0;
        CUdeviceptr at = 0;
        must(create(&handle, kBytes, &prop, 0), "cuMemCreate");
        must(driver_.cuMemAddressReserve(&at, kBytes, 0, 0, 0), "cuMemAddressReserve");
        must(driver_.cuMemMap(at, kBytes, 0, handle, 0), "cuMemMap");
        must(driver_.cuMemSetAccess(at, kBytes, &access, 1), "cuMemSetAccess");
        return reinterpret_cast<void *>(static_cast<std::uintptr_t>(at));
    }

    Program &program_;
    bool is_victim_;
    const Driver &driver_;
    std::uint32_t seed_ = 0;
};

} // namespace
} // namespace hetcoll::test

int main(int argc, char **argv)
{
    using namespace hetcoll::test;
    const std::string_view what = argc > 1 ? argv[1] : "";
    Program program(argc, argv, "mapping_faults");
    Test test(program, argc > 2 ? std::atoi(argv[2]) : 1);
    if (!Emulated().present()) {
        std::printf("skip mapping_faults: only the emulated driver fails on request\n");
    } else if (what == "trial") {
        test.right_results();
    } else if (what == "later") {
        test.later();
    } else if (what == "never") {
        test.never();
    } else if (what == "launch") {
        test.launch();
    } else if (what == "kernel") {
        test.kernel();
        MPI_Abort(MPI_COMM_WORLD, 42); // nothing else can be done with the rank's GPU
    } else {
        program.check(false, "usage: mapping_faults trial|later|never|launch|kernel [RANK]");
    }
    return program.finish();
}
