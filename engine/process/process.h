// State of a process, from the component's start to its end: what the user has set, who and
// where the process is, the CUDA driver, and the parts that its communicators share. Nothing of it
// needs a GPU before a call does. Thread safe.
#pragma once

#include "base/log.h"
#include "base/status.h"
#include "device/nvtx.h"
#include "engine/process/aggregator_list.h"
#include "engine/process/counters.h"
#include "engine/process/frame_memory.h"
#include "engine/process/gpus.h"
#include "engine/process/memory_reserve.h"
#include "engine/process/notices.h"
#include "engine/process/open_pages.h"
#include "engine/process/patience.h"
#include "engine/process/place.h"
#include "engine/process/settings.h"
#include "engine/process/trace.h"
#include "engine/process/tuning_inputs.h"
#include "engine/process/user_ops.h"
#include "engine/types/facts.h"
#include "engine/types/settings.h"
#include "machine/rank_shares.h"
#include "transport/shm_budget.h"

#include <memory>
#include <string>

namespace hetcoll {

class Process {
public:
    // An error names the setting that is wrong and what it may be.
    static Result<std::unique_ptr<Process>> create(const hetcoll_settings &settings);

    // Without the strings, which were the caller's.
    [[nodiscard]] const hetcoll_settings &settings() const noexcept { return settings_; }
    // coll_hetcoll_shares.
    [[nodiscard]] const ShareSetting &shares() const noexcept { return parsed_.shares; }
    // coll_hetcoll_adapters; empty: none.
    [[nodiscard]] const std::string &adapter_transports() const noexcept
    {
        return parsed_.adapters;
    }
    [[nodiscard]] const Log &log() const noexcept { return log_; }
    // One rank per node logs what concerns all of its ranks alike.
    [[nodiscard]] const Log &node_log() const noexcept { return node_log_; }
    [[nodiscard]] Notices &notices() noexcept { return notices_; }
    [[nodiscard]] Place &place() noexcept { return place_; }
    // The facts that other processes are told: found out one time, because ranks decide by each
    // other's facts, and the program may change what they come from.
    [[nodiscard]] const hetcoll_facts &facts() const noexcept { return facts_; }

    [[nodiscard]] Counters &counters() noexcept { return counters_; }
    // With the call that Open MPI serves now: with one at a time.
    [[nodiscard]] Patience &patience() noexcept { return patience_; }
    [[nodiscard]] const Nvtx &nvtx() const noexcept { return nvtx_; }
    // Null: none.
    [[nodiscard]] Trace *trace() noexcept { return trace_.get(); }

    [[nodiscard]] Gpus &gpus() noexcept { return gpus_; }
    [[nodiscard]] FrameMemory &frame_memory() noexcept { return frame_memory_; }
    [[nodiscard]] ShmBudget &shm_budget() noexcept { return shm_budget_; }
    [[nodiscard]] OpenPages &open_pages() noexcept { return open_pages_; }
    [[nodiscard]] TuningInputs &tuning() noexcept { return tuning_; }
    [[nodiscard]] Aggregators &aggregators() noexcept { return aggregators_; }
    // The user-defined operations that it knows; null: none.
    [[nodiscard]] UserOps *user_ops() noexcept { return user_ops_.get(); }

private:
    Process(const hetcoll_settings &settings, ParsedSettings parsed);
    [[nodiscard]] hetcoll_facts find_facts() noexcept;

    MemoryReserve reserve_;
    FrameMemory frame_memory_;
    hetcoll_settings settings_;
    ParsedSettings parsed_;
    Log log_, node_log_;
    Place place_;
    Aggregators aggregators_;
    OpenPages open_pages_;
    std::unique_ptr<Trace> trace_;
    std::unique_ptr<UserOps> user_ops_; // null: coll_hetcoll_recognize_ops is 0
    bool may_have_gpu_;
    TuningInputs tuning_;
    Notices notices_;
    Patience patience_{settings_.report_after};
    Counters counters_;
    ShmBudget shm_budget_;
    Nvtx nvtx_;
    Gpus gpus_;
    hetcoll_facts facts_; // of all above
};

} // namespace hetcoll
