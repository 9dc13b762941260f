// One communicator's state: who its ranks are, the settings that they agreed on, and what a
// repeated call would otherwise make again.
#pragma once

#include "engine/executor.h"
#include "engine/process.h"
#include "schedule/schedule.h"
#include "tuning/choice.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

namespace hetcoll {

class Engine {
public:
    Engine(Process &process, const hetcoll_p2p &p2p, const hetcoll_facts &agreed);
    ~Engine();
    Engine(const Engine &) = delete;
    Engine &operator=(const Engine &) = delete;

    [[nodiscard]] Process &process() noexcept { return process_; }
    [[nodiscard]] const hetcoll_p2p &p2p() const noexcept { return p2p_; }
    [[nodiscard]] std::size_t small_limit() const noexcept { return agreed_.small_limit; }
    // A small call whose buffers are surely host memory on this rank, served without looking any
    // further: programs make thousands of these a second and must not feel hetcoll. The other ranks
    // may have device memory. Nothing if the call is not of this kind.
    [[nodiscard]] std::optional<int> try_host(const hetcoll_call &call) noexcept;
    // The same on every rank, because everything that goes in is.
    [[nodiscard]] Choice choice(std::size_t bytes) const noexcept;
    // This rank's schedule, built at first use and kept: it serves every size.
    [[nodiscard]] const Schedule &schedule(Algorithm algorithm);
    // A communicator runs one blocking call at a time, so these are the current call's.
    [[nodiscard]] Executor &executor() noexcept { return executor_; }
    // For an exchange: this rank's message and another's.
    struct Messages {
        alignas(64) std::byte mine[HETCOLL_MAX_SMALL_LIMIT + Exchange::kFlagBytes];
        alignas(64) std::byte theirs[HETCOLL_MAX_SMALL_LIMIT + Exchange::kFlagBytes];
    };
    [[nodiscard]] Messages &messages() noexcept { return *messages_; }
    // After a network failure: a message may still arrive in them, so they are left to it.
    void abandon_messages() noexcept;

private:
    Process &process_;
    hetcoll_p2p p2p_;
    hetcoll_facts agreed_;
    std::array<std::optional<Schedule>, kAlgorithmCount> schedules_;
    Executor executor_;
    Exchange exchange_; // of try_host()
    std::unique_ptr<Messages> messages_ = std::make_unique<Messages>();
    // Calls served by try_host(). Only this engine writes it, so that it costs no locked
    // instruction.
    std::atomic<std::uint64_t> host_calls_{0};
};

} // namespace hetcoll
