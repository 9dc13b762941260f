// Who is missing: what a rank says that has waited long for others, or for its own GPU. It finds
// out from the control page and /proc, and asks nobody; a rank that does not come says nothing.
#pragma once

#include "base/log.h"
#include "engine/communicator/executor.h"
#include "engine/meeting/meeting.h"
#include "engine/meeting/node_group.h"

#include <cstdint>
#include <string>
#include <vector>

namespace hetcoll {

class Watch {
public:
    // Log and group outlive it. host_names[n] is node n's. after_s: coll_hetcoll_report_after.
    Watch(const Log &to, NodeGroup &group, std::vector<std::string> host_names, int after_s);

    // A call begins.
    void begin() noexcept
    {
        polls_left_ = kPollsPerLook;
        since_ns_ = 0;
    }
    // Once for every look at an unfinished call. Now and then it reads the clock: true when the
    // call has not `moved` for so long that it is time to say why, once, and at four and sixteen
    // times that.
    [[nodiscard]] bool is_due(std::uint64_t moves) noexcept
    {
        return --polls_left_ == 0 && look(moves);
    }

    // Why the call waits. Each writes a line, or leaves that to another rank.
    void say_meeting(const Meeting &meeting) noexcept;
    void say_first_call(); // for the control pages
    void say_schedule(const Executor &executor);
    void say_own_gpu(const char *what); // "a copy"

private:
    // A look costs some 25 ns. But where processes share processors, each poll may take long: then
    // every poll looks.
    static constexpr unsigned kPollsPerLook = 32;
    static constexpr std::uint64_t kSlowLookNs = 1'000'000;

    [[nodiscard]] bool look(std::uint64_t moves) noexcept;
    // True for one rank of the node. Without a page for every one.
    [[nodiscard]] bool speaks() noexcept;
    [[nodiscard]] std::string missing_ranks(int &there) const;
    [[nodiscard]] std::string ranks_at_rest() const;
    [[nodiscard]] std::string rank_text(int rank) const;
    void say_missing(const Meeting &meeting);
    void say_exchange(const Exchange &exchange, const std::vector<int> *ranks);
    void say(const std::string &what);

    const Log &log_;
    NodeGroup &group_;
    const std::vector<std::string> host_names_;
    const std::uint64_t after_ns_;
    unsigned polls_left_ = kPollsPerLook;                 // until the next look
    std::uint64_t since_ns_ = 0, now_ns_ = 0, moves_ = 0; // since_ns_ 0: not looked yet
    unsigned said_ = 0;                                   // lines about this wait
};

} // namespace hetcoll
