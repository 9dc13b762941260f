// The GPU and the memory that the benchmarks and the MPI tests reduce, through the same driver
// table as the component. Contents travel by copies only: the host never looks through a device
// pointer.
#pragma once

#include "base/status.h"
#include "device/driver.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace hetcoll {

// The device of one rank, with its primary context current on the thread that opened it.
class Gpu {
public:
    // Takes device `local_rank` modulo the number of devices.
    static Result<std::unique_ptr<Gpu>> open(int local_rank);
    ~Gpu();
    Gpu(const Gpu &) = delete;
    Gpu &operator=(const Gpu &) = delete;

    [[nodiscard]] const DriverLibrary &library() const noexcept { return library_; }
    [[nodiscard]] const Driver &driver() const noexcept { return *library_.get(); }
    [[nodiscard]] CUcontext context() const noexcept { return context_; }
    [[nodiscard]] int ordinal() const noexcept { return ordinal_; }
    [[nodiscard]] bool is_emulated() const noexcept { return library_.is_emulated(); }
    [[nodiscard]] std::string name() const;
    [[nodiscard]] std::string driver_version() const; // "13.0": the newest CUDA that it serves

private:
    Gpu() = default;

    DriverLibrary library_;
    CUdevice device_ = 0;
    CUcontext context_ = nullptr;
    int ordinal_ = 0;
};

enum class Memory : std::uint8_t { kHost, kPinned, kDevice, kManaged };

// "host", "pinned", "device", "managed".
[[nodiscard]] const char *memory_name(Memory memory) noexcept;
[[nodiscard]] std::optional<Memory> find_memory(std::string_view name) noexcept;

// Move-only owner of one allocation, which must not outlive its Gpu.
class Buffer {
public:
    Buffer() noexcept = default;
    // In the context of `gpu`, which may be null for host memory.
    static Result<Buffer> allocate(const Gpu *gpu, Memory memory, std::size_t bytes);
    // Device memory that `owner` keeps.
    static Buffer borrow(const Gpu &gpu, void *data, std::size_t bytes,
                         std::shared_ptr<const void> owner);
    Buffer(Buffer &&other) noexcept { swap(other); }
    Buffer &operator=(Buffer &&other) noexcept
    {
        Buffer(std::move(other)).swap(*this);
        return *this;
    }
    ~Buffer();

    [[nodiscard]] char *data() const noexcept { return data_; }
    [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
    [[nodiscard]] Memory memory() const noexcept { return memory_; }

    // Both return when the copy is complete. Require offset + bytes <= bytes().
    Status write(std::size_t offset, const void *from, std::size_t bytes) const;
    Status read(std::size_t offset, void *to, std::size_t bytes) const;

private:
    void swap(Buffer &other) noexcept;

    const Gpu *gpu_ = nullptr;
    Memory memory_ = Memory::kHost;
    char *data_ = nullptr;
    std::size_t bytes_ = 0;
    std::shared_ptr<const void> owner_; // null: this one
};

} // namespace hetcoll
