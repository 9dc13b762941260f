// The inputs and outputs of one rank's part of an allreduce: its own in device memory, its peers'
// in host memory that the GPU reaches over its link, as it reaches another GPU's, or in device
// memory too, as if all ranks shared the GPU. Errors end the program.
#pragma once

#include "cuda_kernels/reduction.h"
#include "device/device.h"
#include "measure/micro.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <sys/mman.h>
#include <vector>

namespace hetcoll {

enum class PeersIn : std::uint8_t { kHostMemory, kOwnMemory };

class PeerVectors {
public:
    // For `ranks` ranks, of `count` floats each.
    PeerVectors(const Gpu &gpu, const Device &device, PeersIn where, int ranks, std::size_t count);

    // The first ones, of which the very first is the rank's own.
    [[nodiscard]] ReduceInputs inputs(int how_many) const;
    [[nodiscard]] ReduceOutputs outputs(int how_many) const;
    [[nodiscard]] std::size_t count() const noexcept { return count_; }
    [[nodiscard]] std::size_t bytes() const noexcept { return count_ * sizeof(float); }

    [[nodiscard]] std::vector<unsigned char> sum_of(int inputs) const;
    void clear(int outputs) const;
    // Ends the program unless these outputs hold `sum`.
    void check(int outputs, const std::vector<unsigned char> &sum) const;

private:
    struct Unmap {
        std::size_t bytes;
        void operator()(void *memory) const noexcept { munmap(memory, bytes); }
    };
    // In device memory, or shared memory that is registered as transport registers it.
    struct Vector {
        std::unique_ptr<void, Unmap> on_host; // null: device memory
        PinnedMemory registered;
        DeviceMemory on_device;
        void *address = nullptr; // as kernels reach it
    };
    [[nodiscard]] Vector make(const Device &device, PeersIn where) const;

    const Gpu &gpu_;
    std::size_t count_;
    std::vector<Vector> inputs_, outputs_;
};

} // namespace hetcoll
