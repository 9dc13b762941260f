#include "engine/process/direct_probe.h"

#include "base/lost.h"

#include <cstring>
#include <utility>

namespace hetcoll {

// Sends device memory to this process itself, and compares.
class DirectMessages::Trial {
public:
    Trial(std::shared_ptr<Device> device, const hetcoll_p2p &self, int tag)
        : device_(std::move(device)), self_(self), tag_(tag)
    {
    }

    // kNo if the bytes do not arrive, or if a driver or network call fails.
    [[nodiscard]] Answer step();
    // A message may still arrive in the trial's memory.
    [[nodiscard]] bool has_messages() const noexcept
    {
        return send_ != nullptr || receive_ != nullptr;
    }

private:
    enum class Part : std::uint8_t { kStart, kFill, kMessage, kRead };
    static constexpr std::size_t kBytes = 64u << 10; // more than an eager message

    [[nodiscard]] bool make();
    [[nodiscard]] bool start_copy(void *to, const void *from);
    [[nodiscard]] bool start_message();
    [[nodiscard]] Answer test_message();
    [[nodiscard]] Answer wait(Part next, bool started) noexcept
    {
        part_ = next;
        return started ? Answer::kUnknown : Answer::kNo;
    }
    [[nodiscard]] std::byte *device_memory() const noexcept
    {
        return reinterpret_cast<std::byte *>(memory_.get());
    }
    [[nodiscard]] std::byte *host_memory() const noexcept
    {
        return static_cast<std::byte *>(pinned_.get());
    }

    const std::shared_ptr<Device> device_; // first: outlives what was made in it
    const hetcoll_p2p self_;
    const int tag_;
    DeviceMemory memory_; // what is sent, and what is received behind it
    PinnedMemory pinned_; // the same
    StreamHandle stream_;
    EventHandle copied_;
    void *send_ = nullptr, *receive_ = nullptr;
    Part part_ = Part::kStart;
};

DirectMessages::Answer DirectMessages::Trial::step()
{
    if (!device_->is_alive()) {
        return Answer::kNo;
    }
    const ContextScope scope(device_->driver(), device_->context());
    if (scope.result() != CUDA_SUCCESS) {
        return Answer::kNo;
    }
    if (part_ == Part::kStart) {
        return wait(Part::kFill, make() && start_copy(device_memory(), host_memory()));
    }
    if (part_ == Part::kMessage) {
        return test_message();
    }
    const Result<bool> done = device_->is_done(copied_);
    if (!done.ok() || !*done) {
        return done.ok() ? Answer::kUnknown : Answer::kNo;
    }
    if (part_ == Part::kFill) {
        return wait(Part::kMessage, start_message());
    }
    return std::memcmp(host_memory(), host_memory() + kBytes, kBytes) == 0 ? Answer::kYes
                                                                           : Answer::kNo;
}

bool DirectMessages::Trial::make()
{
    auto memory = device_->make_memory(2 * kBytes);
    auto pinned = device_->make_pinned(2 * kBytes);
    auto stream = device_->make_stream();
    auto event = device_->make_event();
    if (!memory.ok() || !pinned.ok() || !stream.ok() || !event.ok()) {
        return false;
    }
    memory_ = std::move(*memory);
    pinned_ = std::move(*pinned);
    stream_ = std::move(*stream);
    copied_ = std::move(*event);
    for (std::size_t i = 0; i < kBytes; ++i) {
        host_memory()[i] = static_cast<std::byte>(i * 31 + 7);
    }
    return true;
}

bool DirectMessages::Trial::start_copy(void *to, const void *from)
{
    return device_->copy_async(to, from, kBytes, stream_.get()).ok() &&
           device_->record(copied_, stream_.get()).ok();
}

bool DirectMessages::Trial::start_message()
{
    return self_.irecv(self_.context, device_memory() + kBytes, kBytes, 0, tag_, &receive_) == 0 &&
           self_.isend(self_.context, device_memory(), kBytes, 0, tag_, &send_) == 0;
}

DirectMessages::Answer DirectMessages::Trial::test_message()
{
    for (void **const request : {&send_, &receive_}) {
        const int state = *request != nullptr ? self_.test(self_.context, request) : 1;
        if (state == 0) {
            return Answer::kUnknown;
        }
        *request = nullptr;
        if (state < 0) {
            return Answer::kNo;
        }
    }
    return wait(Part::kRead, start_copy(host_memory() + kBytes, device_memory() + kBytes));
}

DirectMessages::DirectMessages() = default;

DirectMessages::~DirectMessages() { lose(std::move(trial_)); }

void DirectMessages::offer(const hetcoll_p2p &self, int tag) noexcept
{
    if (answer_.load(std::memory_order_relaxed) == Answer::kNotOffered) {
        self_ = self;
        tag_ = tag;
        answer_.store(Answer::kUnknown, std::memory_order_release);
    }
}

void DirectMessages::step(const std::shared_ptr<Device> &device, const Log &log)
{
    if (stepping_.exchange(true, std::memory_order_acquire)) {
        return;
    }
    const struct End { // memory may run out in a step
        std::atomic<bool> &stepping;
        ~End() { stepping.store(false, std::memory_order_release); }
    } end{stepping_};
    if (!known()) {
        const Answer answer = step_trial(device);
        if (answer != Answer::kUnknown) {
            hetcoll::log(log, 1, "hetcoll: Open MPI's messages %s device memory",
                         answer == Answer::kYes ? "carry" : "do not carry");
        }
        answer_.store(answer, std::memory_order_release);
    }
}

DirectMessages::Answer DirectMessages::step_trial(const std::shared_ptr<Device> &device)
{
    if (trial_ == nullptr) {
        trial_ = std::make_unique<Trial>(device, self_, tag_);
    }
    const Answer answer = trial_->step();
    if (answer != Answer::kUnknown && !trial_->has_messages()) {
        trial_.reset();
    }
    return answer;
}

} // namespace hetcoll
