#include "bench/gpu_ranks.h"

#include "cuda_kernels/reduction.h"
#include "measure/micro.h"
#include "schedule/algorithm_rows.h"
#include "test/gpu/small_numbers.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstring>

namespace hetcoll {
namespace {

constexpr unsigned kContent = 1; // of test::numbers()

CUdeviceptr device(const void *pointer)
{
    return static_cast<CUdeviceptr>(reinterpret_cast<std::uintptr_t>(pointer));
}

double now_us()
{
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double, std::micro>(now).count();
}

class HetcollAllreduce final : public RanksAllreduce {
public:
    HetcollAllreduce(std::unique_ptr<test::RankCommunicator> comm, const RankVectors &vectors,
                     const std::string &algorithm)
        : comm_(std::move(comm)), vectors_(vectors), algorithm_(algorithm)
    {
    }
    Status call(std::size_t count) override
    {
        return comm_->allreduce(vectors_.send(), vectors_.recv(), HETCOLL_FLOAT32, HETCOLL_SUM,
                                count);
    }
    std::string served_by() override
    {
        std::string name;
        for (int i = 0; i < kAlgorithmCount; ++i) {
            const std::uint64_t calls = comm_->counter(HETCOLL_CALLS_OF(i));
            if (calls != calls_[i]) {
                name = algorithm_name(static_cast<Algorithm>(i));
            }
            calls_[i] = calls;
        }
        if (algorithm_ == "auto") {
            return "auto:" + name;
        }
        return name == algorithm_ ? name : "";
    }

private:
    std::unique_ptr<test::RankCommunicator> comm_;
    const RankVectors &vectors_;
    std::string algorithm_;
    std::uint64_t calls_[kAlgorithmCount] = {};
};

class StagedAllreduce final : public RanksAllreduce {
public:
    StagedAllreduce(test::NetworkRank &rank, const RankVectors &vectors, const Gpu &gpu,
                    const StagingArea &area)
        : rank_(rank), vectors_(vectors), gpu_(gpu), area_(area)
    {
    }
    ~StagedAllreduce() override
    {
        for (std::byte *locked : locked_) {
            gpu_.driver().cuMemHostUnregister(locked);
        }
    }
    Status open()
    {
        for (std::byte *part : {area_.vector_of(rank_.rank()), area_.result()}) {
            const CUresult result = gpu_.driver().cuMemHostRegister(part, area_.most_bytes(),
                                                                    CU_MEMHOSTREGISTER_PORTABLE);
            if (result != CUDA_SUCCESS) {
                return driver_status(gpu_.driver(), result, "cuMemHostRegister",
                                     "locking the memory that the ranks share");
            }
            locked_.push_back(part);
        }
        return {};
    }
    Status call(std::size_t count) override
    {
        const std::size_t bytes = count * sizeof(float);
        const Driver &driver = gpu_.driver();
        Status copied = driver_status(
            driver,
            driver.cuMemcpyDtoH(area_.vector_of(rank_.rank()), device(vectors_.send()), bytes),
            "cuMemcpyDtoH", "copying to the host");
        rank_.barrier();
        const auto ranks = static_cast<std::size_t>(rank_.size());
        const auto own = static_cast<std::size_t>(rank_.rank());
        const std::size_t first = count * own / ranks, last = count * (own + 1) / ranks;
        const HostReduce sum = host_reduce(ReduceOp::kSum, ElementKind::kFloat32);
        std::byte *to = area_.result() + first * sizeof(float);
        const std::byte *from = area_.vector_of(0) + first * sizeof(float);
        for (int rank = 1; rank < rank_.size(); ++rank) {
            sum(to, from, area_.vector_of(rank) + first * sizeof(float), last - first);
            from = to;
        }
        rank_.barrier();
        Status back = driver_status(
            driver, driver.cuMemcpyHtoD(device(vectors_.recv()), area_.result(), bytes),
            "cuMemcpyHtoD", "copying from the host");
        return copied.ok() ? std::move(back) : std::move(copied);
    }
    std::string served_by() override { return "staged"; }

private:
    test::NetworkRank &rank_;
    const RankVectors &vectors_;
    const Gpu &gpu_;
    const StagingArea &area_;
    std::vector<std::byte *> locked_;
};

class NcclAllreduce final : public RanksAllreduce {
public:
    NcclAllreduce(std::unique_ptr<NcclComm> comm, const RankVectors &vectors, const Gpu &gpu)
        : comm_(std::move(comm)), vectors_(vectors), gpu_(gpu)
    {
    }
    ~NcclAllreduce() override
    {
        comm_.reset();
        if (stream_ != nullptr) {
            gpu_.driver().cuStreamDestroy(stream_);
        }
    }
    Status open()
    {
        return driver_status(gpu_.driver(),
                             gpu_.driver().cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING),
                             "cuStreamCreate", "making a stream for NCCL");
    }
    Status call(std::size_t count) override
    {
        Status started = comm_->sum_floats(vectors_.send(), vectors_.recv(), count, stream_);
        if (!started.ok()) {
            return started;
        }
        return driver_status(gpu_.driver(), gpu_.driver().cuStreamSynchronize(stream_),
                             "cuStreamSynchronize", "waiting for NCCL");
    }
    std::string served_by() override { return "nccl"; }

private:
    std::unique_ptr<NcclComm> comm_;
    const RankVectors &vectors_;
    const Gpu &gpu_;
    CUstream stream_ = nullptr;
};

} // namespace

