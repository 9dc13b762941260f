#include "tools/tune_jobs.h"

#include "measure/own_path.h"
#include "measure/progress.h"
#include "tools/tune_line.h"
#include "tuning/build_table.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <optional>
#include <set>

namespace hetcoll {

namespace {

constexpr double kStartSeconds = 2;  // of a job, until one has run
constexpr double kFinishSeconds = 7; // to end a job that takes too long, and to write the table
// The share of the time for the jobs that measure all; the others repeat what these leave
// undecided.
constexpr double kShareOfAll = 0.7;
constexpr double kShortestRepeat = 2; // seconds to measure

// The findings of the jobs of one kind.
struct Measured {
    JobKind kind;
    std::vector<Sample> samples{};
};

struct Job {
    Measured *measured;
    int repetition;
    std::string sizes, algorithms;
};

std::string describe(const TuneOptions &options, const Job &job)
{
    const JobKind &kind = job.measured->kind;
    const bool repeats = job.repetition >= options.repetitions;
    return std::to_string(kind.ranks) + " ranks on " + std::to_string(kind.nodes) +
           (kind.nodes == 1 ? " node" : " nodes") + ", repetition " +
           std::to_string(job.repetition + 1) + (repeats ? " of at most " : " of ") +
           std::to_string(repeats ? options.most_repetitions : options.repetitions);
}

template <class List, class Text> std::string join(const List &list, Text text_of)
{
    std::string text;
    for (const auto &item : list) {
        text += (text.empty() ? "" : ",") + text_of(item);
    }
    return text;
}

ChildCommand command_of(const TuneOptions &options, const Job &job, double seconds,
                        Clock::time_point deadline)
{
    const JobKind &kind = job.measured->kind;
    const int left = static_cast<int>(
        std::chrono::duration_cast<std::chrono::seconds>(deadline - Clock::now()).count());
    ChildCommand command{{options.mpirun, "-n", std::to_string(kind.ranks)}, {}, deadline};
    std::vector<std::string> &words = command.arguments;
    if (kind.nodes > 1 && !options.fake_nodes) {
        words.insert(words.end(),
                     {"--map-by", "ppr:" + std::to_string(kind.ranks / kind.nodes) + ":node"});
    }
    if (kind.ranks > kind.nodes * sysconf(_SC_NPROCESSORS_ONLN) || options.fake_nodes) {
        words.insert(words.end(),
                     {"--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"});
    }
    for (const auto &[name, value] :
         {std::pair{"coll_hetcoll_enable", "1"}, {"coll_hetcoll_tuning_table", "none"}}) {
        words.insert(words.end(), {"--mca", name, value});
    }
    words.insert(words.end(), options.mpirun_options.begin(), options.mpirun_options.end());
    words.insert(words.end(),
                 {own_path(), "worker", "--sizes", job.sizes, "--algorithms", job.algorithms,
                  "--seconds", std::to_string(seconds), "--deadline", std::to_string(left + 2)});
    if (options.fake_nodes) {
        words.insert(words.end(), {"--fake-nodes", std::to_string(kind.nodes)});
    }
    if (job.repetition == 0) {
        words.emplace_back("--verify");
    }
    if (geteuid() == 0) { // make install often is root's, and containers have no other user
        command.environment = {{"OMPI_ALLOW_RUN_AS_ROOT", "1"},
                               {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}};
    }
    return command;
}

// The output of a job.
struct JobOutput {
    std::vector<Sample> samples{};
    std::string problem{}, last_line{};
    // mpirun puts an error between two lines of dashes: the first paragraph of the first such
    // block.
    std::string reason{};
    bool in_block = false, in_reason = false;
};

void read_text(const std::string &line, JobOutput &output)
{
    const bool is_blank = line.find_first_not_of(" \t\r") == std::string::npos;
    const bool is_dashes = !is_blank && line.find_first_not_of("-\r") == std::string::npos;
    if (is_dashes) {
        output.in_block = !output.in_block;
        output.in_reason = output.in_block && output.reason.empty();
    } else if (is_blank) {
        output.in_reason = output.in_reason && output.reason.empty();
    } else if (output.in_reason) {
        output.reason += (output.reason.empty() ? "" : " ") + line;
    } else {
        output.last_line = line;
    }
}

void read_message(const std::string &message, JobOutput &output, ProgressBar &progress)
{
    const auto after = [&](const char *kind) {
        return message.starts_with(kind) ? message.substr(std::string(kind).size()) : "";
    };
    if (const std::optional<Sample> sample = sample_in(after(kSample))) {
        output.samples.push_back(*sample);
    } else if (const std::string sizes = after(kProgress); !sizes.empty()) {
        double done = 0, all = 1;
        if (std::sscanf(sizes.c_str(), "%lf %lf", &done, &all) == 2 && all > 0) {
            progress.show(done / all);
        }
    } else if (const std::string problem = after(kError); !problem.empty()) {
        output.problem = output.problem.empty() ? problem : output.problem;
    }
}

void read_line(const std::string &line, JobOutput &output, ProgressBar &progress)
{
    const std::vector<std::string> messages = messages_in(line);
    for (const std::string &message : messages) {
        read_message(message, output, progress);
    }
    if (messages.empty()) {
        read_text(line, output);
    }
}

Status failure(const TuneOptions &options, const Job &job, const ChildEnd &end,
               const JobOutput &output)
{
    const std::string what = describe(options, job);
    if (end.signal != 0) {
        return error(Errc::kInvalid, "stopped by signal %d", end.signal);
    }
    if (end.timed_out) {
        return error(Errc::kInvalid,
                     "%s: not done within the limit of %.0f s, give a larger --limit", what.c_str(),
                     options.limit_s);
    }
    if (!output.problem.empty()) {
        return error(Errc::kInvalid, "%s", output.problem.c_str());
    }
    const bool exited = WIFEXITED(end.status);
    const std::string &why = output.reason.empty() ? output.last_line : output.reason;
    return error(Errc::kInvalid, "%s: %s ended with %s %d%s%s", what.c_str(),
                 options.mpirun.c_str(), exited ? "status" : "signal",
                 exited ? WEXITSTATUS(end.status) : WTERMSIG(end.status), why.empty() ? "" : ": ",
                 why.c_str());
}

class Runner {
public:
    Runner(const TuneOptions &options, const std::vector<JobKind> &kinds, Clock::time_point start)
        : options_(options), start_(start),
          deadline_(after(std::max(options.limit_s - kFinishSeconds, 1.0))),
          progress_("hetcoll_tune", options.repetitions * static_cast<int>(kinds.size()), true)
    {
        for (const JobKind &kind : kinds) {
            measured_.push_back({kind});
        }
    }

