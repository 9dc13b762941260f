// The network adapters of a node as one more way between its ranks, in addition to the links
// between the GPUs and the one through host memory: Open MPI's messages between processes of a node
// never take it. coll_hetcoll_adapters allows it, and it serves a communicator of one node if all
// of its ranks have tried it. Messages leave from slots of device memory and land in such.
#pragma once

#include "engine/communicator/carrier.h"
#include "engine/process/message_trial.h"
#include "engine/process/process.h"
#include "transport/adapter_messages.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace hetcoll {

class Adapters final : public Carrier {
public:
    // Where a rank is reached: plain data, which ranks tell each other.
    struct Address {
        std::uint16_t bytes = 0;
        std::array<std::byte, AdapterMessages::kMostAddressBytes> text{};
    };

    // Opens this rank's, whose GPU is the device's, by the adapter that the options name. The pool
    // outlives it.
    static Result<std::unique_ptr<Adapters>> create(Pool &pool,
                                                    const std::shared_ptr<Device> &device,
                                                    const AdapterMessages::Options &options);
    ~Adapters() override;

    [[nodiscard]] Address address() const;
    // addresses[r]: of rank r. Then a message goes around all ranks, which step until it has.
    Status start_trial(std::span<const Address> addresses, int rank);
    // Nothing: step again. False, too, if nothing has come for kMostTrialNs.
    [[nodiscard]] std::optional<bool> step_trial();
    // All ranks have said yes.
    void end_trial() noexcept { trial_.reset(); }

    void progress() noexcept override;
    void abandon() noexcept override;
    [[nodiscard]] std::string problem() const override;

private:
    static constexpr std::uint64_t kMostTrialNs = 10'000'000'000;

    Adapters(Pool &pool, std::shared_ptr<Device> device, std::unique_ptr<DeviceBounce> slots,
             std::unique_ptr<AdapterMessages> messages);

    Pool &pool_;
    std::shared_ptr<Device> device_;
    std::unique_ptr<DeviceBounce> bounce_; // before the messages, which have registered its slots
    std::unique_ptr<MessageTrial> trial_;
    std::unique_ptr<AdapterMessages> messages_;
    std::uint64_t trial_ends_ns_ = 0;
};

} // namespace hetcoll
