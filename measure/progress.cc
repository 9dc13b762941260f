#include "measure/progress.h"

#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <utility>

namespace hetcoll {

namespace {

constexpr int kBarWidth = 30;

} // namespace

ProgressBar::ProgressBar(std::string tool, int jobs, bool lines)
    : tool_(std::move(tool)), jobs_(jobs), bar_(isatty(STDERR_FILENO) != 0), lines_(lines && !bar_)
{
}

ProgressBar::~ProgressBar() { hide(); }

void ProgressBar::hide() const
{
    if (bar_) {
        std::fprintf(stderr, "\r\033[K");
    }
}

std::string ProgressBar::time_left(double part) const
{
    const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
    if (part <= 0) {
        return "";
    }
    const long left = std::lround(seconds / part * (1 - part));
    return left < 90 ? ", about " + std::to_string(left) + " s left"
                     : ", about " + std::to_string((left + 30) / 60) + " min left";
}

void ProgressBar::begin_job(const std::string &what)
{
    what_ = what;
    if (lines_) {
        const double part = static_cast<double>(done_) / jobs_;
        std::fprintf(stderr, "%s: job %d of %d: %s%s\n", tool_.c_str(), done_ + 1, jobs_,
                     what.c_str(), time_left(part).c_str());
    }
    show(0);
}

void ProgressBar::show(double part_of_job)
{
    if (!bar_) {
        return;
    }
    const double part = (done_ + part_of_job) / jobs_;
    const int filled = static_cast<int>(part * kBarWidth);
    const std::string bar = std::string(static_cast<std::size_t>(filled), '#') +
                            std::string(static_cast<std::size_t>(kBarWidth - filled), '.');
    std::fprintf(stderr, "\r[%s] %3.0f %%  %s%s\033[K", bar.c_str(), 100 * part, what_.c_str(),
                 time_left(part).c_str());
}

} // namespace hetcoll
