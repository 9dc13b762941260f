#include "wsp/exchange.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <system_error>
#include <utility>

namespace hetcoll {
namespace {

bool mpi_is_over()
{
    int over = 0;
    MPI_Finalized(&over);
    return over != 0;
}

// A problem that stays.
Status again(const Status &problem)
{
    return problem.ok() ? Status() : Status(problem.code(), problem.message());
}

} // namespace

Status mpi_status(int code, const char *call)
{
    if (code == MPI_SUCCESS) {
        return {};
    }
    std::array<char, MPI_MAX_ERROR_STRING> text{};
    int length = 0;
    if (MPI_Error_string(code, text.data(), &length) != MPI_SUCCESS) {
        return error(kMpiError, "%s failed with code %d", call, code);
    }
    return error(kMpiError, "%s failed: %s", call, text.data());
}

Result<OwnComm> OwnComm::duplicate(MPI_Comm comm)
{
    OwnComm copy;
    Status status = mpi_status(MPI_Comm_dup(comm, &copy.comm_), "MPI_Comm_dup");
    if (status.ok()) {
        status = mpi_status(MPI_Comm_set_errhandler(copy.comm_, MPI_ERRORS_RETURN),
                            "MPI_Comm_set_errhandler");
    }
    if (!status.ok()) {
        return status;
    }
    return copy;
}

OwnComm::~OwnComm()
{
    if (comm_ != MPI_COMM_NULL && !mpi_is_over()) {
        MPI_Comm_free(&comm_);
    }
}

Result<std::unique_ptr<WaveExchange>> WaveExchange::create(MPI_Comm comm)
{
    std::unique_ptr<WaveExchange> exchange(new WaveExchange);
    for (OwnComm *const copy : {&exchange->sums_, &exchange->words_}) {
        Result<OwnComm> made = OwnComm::duplicate(comm);
        if (!made.ok()) {
            return made.take_status();
        }
        *copy = std::move(*made);
    }
    MPI_Comm_rank(exchange->sums_.get(), &exchange->rank_);
    MPI_Comm_size(exchange->sums_.get(), &exchange->ranks_);
    return exchange;
}

Status WaveExchange::prepare(SumType sum, int under_way, int progress_us)
{
    sum_ = sum;
    slots_ = std::vector<Slot>(static_cast<std::size_t>(under_way));
    Status status = prepare_type();
    if (status.ok() && progress_us > 0) {
        status = start_thread(progress_us);
    }
    return status;
}

Status WaveExchange::prepare_type()
{
    op_ = MPI_SUM;
    type_ = sum_.kind == ElementKind::kFloat64 ? MPI_DOUBLE : MPI_FLOAT;
    if (sum_.kind == ElementKind::kFloat32 || sum_.kind == ElementKind::kFloat64) {
        return {};
    }
    if (Status status = mpi_status(hetcoll_types_create(&types_), "MPI_Op_create"); !status.ok()) {
        return status;
    }
    has_types_ = true;
    const bool half = sum_.kind == ElementKind::kFloat16;
    type_ = half ? types_.float16 : types_.bfloat16;
    op_ = half ? types_.float16_sum : types_.bfloat16_sum;
    return {};
}

Status WaveExchange::start_thread(int progress_us)
{
    int level = MPI_THREAD_SINGLE;
    MPI_Query_thread(&level);
    if (level < MPI_THREAD_MULTIPLE) {
        return error(Errc::kUnsupported,
                     "progress_us needs MPI_THREAD_MULTIPLE, which MPI_Init_thread did not give "
                     "this program: ask it for that, or set progress_us to 0 and call "
                     "hetcoll_wsp_progress now and then");
    }
    if (Status status = stop_before_finalize(); !status.ok()) {
        return status;
    }
    try {
        thread_ = std::thread([this, progress_us] { keep_going(progress_us); });
    } catch (const std::system_error &problem) {
        return error(Errc::kUnsupported, "no thread for progress: %s: set progress_us to 0",
                     problem.what());
    }
    return {};
}

// Stops the thread before MPI_Finalize, which deletes the attributes of MPI_COMM_SELF first. Else a
// program that has forgotten to free its handle would crash in a thread that still calls MPI.
Status WaveExchange::stop_before_finalize()
{
    const auto on_delete = [](MPI_Comm, int, void *self, void *) {
        static_cast<WaveExchange *>(self)->stop();
        return MPI_SUCCESS;
    };
    Status status =
        mpi_status(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_delete, &keyval_, nullptr),
                   "MPI_Comm_create_keyval");
    return status.ok()
               ? mpi_status(MPI_Comm_set_attr(MPI_COMM_SELF, keyval_, this), "MPI_Comm_set_attr")
               : std::move(status);
}

