#include "engine/process/message_trial.h"

#include <cstring>
#include <utility>

namespace hetcoll {

MessageTrial::Answer MessageTrial::step()
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

bool MessageTrial::make()
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

bool MessageTrial::start_copy(void *to, const void *from)
{
    return device_->copy_async(to, from, kBytes, stream_.get()).ok() &&
           device_->record(copied_, stream_.get()).ok();
}

bool MessageTrial::start_message()
{
    return p2p_.irecv(p2p_.context, device_memory() + kBytes, kBytes, from_, tag_, &receive_) ==
               0 &&
           p2p_.isend(p2p_.context, device_memory(), kBytes, to_, tag_, &send_) == 0;
}

MessageTrial::Answer MessageTrial::test_message()
{
    for (void **const request : {&send_, &receive_}) {
        const int state = *request != nullptr ? p2p_.test(p2p_.context, request) : 1;
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

} // namespace hetcoll