Result<std::unique_ptr<RankVectors>> RankVectors::create(const Gpu &gpu, int rank, int ranks,
                                                         std::size_t most_bytes)
{
    std::unique_ptr<RankVectors> vectors(new RankVectors(gpu));
    for (Buffer *buffer : {&vectors->send_, &vectors->recv_}) {
        auto made = Buffer::allocate(&gpu, Memory::kDevice, most_bytes);
        if (!made.ok()) {
            return made.take_status();
        }
        *buffer = std::move(*made);
    }
    const std::size_t count = most_bytes / sizeof(float);
    const auto input = test::input_of(rank, HETCOLL_FLOAT32, count, kContent);
    Status written = vectors->send_.write(0, input.data(), input.size());
    if (!written.ok()) {
        return written;
    }
    vectors->sums_ = test::result_of(ranks, HETCOLL_FLOAT32, HETCOLL_SUM, count, kContent);
    return vectors;
}

Status RankVectors::clear_result(std::size_t bytes) const
{
    const Driver &driver = gpu_.driver();
    Status status = driver_status(driver, driver.cuMemsetD8(device(recv_.data()), 0xee, bytes),
                                  "cuMemsetD8", "clearing the result");
    if (status.ok()) {
        status = driver_status(driver, driver.cuCtxSynchronize(), "cuCtxSynchronize",
                               "clearing the result");
    }
    return status;
}

Status RankVectors::check_result(std::size_t bytes) const
{
    std::vector<unsigned char> got(std::min(bytes, std::size_t{16} << 20));
    for (std::size_t at = 0; at < bytes; at += got.size()) {
        const std::size_t piece = std::min(got.size(), bytes - at);
        Status read = recv_.read(at, got.data(), piece);
        if (!read.ok()) {
            return read;
        }
        if (std::memcmp(got.data(), sums_.data() + at, piece) != 0) {
            return error(Errc::kInvalid, "the result of %zu bytes is wrong, at or behind byte %zu",
                         bytes, at);
        }
    }
    return {};
}

Result<std::unique_ptr<RanksAllreduce>> make_hetcoll_allreduce(test::NetworkRank &rank,
                                                               const RankVectors &vectors,
                                                               const std::string &algorithm)
{
    auto comm = test::RankCommunicator::create(rank, algorithm.c_str());
    if (!comm.ok()) {
        return comm.take_status();
    }
    return std::unique_ptr<RanksAllreduce>(
        std::make_unique<HetcollAllreduce>(std::move(*comm), vectors, algorithm));
}

Result<std::unique_ptr<StagingArea>> StagingArea::create(int ranks, std::size_t most_bytes)
{
    constexpr std::size_t kPage = 4096;
    std::unique_ptr<StagingArea> area(new StagingArea);
    area->ranks_ = ranks;
    area->most_bytes_ = (most_bytes + kPage - 1) / kPage * kPage;
    const std::size_t all = static_cast<std::size_t>(ranks + 1) * area->most_bytes_;
    void *memory = mmap(nullptr, all, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        return error(Errc::kNoMemory, "no %zu bytes of host memory for %d ranks to share", all,
                     ranks);
    }
    area->memory_ = static_cast<std::byte *>(memory);
    return area;
}

StagingArea::~StagingArea()
{
    if (memory_ != nullptr) {
        munmap(memory_, static_cast<std::size_t>(ranks_ + 1) * most_bytes_);
    }
}

