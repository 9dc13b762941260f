#include "tools/perfetto.h"

#include "measure/json_document.h"
#include "tools/info_call.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace hetcoll {
namespace {

constexpr double kClockS = 1e-6; // the starts of calls are whole microseconds

// The threads of one process: for each communicator as many as its calls overlap at most.
class Threads {
public:
    struct Place {
        int thread;
        double start_s; // not before the end of the call before it
    };
    // The times of a call; calls come in the order of their starts.
    Place of(const TraceCall &call)
    {
        std::vector<Thread> &threads = comms_[call.comm];
        for (Thread &one : threads) {
            if (one.end_s <= call.start_s + kClockS) {
                const double start_s = std::max(one.end_s, call.start_s);
                one.end_s = std::max(call.end_s(), start_s);
                return {one.thread, start_s};
            }
        }
        threads.push_back({++count_, call.end_s()});
        const std::string again =
            threads.size() == 1 ? "" : format(", %zu at the same time", threads.size());
        names_.emplace_back(format("communicator %llu of %llu ranks",
                                   static_cast<unsigned long long>(call.comm),
                                   static_cast<unsigned long long>(call.ranks)) +
                            (call.tag.empty() ? "" : ", " + call.tag) + again);
        return {count_, call.start_s};
    }
    // names()[t - 1] is that of thread t.
    [[nodiscard]] const std::vector<std::string> &names() const noexcept { return names_; }

private:
    struct Thread {
        int thread;
        double end_s;
    };
    std::map<std::uint64_t, std::vector<Thread>> comms_;
    std::vector<std::string> names_;
    int count_ = 0;
};

class Events {
public:
    explicit Events(double first_s) : first_s_(first_s) {}

    void name(const char *what, std::uint64_t process, int thread, const std::string &name)
    {
        Json event = {{"ph", "M"}, {"name", what}, {"pid", process}};
        if (thread > 0) {
            event["tid"] = thread;
        }
        event["args"] = {{"name", name}};
        add(event);
    }
    // From `start_s` on the job's clock, in microseconds with three digits.
    void span(const std::string &name, const std::string &category, std::uint64_t process,
              int thread, double start_s, double seconds, const Json &args)
    {
        const auto us = [](double s) { return std::round(s * 1e9) / 1e3; };
        Json event = {{"ph", "X"},         {"name", name},  {"cat", category},
                      {"pid", process},    {"tid", thread}, {"ts", us(start_s - first_s_)},
                      {"dur", us(seconds)}};
        if (!args.empty()) {
            event["args"] = args;
        }
        add(event);
    }
    [[nodiscard]] std::string text() const
    {
        return "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n" + text_ + "\n]}\n";
    }

private:
    void add(const Json &event) { text_ += (text_.empty() ? "" : ",\n") + event.line(); }

    double first_s_;
    std::string text_;
};

Json details(const TraceCall &call)
{
    Json args = {{"bytes", call.bytes}, {"memory", call.memory}, {"algorithm", call.algorithm},
                 {"path", call.path},   {"rank", call.rank},     {"ranks", call.ranks}};
    if (!call.op.empty()) {
        args["op"] = call.op;
        args["kind"] = call.kind;
    }
    if (call.chunk_bytes != 0) {
        args["chunk_bytes"] = call.chunk_bytes;
    }
    if (!call.tag.empty()) {
        args["tag"] = call.tag;
    }
    if (!call.staged.empty()) {
        args["staged"] = call.staged;
    }
    if (call.failed) {
        args["failed"] = true;
    }
    return args;
}

void add_process(const TraceProcess &process, std::uint64_t number,
                 const std::vector<std::optional<double>> &waits, Events &events)
{
    Threads threads;
    events.name("process_name", number, 0, "rank " + std::to_string(process.rank));
    for (std::size_t c = 0; c < process.calls.size(); ++c) {
        const TraceCall &call = process.calls[c];
        const auto [thread, start_s] = threads.of(call);
        const double seconds = std::max(call.end_s() - start_s, 0.0);
        events.span(call.call + " " + print_bytes(call.bytes) + " " + call.algorithm, call.path,
                    number, thread, start_s, seconds, details(call));
        if (waits[c] && *waits[c] >= kClockS && *waits[c] <= seconds) {
            events.span("wait", "wait", number, thread, start_s, *waits[c], {});
            events.span("work", "work", number, thread, start_s + *waits[c], seconds - *waits[c],
                        {});
        }
    }
    for (std::size_t t = 0; t < threads.names().size(); ++t) {
        events.name("thread_name", number, static_cast<int>(t) + 1, threads.names()[t]);
    }
}

} // namespace

std::string print_perfetto(const TraceJob &job)
{
    const auto waits = find_waits(job, find_gatherings(job).found);
    Events events(job.first_s);
    for (std::size_t p = 0; p < job.processes.size(); ++p) {
        add_process(job.processes[p], p, waits[p], events);
    }
    return events.text();
}

} // namespace hetcoll
