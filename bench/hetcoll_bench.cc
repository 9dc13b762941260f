// hetcoll_bench: times and checks MPI_Allreduce on host, device or managed memory, under hetcoll or
// any other component; with --demo, the job that shows hetcoll to a new user.
#include "bench/fusion.h"
#include "bench/options.h"
#include "bench/report.h"
#include "bench/resnet50.h"
#include "measure/command_line.h"
#include "measure/mpi_names.h"

#include <mpi-ext.h>
#include <mpi.h>

#include <algorithm>
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

struct Job {
    MPI_Comm comm;
    int rank, ranks;
    const Gpu *gpu; // null for host memory
    const JobCounters &counters;
    const MpiNames &names;
    const Options &options;
    TableStyle style;
    std::span<const Way> ways; // side by side; empty: what hetcoll chooses
    std::vector<Row> rows;
};

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
    if (!job.ways.empty()) {
        const std::vector<MeasuredWay> results =
            measure_ways(job.ways, job.gpu, job.counters, workload, job.options.measure);
        for (std::size_t i = 0; i < results.size(); ++i) {
            if (!results[i].served) {
                continue; // it cannot run at this size or between these GPUs
            }
            job.rows.push_back({section,
                                r.bytes,
                                r.count,
                                {results[i].route, results[i].call, {}},
                                job.ways[i].name});
            if (job.rank == 0) {
                print_row(job.style, job.rows.back());
            }
        }
        return;
    }
    job.rows.push_back({section, r.bytes, r.count,
                        measure(job.comm, job.gpu, job.counters, workload, job.options.measure),
                        ""});
    if (job.rank == 0) {
        print_row(job.style, job.rows.back());
    }
}

void run_sweep(Job &job, const std::string &section)
{
    const Options &options = job.options;
    const std::size_t element = element_bytes(options.kind);
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
    for (const std::size_t bytes : options.sizes) {
        spec.count = bytes == 0 ? 0 : std::max<std::size_t>(1, bytes / element);
        if (spec.count > INT_MAX) {
            require(error(Errc::kInvalid,
                          "--sizes %zu: more elements of %s than an MPI count holds (%d), take a "
                          "larger --dtype",
                          bytes, element_name(options.kind), INT_MAX),
                    job.comm);
        }
        Result<std::unique_ptr<Workload>> vector = make_vector(job.gpu, spec);
        if (!vector.ok()) {
            require(vector.take_status(), job.comm);
        }
        add_row(job, section, **vector);
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
        std::printf("#\n# %s\n", section.c_str());
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
        return right(row.measured.call) &&
               (!row.measured.host_copy || right(*row.measured.host_copy));
    });
}

Facts describe(const Job &job)
{
    const Options &options = job.options;
    Facts facts = machine_facts(job.comm, job.gpu);
    facts.emplace_back("hetcoll", job.counters.available() ? "in this job" : "not in this job");
    facts.emplace_back("operation", std::string("MPI_Allreduce ") + op_name(options.op) + " of " +
                                        element_name(options.kind) +
                                        (options.in_place ? ", in place" : ", out of place"));
    facts.emplace_back("memory", memory_name(options.memory));
    if (job.counters.available()) {
        facts.emplace_back("path",
                           "small: one exchange in host memory; bounce: pinned chunks, CUDA "
                           "kernels; direct: device pointers; host, staged: by Open MPI");
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
    job.style = {options.measure.host_copy, gpu && gpu->is_emulated(), job.ranks,
                 !options.algorithms.empty()};
    std::optional<Ways> ways;
    if (!options.algorithms.empty()) {
        Result<Ways> made = Ways::create(comm, options.algorithms);
        if (!made.ok()) {
            return refuse(made.status()); // the same on all ranks
        }
        job.ways = ways.emplace(std::move(*made)).all();
    }

    const Facts facts = describe(job); // collective
    const std::string section = options.demo ? "Sweep" : "";
    if (job.rank == 0) {
        print_facts(facts);
        std::printf("#\n");
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
    if (!options.json_path.empty() && !write_json(options.json_path, facts, job.style, job.rows)) {
        std::fprintf(stderr, "hetcoll_bench: cannot write %s\n", options.json_path.c_str());
        return 1;
    }
    if (options.measure.verify) {
        std::printf("#\n# result        %s\n",
                    right ? "every element right, the same bits on every rank" : "WRONG");
    }
    return end_output("hetcoll_bench", right ? 0 : 1);
}

} // namespace

} // namespace hetcoll

// Help and the version need no MPI. Of a job's ranks, which a launcher tells by these, one answers,
// and it needs MPI.
static bool only_asks(int argc, char **argv)
{
    const std::string_view word = argc == 2 ? argv[1] : "";
    return (word == "--help" || word == "-h" || word == "--version") &&
           std::getenv("OMPI_COMM_WORLD_RANK") == nullptr && std::getenv("PMIX_RANK") == nullptr;
}

int main(int argc, char **argv)
{
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
