// Who is missing: what a rank says that has waited long for others, or for its own GPU. It finds
// out from the control page and /proc, and asks nobody; a rank that does not come says nothing.
#pragma once

#include "base/log.h"
#include "engine/communicator/executor.h"
#include "engine/meeting/meeting.h"
#include "engine/meeting/node_group.h"
#include "engine/process/patience.h"

#include <cstdint>
#include <string>
#include <vector>

namespace hetcoll {

class Watch {
public:
    // Log and group outlive it. host_names[n] is node n's. after_s: coll_hetcoll_report_after.
    Watch(const Log &to, NodeGroup &group, std::vector<std::string> host_names, int after_s);

    // A call begins. Null: the function that its signature names.
    void begin(const char *mpi_name) noexcept
    {
        mpi_name_ = mpi_name;
        patience_.begin();
    }
    // Once for every look at an unfinished call. Now and then it reads the clock: true when the
    // call has not `moved` for long enough that it is time to say why, once, and at four and
    // sixteen times that.
    [[nodiscard]] bool is_due(std::uint64_t moves) noexcept
    {
        return patience_.polls() && look(patience_, moves);
    }
    // The same for a call that Open MPI serves, with the process's patience: says itself why it
    // waits.
    void look_in_open_mpi(Patience &patience) noexcept
    {
        if (patience.polls()) {
            const auto call = group_.handed_on().tells()
                                  ? group_.handed_on().last_of(group_.local_rank())
                                  : std::nullopt;
            const std::uint64_t number = call ? call->number() : 0;
            if (look(patience, std::uint64_t{group_.all().comm_id} << 32 | number) && call) {
                say_in_open_mpi(patience, *call);
            }
        }
    }

    // Why the call waits. Each writes a line, or leaves that to another rank.
    void say_meeting(const Meeting &meeting) noexcept;
    void say_first_call(); // for the control pages
    void say_schedule(const Executor &executor);
    void say_own_gpu(const char *what); // "a copy"

private:
    [[nodiscard]] bool look(Patience &patience, std::uint64_t moves) noexcept;
    // True for one rank of the node. Without a page for every one.
    [[nodiscard]] bool speaks() noexcept;
    [[nodiscard]] std::string missing_rank(int local_rank, std::uint32_t arrived) const;
    [[nodiscard]] std::string missing_ranks(int &there) const;
    [[nodiscard]] std::string ranks_elsewhere(const CallSignature &call, int &there) const;
    [[nodiscard]] std::string ranks_at_rest() const;
    [[nodiscard]] std::string rank_text(int rank) const;
    void say_missing(const Meeting &meeting);
    void say_exchange(const Exchange &exchange, const std::vector<int> *ranks);
    void say(const std::string &what);
    void say_in_open_mpi(const Patience &patience, const CallSignature &call) noexcept;

    const Log &log_;
    NodeGroup &group_;
    const char *mpi_name_ = nullptr;
    const std::vector<std::string> host_names_;
    Patience patience_;
};

} // namespace hetcoll