WaveExchange::~WaveExchange()
{
    stop();
    if (mpi_is_over()) {
        return;
    }
    if (keyval_ != MPI_KEYVAL_INVALID) {
        MPI_Comm_delete_attr(MPI_COMM_SELF, keyval_);
        MPI_Comm_free_keyval(&keyval_);
    }
    if (has_types_ && !is_exchanging()) {
        hetcoll_types_free(&types_);
    }
}

void WaveExchange::stop() noexcept
{
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    wake_.notify_all();
    if (thread_.joinable()) {
        thread_.join();
    }
}

void WaveExchange::test(Slot &slot)
{
    if (slot.request != MPI_REQUEST_NULL && slot.problem.ok()) {
        int done = 0;
        slot.problem = mpi_status(MPI_Test(&slot.request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    }
}

// The thread. While the program waits in wait() it holds the lock, and this thread sleeps on it.
void WaveExchange::keep_going(int progress_us)
{
    std::unique_lock lock(mutex_);
    while (!stopping_) {
        wake_.wait(lock, [this] {
            return stopping_ || std::any_of(slots_.begin(), slots_.end(), [](const Slot &slot) {
                       return slot.request != MPI_REQUEST_NULL && slot.problem.ok();
                   });
        });
        for (Slot &slot : slots_) {
            test(slot);
        }
        wake_.wait_for(lock, std::chrono::microseconds(progress_us), [this] { return stopping_; });
    }
}

Status WaveExchange::start(int slot, const void *from, void *to)
{
    {
        const std::lock_guard lock(mutex_);
        MPI_Request &request = slots_[static_cast<std::size_t>(slot)].request;
        Status status = mpi_status(MPI_Iallreduce(from, to, static_cast<int>(sum_.count), type_,
                                                  op_, sums_.get(), &request),
                                   "MPI_Iallreduce");
        if (!status.ok()) {
            return status;
        }
    }
    wake_.notify_one();
    return {};
}

Result<bool> WaveExchange::is_done(int slot)
{
    const std::lock_guard lock(mutex_);
    Slot &one = slots_[static_cast<std::size_t>(slot)];
    test(one);
    if (!one.problem.ok()) {
        return again(one.problem);
    }
    return one.request == MPI_REQUEST_NULL;
}

Status WaveExchange::wait(int slot)
{
    const std::lock_guard lock(mutex_);
    Slot &one = slots_[static_cast<std::size_t>(slot)];
    if (!one.problem.ok()) {
        return again(one.problem);
    }
    return mpi_status(MPI_Wait(&one.request, MPI_STATUS_IGNORE), "MPI_Wait");
}

Status WaveExchange::sum_now(const void *from, void *to)
{
    return mpi_status(
        MPI_Allreduce(from, to, static_cast<int>(sum_.count), type_, op_, sums_.get()),
        "MPI_Allreduce");
}

Status WaveExchange::broadcast(void *vector)
{
    return mpi_status(MPI_Bcast(vector, static_cast<int>(sum_.count), type_, 0, sums_.get()),
                      "MPI_Bcast");
}

void WaveExchange::progress()
{
    const std::lock_guard lock(mutex_);
    for (Slot &slot : slots_) {
        test(slot); // a problem stays until the slot is asked for
    }
}

Status WaveExchange::maxima(std::span<std::int64_t> numbers)
{
    return mpi_status(MPI_Allreduce(MPI_IN_PLACE, numbers.data(), static_cast<int>(numbers.size()),
                                    MPI_INT64_T, MPI_MAX, words_.get()),
                      "MPI_Allreduce");
}

Status WaveExchange::gather(const void *mine, void *all, int bytes)
{
    return mpi_status(MPI_Allgather(mine, bytes, MPI_BYTE, all, bytes, MPI_BYTE, words_.get()),
                      "MPI_Allgather");
}

bool WaveExchange::is_exchanging()
{
    const std::lock_guard lock(mutex_);
    return std::any_of(slots_.begin(), slots_.end(),
                       [](const Slot &slot) { return slot.request != MPI_REQUEST_NULL; });
}

} // namespace hetcoll
