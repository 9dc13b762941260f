// How the ranks of a communicator reach each other's GPUs: where each of them is, what lies
// between, and whose memory a trial could read. Found out by all ranks together, at the first call
// in which all have device memory, and the same on every rank afterwards.
#pragma once

#include "engine/meeting.h"
#include "engine/process.h"
#include "schedule/algorithms.h"
#include "schedule/hierarchical.h"
#include "topology/record.h"
#include "transport/reach_probe.h"
#include "tuning/choice.h"
#include "tuning/rank_trees.h"
#include "tuning/table.h"

#include <memory>
#include <optional>
#include <vector>

namespace hetcoll {

class Peers {
public:
    // Both outlive it. The same on all ranks: memory may be mapped (`ipc`), all have read the same
    // tuning table (`tables`).
    Peers(Process &process, NodeGroup &group, bool ipc, bool tables);
    ~Peers();
    Peers(const Peers &) = delete;
    Peers &operator=(const Peers &) = delete;

    // True once the ranks have found out.
    [[nodiscard]] bool known() const noexcept { return part_ == Part::kDone; }
    // Every rank has device memory: this rank's is `pointer`'s, worked on with `bounce`.
    void start(const PointerInfo &pointer, DeviceBounce &bounce, Messages &messages, int tag);
    [[nodiscard]] Progress step();
    [[nodiscard]] int code() const noexcept { return code_; } // requires kFailed

    // The rest requires known().

    // Whether the device of a call is the one that the ranks were asked about.
    [[nodiscard]] bool is_known_device(const Device &device) const noexcept
    {
        return device_.get() == &device;
    }
    // Whether the two ranks' GPUs read each other's memory. Requires ranks of this node.
    [[nodiscard]] bool reach(int rank, int other) const noexcept;
    // Whether any rank's memory is mapped anywhere. The same on every rank.
    [[nodiscard]] bool maps() const noexcept { return any_reach_; }
    // What can run with all memory shared; kMessageAlgorithms are always among them.
    [[nodiscard]] AlgorithmSet available() const noexcept { return available_; }
    // After a driver error, which all ranks know of: contexts may be gone. They find out anew.
    void forget() noexcept;
    // After a peer's memory could not be mapped on some rank: nobody tries again.
    void give_up_mapping() noexcept;

    // Measured choices for these machines; null: there are none.
    [[nodiscard]] const Table *table() const noexcept { return table_ ? &*table_ : nullptr; }
    [[nodiscard]] const Links &links() const noexcept { return links_; }
    // GB/s of every rank to all others; empty: links are shared in other ways.
    [[nodiscard]] const std::vector<double> &rates() const noexcept { return rates_; }
    [[nodiscard]] int ranks_per_gpu() const noexcept { return ranks_per_gpu_; }
    [[nodiscard]] const Groups &groups() const noexcept { return groups_; }
    [[nodiscard]] const RankTrees &trees() const noexcept { return trees_; }

private:
    enum class Part : std::uint8_t { kStart, kRecords, kOffer, kOffered, kProbe, kProbed, kDone };

    [[nodiscard]] bool share_node() const noexcept;
    void merge();
    void start_offer();
    void begin_meeting(Part part, Flags flags);
    [[nodiscard]] bool probe();
    void conclude(Flags flags);
    void find_links(bool full);
    void find_node_trees();
    void find_table();
    [[nodiscard]] std::vector<int> numbers_of(const PlacedNode &node) const;
    void say_unreachable();

    Process &process_;
    NodeGroup &group_;
    bool ipc_, tables_;
    Part part_ = Part::kStart;
    int code_ = 0;

    Messages *messages_ = nullptr;
    int tag_ = 0;
    std::shared_ptr<Device> device_;
    std::vector<std::byte> mine_, theirs_; // records, for one exchange
    Exchange exchange_;
    Meeting meeting_;
    Status problem_;
    std::unique_ptr<ReachTarget> target_;
    std::unique_ptr<ReachProbe> probe_;
    int probed_ = -1; // local rank that is being tried
    std::uint64_t reached_ = 0;
    Status why_not_; // the first failed trial

    std::optional<Placement> placement_;
    bool any_reach_ = false;
    AlgorithmSet available_ = kMessageAlgorithms;
    Links links_;
    int ranks_per_gpu_ = 1;
    std::vector<double> rates_;
    Groups groups_;
    RankTrees trees_;
    std::optional<Table> table_;
};

} // namespace hetcoll
