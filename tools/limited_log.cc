#include "tools/limited_log.h"

namespace hetcoll {
namespace {

constexpr double kMinute = 60;
constexpr int kMostLines = 20; // in a minute

std::string counted(std::uint64_t number, const char *what)
{
    return number == 0 ? "" : ", " + std::to_string(number) + " " + what;
}

} // namespace

void LimitedLog::say(const std::string &line, double now)
{
    if (lines_ == 0 || now - minute_ >= kMinute) {
        minute_ = now;
        lines_ = 0;
    }
    if (lines_ == kMostLines) {
        ++left_out_;
        return;
    }
    ++lines_;
    const std::string more = counted(std::exchange(left_out_, 0), "lines left out before this one");
    to_.write(prefix_ + line + more);
}

void LimitedLog::tell_of(const GuestCounters &guests, double now)
{
    const std::string new_ones =
        counted(guests.wrong_key - last_.wrong_key, "with another key") +
        counted(guests.no_key - last_.no_key, "that sent something else") +
        counted(guests.late - last_.late, "silent for too long") +
        counted(guests.crowded_out - last_.crowded_out, "too many together") +
        counted(guests.no_descriptors - last_.no_descriptors,
                "without a free descriptor (ulimit -n)");
    if (new_ones.empty() || (has_told_ && now - told_ < kMinute)) {
        return;
    }
    has_told_ = true;
    told_ = now;
    last_ = guests;
    say("connections that were not let in: " + new_ones.substr(2), now);
}

} // namespace hetcoll
