// How far a tool is, on stderr: a bar on a terminal, else a line a job.
#pragma once

#include <chrono>
#include <string>

namespace hetcoll {

class ProgressBar {
public:
    // `lines`: also where stderr is no terminal.
    ProgressBar(std::string tool, int jobs, bool lines);
    ~ProgressBar(); // takes the bar away
    ProgressBar(const ProgressBar &) = delete;
    ProgressBar &operator=(const ProgressBar &) = delete;

    // Takes the bar away until it is shown again: before other output.
    void hide() const;
    void expect(int more_jobs) { jobs_ += more_jobs; }
    void begin_job(const std::string &what);
    void show(double part_of_job); // 0 to 1
    void end_job() { ++done_; }

private:
    [[nodiscard]] std::string time_left(double part) const;

    using Clock = std::chrono::steady_clock;

    const std::string tool_;
    int jobs_;
    const bool bar_, lines_;
    const Clock::time_point start_ = Clock::now();
    int done_ = 0;
    std::string what_;
};

} // namespace hetcoll