    // Every size and algorithm.
    [[nodiscard]] Status run_all()
    {
        const bool alone = options_.most_repetitions == options_.repetitions;
        const double end_s = std::max(options_.limit_s - kFinishSeconds, 1.0);
        const Clock::time_point end = alone ? deadline_ : after(end_s * kShareOfAll);
        const std::string algorithms =
            join(options_.algorithms, [](const std::string &name) { return name; });
        std::size_t jobs = measured_.size() * static_cast<std::size_t>(options_.repetitions);
        for (int repetition = 0; repetition < options_.repetitions; ++repetition) {
            for (Measured &measured : measured_) {
                const Job job{&measured, repetition, options_.sizes, algorithms};
                const double seconds =
                    std::max(seconds_until(end) / static_cast<double>(jobs--) - start_seconds_,
                             0.1) *
                    0.9;
                JobOutput output;
                const ChildEnd how = run(job, seconds, output);
                if (!how.good() || output.samples.empty()) {
                    return failure(options_, job, how, output);
                }
            }
        }
        return {};
    }

    // Repeats what that leaves undecided, until the time is over: that is not a failure.
    [[nodiscard]] Status run_undecided()
    {
        for (int repetition = options_.repetitions; repetition < options_.most_repetitions;
             ++repetition) {
            const std::vector<Job> jobs = undecided_jobs(repetition);
            progress_.expect(static_cast<int>(jobs.size()));
            std::size_t left =
                jobs.size() * static_cast<std::size_t>(options_.most_repetitions - repetition);
            for (const Job &job : jobs) {
                const double all = seconds_until(deadline_) - start_seconds_;
                if (all < kShortestRepeat) {
                    return {};
                }
                const double seconds =
                    std::max(all / static_cast<double>(left--) - start_seconds_, kShortestRepeat);
                JobOutput output;
                const ChildEnd how = run(job, seconds * 0.9, output);
                if (how.timed_out) {
                    return {};
                }
                if (!how.good()) {
                    return failure(options_, job, how, output);
                }
            }
        }
        return {};
    }

