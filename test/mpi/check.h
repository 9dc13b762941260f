// Shared by the MPI tests: counting checks, the GPU, the emulated driver's counters and faults,
// and one Allreduce with everything about it checked. A failed check prints a line; any line that
// does not start with "ok", "skip" or "note" makes run.sh fail the case. R1 to R25 in the tests are
// those of docs/clients.md.
#pragma once

#include "engine/types/settings.h"
#include "measure/buffer.h"
#include "measure/counters.h"
#include "measure/mpi_names.h"
#include "measure/pattern.h"
#include "test/gpu/test_memory.h"

#include <mpi.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace hetcoll::test {

// One test program: create first in main, return finish() from it.
class Program {
public:
    // Initialises MPI. The GPU is opened at first use.
    Program(int &argc, char **&argv, const char *name, int thread_level = MPI_THREAD_SINGLE);
    ~Program();
    Program(const Program &) = delete;
    Program &operator=(const Program &) = delete;

    [[nodiscard]] int rank() const noexcept { return rank_; }
    [[nodiscard]] int ranks() const noexcept { return ranks_; }
    // Thread safe after the first call. Fails the program if there is none.
    const Gpu &gpu();
    // Releases it before MPI_Finalize does its work; Buffers must be gone.
    void close_gpu() { gpu_.reset(); }
    [[nodiscard]] const JobCounters &counters() const noexcept { return *counters_; }
    [[nodiscard]] const MpiNames &names() const noexcept { return *names_; }

    // Thread safe. The text says what was expected and what came.
    [[gnu::format(printf, 3, 4)]] bool check(bool right, const char *format, ...);
    // Ends the program: a driver error here is the test's own.
    void require(const Status &status);
    // Fails unless the algorithm that coll_hetcoll_algorithm names, or another one that the case
    // expects (HETCOLL_TEST_ALGORITHM), has served calls of this rank. summarise() calls it, so
    // that no case passes without what it is there for.
    void check_algorithm();

    // This rank's count so far.
    [[nodiscard]] long failures() const noexcept { return failures_; }
    // Collects the failures of all ranks, finalizes MPI and says "ok NAME: N checks". The exit
    // status.
    int finish();
    // The same without MPI_Finalize, for programs that do it themselves.
    int summarise();

private:
    std::string name_;
    int rank_ = 0, ranks_ = 1;
    std::unique_ptr<Gpu> gpu_;
    std::unique_ptr<JobCounters> counters_;
    std::unique_ptr<MpiNames> names_;
    std::atomic<long> checks_{0}, failures_{0};
};

// The emulated driver of this process. Absent (every answer zero) on a real GPU or without any.
class Emulated {
public:
    // Finds it if something has loaded it.
    Emulated();
    [[nodiscard]] bool present() const noexcept { return calls_ != nullptr; }
    [[nodiscard]] std::uint64_t calls(const char *name) const
    {
        return calls_ != nullptr ? calls_(name) : 0;
    }
    void set_faults(const char *faults) const
    {
        if (set_faults_ != nullptr) {
            set_faults_(faults);
        }
    }
    // No more faults. Contexts that could not be popped leave this thread's stack, which a call
    // that polls for long enough fills.
    void end_faults(const Gpu &gpu) const;
    void hold_devices(bool hold) const
    {
        if (hold_devices_ != nullptr) {
            hold_devices_(hold ? 1 : 0);
        }
    }
    // An entry point of the driver that device/driver.h does not list, or null.
    [[nodiscard]] void *find(const char *name) const;

private:
    void *library_ = nullptr;
    std::uint64_t (*calls_)(const char *) = nullptr;
    void (*set_faults_)(const char *) = nullptr;
    void (*hold_devices_)(int) = nullptr;
};

inline const std::size_t kSmallBytes = hetcoll_default_settings().small_limit;

// The counter of a `bytes`-byte call on device memory if `algorithm` is forced and can run there:
// not all of them serve calls up to the small limit. No counter for names that are no algorithm.
[[nodiscard]] std::optional<hetcoll_counter> counter_of_call(std::string_view algorithm,
                                                             std::size_t bytes);

struct Call {
    Pattern pattern;
    std::size_t count;
    Memory send = Memory::kDevice, recv = Memory::kDevice;
    bool in_place = false;
    std::size_t send_offset = 0, recv_offset = 0;  // bytes from an aligned address
    MemoryType device_memory = MemoryType::kPlain; // what Memory::kDevice is
};

// "float32 sum, 17 elements, device to host": for messages.
[[nodiscard]] std::string describe(const Call &call);

// One MPI_Allreduce on `comm` with guards around both buffers. Checks every element, that all ranks
// hold the same bits (R9), that the send buffer is as before and that no other byte was touched.
// Ranks may differ in memory and offsets. Collective; thread safe on different communicators.
void check_allreduce(Program &program, MPI_Comm comm, const Call &call);

// The parts of it, for tests that do something in between.
class Buffers {
public:
    Buffers(Program &program, MPI_Comm comm, const Call &call);
    void fill();  // inputs, guards, garbage in the receive buffer
    int reduce(); // MPI_Allreduce; MPI's error code
    // After a success: this rank's elements, guards and send buffer, and unless told otherwise that
    // all ranks agree (collective).
    void check(bool compare_ranks = true);
    // True if every element is right; says nothing.
    [[nodiscard]] bool is_right();

    [[nodiscard]] const void *send() const;
    [[nodiscard]] void *recv() const;
    [[nodiscard]] const Buffer &recv_buffer() const noexcept { return recv_; }
    [[nodiscard]] std::size_t recv_start() const noexcept { return start(call_.recv_offset); }

private:
    static std::size_t start(std::size_t offset) noexcept;
    void check_guards(const Buffer &buffer, std::size_t first, const char *which);

    Program &program_;
    MPI_Comm comm_;
    Call call_;
    std::size_t bytes_;
    int rank_ = 0, ranks_ = 1;
    Buffer send_, recv_;
};

} // namespace hetcoll::test