Result<std::unique_ptr<RanksAllreduce>> make_staged_allreduce(test::NetworkRank &rank,
                                                              const RankVectors &vectors,
                                                              const Gpu &gpu,
                                                              const StagingArea &area)
{
    auto allreduce = std::make_unique<StagedAllreduce>(rank, vectors, gpu, area);
    Status status = allreduce->open();
    if (!status.ok()) {
        return status;
    }
    return std::unique_ptr<RanksAllreduce>(std::move(allreduce));
}

Result<std::unique_ptr<RanksAllreduce>> make_nccl_allreduce(test::NetworkRank &rank,
                                                            const RankVectors &vectors,
                                                            const Gpu &gpu, const NcclLibrary &nccl)
{
    NcclId id{};
    if (rank.rank() == 0) {
        auto made = nccl.make_id();
        if (!made.ok()) {
            return made.take_status();
        }
        id = *made;
    }
    std::vector<NcclId> ids(static_cast<std::size_t>(rank.size()));
    rank.gather(&id, sizeof id, ids.data());
    auto comm = NcclComm::create(nccl, ids[0], rank.rank(), rank.size());
    if (!comm.ok()) {
        return comm.take_status();
    }
    auto allreduce = std::make_unique<NcclAllreduce>(std::move(*comm), vectors, gpu);
    Status status = allreduce->open();
    if (!status.ok()) {
        return status;
    }
    return std::unique_ptr<RanksAllreduce>(std::move(allreduce));
}

Result<RanksCallTimes> time_calls(test::NetworkRank &rank, const RankVectors &vectors,
                                  RanksAllreduce &allreduce, std::size_t bytes, double seconds)
{
    constexpr int kWarmup = 2, kFewest = 3, kEnough = 5, kMost = 500;
    constexpr double kSlowSeconds = 2; // beyond what was asked for: the fewest calls will do
    const std::size_t count = bytes / sizeof(float);
    Status status = vectors.clear_result(bytes);
    rank.barrier();
    allreduce.served_by(); // forget the earlier sizes
    if (status.ok()) {
        status = allreduce.call(count);
    }
    if (status.ok()) {
        status = vectors.check_result(bytes);
    }
    if (!status.ok()) {
        return status;
    }
    RanksCallTimes times;
    times.served_by = allreduce.served_by();
    if (times.served_by.empty()) { // the same on all ranks
        return times;
    }
    std::vector<double> us;
    const auto all = static_cast<std::size_t>(rank.size());
    std::vector<double> of_rank(all);
    for (int i = -kWarmup; i < kMost; ++i) {
        rank.barrier();
        const double start = now_us();
        status = allreduce.call(count);
        const double mine = now_us() - start;
        if (!status.ok()) {
            return status;
        }
        rank.gather(&mine, sizeof mine, of_rank.data());
        if (i >= 0) {
            us.push_back(*std::max_element(of_rank.begin(), of_rank.end()));
            seconds -= us.back() / 1e6;
            if (seconds <= 0 && i + 1 >= (seconds < -kSlowSeconds ? kFewest : kEnough)) {
                break;
            }
        }
    }
    times.calls = static_cast<int>(us.size());
    times.min_us = *std::min_element(us.begin(), us.end());
    times.median_us = median(us);
    return times;
}

Result<double> memory_gbps(const Gpu &gpu, std::size_t bytes)
{
    constexpr int kWarmup = 3, kSamples = 20, kInARow = 4;
    auto from = Buffer::allocate(&gpu, Memory::kDevice, bytes);
    auto to = Buffer::allocate(&gpu, Memory::kDevice, bytes);
    if (!from.ok() || !to.ok()) {
        return from.ok() ? to.take_status() : from.take_status();
    }
    const Driver &driver = gpu.driver();
    CUresult result = driver.cuMemsetD8(device(from->data()), 1, bytes);
    std::vector<double> us;
    for (int i = -kWarmup; i < kSamples && result == CUDA_SUCCESS; ++i) {
        const double start = now_us();
        for (int k = 0; k < kInARow && result == CUDA_SUCCESS; ++k) {
            result =
                driver.cuMemcpyDtoDAsync(device(to->data()), device(from->data()), bytes, nullptr);
        }
        if (result == CUDA_SUCCESS) {
            result = driver.cuStreamSynchronize(nullptr);
        }
        if (i >= 0) {
            us.push_back((now_us() - start) / kInARow);
        }
    }
    if (result != CUDA_SUCCESS) {
        return driver_status(driver, result, "cuMemcpyDtoDAsync", "measuring the memory");
    }
    return 2.0 * static_cast<double>(bytes) / median(us) / 1e3;
}

} // namespace hetcoll
