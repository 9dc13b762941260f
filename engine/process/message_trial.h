// One message of device memory from a rank to another, or to itself, and whether it arrived as it
// was: the way to find out what carries such memory.
#pragma once

#include "base/p2p.h"
#include "device/device.h"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace hetcoll {

class MessageTrial {
public:
    // Sends to one rank and receives from another, all of which make the same trial.
    MessageTrial(std::shared_ptr<Device> device, const hetcoll_p2p &p2p, int tag, int to, int from)
        : device_(std::move(device)), p2p_(p2p), tag_(tag), to_(to), from_(from)
    {
    }

    // kNo if the bytes do not arrive, or if a driver or network call fails.
    enum class Answer : std::uint8_t { kUnknown, kNo, kYes };
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
    const hetcoll_p2p p2p_;
    const int tag_, to_, from_;
    DeviceMemory memory_; // what is sent, and what is received behind it
    PinnedMemory pinned_; // the same
    StreamHandle stream_;
    EventHandle copied_;
    void *send_ = nullptr, *receive_ = nullptr;
    Part part_ = Part::kStart;
};

} // namespace hetcoll
