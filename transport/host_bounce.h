// The bounce of a rank whose buffers are host memory: in a mix with device ranks it reduces with
// the g++ build of the kernels, so that all ranks compute the same bits.
#pragma once

#include "transport/bounce.h"

#include <array>
#include <memory>

namespace hetcoll {

class HostBounce final : public Bounce {
public:
    // An error if there is no memory for the landing slots.
    static Result<std::unique_ptr<HostBounce>> create(std::size_t slot_bytes);

    Status divide(int slots, int channels) override;
    [[nodiscard]] std::size_t slot_bytes() const noexcept override { return slot_bytes_; }
    Status start_read(int slot, const void *from, std::size_t bytes) override;
    [[nodiscard]] Result<bool> read_done(int) override { return true; }
    [[nodiscard]] const void *message(int slot) const noexcept override { return source_[slot]; }
    [[nodiscard]] bool reads_out() const noexcept override { return false; }
    [[nodiscard]] void *landing(int slot) noexcept override;
    Status start_apply(int slot, const Apply &apply) override;
    Status start_fold(int slot, const Pull &fold) override { return start_pull(0, slot, fold); }
    [[nodiscard]] Result<bool> apply_done(int) override { return true; }
    Status start_pull(int channel, int slot, const Pull &pull) override;
    [[nodiscard]] Result<bool> pull_done(int, int) override { return true; }

private:
    HostBounce(std::unique_ptr<std::byte[]> memory, std::size_t slot_bytes)
        : memory_(std::move(memory)), bytes_(kBounceSlots * slot_bytes), slot_bytes_(slot_bytes)
    {
    }

    std::unique_ptr<std::byte[]> memory_;
    std::size_t bytes_, slot_bytes_;
    std::array<const void *, kMaxBounceSlots> source_{};
};

} // namespace hetcoll
