#include "bench/options.h"

#include "measure/command_line.h"
#include "measure/contenders.h"
#include "measure/size_options.h"
#include "measure/sizes.h"

#include <climits>

namespace hetcoll {

namespace {

constexpr double kLatestUs = 6e7; // a minute

std::string names_of_elements()
{
    std::string names;
    for (int i = 0; i < kElementKindCount; ++i) {
        names += std::string(i == 0 ? "" : " ") + element_name(static_cast<ElementKind>(i));
    }
    return names;
}

std::string names_of_ops()
{
    std::string names;
    for (int i = 0; i < kMpiOpCount; ++i) {
        names += std::string(i == 0 ? "" : " ") + op_name(static_cast<ReduceOp>(i));
    }
    return names;
}

struct Words { // as typed
    std::string op = "sum", dtype = "float", memory, compare, values = "exact";
    std::string threshold = "128M";
    SizeWords sizes{.list = "8:64M"};
    int check = 1, gpus = 1, threads = 1, blocking = 1;
    std::vector<std::string> collectives{"allreduce"};
    bool no_verify = false;
};

Result<std::vector<Collective>> parse_collectives(const std::vector<std::string> &words)
{
    std::vector<Collective> collectives;
    for (const std::string &word : words) {
        if (word == "all") {
            for (int i = 0; i < kCollectiveCount; ++i) {
                collectives.push_back(static_cast<Collective>(i));
            }
            continue;
        }
        const std::optional<Collective> found = find_collective(word);
        if (!found) {
            return error(Errc::kInvalid, "--collective %s: write all, or some of %s", word.c_str(),
                         collective_words().c_str());
        }
        collectives.push_back(*found);
    }
    return collectives;
}

// OSU's benchmarks use some of nccl-tests' short options for something else.
Check batch_count()
{
    return {[count = whole_number(1, 1'000'000)](std::string &word) {
        return word.find(':') == word.npos
                   ? count.apply(word)
                   : "'" + word + "' is OSU's range of sizes, which is --sizes " + word + " here";
    }};
}

std::string osu_memory(const std::string &word)
{
    const bool is_memory = word == "cuda" || word == "managed";
    return is_memory ? "; OSU's -d " + word + " is --memory " +
                           (word == "cuda" ? "device" : "managed") + " here"
                     : "";
}

// Refuses options that need MPI_Allreduce alone, or one place.
Status check_combination(const Options &options)
{
    const bool others = options.collectives != std::vector{Collective::kAllreduce};
    const MeasureOptions &measure = options.measure;
    if (others && (options.demo || measure.host_copy || !options.algorithms.empty())) {
        return error(Errc::kInvalid, "--collective goes without --demo, --compare and "
                                     "--algorithms, which are about MPI_Allreduce");
    }
    if (options.both &&
        (options.demo || measure.host_copy || !options.algorithms.empty() || options.in_place)) {
        return error(Errc::kInvalid,
                     "--both goes without --demo, --compare, --algorithms and --in-place");
    }
    if (options.budget_s > 0 && (options.demo || measure.iterations > 0)) {
        return error(Errc::kInvalid, "--budget goes without --demo and --iterations: it says how "
                                     "many iterations there are time for");
    }
    return {};
}

// Turns words into values; the error says which option is wrong.
Status apply(const Words &words, Options &options)
{
    const auto op = find_op(words.op);
    const auto kind = find_element(words.dtype);
    if (!op) {
        return error(Errc::kInvalid, "--op %s: write one of %s", words.op.c_str(),
                     names_of_ops().c_str());
    }
    if (!kind) {
        return error(Errc::kInvalid, "--dtype %s: write one of %s%s", words.dtype.c_str(),
                     names_of_elements().c_str(), osu_memory(words.dtype).c_str());
    }
    if (!is_defined(*op, *kind)) {
        return error(Errc::kInvalid, "MPI does not define %s on %s", words.op.c_str(),
                     words.dtype.c_str());
    }
    const std::string memory =
        words.memory.empty() ? (options.demo ? "device" : "host") : words.memory;
    const auto found = find_memory(memory);
    if (!found || *found == Memory::kPinned) {
        return error(Errc::kInvalid, "--memory %s: write host, device or managed", memory.c_str());
    }
    if (!words.compare.empty() && words.compare != "host-copy") {
        return error(Errc::kInvalid, "--compare %s: the only comparison is host-copy",
                     words.compare.c_str());
    }
    if (words.values != "exact" && words.values != "random") {
        return error(Errc::kInvalid, "--values %s: write exact or random", words.values.c_str());
    }
    Result<std::vector<std::size_t>> sizes = read_sizes(words.sizes, "--sizes", 0, kLargestSize);
    if (!sizes.ok()) {
        return sizes.take_status();
    }
    Result<std::vector<Collective>> collectives = parse_collectives(words.collectives);
    if (!collectives.ok()) {
        return collectives.take_status();
    }
    Result<std::size_t> threshold = parse_size(words.threshold);
    if (!threshold.ok()) {
        return error(Errc::kInvalid, "--fusion-threshold: %s",
                     threshold.status().message().c_str());
    }
    options.op = *op;
    options.kind = *kind;
    options.sizes = std::move(*sizes);
    options.collectives = std::move(*collectives);
    options.memory = *found;
    options.values = words.values == "random" ? Values::kRandom : Values::kExact;
    options.fusion_threshold = *threshold;
    options.measure.verify = !words.no_verify && words.check != 0;
    options.measure.host_copy = (options.demo && *found != Memory::kHost) || !words.compare.empty();
    if (options.measure.host_copy && *found == Memory::kHost) {
        return error(Errc::kInvalid, "--compare host-copy needs --memory device or managed");
    }
    if (options.own_kernel_bytes > 0 && *found == Memory::kHost) {
        return error(Errc::kInvalid, "--own-kernel needs --memory device or managed");
    }
    if (const auto ways = Contenders::parse(options.algorithms); !ways.ok()) {
        return error(Errc::kInvalid, "--algorithms: %s", ways.status().message().c_str());
    }
    if (!options.algorithms.empty() &&
        (options.demo || options.measure.host_copy || *found == Memory::kHost)) {
        return error(Errc::kInvalid, "--algorithms needs --memory device or managed, and goes "
                                     "without --demo and --compare: name host_copy among them");
    }
    return check_combination(options);
}

} // namespace

bool parse_options(int argc, char **argv, bool speaks, Options &options, int &exit_code)
{
    CommandLine line(
        "hetcoll_bench",
        "Times and checks MPI_Allreduce and other collectives, under hetcoll or any other "
        "component.\nRun it with mpirun; times are of the slowest rank. Short options are "
        "those of nccl-tests.\nhetcoll_bench compare FIRST SECOND compares two files of --json.");
    Words words;
    line.add_option("--collective", words.collectives,
                    "all, or some of " + collective_words() +
                        "; the size is that of the vector, of "
                        "all blocks together; neighbors are the ranks before and after in a ring")
        .list()
        .show_default();
    line.add_flag("--both", options.both, "measure out of place and in place, side by side");
    line.add_option("--budget", options.budget_s,
                    "seconds for all sizes together; calls that do not fit are left out")
        .check(number(0.1, 1e6));
    line.add_flag("--progress", options.progress,
                  "print progress to stderr even if it is not a terminal");
    line.add_option("-g,--ngpus", words.gpus, "GPUs a rank: 1").check(whole_number(1, 1));
    line.add_option("-t,--nthreads", words.threads, "threads a rank: 1").check(whole_number(1, 1));
    line.add_option("-z,--blocking", words.blocking,
                    "0 or 1: MPI_Allreduce returns when the result is there, either way")
        .check(whole_number(0, 1));
    line.add_option("-o,--op", words.op, names_of_ops()).show_default();
    line.add_option("-d,--dtype,--datatype", words.dtype,
                    "float double half int uint long ulong char, or: " + names_of_elements())
        .show_default();
    line.add_option("--sizes", words.sizes.list,
                    "bytes: 8:64M doubles from 8 to 64M, 8,24,64K is a list")
        .show_default();
    add_size_options(line, "--sizes", words.sizes);
    line.add_option("--memory", words.memory,
                    "host, device or managed; default: host, with --demo device");
    line.add_flag("--in-place", options.in_place, "reduce with MPI_IN_PLACE");
    line.add_flag("--gpu-context", options.gpu_context,
                  "hold a GPU context, as a GPU program does, even with --memory host");
    line.add_option("--own-kernel", options.own_kernel_bytes,
                    "every rank starts a sum of this many bytes of its own on the legacy stream "
                    "before each call, as a program does; times include it")
        .check(size(4, std::size_t{1} << 40));
    line.add_option("-n,--iterations,--iters", options.measure.iterations,
                    "timed calls per size; 0: by size")
        .check(whole_number(0, 100'000'000))
        .show_default();
    line.add_option("-m,--batch,--agg_iters", options.measure.batch,
                    "calls between two readings of the clock, for calls shorter than it resolves; "
                    "a timed call is the mean of a batch")
        .check(batch_count())
        .show_default();
    line.add_option("-w,-x,--warmup,--warmup_iters", options.measure.warmup,
                    "calls before the clock runs")
        .check(whole_number(0, 100'000'000))
        .show_default();
    line.add_option("--late-us", options.measure.late_us, "see --late-rank")
        .check(number(0, kLatestUs));
    line.add_option("--late-rank", options.measure.late_rank,
                    "this rank comes --late-us later to every call; times then count from when the "
                    "last rank has come, by the clock of the one machine that all ranks are on")
        .check(whole_number(0, INT_MAX))
        .needs("--late-us");
    line.add_option("--jitter-us", options.measure.jitter_us,
                    "every rank comes later by a random time of up to this; times count as above")
        .check(number(0, kLatestUs));
    line.add_option("-c,--check", words.check, "0: as --no-verify")
        .check(whole_number(0, INT_MAX))
        .show_default();
    bool verify = true;
    line.add_flag("--verify", verify, "check every element (the default)").excludes("--check");
    line.add_flag("--no-verify", words.no_verify, "check nothing")
        .excludes("--verify")
        .excludes("--check");
    line.add_option("--values", words.values,
                    "exact: the result is the same in any order of reduction; random: it must be "
                    "within the bound")
        .show_default();
    line.add_option("--compare", words.compare,
                    "host-copy: also time copying to the host, reducing there and copying back");
    line.add_option("--algorithms", options.algorithms,
                    "measure these in turns: auto, nonblocking, persistent, host_copy, names of "
                    "algorithms, ring/65536 for ring with chunks of 65536 bytes, or all")
        .list();
    line.add_option("--json", options.json_path,
                    "also write the results to this file; -: to stdout, and the "
                    "table to stderr");
    line.add_flag(
        "--demo", options.demo,
        "on device buffers: a sweep, then the gradients of ResNet-50 fused as Horovod does");
    line.add_option("--fusion-threshold", words.threshold, "bytes of a fusion buffer in the demo")
        .show_default();
    exit_code = 0;
    if (!line.parse(argc, argv, exit_code, speaks)) {
        return false;
    }
    const Status status = apply(words, options);
    if (!status.ok()) {
        exit_code = speaks ? line.usage_error(status.message()) : kUsageError;
    }
    return status.ok();
}

} // namespace hetcoll
