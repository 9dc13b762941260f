// horovod_replay: makes the MPI calls of a recorded training with Horovod (bench/traces), as
// Horovod does: a second thread does everything, from MPI_Init_thread to MPI_Finalize.
#include "bench/horovod.h"
#include "bench/replay.h"
#include "bench/trace.h"
#include "measure/machine.h"
#include "measure/measure.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace hetcoll {

namespace {

constexpr char kUsage[] =
    "usage: horovod_replay [--check [--in-kernels]] [--compare] [--host] [--shrink N] TRACE\n"
    "Makes the MPI calls of a recorded training with Horovod on device memory.\n"
    "  --check     check every element, take no times\n"
    "  --in-kernels  every Allreduce must be hetcoll's own, none Open MPI's on the host\n"
    "  --compare   also make every Allreduce and Bcast by way of the host, as Open MPI would\n"
    "  --host      use host memory\n"
    "  --shrink N  make calls with an Nth of their elements\n";

struct Settings {
    bool check = false, in_kernels = false, compare = false, host = false;
    std::size_t shrink = 1;
    std::string trace;
};

std::optional<Settings> parse(int argc, char **argv)
{
    Settings settings;
    for (int i = 1; i < argc; ++i) {
        const std::string_view word = argv[i];
        if (word == "--check") {
            settings.check = true;
        } else if (word == "--in-kernels") {
            settings.in_kernels = true;
        } else if (word == "--compare") {
            settings.compare = true;
        } else if (word == "--host") {
            settings.host = true;
        } else if (word == "--shrink" && i + 1 < argc) {
            const char *const text = argv[++i], *const end = text + std::strlen(text);
            const auto [stop, code] = std::from_chars(text, end, settings.shrink);
            if (code != std::errc() || stop != end || settings.shrink == 0) {
                return std::nullopt;
            }
        } else if (word.starts_with("-") || !settings.trace.empty()) {
            return std::nullopt;
        } else {
            settings.trace = word;
        }
    }
    if (settings.trace.empty() || (settings.compare && (settings.check || settings.host)) ||
        (settings.in_kernels && (!settings.check || settings.host))) {
        return std::nullopt;
    }
    return settings;
}

struct Job {
    MPI_Comm comm;
    int rank, ranks;
    const Settings &settings;
    const Gpu *gpu;
    const std::vector<PlayedCall> &calls;
    Replay &replay;
};

// --- Checked ---

// Allreduces that came out wrong or, where that was asked for, went another way than hetcoll's.
std::uint64_t check_call(Job &job, std::size_t number, const JobCounters &counters)
{
    const DataCall &call = job.calls[number].data;
    const std::uint64_t before = job.replay.wrong();
    const CounterValues start = counters.read();
    job.replay.check(call, static_cast<std::uint32_t>(number));
    const CounterValues used = counters.read() - start;
    const std::uint64_t wrong = job.replay.wrong() - before;
    const bool left = job.settings.in_kernels && call.call == TracedCall::kAllreduce &&
                      used[HETCOLL_CALLS_PREVIOUS] + used[HETCOLL_CALLS_STAGED] != 0;
    if (wrong != 0 || left) {
        std::printf("WRONG call %zu, %s of %zu %s, rank %d: %llu elements%s\n", number,
                    traced_call_name(call.call), call.count, element_name(call.kind), job.rank,
                    static_cast<unsigned long long>(wrong),
                    left ? ", by Open MPI on the host" : "");
    }
    return wrong + (left ? 1 : 0);
}

int run_checked(Job &job)
{
    const JobCounters counters;
    std::uint64_t wrong = 0;
    for (std::size_t i = 0; i < job.calls.size(); ++i) {
        wrong += negotiate(job.comm, job.calls[i].before);
        wrong += check_call(job, i, counters);
    }
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_UINT64_T, MPI_SUM, job.comm);
    if (job.rank == 0) {
        std::printf(wrong == 0 ? "ok %s: %zu calls on %d ranks, every element right\n"
                               : "WRONG %s: %zu calls on %d ranks\n",
                    job.settings.trace.substr(job.settings.trace.find_last_of('/') + 1).c_str(),
                    job.calls.size(), job.ranks);
    }
    return wrong == 0 ? 0 : 1;
}

