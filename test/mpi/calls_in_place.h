// One collective call that is made over and over on a communicator: in place, on floats, with a
// result that every rank knows.
#pragma once

#include "test/mpi/check.h"

#include <cstddef>
#include <string_view>
#include <vector>

namespace hetcoll::test {

// Of "blocking", "nonblocking" and "persistent" calls of MPI_Allreduce and one that is "queued" on
// a stream of its own (which takes MPI_THREAD_MULTIPLE), "bcast" and "ibcast" from the last rank,
// "reduce" to rank 0, "allgather", "reduce_scatter_block" and "alltoall" of equal shares of
// `count`.
struct CallInPlace {
    std::string_view way;
    Memory memory;
    std::size_t count; // elements of the buffer
};

class CallsInPlace {
public:
    // Sets the communicator's errors to return. All ranks call it for a queued call.
    CallsInPlace(Program &program, MPI_Comm comm, const CallInPlace &call);
    ~CallsInPlace();
    CallsInPlace(const CallsInPlace &) = delete;
    CallsInPlace &operator=(const CallsInPlace &) = delete;

    // The whole call, with new input. An error class.
    int run();
    // No more calls: before the communicator is freed, if that is earlier than this object's end.
    void end();
    // After a success.
    void check();
    [[nodiscard]] bool is_right(); // says nothing
    [[nodiscard]] bool is_allreduce() const;
    [[nodiscard]] Buffers &buffers() noexcept { return buffers_; }

private:
    [[nodiscard]] std::vector<float> input(int rank, std::size_t first, std::size_t count) const;
    [[nodiscard]] std::vector<float> sum(std::size_t first, std::size_t count) const;
    [[nodiscard]] std::vector<float> result() const;
    void attach();
    int queued();
    int allreduce();
    int start_and_wait();

    Program &program_;
    MPI_Comm comm_;
    const CallInPlace call_;
    int rank_ = 0, ranks_ = 1;
    Buffers buffers_;
    MPI_Request request_ = MPI_REQUEST_NULL;
    CUstream stream_ = nullptr; // of queued calls
};

} // namespace hetcoll::test
