// coll_hetcoll_aggregators and what goes with it.
#pragma once

#include "aggregator/client.h"
#include "base/log.h"
#include "engine/types/settings.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hetcoll {

struct AggregatorList {
    std::vector<Endpoint> endpoints;
    AggregatorKey key;
    std::string rdma{}; // this rank's device
    std::unique_ptr<AggregatorClients> clients{};
    int window = 0;
    std::size_t copy_bytes = 0; // most that a call in place keeps of its input
    std::uint64_t hash = 0;     // of what must be the same on all ranks; never 0
};

// `endpoints` are what the settings name; none: there is no list. Reads the key and loads what
// connects to them. Without one of these there is no list either, and a line in the log: no job
// ends.
[[nodiscard]] std::optional<AggregatorList>
find_aggregators(std::vector<Endpoint> endpoints, const hetcoll_settings &settings, const Log &log);

// A process's, and whether communicators have been able to use them. Thread safe.
class Aggregators {
public:
    explicit Aggregators(std::optional<AggregatorList> list) noexcept : list_(std::move(list)) {}

    // Null: none.
    [[nodiscard]] const AggregatorList *list() const noexcept { return list_ ? &*list_ : nullptr; }
    // The ranks of some communicator could not join them.
    void note_failed() noexcept { failed_ = true; }
    [[nodiscard]] bool have_failed() const noexcept { return failed_; }

private:
    const std::optional<AggregatorList> list_;
    std::atomic<bool> failed_{false};
};

} // namespace hetcoll