// --- Timed ---

// Calls of one function and type whose vectors are of about the same size. The first call of a
// function finds the ranks' peers and makes streams: it is a class of its own.
struct Class {
    const char *name;
    std::size_t limit; // bytes
};
constexpr std::array<Class, 7> kClasses = {{{"first", 0},
                                            {"<=64K", std::size_t{1} << 16},
                                            {"<=1M", std::size_t{1} << 20},
                                            {"<=4M", std::size_t{4} << 20},
                                            {"<=16M", std::size_t{16} << 20},
                                            {"<=64M", std::size_t{64} << 20},
                                            {">64M", SIZE_MAX}}};

struct Sum {
    std::size_t calls = 0, bytes = 0;
    double us = 0, host_copy_us = 0;
    std::uint64_t moved = 0, previous = 0;
};

void add(Sum &sum, std::size_t bytes, const PlayedTime &played)
{
    ++sum.calls;
    sum.bytes += bytes;
    sum.us += played.us;
    sum.host_copy_us += played.host_copy_us;
    sum.moved += played.moved;
    sum.previous += played.previous;
}

void print_sum(const std::string &what, const char *size, const Sum &sum)
{
    std::printf("%-24s %-7s %6zu %11zu %12.1f", what.c_str(), size, sum.calls, sum.bytes,
                sum.us / 1e3);
    if (sum.host_copy_us > 0) {
        std::printf(" %12.1f %7.2f", sum.host_copy_us / 1e3, sum.host_copy_us / sum.us);
    } else {
        std::printf(" %12s %7s", "-", "-");
    }
    std::printf(" %14llu %9llu\n", static_cast<unsigned long long>(sum.moved),
                static_cast<unsigned long long>(sum.previous));
}

// Times of the slowest rank, and counts of all ranks together.
std::vector<PlayedTime> merge(const Job &job, const std::vector<PlayedTime> &mine)
{
    std::vector<double> us;
    std::vector<std::uint64_t> counts;
    for (const PlayedTime &played : mine) {
        us.insert(us.end(), {played.us, played.host_copy_us});
        counts.insert(counts.end(), {played.moved, played.previous});
    }
    const int length = static_cast<int>(us.size());
    MPI_Allreduce(MPI_IN_PLACE, us.data(), length, MPI_DOUBLE, MPI_MAX, job.comm);
    MPI_Allreduce(MPI_IN_PLACE, counts.data(), length, MPI_UINT64_T, MPI_SUM, job.comm);
    std::vector<PlayedTime> merged;
    for (std::size_t i = 0; i < us.size(); i += 2) {
        merged.push_back({us[i], us[i + 1], counts[i], counts[i + 1]});
    }
    return merged;
}

void print_header(const Job &job, const JobCounters &counters)
{
    Facts facts = machine_facts(job.comm, job.gpu);
    if (job.rank != 0) {
        return;
    }
    facts.emplace_back("hetcoll", counters.available() ? "in this job" : "not in this job");
    facts.emplace_back("trace", job.settings.trace);
    for (const auto &[key, value] : facts) {
        std::printf("# %-13s %s\n", key.c_str(), value.c_str());
    }
    std::printf(
        "# times         sums over the calls, each of its slowest rank\n"
        "# first         the first call of a function, which finds peers, maps and makes streams\n"
        "# host_copy     copied to pageable host memory, called there, copied back\n"
        "# moved         bytes between the ranks as hetcoll counts them, of all ranks\n"
        "# previous      calls that Open MPI's own components served, of all ranks\n#\n"
        "# %-22s %-7s %6s %11s %12s %12s %7s %14s %9s\n",
        "call", "bytes", "calls", "in all", "ms", "host_copy ms", "ratio", "moved", "previous");
}

