#include "tools/report_parts.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <map>
#include <tuple>

namespace hetcoll {
namespace {

constexpr std::size_t kMostGroups = 200, kMostSlow = 20;

struct Sum {
    std::uint64_t calls = 0, ns = 0, bytes = 0, worst_ns = 0;

    void add(const TraceCall &call)
    {
        ++calls;
        ns += call.ns;
        bytes += call.bytes;
        worst_ns = std::max(worst_ns, call.ns);
    }
};

// A class of sizes: at most a power of two, and more than half of it.
std::uint64_t size_class(std::uint64_t bytes) { return bytes <= 1 ? 1 : std::bit_ceil(bytes); }

// Most time first.
template <class Key, class Print>
Json sorted(const std::map<Key, Sum> &sums, std::size_t most, const Print &print)
{
    std::vector<std::pair<Key, Sum>> rows(sums.begin(), sums.end());
    std::stable_sort(rows.begin(), rows.end(),
                     [](const auto &a, const auto &b) { return a.second.ns > b.second.ns; });
    Json list = Json::array();
    for (const auto &[key, sum] : rows) {
        if (list.size() == most) {
            break;
        }
        Json row = print(key);
        row["calls"] = sum.calls;
        row["bytes"] = sum.bytes;
        row["s"] = static_cast<double>(sum.ns) * 1e-9;
        row["worst_us"] = static_cast<double>(sum.worst_ns) * 1e-3;
        list.push_back(std::move(row));
    }
    return list;
}

template <class Key, class KeyOf>
std::map<Key, Sum> sums_by(const TraceJob &job, const KeyOf &key_of)
{
    std::map<Key, Sum> sums;
    for (const TraceProcess &process : job.processes) {
        for (const TraceCall &call : process.calls) {
            sums[key_of(call)].add(call);
        }
    }
    return sums;
}

template <class KeyOf> Json by_name(const TraceJob &job, const KeyOf &key_of)
{
    return sorted(sums_by<std::string>(job, key_of), kMostGroups, [](const std::string &name) {
        return Json{{"name", name}};
    });
}

Json by_size(const TraceJob &job)
{
    Json list = Json::array();
    for (const auto &[bytes, sum] : sums_by<std::uint64_t>(
             job, [](const TraceCall &call) { return size_class(call.bytes); })) {
        list.push_back({{"bytes", bytes},
                        {"calls", sum.calls},
                        {"s", static_cast<double>(sum.ns) * 1e-9},
                        {"worst_us", static_cast<double>(sum.worst_ns) * 1e-3}});
    }
    return list;
}

Json by_kind(const TraceJob &job)
{
    using Key =
        std::tuple<std::string, std::string, std::uint64_t, std::string, std::string, std::string>;
    const auto sums = sums_by<Key>(job, [](const TraceCall &call) {
        return Key{call.tag,    call.call,      size_class(call.bytes),
                   call.memory, call.algorithm, call.path};
    });
    return sorted(sums, kMostGroups, [](const Key &key) {
        const auto &[tag, call, bytes, memory, algorithm, path] = key;
        return Json{{"tag", tag},       {"call", call},           {"most", bytes},
                    {"memory", memory}, {"algorithm", algorithm}, {"path", path}};
    });
}

Json slowest(const TraceJob &job, const std::vector<std::vector<std::optional<double>>> &waits)
{
    struct Slow {
        std::size_t process, call;
        std::uint64_t ns;
    };
    std::vector<Slow> calls;
    for (std::size_t p = 0; p < job.processes.size(); ++p) {
        for (std::size_t c = 0; c < job.processes[p].calls.size(); ++c) {
            calls.push_back({p, c, job.processes[p].calls[c].ns});
        }
    }
    const auto most = static_cast<std::ptrdiff_t>(std::min(calls.size(), kMostSlow));
    std::partial_sort(calls.begin(), calls.begin() + most, calls.end(),
                      [](const Slow &a, const Slow &b) { return a.ns > b.ns; });
    calls.resize(static_cast<std::size_t>(most));
    Json list = Json::array();
    for (const Slow &slow : calls) {
        const TraceCall &call = job.processes[slow.process].calls[slow.call];
        const std::optional<double> wait = waits[slow.process][slow.call];
        list.push_back({{"rank", job.processes[slow.process].rank},
                        {"at_s", call.start_s - job.first_s},
                        {"comm", call.comm},
                        {"ranks", call.ranks},
                        {"tag", call.tag},
                        {"call", call.call},
                        {"bytes", call.bytes},
                        {"algorithm", call.algorithm},
                        {"path", call.path},
                        {"us", static_cast<double>(call.ns) * 1e-3},
                        {"wait_us", wait ? Json(*wait * 1e6) : Json()}});
    }
    return list;
}

// By process: how often it came last, and for how long all others waited then, together.
Json latecomers(const TraceJob &job, const std::vector<Gathering> &gatherings,
                const std::vector<std::vector<std::optional<double>>> &waits)
{
    struct Late {
        std::uint64_t times = 0;
        double cost_s = 0, worst_s = 0;
    };
    std::vector<Late> late(job.processes.size());
    std::vector<double> waited_s(job.processes.size());
    for (const Gathering &gathering : gatherings) {
        Late &last = late[gathering.members[gathering.last].process];
        double longest_s = 0;
        for (const auto &[process, call] : gathering.members) {
            const double wait_s = waits[process][call].value_or(0);
            last.cost_s += wait_s;
            waited_s[process] += wait_s;
            longest_s = std::max(longest_s, wait_s);
        }
        ++last.times;
        last.worst_s = std::max(last.worst_s, longest_s);
    }
    Json list = Json::array();
    for (std::size_t p = 0; p < late.size(); ++p) {
        double in_calls_s = 0;
        for (const TraceCall &call : job.processes[p].calls) {
            in_calls_s += static_cast<double>(call.ns) * 1e-9;
        }
        list.push_back({{"rank", job.processes[p].rank},
                        {"times", late[p].times},
                        {"cost_s", late[p].cost_s},
                        {"worst_us", late[p].worst_s * 1e6},
                        {"waited_s", waited_s[p]},
                        {"in_calls_s", in_calls_s}});
    }
    return list;
}

} // namespace

Json report_job(const TraceJob &job)
{
    const Gatherings gatherings = find_gatherings(job);
    const auto waits = find_waits(job, gatherings.found);
    double in_them_s = 0;
    std::uint64_t failed = 0;
    std::map<std::string, std::uint64_t> staged;
    for (const TraceProcess &process : job.processes) {
        in_them_s += in_calls_s(process) / static_cast<double>(job.processes.size());
        for (const TraceCall &call : process.calls) {
            failed += call.failed ? 1 : 0;
            if (!call.staged.empty()) {
                ++staged[call.staged];
            }
        }
    }
    Json staged_calls = Json::object();
    for (const auto &[why, calls] : staged) {
        staged_calls[why] = calls;
    }
    return {{"calls", job.calls},
            {"ranks", job.processes.size()},
            {"s", job.last_s - job.first_s},
            {"in_calls_s", in_them_s},
            {"in_calls_percent", percent_in_calls(job)},
            {"notes", doubts_about(job, gatherings)},
            {"failed", failed},
            {"staged", staged_calls},
            {"gatherings", gatherings.found.size()},
            {"by_algorithm", by_name(job, [](const TraceCall &call) { return call.algorithm; })},
            {"by_path", by_name(job, [](const TraceCall &call) { return call.path; })},
            {"by_size", by_size(job)},
            {"by_kind", by_kind(job)},
            {"slowest", slowest(job, waits)},
            {"late", latecomers(job, gatherings.found, waits)}};
}

} // namespace hetcoll