    [[nodiscard]] std::vector<Sample> take_samples()
    {
        std::vector<Sample> all;
        for (Measured &measured : measured_) {
            std::move(measured.samples.begin(), measured.samples.end(), std::back_inserter(all));
        }
        return all;
    }

private:
    [[nodiscard]] Clock::time_point after(double seconds) const
    {
        return start_ +
               std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    }
    [[nodiscard]] static double seconds_until(Clock::time_point end)
    {
        return std::chrono::duration<double>(end - Clock::now()).count();
    }

    [[nodiscard]] std::vector<Job> undecided_jobs(int repetition)
    {
        std::vector<Job> jobs;
        for (Measured &measured : measured_) {
            const Undecided open = undecided(measured.samples);
            if (!open.sizes.empty()) {
                jobs.push_back(
                    {&measured, repetition,
                     join(open.sizes, [](std::int64_t bytes) { return std::to_string(bytes); }),
                     join(open.variants, variant_name)});
            }
        }
        return jobs;
    }

    // Keeps the samples of a job that ended well.
    [[nodiscard]] ChildEnd run(const Job &job, double seconds, JobOutput &output)
    {
        const auto begin = Clock::now();
        progress_.begin_job(describe(options_, job));
        Clock::time_point first_line = begin;
        const ChildEnd end =
            run_child(command_of(options_, job, seconds, deadline_), [&](const std::string &line) {
                first_line = first_line == begin ? Clock::now() : first_line;
                read_line(line, output, progress_);
            });
        start_seconds_ = std::max(start_seconds_,
                                  std::chrono::duration<double>(first_line - begin).count() + 0.5);
        progress_.end_job();
        for (Sample sample : output.samples) {
            sample.job = job.repetition;
            if (end.good()) {
                job.measured->samples.push_back(sample);
            }
        }
        return end;
    }

    const TuneOptions &options_;
    const Clock::time_point start_, deadline_;
    ProgressBar progress_;
    std::vector<Measured> measured_;
    double start_seconds_ = kStartSeconds; // the slowest so far
};

} // namespace

std::vector<JobKind> job_kinds(const TuneOptions &options, int gpus)
{
    std::set<int> ranks(options.ranks.begin(), options.ranks.end());
    if (ranks.empty()) {
        ranks = {2, std::max(gpus, 2)};
        for (int n = 4; n <= gpus && !options.quick; n *= 2) {
            ranks.insert(n);
        }
        if (gpus == 1) {
            ranks.insert(4); // ranks that share it
        }
    }
    std::vector<JobKind> kinds;
    const bool by_node = options.ranks.empty();
    for (const int nodes : options.nodes) {
        for (const int n : ranks) {
            if (by_node) {
                kinds.push_back({n * nodes, nodes});
            } else if (n % nodes == 0) {
                kinds.push_back({n, nodes});
            }
        }
    }
    return kinds;
}

Result<std::vector<Sample>> run_jobs(const TuneOptions &options, const std::vector<JobKind> &kinds,
                                     Clock::time_point start)
{
    Runner runner(options, kinds, start);
    if (Status status = runner.run_all(); !status.ok()) {
        return status;
    }
    if (Status status = runner.run_undecided(); !status.ok()) {
        return status;
    }
    return runner.take_samples();
}

} // namespace hetcoll
