#include "engine/process/direct_probe.h"

#include "base/lost.h"

#include <utility>

namespace hetcoll {

DirectMessages::DirectMessages(Contexts &contexts, const Log &log) noexcept
    : contexts_(contexts), log_(log)
{
}

DirectMessages::~DirectMessages() { lose(std::move(trial_)); }

void DirectMessages::offer(const hetcoll_p2p &self, int tag) noexcept
{
    const std::lock_guard lock(offering_);
    if (answer_.load(std::memory_order_relaxed) == Answer::kNotOffered) {
        self_ = self;
        tag_ = tag;
        answer_.store(Answer::kUnknown, std::memory_order_release);
    }
}

bool DirectMessages::has_tried(const PointerInfo &pointer)
{
    if (known()) {
        return true;
    }
    const auto device = contexts_.device_of(pointer);
    if (device.ok()) { // without a lock: messages make others run
        step(*device);
    }
    return !device.ok() || known();
}

void DirectMessages::step(const std::shared_ptr<Device> &device)
{
    if (stepping_.exchange(true, std::memory_order_acquire)) {
        return;
    }
    const struct End { // memory may run out in a step
        std::atomic<bool> &stepping;
        ~End() { stepping.store(false, std::memory_order_release); }
    } end{stepping_};
    if (!known()) {
        const MessageTrial::Answer answer = step_trial(device);
        if (answer != MessageTrial::Answer::kUnknown) {
            const bool carry = answer == MessageTrial::Answer::kYes;
            log(log_, 1, "hetcoll: Open MPI's messages %s device memory",
                carry ? "carry" : "do not carry");
            answer_.store(carry ? Answer::kYes : Answer::kNo, std::memory_order_release);
        }
    }
}

MessageTrial::Answer DirectMessages::step_trial(const std::shared_ptr<Device> &device)
{
    if (trial_ == nullptr) {
        trial_ = std::make_unique<MessageTrial>(device, self_, tag_, 0, 0);
    }
    const MessageTrial::Answer answer = trial_->step();
    if (answer != MessageTrial::Answer::kUnknown && !trial_->has_messages()) {
        trial_.reset();
    }
    return answer;
}

} // namespace hetcoll
