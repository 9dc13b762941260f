// Whether Open MPI's messages carry device memory, where it says that they do: a message of this
// process to itself shows it. A call that would send such memory waits for the answer as it waits
// for all else, and lets others run: making messages advance steps the operations of other
// communicators, which may wait for the same answer.
#pragma once

#include "base/log.h"
#include "base/p2p.h"
#include "device/device.h"
#include "engine/process/contexts.h"
#include "engine/process/message_trial.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

namespace hetcoll {

class DirectMessages {
public:
    // Both outlive it.
    DirectMessages(Contexts &contexts, const Log &log) noexcept;
    ~DirectMessages();
    DirectMessages(const DirectMessages &) = delete;
    DirectMessages &operator=(const DirectMessages &) = delete;

    // Open MPI says so: to be tried through `self`, whose only rank is 0. Only the first offer
    // counts. Thread safe, as the rest.
    void offer(const hetcoll_p2p &self, int tag) noexcept;
    // Whether it is known if they do; else ask again later. Tried in the context of the first
    // pointer.
    [[nodiscard]] bool has_tried(const PointerInfo &pointer);
    // False, too, until it is known.
    [[nodiscard]] bool work() const noexcept
    {
        return answer_.load(std::memory_order_acquire) == Answer::kYes;
    }

private:
    enum class Answer : std::uint8_t { kNotOffered, kUnknown, kNo, kYes };

    [[nodiscard]] bool known() const noexcept
    {
        return answer_.load(std::memory_order_acquire) != Answer::kUnknown;
    }
    // Goes on with the process's one trial, which the first call of this starts on that device. It
    // does nothing while another call does so, further up this thread's stack too.
    void step(const std::shared_ptr<Device> &device);
    [[nodiscard]] MessageTrial::Answer step_trial(const std::shared_ptr<Device> &device);

    Contexts &contexts_;
    const Log &log_;
    std::mutex offering_;
    std::atomic<Answer> answer_{Answer::kNotOffered};
    std::atomic<bool> stepping_{false}; // whoever set it owns the trial
    hetcoll_p2p self_{};
    int tag_ = 0;
    std::unique_ptr<MessageTrial> trial_;
};

} // namespace hetcoll
