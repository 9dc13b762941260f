#include "transport/host_bounce.h"

#include "cuda_kernels/reduction.h"

#include <cstring>
#include <new>

namespace hetcoll {

Result<std::unique_ptr<HostBounce>> HostBounce::create(std::size_t slot_bytes)
{
    std::unique_ptr<std::byte[]> memory(new (std::nothrow) std::byte[kBounceSlots * slot_bytes]);
    if (memory == nullptr) {
        return error(Errc::kNoMemory, "no host memory for %d landing slots of %zu bytes",
                     kBounceSlots, slot_bytes);
    }
    return std::unique_ptr<HostBounce>(new HostBounce(std::move(memory), slot_bytes));
}

Status HostBounce::start_read(int slot, const void *from, std::size_t)
{
    source_[slot] = from;
    return {};
}

void *HostBounce::landing(int slot) noexcept { return memory_.get() + slot * slot_bytes_; }

Status HostBounce::start_apply(int slot, const Apply &apply)
{
    const void *received = landing(slot);
    if (!apply.reduce) {
        std::memcpy(apply.dst, received, apply.count * element_bytes(apply.kind));
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

} // namespace hetcoll
