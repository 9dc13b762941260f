#include "test/mpi/calls_in_place.h"

#include "include/hetcoll_stream.h"
#include "measure/persistent.h"

#include <string>
#include <utility>

namespace hetcoll::test {
namespace {

constexpr Pattern kSum{ElementKind::kFloat32, ReduceOp::kSum, Values::kExact, 1};

} // namespace

CallsInPlace::CallsInPlace(Program &program, MPI_Comm comm, const CallInPlace &call)
    : program_(program), comm_(comm), call_(call), buffers_(program, comm,
                                                            {.pattern = kSum,
                                                             .count = call.count,
                                                             .send = call.memory,
                                                             .recv = call.memory,
                                                             .in_place = true})
{
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_rank(comm, &rank_);
    MPI_Comm_size(comm, &ranks_);
    if (call.way == "queued") {
        attach();
    }
}

CallsInPlace::~CallsInPlace() { end(); }

void CallsInPlace::end()
{
    if (request_ != MPI_REQUEST_NULL) {
        MPI_Request_free(&request_);
    }
    if (stream_ != nullptr) {
        hetcoll_stream_detach(comm_, stream_); // its error is that of a call that has failed
        program_.gpu().driver().cuStreamDestroy(std::exchange(stream_, nullptr));
    }
}

void CallsInPlace::attach()
{
    const Driver &driver = program_.gpu().driver();
    program_.require(driver_status(driver, driver.cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING),
                                   "cuStreamCreate", "making a stream for queued calls"));
    const int code = hetcoll_stream_attach(comm_, stream_, call_.count * sizeof(float));
    program_.check(code == MPI_SUCCESS && hetcoll_stream_is_attached(comm_, stream_) != 0,
                   "a stream is not attached: MPI error %d", code);
}

int CallsInPlace::run()
{
    buffers_.fill();
    const int code = start_and_wait();
    int kind = MPI_SUCCESS;
    MPI_Error_class(code, &kind);
    return kind;
}

void CallsInPlace::check()
{
    if (is_allreduce()) {
        buffers_.check(false);
    } else {
        program_.check(is_right(), "a wrong result of %s", std::string(call_.way).c_str());
    }
}

bool CallsInPlace::is_right()
{
    if (is_allreduce()) {
        return buffers_.is_right();
    }
    const std::vector<float> right = result();
    std::vector<float> found(right.size());
    program_.require(buffers_.recv_buffer().read(buffers_.recv_start(), found.data(),
                                                 found.size() * sizeof(float)));
    return found == right;
}

bool CallsInPlace::is_allreduce() const
{
    return call_.way == "blocking" || call_.way == "nonblocking" || call_.way == "persistent" ||
           call_.way == "queued";
}

std::vector<float> CallsInPlace::input(int rank, std::size_t first, std::size_t count) const
{
    std::vector<float> all(call_.count);
    fill_input(kSum, rank, all.size(), all.data());
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(first);
    return {begin, begin + static_cast<std::ptrdiff_t>(count)};
}

std::vector<float> CallsInPlace::sum(std::size_t first, std::size_t count) const
{
    std::vector<float> all(count);
    for (int rank = 0; rank < ranks_; ++rank) {
        const std::vector<float> theirs = input(rank, first, count);
        for (std::size_t i = 0; i < count; ++i) {
            all[i] += theirs[i];
        }
    }
    return all;
}

// The initial content of the buffer; the rest is undefined.
std::vector<float> CallsInPlace::result() const
{
    if (call_.way == "bcast" || call_.way == "ibcast") {
        return input(ranks_ - 1, 0, call_.count);
    }
    if (call_.way == "reduce") {
        return rank_ == 0 ? sum(0, call_.count) : input(rank_, 0, call_.count);
    }
    const std::size_t share = call_.count / static_cast<std::size_t>(ranks_);
    const auto place_of = [share](int rank) { return share * static_cast<std::size_t>(rank); };
    if (call_.way == "reduce_scatter_block") {
        return sum(place_of(rank_), share);
    }
    std::vector<float> all;
    for (int rank = 0; rank < ranks_; ++rank) {
        const int part = call_.way == "allgather" ? rank : rank_; // else an alltoall
        const std::vector<float> theirs = input(rank, place_of(part), share);
        all.insert(all.end(), theirs.begin(), theirs.end());
    }
    return all;
}

// Whatever has become of it, the stream goes on.
int CallsInPlace::queued()
{
    const Driver &driver = program_.gpu().driver();
    const int code =
        hetcoll_allreduce_enqueue(MPI_IN_PLACE, buffers_.recv(), static_cast<int>(call_.count),
                                  MPI_FLOAT, MPI_SUM, comm_, stream_);
    program_.require(driver_status(driver, driver.cuStreamSynchronize(stream_),
                                   "cuStreamSynchronize", "waiting for a queued call"));
    const int told = hetcoll_stream_check(comm_, stream_);
    return code == MPI_SUCCESS ? told : code;
}

int CallsInPlace::allreduce()
{
    if (call_.way == "queued") {
        return queued();
    }
    void *const buffer = buffers_.recv();
    const int count = static_cast<int>(call_.count);
    if (call_.way == "blocking") {
        return MPI_Allreduce(MPI_IN_PLACE, buffer, count, MPI_FLOAT, MPI_SUM, comm_);
    }
    int code = MPI_SUCCESS;
    if (call_.way == "nonblocking") {
        code = MPI_Iallreduce(MPI_IN_PLACE, buffer, count, MPI_FLOAT, MPI_SUM, comm_, &request_);
    } else {
        if (request_ == MPI_REQUEST_NULL) {
            code = HETCOLL_ALLREDUCE_INIT(MPI_IN_PLACE, buffer, count, MPI_FLOAT, MPI_SUM, comm_,
                                          MPI_INFO_NULL, &request_);
        }
        code = code == MPI_SUCCESS ? MPI_Start(&request_) : code;
    }
    return code == MPI_SUCCESS ? MPI_Wait(&request_, MPI_STATUS_IGNORE) : code;
}

int CallsInPlace::start_and_wait()
{
    if (is_allreduce()) {
        return allreduce();
    }
    void *const buffer = buffers_.recv();
    const int count = static_cast<int>(call_.count), share = count / ranks_, last = ranks_ - 1;
    if (call_.way == "bcast") {
        return MPI_Bcast(buffer, count, MPI_FLOAT, last, comm_);
    }
    if (call_.way == "ibcast") {
        const int code = MPI_Ibcast(buffer, count, MPI_FLOAT, last, comm_, &request_);
        return code == MPI_SUCCESS ? MPI_Wait(&request_, MPI_STATUS_IGNORE) : code;
    }
    if (call_.way == "reduce") {
        const bool root = rank_ == 0;
        return MPI_Reduce(root ? MPI_IN_PLACE : buffer, root ? buffer : nullptr, count, MPI_FLOAT,
                          MPI_SUM, 0, comm_);
    }
    if (call_.way == "allgather") {
        return MPI_Allgather(MPI_IN_PLACE, 0, MPI_FLOAT, buffer, share, MPI_FLOAT, comm_);
    }
    if (call_.way == "reduce_scatter_block") {
        return MPI_Reduce_scatter_block(MPI_IN_PLACE, buffer, share, MPI_FLOAT, MPI_SUM, comm_);
    }
    if (call_.way == "alltoall") {
        return MPI_Alltoall(MPI_IN_PLACE, 0, MPI_FLOAT, buffer, share, MPI_FLOAT, comm_);
    }
    program_.check(false, "there is no call %s", std::string(call_.way).c_str());
    return MPI_ERR_ARG;
}

} // namespace hetcoll::test
