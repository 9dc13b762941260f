#include "tools/info_trace.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <set>
#include <tuple>

namespace hetcoll {
namespace {

constexpr int kBadLinesNamed = 10; // of a file

// Calls of one kind whose sizes have one highest bit.
struct Key {
    std::string call;
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
    std::set<std::uint64_t> ranks;
    std::uint64_t calls = 0, failed = 0, ns = 0;
    double first_s = 0, last_s = 0; // on the clock
};

int size_class_of(std::uint64_t bytes) { return bytes <= 1 ? 0 : std::bit_width(bytes - 1); }

// Empty, or what is wrong with the line.
std::string add_line(const std::string &line, Totals &totals)
{
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (!json.is_object()) {
        return "it is not a JSON object";
    }
    const auto has = [&json](const char *name, auto is) {
        const auto found = json.find(name);
        return found != json.end() && ((*found).*is)();
    };
    using Json = nlohmann::json;
    for (const char *name : {"rank", "bytes", "ns"}) {
        if (!has(name, &Json::is_number_unsigned)) {
            return format("'%s' is not a count", name);
        }
    }
    for (const char *name : {"call", "memory", "algorithm", "path"}) {
        if (!has(name, &Json::is_string)) {
            return format("'%s' is not a word", name);
        }
    }
    if (!has("time", &Json::is_number)) {
        return "'time' is not a number";
    }
    const std::uint64_t bytes = json["bytes"], ns = json["ns"];
    Group &group = totals.groups[{json["call"], size_class_of(bytes), json["memory"],
                                  json["algorithm"], json["path"]}];
    group.bytes += bytes;
    group.ns += ns;
    group.times_ns.push_back(ns);
    const double start_s = json["time"], end_s = start_s + static_cast<double>(ns) * 1e-9;
    totals.first_s = totals.calls == 0 ? start_s : std::min(totals.first_s, start_s);
    totals.last_s = totals.calls == 0 ? end_s : std::max(totals.last_s, end_s);
    totals.ranks.insert(json["rank"].get<std::uint64_t>());
    totals.ns += ns;
    ++totals.calls;
    totals.failed += json.contains("failed") ? 1 : 0;
    if (has("staged", &Json::is_string)) {
        ++totals.staged[json["staged"]];
    }
    return {};
}

Status add_file(const std::string &path, Totals &totals)
{
    std::ifstream file(path);
    if (!file) {
        return error(Errc::kInvalid, "%s cannot be read (%s)", path.c_str(), std::strerror(errno));
    }
    std::string line;
    int bad = 0;
    for (int number = 1; std::getline(file, line); ++number) {
        if (!line.empty() && line.front() == '\0') {
            break; // reserved by a process that did not live to cut the file
        }
        const std::string problem = add_line(line, totals);
        if (!problem.empty() && ++bad <= kBadLinesNamed) {
            std::fprintf(stderr, "hetcoll_info: %s:%d is skipped: %s\n", path.c_str(), number,
                         problem.c_str());
        }
    }
    if (bad > kBadLinesNamed) {
        std::fprintf(stderr, "hetcoll_info: %s: %d more lines are skipped\n", path.c_str(),
                     bad - kBadLinesNamed);
    }
    return {};
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

std::string print_totals(const Totals &totals)
{
    const double ranks = static_cast<double>(totals.ranks.size());
    const double in_calls_s = static_cast<double>(totals.ns) * 1e-9 / ranks;
    const double all_s = totals.last_s - totals.first_s;
    std::string text =
        format("%llu calls of %zu rank%s in %.3f s; a rank was in them for %.3f s (%.1f %%)\n",
               static_cast<unsigned long long>(totals.calls), totals.ranks.size(),
               totals.ranks.size() == 1 ? "" : "s", all_s, in_calls_s,
               all_s > 0 ? 100 * in_calls_s / all_s : 0.0);
    for (const auto &[reason, calls] : totals.staged) {
        text += format("%llu staged: %s\n", static_cast<unsigned long long>(calls), reason.c_str());
    }
    if (totals.failed != 0) {
        text += format("%llu failed\n", static_cast<unsigned long long>(totals.failed));
    }
    return text;
}

} // namespace

void add_trace_options(CLI::App &app, TraceRequest &request)
{
    app.add_option("--trace", request.files,
                   "show where the time went, from files that coll_hetcoll_trace has written")
        ->type_name("FILE...");
}

Result<std::string> show_trace(const TraceRequest &request)
{
    Totals totals;
    for (const std::string &path : request.files) {
        if (Status status = add_file(path, totals); !status.ok()) {
            return status;
        }
    }
    if (totals.calls == 0) {
        return error(Errc::kInvalid, "no call is in %s%s", request.files.front().c_str(),
                     request.files.size() > 1 ? " and the others" : "");
    }
    std::string text = print_totals(totals);
    text +=
        format("%-14s %6s %8s %10s %-7s %-18s %-7s %11s %11s %11s %7s\n", "call", "<=size", "calls",
               "bytes", "memory", "algorithm", "path", "median_us", "p90_us", "max_us", "time");
    for (auto &[key, group] : totals.groups) {
        std::sort(group.times_ns.begin(), group.times_ns.end());
        text += format("%-14s %6s %8zu %10s %-7s %-18s %-7s %11.2f %11.2f %11.2f %6.1f%%\n",
                       key.call.c_str(), print_bytes(std::size_t{1} << key.size_class).c_str(),
                       group.times_ns.size(),
                       print_amount(static_cast<double>(group.bytes)).c_str(), key.memory.c_str(),
                       key.algorithm.c_str(), key.path.c_str(), percentile_us(group.times_ns, 50),
                       percentile_us(group.times_ns, 90), percentile_us(group.times_ns, 100),
                       totals.ns == 0 ? 0.0
                                      : 100.0 * static_cast<double>(group.ns) /
                                            static_cast<double>(totals.ns));
    }
    return text;
}

} // namespace hetcoll
