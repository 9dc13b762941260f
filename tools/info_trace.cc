#include "tools/info_trace.h"

#include "base/counted.h"
#include "measure/command_line.h"
#include "measure/json_document.h"
#include "measure/named_files.h"
#include "measure/output_file.h"
#include "tools/perfetto.h"
#include "tools/report_parts.h"
#include "tools/trace_calls.h"

#include <algorithm>
#include <bit>
#include <map>

namespace hetcoll {
namespace {

// Calls of one kind whose sizes have one highest bit.
struct Key {
    std::string tag, call;
    int size_class; // bytes are at most 1 << size_class
    std::string memory, algorithm, path;

    auto operator<=>(const Key &) const = default;
};

struct Group {
    std::uint64_t bytes = 0, ns = 0;
    std::vector<std::uint64_t> times_ns;
};

struct Totals {
    std::map<Key, Group> groups;
    std::map<std::string, std::uint64_t> staged; // by reason
    std::uint64_t failed = 0, ns = 0;
    bool tagged = false; // some call is
};

int size_class_of(std::uint64_t bytes) { return bytes <= 1 ? 0 : std::bit_width(bytes - 1); }

void add_call(const TraceCall &call, Totals &totals)
{
    Group &group = totals.groups[{call.tag, call.call, size_class_of(call.bytes), call.memory,
                                  call.algorithm, call.path}];
    group.bytes += call.bytes;
    group.ns += call.ns;
    group.times_ns.push_back(call.ns);
    totals.ns += call.ns;
    totals.failed += call.failed ? 1 : 0;
    totals.tagged = totals.tagged || !call.tag.empty();
    if (!call.staged.empty()) {
        ++totals.staged[call.staged];
    }
}

// The smallest time that `percent` of the calls do not exceed. Requires a sorted one.
double percentile_us(const std::vector<std::uint64_t> &sorted_ns, std::size_t percent)
{
    const std::size_t index = (sorted_ns.size() * percent + 99) / 100;
    return static_cast<double>(sorted_ns[index == 0 ? 0 : index - 1]) * 1e-3;
}

std::string print_amount(double bytes)
{
    constexpr const char *kUnits[] = {"B", "KB", "MB", "GB", "TB"};
    int unit = 0;
    while (unit < 4 && bytes >= 1000) {
        bytes /= 1000;
        ++unit;
    }
    return format(unit == 0 ? "%.0f %s" : "%.1f %s", bytes, kUnits[unit]);
}

std::string print_totals(const TraceJob &job, const Totals &totals)
{
    double in_them_s = 0;
    for (const TraceProcess &process : job.processes) {
        in_them_s += in_calls_s(process);
    }
    const std::size_t ranks = job.processes.size();
    std::string text = format("%s of %s in %.3f s; a rank was in them for %.3f s (%.1f %%)\n",
                              counted(job.calls, "call").c_str(), counted(ranks, "rank").c_str(),
                              job.last_s - job.first_s, in_them_s / static_cast<double>(ranks),
                              percent_in_calls(job));
    for (const std::string &doubt : doubts_about(job, find_gatherings(job))) {
        text += "note: " + doubt + "\n";
    }
    for (const auto &[reason, calls] : totals.staged) {
        text += format("%llu staged: %s\n", static_cast<unsigned long long>(calls), reason.c_str());
    }
    if (totals.failed != 0) {
        text += format("%llu failed\n", static_cast<unsigned long long>(totals.failed));
    }
    return text;
}

// At most seven characters for times below ten seconds.
std::string print_short_us(double us)
{
    return format(us < 100 ? "%.2f" : us < 10000 ? "%.1f" : "%.0f", us);
}

// At most 100 columns wide, but for long names and tags.
std::string print_groups(Totals &totals)
{
    std::size_t widest_call = 9, widest_algorithm = 9;
    for (const auto &[key, group] : totals.groups) {
        widest_call = std::max(widest_call, key.call.size());
        widest_algorithm = std::max(widest_algorithm, key.algorithm.size());
    }
    const int call_width = static_cast<int>(widest_call);
    const int algorithm_width = static_cast<int>(widest_algorithm);
    std::string text =
        format("%-*s %6s %7s %8s %-6s %-*s %-6s %7s %7s %7s %6s%s\n", call_width, "call", "<=size",
               "calls", "bytes", "memory", algorithm_width, "algorithm", "path", "p50_us", "p90_us",
               "max_us", "time", totals.tagged ? "  tag" : "");
    for (auto &[key, group] : totals.groups) {
        std::sort(group.times_ns.begin(), group.times_ns.end());
        const auto percentile = [&times_ns = group.times_ns](std::size_t percent) {
            return print_short_us(percentile_us(times_ns, percent));
        };
        text += format(
            "%-*s %6s %7zu %8s %-6s %-*s %-6s %7s %7s %7s %5.1f%%%s%s\n", call_width,
            key.call.c_str(), print_bytes(std::size_t{1} << key.size_class).c_str(),
            group.times_ns.size(), print_amount(static_cast<double>(group.bytes)).c_str(),
            key.memory.c_str(), algorithm_width, key.algorithm.c_str(), key.path.c_str(),
            percentile(50).c_str(), percentile(90).c_str(), percentile(100).c_str(),
            totals.ns == 0 ? 0.0
                           : 100.0 * static_cast<double>(group.ns) / static_cast<double>(totals.ns),
            key.tag.empty() ? "" : "  ", key.tag.c_str());
    }
    return text;
}

} // namespace

void add_files_option(CommandLine &line, const std::string &name, TraceRequest &request)
{
    const Option files = line.add_option(name, request.files, "what coll_hetcoll_trace has written")
                             .type_name(name == "FILE" ? "" : "FILE...");
    if (name == "FILE") {
        files.required();
    }
}

void add_trace_options(CommandLine &line, TraceRequest &request)
{
    add_files_option(line, "FILE", request);
    line.add_option("--perfetto", request.perfetto,
                    "write the calls as a time line for ui.perfetto.dev to FILE; - is stdout")
        .type_name("FILE");
}

Status check_trace(const CommandLine &line, const std::string &name)
{
    const std::string twice = find_twice(line, name);
    if (!twice.empty()) {
        return error(Errc::kInvalid,
                     "%s is there twice, and its calls would count twice: once is enough",
                     twice.c_str());
    }
    return line.is_given("--perfetto") && line.is_given("--json")
               ? error(Errc::kInvalid,
                       "--json prints something else than --perfetto: leave one out")
               : Status();
}

Result<std::string> show_trace(const TraceRequest &request)
{
    if (!request.perfetto.empty()) {
        Result<OutputFile> file = OutputFile::open(request.perfetto); // before the work
        if (!file.ok()) {
            return file.take_status();
        }
        Result<TraceJob> job = read_job(request.files);
        if (!job.ok()) {
            return job.take_status();
        }
        if (Status status = file->write(print_perfetto(*job)); !status.ok()) {
            return status;
        }
        return std::string();
    }
    Result<TraceJob> job = read_job(request.files);
    if (!job.ok()) {
        return job.take_status();
    }
    if (request.json) {
        Json json = json_document("hetcoll_info");
        json["trace"] = report_job(*job);
        return json_text(json);
    }
    Totals totals;
    for (const TraceProcess &process : job->processes) {
        for (const TraceCall &call : process.calls) {
            add_call(call, totals);
        }
    }
    return print_totals(*job, totals) + print_groups(totals);
}

} // namespace hetcoll
