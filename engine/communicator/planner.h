// Which way a communicator's calls go, and what runs them: who reaches whose memory, the choice
// between algorithms, their schedules, the vectors that ranks map, the executor.
#pragma once

#include "engine/communicator/aggregation.h"
#include "engine/communicator/agreed_settings.h"
#include "engine/communicator/chooser.h"
#include "engine/communicator/executor.h"
#include "engine/communicator/mapped_call.h"
#include "engine/communicator/peers.h"
#include "engine/communicator/schedules.h"
#include "engine/meeting/node_group.h"
#include "engine/process/process.h"

#include <memory>

namespace hetcoll {

class Planner {
public:
    // All outlive it. `agreed` may change before the first choice.
    Planner(Process &process, NodeGroup &group, const AgreedSettings &agreed);

    [[nodiscard]] Peers &peers() noexcept { return peers_; }
    [[nodiscard]] Aggregation &aggregation() noexcept { return aggregation_; }
    [[nodiscard]] Chooser &chooser() noexcept { return chooser_; }
    [[nodiscard]] Schedules &schedules() noexcept { return schedules_; }
    // A communicator runs one operation at a time, so these are the current one's, made by the
    // first that needs them.
    [[nodiscard]] MappedCall &mapped()
    {
        if (mapped_ == nullptr) {
            mapped_ = std::make_unique<MappedCall>(process_, group_, peers_);
        }
        return *mapped_;
    }
    [[nodiscard]] Executor &executor()
    {
        if (executor_ == nullptr) {
            executor_ = std::make_unique<Executor>();
            executor_->limit_slots(agreed_.facts().slot_bytes);
        }
        return *executor_;
    }

    // A small call's flags said that all ranks have device memory: the next one looks whether its
    // GPUs reach each other. The same on every rank.
    void note_small_device_call() noexcept { small_device_call_ = true; }
    [[nodiscard]] bool should_find_peers() const noexcept
    {
        return small_device_call_ && !peers_.known() && group_.uses_pages();
    }
    // After a peer's memory could not be mapped on some rank, which has said so: that is also why a
    // forced algorithm cannot run.
    void give_up_mapping() noexcept
    {
        peers_.give_up_mapping();
        chooser_.expect_no_mapping();
    }
    // After a driver error that all ranks have been told of.
    void forget_peers() noexcept;
    // A rank works on another device than its peers know, as all have been told.
    void find_peers_anew() noexcept
    {
        peers_.count_move();
        forget_peers();
    }
    // No rank is waited for any more: carriers other than Open MPI end.
    void abandon() noexcept
    {
        aggregation_.leave();
        peers_.abandon();
    }

private:
    Process &process_;
    NodeGroup &group_;
    const AgreedSettings &agreed_;
    Peers peers_;
    std::unique_ptr<MappedCall> mapped_;
    Aggregation aggregation_;
    Chooser chooser_;
    Schedules schedules_;
    std::unique_ptr<Executor> executor_;
    bool small_device_call_ = false;
};

} // namespace hetcoll
