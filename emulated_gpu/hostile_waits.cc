#include "emulated_gpu/hostile_waits.h"

#include "emulated_gpu/calls.h"
#include "emulated_gpu/contexts.h"
#include "emulated_gpu/hostility.h"
#include "emulated_gpu/streams.h"

namespace hetcoll::emulated_gpu {

void may_synchronise()
{
    Context *context = nullptr;
    if (is_hostile(Hostility::kHolds) && usable_context(context) == CUDA_SUCCESS) {
        wait_for_holders(*context);
        if (is_hostile(Hostility::kWaits)) {
            wait_for_device(context->device);
        }
    }
}

void may_synchronise(int device)
{
    if (is_hostile(Hostility::kWaits)) {
        wait_for_device(device);
    }
}

void SubmissionGate::close()
{
    const std::lock_guard lock(mutex_);
    ++closed_;
    count(Counter::kHoldingCalls, 1);
}

void SubmissionGate::open()
{
    const std::lock_guard lock(mutex_);
    if (--closed_ == 0) {
        opened_.notify_all();
    }
}

void SubmissionGate::pass()
{
    std::unique_lock lock(mutex_);
    if (closed_ > 0) {
        count(Counter::kHeldCalls, 1);
        opened_.wait(lock, [this] { return closed_ == 0; });
    }
}

SubmissionsHeld::SubmissionsHeld(Context &context)
    : context_(is_hostile(Hostility::kHolds) ? &context : nullptr)
{
    if (context_ != nullptr) {
        context_->gate.close();
    }
}

SubmissionsHeld::~SubmissionsHeld()
{
    if (context_ != nullptr) {
        context_->gate.open();
    }
}

void wait_for_holders(Context &context)
{
    if (is_hostile(Hostility::kHolds)) {
        context.gate.pass();
    }
}

void wait_for_device_of(Context &context)
{
    const SubmissionsHeld held(context);
    wait_for_device(context.device);
}

} // namespace hetcoll::emulated_gpu
