// The sums of waves over the ranks of a communicator: several in flight, in order, and a
// thread, if wanted, that keeps MPI going meanwhile.
#pragma once

#include "base/element.h"
#include "base/status.h"
#include "include/hetcoll_types.h"

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include <mpi.h>

namespace hetcoll {

// The code of errors that only this library has: an MPI call failed, or the ranks do not agree.
inline constexpr Errc kMpiError{255};

// "MPI_Iallreduce failed: ..." for anything but MPI_SUCCESS.
[[nodiscard]] Status mpi_status(int code, const char *call);

// A duplicate communicator that returns its errors. Freed with its owner unless MPI is over.
class OwnComm {
public:
    OwnComm() noexcept = default;
    static Result<OwnComm> duplicate(MPI_Comm comm);
    OwnComm(OwnComm &&other) noexcept { std::swap(comm_, other.comm_); }
    OwnComm &operator=(OwnComm &&other) noexcept
    {
        std::swap(comm_, other.comm_);
        return *this;
    }
    ~OwnComm();
    [[nodiscard]] MPI_Comm get() const noexcept { return comm_; }

private:
    MPI_Comm comm_ = MPI_COMM_NULL;
};

// The vectors that are summed.
struct SumType {
    ElementKind kind = ElementKind::kFloat32;
    std::size_t count = 0;
};

class WaveExchange {
public:
    // Collective. Everything but sums works from then on.
    static Result<std::unique_ptr<WaveExchange>> create(MPI_Comm comm);
    // Local, before the first sum. `under_way`: most sums in flight. `progress_us` above 0: a
    // thread looks after them that often.
    Status prepare(SumType sum, int under_way, int progress_us);
    // Gives up sums that are under way: their memory must stay.
    ~WaveExchange();
    WaveExchange(const WaveExchange &) = delete;
    WaveExchange &operator=(const WaveExchange &) = delete;

    // Collective, in the same order on all ranks. A slot is used again after its sum was complete.
    Status start(int slot, const void *from, void *to);
    [[nodiscard]] Result<bool> is_done(int slot);
    Status wait(int slot);
    // The same in one blocking call: the bits of MPI_Allreduce.
    Status sum_now(const void *from, void *to);
    // Rank 0's vector for all.
    Status broadcast(void *vector);
    // Lets whatever is under way advance.
    void progress();

    // Collective, in any order with the sums: the greatest of each number.
    Status maxima(std::span<std::int64_t> numbers);
    // Collective, the same way: `bytes` of each rank, in their order.
    Status gather(const void *mine, void *all, int bytes);

    [[nodiscard]] int rank() const noexcept { return rank_; }
    [[nodiscard]] int ranks() const noexcept { return ranks_; }
    [[nodiscard]] bool is_exchanging();

private:
    WaveExchange() = default;

    struct Slot {
        MPI_Request request = MPI_REQUEST_NULL;
        Status problem{}; // of a test that the thread made
    };

    Status prepare_type();
    Status start_thread(int progress_us);
    Status stop_before_finalize();
    void test(Slot &slot); // requires mutex_
    void keep_going(int progress_us);
    void stop() noexcept;

    SumType sum_;
    OwnComm sums_, words_; // two, so that words may come between sums
    int rank_ = 0, ranks_ = 1;
    MPI_Datatype type_ = MPI_DATATYPE_NULL;
    MPI_Op op_ = MPI_OP_NULL;
    bool has_types_ = false;
    hetcoll_types types_{};
    int keyval_ = MPI_KEYVAL_INVALID;

    std::mutex mutex_; // of slots_ and stopping_
    std::condition_variable wake_;
    bool stopping_ = false;
    std::vector<Slot> slots_;
    std::thread thread_;
};

} // namespace hetcoll
