// hetcoll_bench: times and checks MPI_Allreduce on host, device or managed memory, under hetcoll or
// any other component; with --demo, the job that shows hetcoll to a new user.
#include "bench/compare.h"
#include "bench/fusion.h"
#include "bench/options.h"
#include "bench/report.h"
#include "bench/resnet50.h"
#include "measure/command_line.h"
#include "measure/mpi_names.h"
#include "measure/output_file.h"
#include "measure/progress.h"

#include <mpi-ext.h>
#include <mpi.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hetcoll {

namespace {

// --budget: time for what is left, the same on every rank.
class Budget {
public:
    Budget(MPI_Comm comm, double seconds, int measurements)
        : comm_(comm), seconds_(seconds), left_(measurements)
    {
    }

    // Seconds for the next measurement; 0: as many iterations as the size asks for. Negative:
    // there is no time left.
    double next()
    {
        const std::chrono::duration<double> used = std::chrono::steady_clock::now() - start_;
        double share = seconds_ > 0 ? (seconds_ - used.count()) / std::max(left_, 1) : 0;
        MPI_Bcast(&share, 1, MPI_DOUBLE, 0, comm_);
        --left_;
        return share;
    }
    [[nodiscard]] int left() const noexcept { return left_; }

private:
    MPI_Comm comm_;
    double seconds_;
    int left_;
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

struct Job {
    MPI_Comm comm;
    int rank, ranks;
    const Gpu *gpu; // null for host memory
    const JobCounters &counters;
    const MpiNames &names;
    const Options &options;
    TableStyle style;
    std::span<const Contender> contenders; // side by side; empty: what hetcoll chooses
    std::vector<Row> rows;
    MeasureOptions measure = options.measure;
    std::unique_ptr<OwnKernels> own_kernels{}; // null: this rank starts none
};

constexpr std::size_t kLargestWithFloor = std::size_t{64} << 10; // bytes

// Rank 0 measures alone while the others wait: ranks may share the GPU.
std::optional<CallFloor> measure_floor(const Job &job, std::size_t bytes)
{
    if (!job.style.floor || bytes > kLargestWithFloor) {
        return std::nullopt;
    }
    std::optional<CallFloor> floor;
    MPI_Barrier(job.comm);
    if (job.rank == 0) {
        Result<CallFloor> measured = job.own_kernels->floor(job.ranks, bytes);
        if (!measured.ok()) {
            require(measured.take_status(), job.comm);
        }
        floor = *measured;
    }
    MPI_Barrier(job.comm);
    return floor;
}

// Device pointers crash an MPI that takes them for host pointers: say so before it happens.
Status check_mpi_takes_device_memory(const JobCounters &counters)
{
    bool cuda_aware = false;
#if defined(MPIX_CUDA_AWARE_SUPPORT)
    cuda_aware = MPIX_Query_cuda_support() == 1;
#endif
    if (counters.available() || cuda_aware) {
        return {};
    }
    return error(Errc::kUnsupported,
                 "device memory asked for, but hetcoll is not in this job and this Open MPI is not "
                 "CUDA-aware: MPI_Allreduce would crash; run with --mca coll hetcoll, or with "
                 "--memory host");
}

// Ends with one line where every rank has met the same error.
int refuse(const Status &status)
{
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        std::fprintf(stderr, "hetcoll_bench: %s\n", status.message().c_str());
    }
    return 2;
}

void add_row(Job &job, const std::string &section, Workload &workload)
{
    const WorkloadReduction r = workload.reduction();
    const std::optional<CallFloor> floor = measure_floor(job, r.bytes);
    if (!job.contenders.empty()) {
        const std::vector<MeasuredContender> results =
            measure_contenders(job.contenders, job.gpu, job.counters, workload, job.measure);
        for (std::size_t i = 0; i < results.size(); ++i) {
            if (!results[i].served) {
                continue; // it cannot run at this size or between these GPUs
            }
            Row row{section,
                    r.bytes,
                    r.count,
                    {results[i].route, results[i].call, {}},
                    job.contenders[i].name};
            row.bus_factor = bus_factor(Collective::kAllreduce, job.ranks);
            row.floor = floor;
            job.rows.push_back(std::move(row));
            if (job.rank == 0) {
                print_row(job.style, job.rows.back());
            }
        }
        return;
    }
    Row row{section, r.bytes, r.count,
            measure(job.comm, job.gpu, job.counters, workload, job.measure), ""};
    row.bus_factor = bus_factor(Collective::kAllreduce, job.ranks);
    job.rows.push_back(std::move(row));
    if (job.rank == 0) {
        print_row(job.style, job.rows.back());
    }
}

std::unique_ptr<Workload> make_workload(const Job &job, Collective collective, VectorSpec spec,
                                        bool in_place)
{
    spec.in_place = in_place;
    Result<std::unique_ptr<Workload>> made =
        collective == Collective::kAllreduce
            ? make_vector(job.gpu, spec)
            : make_collective(job.gpu, collective, spec, job.rank, job.ranks);
    if (!made.ok()) {
        require(made.take_status(), job.comm);
    }
    return std::move(*made);
}

// The elements of a vector of about `bytes` bytes.
std::size_t count_of(const Job &job, Collective collective, std::size_t bytes)
{
    const std::size_t element = element_bytes(job.options.kind);
    const auto unit = static_cast<std::size_t>(block_count(collective, job.ranks));
    const std::size_t count =
        bytes == 0 ? 0 : std::max<std::size_t>(1, bytes / element / unit) * unit;
    if (collective == Collective::kAlltoallw && count > INT_MAX / element) {
        require(error(Errc::kInvalid,
                      "--sizes %zu: MPI_Alltoallw counts the bytes before a block in an int (%d), "
                      "take another collective",
                      bytes, INT_MAX),
                job.comm);
    }
    if (count > INT_MAX) {
        require(error(Errc::kInvalid,
                      "--sizes %zu: more elements of %s than an MPI count holds (%d), take a "
                      "larger --dtype",
                      bytes, element_name(job.options.kind), INT_MAX),
                job.comm);
    }
    return count;
}

// Measures another collective, or both places. False: there is no time left for it.
bool add_collective_row(Job &job, Collective collective, const VectorSpec &spec, Budget &budget)
{
    MeasureOptions options = job.measure;
    const auto measured = [&](bool in_place) -> std::optional<Measured> {
        options.seconds = budget.next();
        if (options.seconds < 0) {
            return std::nullopt;
        }
        const std::unique_ptr<Workload> workload = make_workload(job, collective, spec, in_place);
        return measure(job.comm, job.gpu, job.counters, *workload, options);
    };
    std::optional<Measured> first = measured(!job.options.both && job.options.in_place);
    if (!first) {
        return false;
    }
    const std::size_t bytes = spec.count * element_bytes(job.options.kind);
    Row row{"", bytes, spec.count, std::move(*first), ""};
    row.collective = collective_word(collective);
    row.bus_factor = bus_factor(collective, job.ranks);
    row.floor = measure_floor(job, bytes);
    if (job.options.both && has_both_places(collective)) {
        row.in_place = measured(true);
    }
    job.rows.push_back(std::move(row));
    return true;
}

// One line a size and collective.
void run_collectives(Job &job, VectorSpec spec)
{
    const Options &options = job.options;
    const auto sizes = static_cast<int>(options.sizes.size());
    int measurements = 0;
    for (const Collective collective : options.collectives) {
        measurements += sizes * (options.both && has_both_places(collective) ? 2 : 1);
    }
    for (const Collective collective : options.collectives) { // an error comes before the first
        for (const std::size_t bytes : options.sizes) {
            static_cast<void>(count_of(job, collective, bytes));
        }
    }
    Budget budget(job.comm, options.budget_s, measurements);
    ProgressBar progress("hetcoll_bench", sizes * static_cast<int>(options.collectives.size()),
                         options.progress && job.rank == 0);
    for (const Collective collective : options.collectives) {
        if (job.rank == 0 && options.collectives.size() > 1) {
            progress.hide();
            std::fprintf(job.style.to, "# %s\n", collective_call(collective));
        }
        for (const std::size_t bytes : options.sizes) {
            spec.count = count_of(job, collective, bytes);
            if (job.rank == 0) {
                progress.begin_job(std::string(collective_word(collective)) + " of " +
                                   std::to_string(bytes) + " bytes");
            }
            if (!add_collective_row(job, collective, spec, budget)) {
                progress.hide();
                if (job.rank == 0) {
                    std::fprintf(job.style.to,
                                 "# --budget is used up: %d measurements are left out\n",
                                 budget.left() + 1);
                }
                return;
            }
            progress.end_job();
            if (job.rank == 0) {
                progress.hide();
                print_row(job.style, job.rows.back());
            }
        }
    }
}

VectorSpec vector_spec(const Job &job)
{
    const Options &options = job.options;
    VectorSpec spec{{options.kind, options.op, options.values},
                    job.names.datatype(options.kind),
                    job.names.op(options.op, options.kind),
                    0,
                    options.in_place,
                    options.memory};
    if (spec.type == MPI_DATATYPE_NULL) {
        require(error(Errc::kUnsupported, "this MPI has no type for --dtype %s",
                      element_name(options.kind)),
                job.comm);
    }
    return spec;
}

// The job's first call on this memory, of the first size: ranks find out about each other, kernels
// are loaded and memory is mapped. The GPU's context is already there.
std::string time_first_call(const Job &job)
{
    const Collective collective = job.options.collectives.front();
    VectorSpec spec = vector_spec(job);
    spec.count = count_of(job, collective, job.options.sizes.front());
    const std::unique_ptr<Workload> workload = make_workload(job, collective, spec, spec.in_place);
    require(workload->fill(job.rank), job.comm);
    const CallTimes took = time_calls(job.comm, 1, blocking_call(*workload, job.comm));
    std::array<char, 80> text;
    std::snprintf(text.data(), text.size(), "%.1f us, %s of %zu bytes", took.median_us,
                  collective_call(collective), workload->reduction().bytes);
    return text.data();
}

// Times the kernels of --own-kernel without the call.
std::string time_own_kernels(const Job &job)
{
    constexpr int kIterations = 100;
    OwnKernels &own = *job.own_kernels;
    const std::size_t bytes = job.options.own_kernel_bytes;
    const CallTimes took = time_calls(job.comm, kIterations, [&] {
        require(own.start_sum(bytes), job.comm);
        require(own.finish(), job.comm);
    });
    std::array<char, 160> text;
    std::snprintf(text.data(), text.size(),
                  "each rank sums %zu bytes before each call, in its time; without the call they "
                  "take %.1f us (median)",
                  bytes, took.median_us);
    return text.data();
}

// Adds what is measured before the table to its head.
void measure_head(Job &job, Facts &facts)
{
    if (job.gpu == nullptr || job.options.memory == Memory::kHost) {
        return;
    }
    facts.emplace_back("first_call", time_first_call(job));
    if (job.options.own_kernel_bytes > 0 || (job.style.floor && job.rank == 0)) {
        Result<std::unique_ptr<OwnKernels>> made = OwnKernels::create(*job.gpu);
        if (!made.ok()) {
            require(made.take_status(), job.comm);
        }
        job.own_kernels = std::move(*made);
    }
    if (job.style.floor) {
        facts.emplace_back("floor", "rank 0 alone, from a kernel's launch until the host sees its "
                                    "flag, median: one that moves nothing, and one that reads the "
                                    "vectors of all ranks and writes as many");
    }
    if (job.options.own_kernel_bytes > 0) {
        facts.emplace_back("own_kernels", time_own_kernels(job));
        job.measure.before_call = [&job] {
            require(job.own_kernels->start_sum(job.options.own_kernel_bytes), job.comm);
        };
    }
}

void run_sweep(Job &job, const std::string &section)
{
    const Options &options = job.options;
    VectorSpec spec = vector_spec(job);
    if (section.empty() && job.contenders.empty() && !options.measure.host_copy) {
        run_collectives(job, spec);
        return;
    }
    for (const std::size_t bytes : options.sizes) {
        spec.count = count_of(job, Collective::kAllreduce, bytes);
        add_row(job, section, *make_workload(job, Collective::kAllreduce, spec, options.in_place));
    }
}

// Back-propagation makes the last layer's gradients first.
void run_resnet50(Job &job, std::size_t threshold_bytes)
{
    std::vector<std::size_t> backward(kResnet50Counts.rbegin(), kResnet50Counts.rend());
    // As Horovod rounds it: a buffer divides evenly among the ranks of a node.
    const std::size_t unit = static_cast<std::size_t>(find_placement(job.comm).local_size) * 8 * 64;
    threshold_bytes = std::max(threshold_bytes / unit, std::size_t{1}) * unit;
    const auto plan = plan_fusion(backward, sizeof(float), threshold_bytes);
    const std::string section = "ResNet-50: " + std::to_string(kResnet50TensorCount) +
                                " gradient tensors, " + std::to_string(kResnet50ParameterCount) +
                                " parameters, fused into " + std::to_string(plan.size()) +
                                (plan.size() == 1 ? " buffer" : " buffers") + " of at most " +
                                std::to_string(threshold_bytes >> 20) + " MiB, reduced in place";
    if (job.rank == 0) {
        std::fprintf(job.style.to, "#\n# %s\n", section.c_str());
    }
    for (const FusedRange &range : plan) {
        Result<std::unique_ptr<Workload>> fused = make_fused(
            job.gpu, job.options.memory, {backward.data() + range.first, range.end - range.first});
        if (!fused.ok()) {
            require(fused.take_status(), job.comm);
        }
        add_row(job, section, **fused);
    }
}

bool all_right(const std::vector<Row> &rows)
{
    const auto right = [](const TimedCall &timed) { return !timed.verdict || timed.verdict->ok(); };
    return std::all_of(rows.begin(), rows.end(), [&](const Row &row) {
        return right(row.measured.call) && (!row.in_place || right(row.in_place->call)) &&
               (!row.measured.host_copy || right(*row.measured.host_copy));
    });
}

Facts describe(const Job &job)
{
    const Options &options = job.options;
    Facts facts = machine_facts(job.comm, job.gpu);
    facts.emplace_back("hetcoll", job.counters.available() ? "in this job" : "not in this job");
    std::string calls, place = ", out of place";
    if (options.both) {
        place = ", out of place and in place";
    } else if (options.in_place) {
        place = ", in place";
    }
    for (const Collective collective : options.collectives) {
        calls += (calls.empty() ? "" : ", ") + std::string(collective_call(collective));
        if (options.in_place && is_of_neighbors(collective)) {
            place = ", in place where MPI has that";
        }
    }
    facts.emplace_back("operation", calls + " " + op_name(options.op) + " of " +
                                        element_name(options.kind) + place);
    facts.emplace_back("memory", memory_name(options.memory));
    if (job.counters.available()) {
        facts.emplace_back("path",
                           "small, cpu: one exchange in host memory; mapped: kernels on memory of "
                           "peers; bounce: in messages through pinned memory; mixed: both; direct: "
                           "in messages from device memory; host, staged: by Open MPI");
    }
    facts.emplace_back("times", "of the slowest rank in each iteration");
    if (options.measure.host_copy) {
        facts.emplace_back("comparison", "cuMemcpyDtoH to pageable memory, MPI_Allreduce there by "
                                         "this job's host route, cuMemcpyHtoD");
        facts.emplace_back("ratio",
                           std::string("median of the comparison over median of the call") +
                               (job.style.emulated ? "; on the emulated GPU it says "
                                                     "nothing about the speed of a GPU"
                                                   : ""));
    }
    return facts;
}

// Next to small calls of MPI_Allreduce on device memory.
bool has_floor(const Options &options)
{
    const auto small = [](std::size_t bytes) { return bytes <= kLargestWithFloor; };
    return options.memory == Memory::kDevice && !options.measure.host_copy &&
           options.collectives == std::vector{Collective::kAllreduce} &&
           std::any_of(options.sizes.begin(), options.sizes.end(), small);
}

int run(const Options &options)
{
    const MPI_Comm comm = MPI_COMM_WORLD;
    const JobCounters counters;
    const MpiNames names;
    std::unique_ptr<Gpu> gpu;
    if (options.memory != Memory::kHost) {
        if (const Status status = check_mpi_takes_device_memory(counters); !status.ok()) {
            return refuse(status); // the same on all ranks
        }
    }
    if (options.memory != Memory::kHost || options.gpu_context) {
        Result<std::unique_ptr<Gpu>> opened = Gpu::open(find_placement(comm).local_rank);
        if (!opened.ok()) {
            require(opened.take_status(), comm);
        }
        gpu = std::move(*opened);
    }
    Job job{comm, 0, 1, gpu.get(), counters, names, options, {}, {}, {}};
    MPI_Comm_rank(comm, &job.rank);
    MPI_Comm_size(comm, &job.ranks);
    if (options.measure.late_rank >= job.ranks) {
        return refuse(error(Errc::kInvalid, "--late-rank %d is no rank of %d",
                            options.measure.late_rank, job.ranks)); // the same on all ranks
    }
    job.style = {options.measure.host_copy,
                 gpu && gpu->is_emulated(),
                 job.ranks,
                 !options.algorithms.empty(),
                 options.both,
                 has_floor(options),
                 options.json_path == "-" ? stderr : stdout};
    std::optional<Contenders> contenders;
    if (!options.algorithms.empty()) {
        Result<Contenders> made = Contenders::create(comm, options.algorithms);
        if (!made.ok()) {
            return refuse(made.status()); // the same on all ranks
        }
        job.contenders = contenders.emplace(std::move(*made)).all();
    }

    std::optional<OutputFile> json;
    if (!options.json_path.empty() && job.rank == 0) { // before the work
        Result<OutputFile> file = OutputFile::open(options.json_path);
        if (!file.ok()) {
            require(file.take_status(), comm);
        }
        json = std::move(*file);
    }
    Facts facts = describe(job); // collective
    measure_head(job, facts);
    const std::string section = options.demo ? "Sweep" : "";
    if (job.rank == 0) {
        print_facts(facts, job.style);
        std::fprintf(job.style.to, "#\n");
        print_heading(job.style);
    }
    run_sweep(job, section);
    if (options.demo) {
        run_resnet50(job, options.fusion_threshold);
    }
    if (job.rows.empty()) { // on all ranks
        if (job.rank == 0) {
            std::fprintf(stderr, "hetcoll_bench: nothing was measured: none of --algorithms runs "
                                 "at these --sizes between these GPUs\n");
        }
        return 1;
    }
    const bool right = all_right(job.rows);
    if (job.rank != 0) {
        return right ? 0 : 1;
    }
    if (json) {
        const Status written = json->write(print_json(facts, job.style, job.rows));
        if (!written.ok()) {
            std::fprintf(stderr, "hetcoll_bench: %s\n", written.message().c_str());
            return 1;
        }
    }
    std::fprintf(job.style.to, "#\n");
    if (job.contenders.empty()) {
        print_average(job.style, job.rows);
    }
    if (options.measure.verify) {
        std::fprintf(job.style.to, "# result        %s\n",
                     right ? "every element right, the same bits on every rank" : "WRONG");
    }
    return end_output("hetcoll_bench", right ? 0 : 1);
}

} // namespace

} // namespace hetcoll

// Help and the version need no MPI. One rank of a job, which has these variables of its launcher,
// answers, and it needs MPI.
static bool only_asks(int argc, char **argv)
{
    const std::string_view word = argc == 2 ? argv[1] : "";
    return (word == "--help" || word == "-h" || word == "--version") &&
           std::getenv("OMPI_COMM_WORLD_RANK") == nullptr && std::getenv("PMIX_RANK") == nullptr;
}

int main(int argc, char **argv)
{
    if (argc > 1 && std::string_view(argv[1]) == "compare") { // files: without MPI
        return hetcoll::compare_results({argv + 2, argv + argc});
    }
    int rank = 0, exit_code = 0;
    hetcoll::Options options;
    if (only_asks(argc, argv) && !hetcoll::parse_options(argc, argv, true, options, exit_code)) {
        return exit_code;
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (hetcoll::parse_options(argc, argv, rank == 0, options, exit_code)) {
        exit_code = hetcoll::run(options);
    }
    MPI_Finalize();
    return exit_code;
}