int run_timed(Job &job)
{
    const JobCounters counters;
    print_header(job, counters);
    std::vector<PlayedTime> mine;
    std::uint64_t wrong = 0;
    for (const PlayedCall &call : job.calls) {
        wrong += negotiate(job.comm, call.before);
        mine.push_back(job.replay.time(call.data, counters, job.settings.compare));
    }
    const std::vector<PlayedTime> played = merge(job, mine);
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_UINT64_T, MPI_SUM, job.comm);
    if (job.rank != 0) {
        return wrong == 0 ? 0 : 1;
    }
    std::vector<std::pair<std::string, std::array<Sum, kClasses.size()>>> table;
    std::set<TracedCall> seen;
    for (std::size_t i = 0; i < played.size(); ++i) {
        const DataCall &call = job.calls[i].data;
        const std::string what =
            std::string(traced_call_name(call.call)) + " " + element_name(call.kind);
        auto line = std::find_if(table.begin(), table.end(),
                                 [&](const auto &known) { return known.first == what; });
        if (line == table.end()) {
            line = table.insert(table.end(), {what, {}});
        }
        const std::size_t bytes = call.count * element_bytes(call.kind);
        std::size_t size = seen.insert(call.call).second ? 0 : 1;
        while (size > 0 && bytes > kClasses[size].limit) {
            ++size;
        }
        add(line->second[size], bytes, played[i]);
    }
    for (const auto &[what, sums] : table) {
        Sum all;
        for (std::size_t size = 0; size < sums.size(); ++size) {
            const Sum &sum = sums[size];
            if (sum.calls > 0) {
                print_sum(what, kClasses[size].name, sum);
            }
            all = {all.calls + sum.calls, all.bytes + sum.bytes,
                   all.us + sum.us,       all.host_copy_us + sum.host_copy_us,
                   all.moved + sum.moved, all.previous + sum.previous};
        }
        print_sum(what, "all", all);
    }
    return wrong == 0 ? 0 : 1;
}

// Between MPI_Init_thread and MPI_Finalize. Opens the GPU, which stays open until both are over.
int run(const Settings &settings, const std::vector<PlayedCall> &calls, std::unique_ptr<Gpu> &gpu)
{
    const HorovodComms comms;
    const MPI_Comm comm = comms.mpi_comm();
    if (!settings.host) {
        Result<std::unique_ptr<Gpu>> opened = Gpu::open(comms.local_rank());
        if (!opened.ok()) {
            require(opened.take_status(), comm);
        }
        gpu = std::move(*opened);
    }
    Result<std::unique_ptr<HorovodHalf>> half = HorovodHalf::create();
    if (!half.ok()) {
        require(half.take_status(), comm);
    }
    Result<std::unique_ptr<Replay>> replay = Replay::create(comm, gpu.get(), **half, calls);
    if (!replay.ok()) {
        require(replay.take_status(), comm);
    }
    Job job{comm, 0, 1, settings, gpu.get(), calls, **replay};
    MPI_Comm_rank(comm, &job.rank);
    MPI_Comm_size(comm, &job.ranks);
    return settings.check ? run_checked(job) : run_timed(job);
}

// The life of Horovod's background thread.
int play(const Settings &settings, const std::vector<PlayedCall> &calls)
{
    int provided = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided);
    if (provided != MPI_THREAD_MULTIPLE) {
        require(error(Errc::kUnsupported, "this MPI gives no MPI_THREAD_MULTIPLE"), MPI_COMM_WORLD);
    }
    std::unique_ptr<Gpu> gpu;
    const int exit_code = run(settings, calls, gpu);
    MPI_Finalize();
    return exit_code;
}

} // namespace

} // namespace hetcoll

int main(int argc, char **argv)
{
    const std::optional<hetcoll::Settings> settings = hetcoll::parse(argc, argv);
    if (!settings) {
        std::fputs(hetcoll::kUsage, stderr);
        return 2;
    }
    auto calls = hetcoll::read_trace(settings->trace);
    if (!calls.ok()) {
        std::fprintf(stderr, "horovod_replay: %s\n", calls.status().message().c_str());
        return 2;
    }
    hetcoll::shrink(*calls, settings->shrink);
    int exit_code = 0;
    std::thread background([&] { exit_code = hetcoll::play(*settings, *calls); });
    background.join();
    return exit_code;
}
