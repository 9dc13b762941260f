#include "measure/measure.h"

#include "measure/persistent.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <random>
#include <thread>
#include <vector>

namespace hetcoll {

namespace {

// Copies device buffers to pageable host memory, reduces there and copies the result back, as Open
// MPI's coll/cuda does; kinder than that, it keeps its host memory and never copies the receive
// buffer to the host.
class HostCopy {
public:
    HostCopy(const Gpu &gpu, const WorkloadReduction &reduction, MPI_Comm comm)
        : gpu_(gpu), reduction_(reduction), comm_(comm), in_place_(reduction.send == MPI_IN_PLACE),
          send_(reduction.bytes), recv_(in_place_ ? 0 : reduction.bytes)
    {
    }

    void call()
    {
        const WorkloadReduction &r = reduction_;
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
    WorkloadReduction reduction_;
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

CallTimes summarise(std::vector<double> &us, MPI_Comm comm)
{
    const int count = static_cast<int>(us.size());
    MPI_Allreduce(MPI_IN_PLACE, us.data(), count, MPI_DOUBLE, MPI_MAX, comm);
    std::sort(us.begin(), us.end());
    const auto percentile = [&](std::size_t p) { return us[(us.size() * p + 99) / 100 - 1]; };
    return {us.front(), us[us.size() / 2], percentile(90), percentile(99)};
}

double now_us()
{
    return std::chrono::duration<double, std::micro>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

// How much later than others this rank comes to a call.
double delay_us(MPI_Comm comm, const MeasureOptions &options, int call)
{
    int rank = 0;
    MPI_Comm_rank(comm, &rank);
    std::mt19937 random(static_cast<unsigned>(call * 4096 + rank));
    const double jitter = options.jitter_us * static_cast<double>(random() % 1024) / 1024;
    return jitter + (rank == options.late_rank ? options.late_us : 0);
}

struct Interval {
    double begin_us, end_us;
};

Interval time_late(MPI_Comm comm, double late_us, const std::function<void()> &call)
{
    MPI_Barrier(comm);
    std::this_thread::sleep_for(std::chrono::duration<double, std::micro>(late_us));
    const double begin = now_us();
    call();
    return {begin, now_us()};
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

// A contender with what it needs to be called.
struct Caller {
    const Contender &contender;
    std::unique_ptr<HostCopy> copy;
    std::function<void()> call;
    MPI_Request request = MPI_REQUEST_NULL; // a persistent one
    MeasuredContender result{};
    std::vector<double> us{};
    std::vector<double> begin_us{}, end_us{}; // instead, where ranks come late
};

// The same on every rank.
void count_from_the_last(Caller &caller)
{
    const int count = static_cast<int>(caller.us.size());
    for (auto *times : {&caller.begin_us, &caller.end_us}) {
        MPI_Allreduce(MPI_IN_PLACE, times->data(), count, MPI_DOUBLE, MPI_MAX,
                      caller.contender.comm);
    }
    for (int i = 0; i < count; ++i) {
        caller.us[i] = caller.end_us[i] - caller.begin_us[i];
    }
}

std::function<void()> mpi_call(const Contender &contender, const WorkloadReduction &r,
                               MPI_Request &request)
{
    const int count = static_cast<int>(r.count);
    switch (contender.call) {
    case CallKind::kNonblocking:
        return [r, count, comm = contender.comm] {
            MPI_Request started;
            MPI_Iallreduce(r.send, r.recv, count, r.type, r.op, comm, &started);
            MPI_Wait(&started, MPI_STATUS_IGNORE);
        };
    case CallKind::kPersistent:
        HETCOLL_ALLREDUCE_INIT(r.send, r.recv, count, r.type, r.op, contender.comm, MPI_INFO_NULL,
                               &request);
        return [copy = request]() mutable {
            MPI_Start(&copy);
            MPI_Wait(&copy, MPI_STATUS_IGNORE);
        };
    case CallKind::kBlocking: break;
    }
    return [r, count, comm = contender.comm] {
        MPI_Allreduce(r.send, r.recv, count, r.type, r.op, comm);
    };
}

std::function<void()> own_or_mpi_call(const Contender &contender, const Workload &workload,
                                      MPI_Request &request)
{
    std::function<void()> call = workload.own_call(contender.comm);
    return call ? call : mpi_call(contender, workload.reduction(), request);
}

std::vector<Caller> make_callers(std::span<const Contender> contenders, const Gpu *gpu,
                                 const Workload &workload, const MeasureOptions &options)
{
    std::vector<Caller> callers;
    for (const Contender &contender : contenders) {
        Caller caller{contender, nullptr, {}};
        if (contender.host_copy) {
            caller.copy = std::make_unique<HostCopy>(*gpu, workload.reduction(), contender.comm);
            caller.call = [copy = caller.copy.get()] { copy->call(); };
        } else {
            caller.call = own_or_mpi_call(contender, workload, caller.request);
        }
        if (options.before_call) {
            caller.call = [before = options.before_call, call = std::move(caller.call)] {
                before();
                call();
            };
        }
        callers.push_back(std::move(caller));
    }
    return callers;
}

// One call of each, checked, and which contender it went. The callers that another algorithm served
// than the one asked for are dropped, on all ranks alike.
void check(std::vector<Caller> &callers, const JobCounters &counters, Workload &workload,
           const MeasureOptions &options)
{
    for (Caller &caller : callers) {
        if (!caller.result.served) {
            continue;
        }
        const CounterValues before = counters.read();
        if (options.verify) {
            add(caller.result.call.verdict,
                checked_call(caller.contender.comm, workload, caller.call));
        } else {
            caller.call();
        }
        CounterValues used = counters.read() - before;
        if (used[HETCOLL_CALLS_COLLECTIVE] != 0) { // a root may have moved nothing itself
            for (const hetcoll_counter bytes :
                 {HETCOLL_BYTES_BOUNCE, HETCOLL_BYTES_DIRECT, HETCOLL_BYTES_MAPPED}) {
                MPI_Allreduce(MPI_IN_PLACE, &used.value[bytes], 1, MPI_UINT64_T, MPI_MAX,
                              caller.contender.comm);
            }
        }
        caller.result.route = name_route(counters, used);
        const std::string &asked = caller.contender.algorithm;
        int as_asked = asked.empty() || caller.result.route.algorithm == asked ? 1 : 0;
        MPI_Allreduce(MPI_IN_PLACE, &as_asked, 1, MPI_INT, MPI_MIN, caller.contender.comm);
        caller.result.served = as_asked != 0;
    }
}

// Seconds of one round on the slowest rank.
double round_seconds(MPI_Comm comm, std::vector<Caller> &callers)
{
    double us = 0;
    for (Caller &caller : callers) {
        us += caller.result.served ? time_us(caller.contender.comm, 1, caller.call) : 0;
    }
    MPI_Allreduce(MPI_IN_PLACE, &us, 1, MPI_DOUBLE, MPI_MAX, comm);
    return us / 1e6;
}

int count_iterations(MPI_Comm comm, std::vector<Caller> &callers, std::size_t bytes,
                     const MeasureOptions &options)
{
    constexpr double kFewest = 3, kMost = 200;
    if (options.iterations > 0) {
        return options.iterations;
    }
    if (options.seconds > 0) {
        const double round = round_seconds(comm, callers) + 1e-6;
        return static_cast<int>(
            std::clamp(options.seconds / round / options.batch, kFewest, kMost));
    }
    return iterations_for(bytes);
}

} // namespace

void require(Status status, MPI_Comm comm)
{
    if (!status.ok()) {
        std::fprintf(stderr, "hetcoll_bench: %s\n", status.message().c_str());
        MPI_Abort(comm, 1);
    }
}

CallTimes time_calls(MPI_Comm comm, int iterations, const std::function<void()> &call)
{
    std::vector<double> us(static_cast<std::size_t>(iterations));
    for (double &one : us) {
        one = time_us(comm, 1, call);
    }
    return summarise(us, comm);
}

std::function<void()> blocking_call(const Workload &workload, MPI_Comm comm)
{
    MPI_Request none = MPI_REQUEST_NULL;
    return own_or_mpi_call(Contender{.name = "", .algorithm = "", .comm = comm}, workload, none);
}

double algorithm_bandwidth_gbs(std::size_t bytes, double median_us)
{
    return static_cast<double>(bytes) / median_us / 1e3;
}

double bus_bandwidth_gbs(std::size_t bytes, int ranks, double median_us)
{
    return 2.0 * (ranks - 1) / ranks * algorithm_bandwidth_gbs(bytes, median_us);
}

std::vector<MeasuredContender> measure_contenders(std::span<const Contender> contenders,
                                                  const Gpu *gpu, const JobCounters &counters,
                                                  Workload &workload, const MeasureOptions &options)
{
    const WorkloadReduction r = workload.reduction();
    std::vector<Caller> callers = make_callers(contenders, gpu, workload, options);
    if (callers.empty()) {
        return {};
    }
    const MPI_Comm comm = contenders.front().comm;
    int rank = 0;
    MPI_Comm_rank(comm, &rank);
    require(workload.fill(rank), comm);
    // A check before and after the clock runs: the first call of a size prepares, later ones
    // repeat.
    for (Caller &caller : callers) {
        for (int i = 0; i < 2; ++i) { // the ranks find out what each other's memory allows
            caller.call();
        }
        caller.result.served = true;
    }
    check(callers, counters, workload, options);

    const bool late_ranks = options.late_us > 0 || options.jitter_us > 0;
    const int iterations = count_iterations(comm, callers, r.bytes, options);
    for (int i = -options.warmup; i < iterations; ++i) {
        for (Caller &caller : callers) {
            if (caller.result.served) {
                const double late = late_ranks ? delay_us(caller.contender.comm, options, i) : 0;
                const Interval time =
                    late_ranks ? time_late(caller.contender.comm, late, caller.call) : Interval{};
                const double us =
                    late_ranks ? 0 : time_us(caller.contender.comm, options.batch, caller.call);
                if (i >= 0) {
                    caller.us.push_back(us);
                    caller.begin_us.push_back(time.begin_us);
                    caller.end_us.push_back(time.end_us);
                }
            }
        }
    }
    check(callers, counters, workload, options);
    std::vector<MeasuredContender> results;
    for (Caller &caller : callers) {
        if (caller.result.served) {
            if (late_ranks) {
                count_from_the_last(caller);
            }
            caller.result.call.time = summarise(caller.us, caller.contender.comm);
        }
        if (caller.request != MPI_REQUEST_NULL) {
            MPI_Request_free(&caller.request);
        }
        results.push_back(std::move(caller.result));
    }
    return results;
}

Measured measure(MPI_Comm comm, const Gpu *gpu, const JobCounters &counters, Workload &workload,
                 const MeasureOptions &options)
{
    std::vector<Contender> contenders = {Contender{.name = "auto", .algorithm = "", .comm = comm}};
    if (options.host_copy) {
        contenders.push_back(
            Contender{.name = "host_copy", .algorithm = "", .comm = comm, .host_copy = true});
    }
    std::vector<MeasuredContender> results =
        measure_contenders(contenders, gpu, counters, workload, options);
    Measured measured{results[0].route, results[0].call, {}};
    if (options.host_copy) {
        measured.host_copy = results[1].call;
    }
    return measured;
}

} // namespace hetcoll
