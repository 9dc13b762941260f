#include "tools/trace_calls.h"

#include "tuning/json_reader.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

namespace hetcoll {
namespace {

constexpr int kBadLinesNamed = 10; // of a file

std::string quoted(const char *name, const char *rest) { return "'" + std::string(name) + rest; }

// Files may hold anything; a terminal would obey its control characters.
std::string printable(std::string text)
{
    for (char &c : text) {
        const auto code = static_cast<unsigned char>(c);
        c = code < ' ' || code == 0x7f ? '?' : c;
    }
    return text;
}

// Empty, or what is wrong with the line.
std::string parse_line(const std::string &line, TraceCall &call)
{
    using Kind = JsonNode::Kind;
    JsonNode json;
    JsonError ignored;
    if (!read_json(line, &json, &ignored) || json.kind != Kind::kObject) {
        return "it is not a JSON object";
    }
    const auto find = [&json](const char *name) { return find_member(json, name); };
    const auto find_count = [&find](const char *name) -> const JsonNode * {
        const JsonNode *const found = find(name);
        const bool is_count =
            found != nullptr && found->kind == Kind::kInteger && found->integer >= 0;
        return is_count ? found : nullptr;
    };
    const auto find_word = [&find](const char *name) -> const JsonNode * {
        const JsonNode *const found = find(name);
        return found != nullptr && found->kind == Kind::kString ? found : nullptr;
    };
    const std::pair<const char *, std::uint64_t *> counts[] = {
        {"rank", &call.rank}, {"bytes", &call.bytes}, {"ns", &call.ns}};
    for (const auto &[name, value] : counts) {
        const JsonNode *const found = find_count(name);
        if (found == nullptr) {
            return quoted(name, "' is not a count");
        }
        *value = static_cast<std::uint64_t>(found->integer);
    }
    const std::pair<const char *, std::string *> words[] = {{"call", &call.call},
                                                            {"memory", &call.memory},
                                                            {"algorithm", &call.algorithm},
                                                            {"path", &call.path}};
    for (const auto &[name, value] : words) {
        const JsonNode *const found = find_word(name);
        if (found == nullptr) {
            return quoted(name, "' is not a word");
        }
        *value = printable(found->string);
    }
    const JsonNode *const time = find("time");
    if (time == nullptr || (time->kind != Kind::kInteger && time->kind != Kind::kReal)) {
        return "'time' is not a number";
    }
    call.start_s = time->real;
    const auto add_count = [&](const char *name, std::uint64_t &value) {
        const JsonNode *const found = find_count(name);
        value = found != nullptr ? static_cast<std::uint64_t>(found->integer) : 0;
    };
    const auto add_word = [&](const char *name, std::string &value) {
        const JsonNode *const found = find_word(name);
        value = found != nullptr ? printable(found->string) : std::string();
    };
    add_count("comm", call.comm);
    add_count("ranks", call.ranks);
    add_count("chunk_bytes", call.chunk_bytes);
    add_word("op", call.op);
    add_word("kind", call.kind);
    add_word("tag", call.tag);
    add_word("staged", call.staged);
    call.failed = find("failed") != nullptr;
    return {};
}

// Calls of one file, by who wrote them.
using ByRank = std::map<std::uint64_t, std::vector<TraceCall>>;

// Several ranks of MPI_COMM_WORLD in one file are several processes. Nobody knows what else they
// called. Nobody can tell apart but by the rank.
ByRank split(std::vector<TraceCall> calls, std::uint64_t place)
{
    std::map<std::uint64_t, std::size_t> in_world;
    for (const TraceCall &call : calls) {
        if (call.comm == 0) {
            ++in_world[call.rank];
        }
    }
    ByRank processes;
    if (in_world.size() <= 1) {
        processes[in_world.empty() ? place : in_world.begin()->first] = std::move(calls);
        return processes;
    }
    for (TraceCall &call : calls) {
        processes[call.rank].push_back(std::move(call));
    }
    return processes;
}

// The others let a rank go that has sent its part, or has received the root's.
bool waits_for_all(std::string_view call)
{
    return call.ends_with("allreduce") || call.find("allgather") != call.npos ||
           call.find("reduce_scatter") != call.npos || call.ends_with("barrier");
}

} // namespace

Status read_trace(const std::string &path, const std::function<void(TraceCall &&)> &take)
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
        TraceCall call;
        const std::string problem = parse_line(line, call);
        if (problem.empty()) {
            take(std::move(call));
        } else if (++bad <= kBadLinesNamed) {
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

Result<TraceJob> read_job(const std::vector<std::string> &paths)
{
    TraceJob job;
    for (std::size_t i = 0; i < paths.size(); ++i) {
        std::vector<TraceCall> calls;
        Status status =
            read_trace(paths[i], [&calls](TraceCall &&call) { calls.push_back(std::move(call)); });
        if (!status.ok()) {
            return status;
        }
        for (auto &[rank, of_rank] : split(std::move(calls), i)) {
            if (!of_rank.empty()) {
                job.processes.push_back({rank, std::move(of_rank)});
            }
        }
    }
    if (job.processes.empty()) {
        return error(Errc::kInvalid, "no call is in %s%s", paths.front().c_str(),
                     paths.size() > 1 ? " and the others" : "");
    }
    std::stable_sort(job.processes.begin(), job.processes.end(),
                     [](const TraceProcess &a, const TraceProcess &b) { return a.rank < b.rank; });
    for (TraceProcess &process : job.processes) {
        std::stable_sort(
            process.calls.begin(), process.calls.end(),
            [](const TraceCall &a, const TraceCall &b) { return a.start_s < b.start_s; });
        for (const TraceCall &call : process.calls) {
            job.first_s = job.calls == 0 ? call.start_s : std::min(job.first_s, call.start_s);
            job.last_s = job.calls == 0 ? call.end_s() : std::max(job.last_s, call.end_s());
            ++job.calls;
        }
    }
    return job;
}

double in_calls_s(const TraceProcess &process)
{
    double sum_s = 0, end_s = 0;
    for (const TraceCall &call : process.calls) { // by the time they began
        sum_s += std::max(call.end_s() - std::max(call.start_s, end_s), 0.0);
        end_s = std::max(end_s, call.end_s());
    }
    return sum_s;
}

double percent_in_calls(const TraceJob &job)
{
    double sum = 0;
    for (const TraceProcess &process : job.processes) {
        double last_s = 0;
        for (const TraceCall &call : process.calls) {
            last_s = std::max(last_s, call.end_s());
        }
        const double all_s = last_s - process.calls.front().start_s;
        sum += all_s > 0 ? 100 * in_calls_s(process) / all_s : 0;
    }
    return sum / static_cast<double>(job.processes.size());
}

std::vector<std::string> doubts_about(const TraceJob &job, const Gatherings &gatherings)
{
    std::vector<std::string> doubts;
    std::set<std::uint64_t> sizes;
    std::map<std::uint64_t, std::size_t> processes_of; // ranks of MPI_COMM_WORLD
    for (const TraceProcess &process : job.processes) {
        std::set<std::uint64_t> ranks;
        for (const TraceCall &call : process.calls) {
            if (call.comm == 0) {
                ranks.insert(call.rank);
                sizes.insert(call.ranks);
            }
        }
        for (const std::uint64_t rank : ranks) {
            ++processes_of[rank];
        }
    }
    const bool twice = std::any_of(processes_of.begin(), processes_of.end(),
                                   [](const auto &rank) { return rank.second > 1; });
    if (twice || sizes.size() > 1) {
        doubts.emplace_back("the files are of more than one MPI_COMM_WORLD: give the files of one "
                            "job, unless it has spawned others");
    }
    if (gatherings.apart > 0) {
        doubts.push_back("in " + std::to_string(gatherings.apart) + " of " +
                         std::to_string(gatherings.apart + gatherings.found.size()) +
                         " calls a rank has left before another one came: clocks of hosts differ, "
                         "or files are of several jobs");
    }
    return doubts;
}

Gatherings find_gatherings(const TraceJob &job)
{
    using Comm = std::pair<std::uint64_t, std::uint64_t>;      // number and ranks
    std::map<std::pair<Comm, std::uint64_t>, std::size_t> who; // the process that is this rank
    std::map<Comm, bool> is_one;
    for (std::size_t p = 0; p < job.processes.size(); ++p) {
        for (const TraceCall &call : job.processes[p].calls) {
            const Comm comm{call.comm, call.ranks};
            const auto [known, is_new] = who.try_emplace({comm, call.rank}, p);
            const bool same = is_new || known->second == p;
            is_one.try_emplace(comm, true).first->second &= same;
        }
    }
    std::map<std::tuple<Comm, std::string, std::size_t>, std::vector<Gathering::Member>> found;
    for (std::size_t p = 0; p < job.processes.size(); ++p) {
        std::map<std::pair<Comm, std::string>, std::size_t> seen;
        const std::vector<TraceCall> &calls = job.processes[p].calls;
        for (std::size_t c = 0; c < calls.size(); ++c) {
            const Comm comm{calls[c].comm, calls[c].ranks};
            if (is_one[comm] && calls[c].ranks > 1) {
                const std::size_t number = seen[{comm, calls[c].call}]++;
                found[{comm, calls[c].call, number}].push_back({p, c});
            }
        }
    }
    Gatherings gatherings;
    for (auto &[key, members] : found) {
        if (members.size() != std::get<0>(key).second) {
            continue;
        }
        const auto call_of = [&job](const Gathering::Member &member) -> const TraceCall & {
            return job.processes[member.process].calls[member.call];
        };
        std::sort(members.begin(), members.end(),
                  [&](const auto &a, const auto &b) { return call_of(a).rank < call_of(b).rank; });
        Gathering gathering{std::move(members), 0, 0};
        double first_end_s = call_of(gathering.members[0]).end_s();
        for (std::size_t m = 0; m < gathering.members.size(); ++m) {
            const TraceCall &call = call_of(gathering.members[m]);
            first_end_s = std::min(first_end_s, call.end_s());
            if (m == 0 || call.start_s > gathering.last_start_s) {
                gathering.last_start_s = call.start_s;
                gathering.last = m;
            }
        }
        constexpr double kClockS = 2e-6; // lines have microseconds
        if (gathering.last_start_s <= first_end_s + kClockS) {
            gatherings.found.push_back(std::move(gathering));
        } else if (waits_for_all(std::get<1>(key))) {
            ++gatherings.apart;
        }
    }
    return gatherings;
}

std::vector<std::vector<std::optional<double>>> find_waits(const TraceJob &job,
                                                           const std::vector<Gathering> &gatherings)
{
    std::vector<std::vector<std::optional<double>>> waits;
    for (const TraceProcess &process : job.processes) {
        waits.emplace_back(process.calls.size());
    }
    for (const Gathering &gathering : gatherings) {
        for (const auto &[process, index] : gathering.members) {
            const TraceCall &call = job.processes[process].calls[index];
            waits[process][index] = std::clamp(gathering.last_start_s - call.start_s, 0.0,
                                               static_cast<double>(call.ns) * 1e-9);
        }
    }
    return waits;
}

} // namespace hetcoll
