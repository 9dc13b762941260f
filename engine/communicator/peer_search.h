// How the ranks of a communicator find out about each other's GPUs: every rank's record of its GPU
// goes to all, and the ranks of a node try to read each other's memory, and to reach each other
// through the network adapters, if they may. Then they price what can run there, each rank some of
// the sizes. Lives until they know.
#pragma once

#include "engine/communicator/known_peers.h"
#include "engine/communicator/reach_trial.h"
#include "engine/meeting/meeting.h"
#include "engine/process/process.h"
#include "machine/placed.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace hetcoll {

class PeerSearch {
public:
    // The same on all ranks: memory may be mapped; all have read the same tuning table; adapters
    // may be used on a node; what is known of the racks.
    struct Allowed {
        bool mapping, tables, adapters = false;
        Racks racks{};
    };

    // Process, group and messages outlive it. `device` is this rank's.
    PeerSearch(Process &process, NodeGroup &group, Allowed allowed, std::shared_ptr<Device> device,
               Messages &messages, int tag);
    PeerSearch(const PeerSearch &) = delete;
    PeerSearch &operator=(const PeerSearch &) = delete;

    // `pointer` is memory of the device. All ranks start.
    void start(const PointerInfo &pointer);
    [[nodiscard]] Progress step();
    [[nodiscard]] int code() const noexcept; // requires kFailed
    // Once, after kDone.
    [[nodiscard]] std::unique_ptr<KnownPeers> take() noexcept { return std::move(taken_); }
    // Whatever it has found so far.
    [[nodiscard]] const KnownPeers &found() const noexcept { return found_; }

private:
    enum class Part : std::uint8_t {
        kRecords,
        kOffer,
        kOffered,
        kTry,
        kTried,
        kAddresses,
        kMessage,
        kMessaged,
        kPrices,
        kDone
    };
    struct Records { // of all ranks, or of all sizes, with the flags of an exchange by OR
        std::vector<std::byte> mine, theirs;
    };

    [[nodiscard]] bool exchanges() const noexcept
    {
        return part_ == Part::kRecords || part_ == Part::kAddresses || part_ == Part::kPrices;
    }
    template <class Record> void exchange_records(const Record &own, Flags flags);
    template <class Record> [[nodiscard]] std::vector<Record> take_records();
    // This rank's bytes, which lie so far within all.
    void exchange(std::span<const std::byte> own, std::size_t offset, std::size_t bytes,
                  Flags flags);
    [[nodiscard]] RankRecord own_record(const PointerInfo &pointer);
    void ignore_file(const Status &why);
    [[nodiscard]] Result<Placement> merge(std::vector<RankRecord> &records);
    [[nodiscard]] Progress step_part();
    void begin_next();
    void meet(Part part, Flags flags);
    void merge();
    void conclude(Mapping mapping);
    void find_table();
    [[nodiscard]] bool may_try_adapters() const;
    void start_adapters();
    void try_adapters();
    [[nodiscard]] bool message_has_come();
    void take_adapters_if(bool all);
    void start_prices();
    [[nodiscard]] bool add_own_prices(PriceTable &table);
    void take_prices();

    Process &process_;
    Gpus &gpus_;
    TuningInputs &tuning_;
    NodeGroup &group_;
    const Allowed allowed_;
    std::shared_ptr<Device> device_;
    Messages &messages_;
    const int tag_;
    Part part_ = Part::kRecords;
    std::unique_ptr<Records> records_; // of the exchange that runs
    Exchange exchange_;
    Meeting meeting_;
    Status adapters_problem_; // why this rank has none
    Status problem_;          // why this rank has no record, or nobody a placement
    std::optional<Placement> placement_;
    std::optional<ReachTrial> trial_; // nothing: no memory is mapped
    std::optional<PricedMachine> priced_;
    std::unique_ptr<KnownPeers> taken_ = std::make_unique<KnownPeers>();
    KnownPeers &found_ = *taken_;
};

} // namespace hetcoll
