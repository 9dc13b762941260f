// One communicator's state: who its ranks are, the settings that they agreed on, and what a repeated
// call would otherwise make again.
#pragma once

#include "engine/executor.h"
#include "engine/process.h"
#include "schedule/schedule.h"
#include "tuning/choice.h"

#include <array>
#include <optional>

namespace hetcoll {

class Engine {
public:
    Engine(Process &process, const hetcoll_p2p &p2p, const hetcoll_facts &agreed) noexcept
        : process_(process), p2p_(p2p), agreed_(agreed)
    {
    }

    [[nodiscard]] Process &process() noexcept { return process_; }
    [[nodiscard]] const hetcoll_p2p &p2p() const noexcept { return p2p_; }
    [[nodiscard]] std::size_t small_limit() const noexcept { return agreed_.small_limit; }
    // The same on every rank, because everything that goes in is.
    [[nodiscard]] Choice choice(std::size_t bytes) const noexcept;
    // This rank's schedule, built at first use and kept: it serves every size.
    [[nodiscard]] const Schedule &schedule(Algorithm algorithm);
    // A communicator runs one blocking call at a time.
    [[nodiscard]] Executor &executor() noexcept { return executor_; }

private:
    Process &process_;
    hetcoll_p2p p2p_;
    hetcoll_facts agreed_;
    std::array<std::optional<Schedule>, kAlgorithmCount> schedules_;
    Executor executor_;
};

} // namespace hetcoll
