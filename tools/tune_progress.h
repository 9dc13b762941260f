// How far hetcoll_tune is, on stderr: a bar on a terminal, else a line a job.
#pragma once

#include "tools/tune_child.h"

#include <string>

namespace hetcoll {

class ProgressBar {
public:
    // `lines`: also where stderr is no terminal.
    ProgressBar(int jobs, bool lines);
    ~ProgressBar(); // takes the bar away
    ProgressBar(const ProgressBar &) = delete;
    ProgressBar &operator=(const ProgressBar &) = delete;

    void expect(int more_jobs) { jobs_ += more_jobs; }
    void begin_job(const std::string &what);
    void show(double part_of_job); // 0 to 1
    void end_job() { ++done_; }

private:
    [[nodiscard]] std::string time_left(double part) const;

    int jobs_;
    const bool bar_, lines_;
    const Clock::time_point start_ = Clock::now();
    int done_ = 0;
    std::string what_;
};

} // namespace hetcoll
