// What a process has once, from the component's start to its end: what the user has set, who and
// where the process is, the CUDA driver, and the parts that its communicators share. Nothing of it
// needs a GPU before a call does. Thread safe.
#pragma once

#include "base/log.h"
#include "base/status.h"
#include "device/nvtx.h"
#include "engine/process/aggregator_list.h"
#include "engine/process/contexts.h"
#include "engine/process/counters.h"
#include "engine/process/cpu_views.h"
#include "engine/process/direct_probe.h"
#include "engine/process/frame_memory.h"
#include "engine/process/known_prices.h"
#include "engine/process/memory_reserve.h"
#include "engine/process/notices.h"
#include "engine/process/patience.h"
#include "engine/process/pool.h"
#include "engine/process/settings.h"
#include "engine/process/sharing.h"
#include "engine/process/topology_file.h"
#include "engine/process/trace.h"
#include "engine/process/user_ops.h"
#include "engine/types/facts.h"
#include "engine/types/settings.h"
#include "machine/rank_shares.h"
#include "pointer_cache/pointer_cache.h"
#include "topology_probe/probe.h"
#include "transport/node_identity.h"
#include "transport/shm_budget.h"
#include "tuning/table_file.h"

#include <atomic>
#include <memory>
#include <optional>
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
    [[nodiscard]] const Log &log() const noexcept { return log_; }
    // One rank per node logs what concerns all of its ranks alike.
    [[nodiscard]] const Log &node_log() const noexcept { return node_log_; }
    [[nodiscard]] const NodeIdentity &identity() const noexcept { return identity_; }
    // coll_hetcoll_node is set: nodes are what the user says.
    [[nodiscard]] bool has_node_word() const noexcept { return has_node_word_; }
    // What other processes are told of it: found out once, because ranks decide by each other's
    // facts, and the program may change what they come from.
    [[nodiscard]] const hetcoll_facts &facts() const noexcept { return facts_; }

    [[nodiscard]] Counters &counters() noexcept { return counters_; }
    [[nodiscard]] Notices &notices() noexcept { return notices_; }
    // With the call that Open MPI serves now: with one at a time.
    [[nodiscard]] Patience &patience() noexcept { return patience_; }
    [[nodiscard]] PointerCache &pointers() noexcept { return *pointers_; }
    [[nodiscard]] Contexts &contexts() noexcept { return contexts_; }
    [[nodiscard]] Pool &pool() noexcept { return pool_; }
    [[nodiscard]] DirectMessages &direct_messages() noexcept { return direct_messages_; }
    // Made at first use; requires that the driver is loaded.
    [[nodiscard]] Sharing &sharing() { return sharing_.get(); }
    [[nodiscard]] const NodeSharing &node_sharing() const noexcept { return sharing_; }
    [[nodiscard]] FrameMemory &frame_memory() noexcept { return frame_memory_; }
    [[nodiscard]] ShmBudget &shm_budget() noexcept { return shm_budget_; }
    [[nodiscard]] CpuViews &cpu_views() noexcept { return cpu_views_; }
    [[nodiscard]] const Nvtx &nvtx() const noexcept { return nvtx_; }
    // Null: none.
    [[nodiscard]] Trace *trace() noexcept { return trace_.get(); }
    // The user-defined operations that it knows; null: none.
    [[nodiscard]] UserOps *user_ops() noexcept { return user_ops_.get(); }
    // The tuning table; null: none.
    [[nodiscard]] const TableFile *table() const noexcept { return table_ ? &*table_ : nullptr; }
    [[nodiscard]] KnownPrices &prices() noexcept { return prices_; }
    // What coll_hetcoll_topology_file names; null: none. Read at first use.
    [[nodiscard]] Result<const Topology *> topology_file() { return topology_file_.get(); }
    // coll_hetcoll_adapters; empty: none.
    [[nodiscard]] const std::string &adapter_transports() const noexcept
    {
        return adapter_transports_;
    }
    // Null: none.
    [[nodiscard]] const AggregatorList *aggregators() const noexcept
    {
        return aggregators_ ? &*aggregators_ : nullptr;
    }
    // The ranks of some communicator could not join the aggregators.
    void note_aggregators_failed() noexcept { aggregators_failed_ = true; }
    [[nodiscard]] bool aggregators_failed() const noexcept { return aggregators_failed_; }

    // The descriptor of a communicator's control page may stay open for hetcoll_info --live, if not
    // too many do: true at most kMostOpenPages times more often than close_page() was called.
    [[nodiscard]] bool may_leave_page_open() noexcept
    {
        if (open_pages_.fetch_add(1, std::memory_order_relaxed) < kMostOpenPages) {
            return true;
        }
        close_page();
        return false;
    }
    void close_page() noexcept { open_pages_.fetch_sub(1, std::memory_order_relaxed); }

    // This rank's place in the machine, in the context of a device pointer.
    [[nodiscard]] Result<RankRecord> probe(const PointerInfo &pointer);
    [[nodiscard]] bool is_emulated() const noexcept { return driver_.is_emulated(); }
    // The newest CUDA that the driver serves: "13.0". Requires a device pointer.
    [[nodiscard]] std::string driver_version() const;

    static constexpr int kMostOpenPages = 32; // of the 1024 descriptors that a process usually has

private:
    Process(const hetcoll_settings &settings, ParsedSettings parsed);
    [[nodiscard]] hetcoll_facts find_facts() const noexcept;

    MemoryReserve reserve_;
    FrameMemory frame_memory_;
    hetcoll_settings settings_;
    ParsedSettings parsed_;
    Log log_, node_log_;
    NodeIdentity identity_;
    bool has_node_word_;
    std::string adapter_transports_, net_devices_;
    std::optional<AggregatorList> aggregators_;
    std::atomic<bool> aggregators_failed_{false};
    std::atomic<int> open_pages_{0};
    std::unique_ptr<Trace> trace_;
    std::unique_ptr<UserOps> user_ops_; // null: coll_hetcoll_recognize_ops is 0
    bool may_have_gpu_;
    std::optional<TableFile> table_;
    KnownPrices prices_;
    TopologyFile topology_file_;
    Notices notices_;
    Patience patience_{settings_.report_after};
    Counters counters_;
    ShmBudget shm_budget_;
    Nvtx nvtx_;
    DriverLibrary driver_;
    MachineProbe machine_;
    std::unique_ptr<PointerCache> pointers_;
    Contexts contexts_;
    DirectMessages direct_messages_;
    Pool pool_;
    NodeSharing sharing_;
    CpuViews cpu_views_;
    hetcoll_facts facts_; // of all above
};

} // namespace hetcoll
