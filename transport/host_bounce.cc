#include "transport/host_bounce.h"

#include "base/spare_memory.h"
#include "cuda_kernels/reduction.h"

#include <cstring>

namespace hetcoll {

Result<std::unique_ptr<HostBounce>> HostBounce::create(std::size_t slot_bytes)
{
    std::unique_ptr<std::byte[]> memory = try_allocate(kBounceSlots * slot_bytes);
    if (memory == nullptr) {
        return error(Errc::kNoMemory, "no host memory for %d landing slots of %zu bytes",
                     kBounceSlots, slot_bytes);
    }
    return std::unique_ptr<HostBounce>(new HostBounce(std::move(memory), slot_bytes));
}

Status HostBounce::divide(int slots, int)
{
    slot_bytes_ = slot_bytes_of(bytes_, slots);
    return {};
}

Status HostBounce::start_read(int slot, const void *from, std::size_t)
{
    source_[slot] = from;
    return {};
}

void *HostBounce::landing(int slot) noexcept { return memory_.get() + slot * slot_bytes_; }

Status HostBounce::start_apply(int slot, const Apply &apply)
{
    void *received = landing(slot);
    const std::size_t bytes = apply.count * element_bytes(apply.kind);
    if (!apply.reduce) {
        std::memcpy(apply.dst, received, bytes);
        return {};
    }
    if (apply.user.reduce != nullptr) { // it writes its second operand
        if (apply.received_first) {
            std::memmove(apply.dst, apply.local, bytes);
            apply.user.reduce(apply.user.context, received, apply.dst, apply.count);
        } else {
            apply.user.reduce(apply.user.context, apply.local, received, apply.count);
            std::memcpy(apply.dst, received, bytes);
        }
        return {};
    }
    const HostReduce reduce = host_reduce(apply.op, apply.kind);
    if (apply.received_first) {
        reduce(apply.dst, received, apply.local, apply.count);
    } else {
        reduce(apply.dst, apply.local, received, apply.count);
    }
    return {};
}

Status HostBounce::start_pull(int, int, const Pull &pull)
{
    const ReduceInputs &in = pull.inputs;
    if (in.count == 1) {
        std::memmove(pull.dst, in.input[0], pull.count * element_bytes(pull.kind));
        return {};
    }
    if (const HostFold fold = host_fold(pull.op, pull.kind); fold != nullptr) {
        fold(pull.dst, in.input, static_cast<std::size_t>(in.count), pull.count);
        return {};
    }
    // dst may be an input that is not combined yet.
    const std::size_t bytes = pull.count * element_bytes(pull.kind);
    const std::unique_ptr<std::byte[]> sum = try_allocate(bytes);
    if (sum == nullptr) {
        return error(Errc::kNoMemory, "no host memory to reduce a chunk of %zu bytes", bytes);
    }
    const HostReduce reduce = host_reduce(pull.op, pull.kind);
    reduce(sum.get(), in.input[0], in.input[1], pull.count);
    for (int i = 2; i < in.count; ++i) {
        reduce(sum.get(), sum.get(), in.input[i], pull.count);
    }
    std::memcpy(pull.dst, sum.get(), bytes);
    return {};
}

} // namespace hetcoll
