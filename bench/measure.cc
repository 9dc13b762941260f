#include "bench/measure.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <vector>

namespace hetcoll {

namespace {

// Copies device buffers to pageable host memory, reduces there and copies the result back, as Open
// MPI's coll/cuda does; kinder than that, it keeps its host memory and never copies the receive
// buffer to the host.
class HostCopy {
public:
    HostCopy(const Gpu &gpu, const Reduction &reduction, MPI_Comm comm)
        : gpu_(gpu), reduction_(reduction), comm_(comm), in_place_(reduction.send == MPI_IN_PLACE),
          send_(reduction.bytes), recv_(in_place_ ? 0 : reduction.bytes)
    {
    }

    void call()
    {
        const Reduction &r = reduction_;
        const void *from = in_place_ ? r.recv : r.send;
        char *result = in_place_ ? send_.data() : recv_.data();
        const Driver &driver = gpu_.driver();
        require(driver_status(driver, driver.cuMemcpyDtoH(send_.data(), device(from), r.bytes),
                              "cuMemcpyDtoH", "copying to the host"),
                comm_);
        MPI_Allreduce(in_place_ ? MPI_IN_PLACE : send_.data(), result, static_cast<int>(r.count),
                      r.type, r.op, comm_);
        require(driver_status(driver, driver.cuMemcpyHtoD(device(r.recv), result, r.bytes),
                              "cuMemcpyHtoD", "copying from the host"),
                comm_);
    }

private:
    static CUdeviceptr device(const void *pointer)
    {
        return static_cast<CUdeviceptr>(reinterpret_cast<std::uintptr_t>(pointer));
    }

    const Gpu &gpu_;
    Reduction reduction_;
    MPI_Comm comm_;
    bool in_place_;
    std::vector<char> send_, recv_;
};

int iterations_for(std::size_t bytes)
{
    return bytes <= std::size_t{64} << 10  ? 100
           : bytes <= std::size_t{1} << 20 ? 40
           : bytes <= std::size_t{8} << 20 ? 20
                                           : 10;
}

Sample summarise(std::vector<double> &us, MPI_Comm comm)
{
    const int count = static_cast<int>(us.size());
    MPI_Allreduce(MPI_IN_PLACE, us.data(), count, MPI_DOUBLE, MPI_MAX, comm);
    std::sort(us.begin(), us.end());
    return {us.front(), us[us.size() / 2], us[(us.size() * 99 + 99) / 100 - 1]};
}

double time_us(MPI_Comm comm, int batch, const std::function<void()> &call)
{
    MPI_Barrier(comm);
    const double start = MPI_Wtime();
    for (int i = 0; i < batch; ++i) {
        call();
    }
    return (MPI_Wtime() - start) * 1e6 / batch;
}

// Gathers with point-to-point collectives only, so that a wrong Allreduce cannot hide itself.
Verdict judge(MPI_Comm comm, const Outcome &mine)
{
    int ranks = 0, rank = 0;
    MPI_Comm_size(comm, &ranks);
    MPI_Comm_rank(comm, &rank);
    std::vector<std::uint64_t> all(2 * static_cast<std::size_t>(ranks));
    const std::uint64_t pair[2] = {mine.wrong, mine.checksum};
    MPI_Gather(pair, 2, MPI_UINT64_T, all.data(), 2, MPI_UINT64_T, 0, comm);
    std::uint64_t sum[2] = {0, 0}; // wrong elements, ranks that differ from rank 0
    if (rank == 0) {
        for (std::size_t i = 0; i < all.size(); i += 2) {
            sum[0] += all[i];
            sum[1] += all[i + 1] != all[1] ? 1 : 0;
        }
    }
    MPI_Bcast(sum, 2, MPI_UINT64_T, 0, comm);
    return {sum[0], sum[1] == 0};
}

Verdict checked_call(MPI_Comm comm, Workload &workload, const std::function<void()> &call)
{
    int ranks = 0, rank = 0;
    MPI_Comm_size(comm, &ranks);
    MPI_Comm_rank(comm, &rank);
    require(workload.fill(rank), comm);
    call();
    Result<Outcome> outcome = workload.check(ranks);
    if (!outcome.ok()) {
        require(outcome.take_status(), comm);
    }
    return judge(comm, *outcome);
}

void add(std::optional<Verdict> &to, const Verdict &more)
{
    to = to ? Verdict{to->wrong + more.wrong, to->same_bits && more.same_bits} : more;
}

} // namespace

void require(Status status, MPI_Comm comm)
{
    if (!status.ok()) {
        std::fprintf(stderr, "hetcoll_bench: %s\n", status.message().c_str());
        MPI_Abort(comm, 1);
    }
}

double algorithm_bandwidth_gbs(std::size_t bytes, double median_us)
{
    return static_cast<double>(bytes) / median_us / 1e3;
}

double bus_bandwidth_gbs(std::size_t bytes, int ranks, double median_us)
{
    return 2.0 * (ranks - 1) / ranks * algorithm_bandwidth_gbs(bytes, median_us);
}

Measured measure(MPI_Comm comm, const Gpu *gpu, const Counters &counters, Workload &workload,
                 const MeasureOptions &options)
{
    const Reduction r = workload.reduction();
    const auto call = [&] {
        MPI_Allreduce(r.send, r.recv, static_cast<int>(r.count), r.type, r.op, comm);
    };
    std::unique_ptr<HostCopy> copy;
    if (options.host_copy) {
        copy = std::make_unique<HostCopy>(*gpu, r, comm);
    }
    const auto copy_call = [&] { copy->call(); };

    Measured measured{};
    // A check before and after the clock runs: the first call of a size prepares, later ones
    // repeat.
    const auto check = [&](bool name_it) {
        const CounterValues before = counters.read();
        if (options.verify) {
            add(measured.call.verdict, checked_call(comm, workload, call));
        } else {
            call();
        }
        if (name_it) {
            measured.route = name_route(counters, counters.read() - before);
        }
        if (copy && options.verify) {
            add(measured.host_copy->verdict, checked_call(comm, workload, copy_call));
        }
    };
    if (copy) {
        measured.host_copy.emplace();
    }
    int rank = 0;
    MPI_Comm_rank(comm, &rank);
    require(workload.fill(rank), comm);
    check(false);

    const int iterations = options.iterations > 0 ? options.iterations : iterations_for(r.bytes);
    std::vector<double> us, copy_us;
    for (int i = -options.warmup; i < iterations; ++i) {
        const double t = time_us(comm, options.batch, call);
        const double copy_t = copy ? time_us(comm, options.batch, copy_call) : 0;
        if (i >= 0) {
            us.push_back(t);
            copy_us.push_back(copy_t);
        }
    }
    check(true);
    measured.call.time = summarise(us, comm);
    if (copy) {
        measured.host_copy->time = summarise(copy_us, comm);
    }
    return measured;
}

} // namespace hetcoll
