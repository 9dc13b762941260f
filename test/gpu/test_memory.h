// Device memory of every kind that programs reduce, filled and read by copies. hetcoll itself does
// not make some of the calls that allocate it, so they are looked up here.
#pragma once

#include "measure/buffer.h"

#include <cstddef>
#include <memory>
#include <vector>

namespace hetcoll::test {

enum class MemoryType : std::uint8_t {
    kPlain,        // cuMemAlloc
    kVmm,          // cuMemCreate, with a file descriptor to share it by
    kVmmWithoutFd, // cuMemCreate, not to be shared
    kPool,         // cuMemAllocAsync
    kManaged,
};
[[nodiscard]] const char *type_name(MemoryType type) noexcept;

// The capabilities of a device, asked in a process that has it open.
[[nodiscard]] bool has(const Gpu &gpu, MemoryType type);

class TestMemory {
public:
    static Result<std::unique_ptr<TestMemory>> allocate(const Gpu &gpu, MemoryType type,
                                                        std::size_t bytes);
    ~TestMemory();
    TestMemory(const TestMemory &) = delete;
    TestMemory &operator=(const TestMemory &) = delete;

    [[nodiscard]] void *data() const noexcept { return reinterpret_cast<void *>(address_); }
    Status write(const std::vector<unsigned char> &content) const;
    Result<std::vector<unsigned char>> read(std::size_t bytes) const;

private:
    TestMemory(const Gpu &gpu, MemoryType type) : gpu_(gpu), type_(type) {}
    Status make(std::size_t bytes);
    Status make_vmm(std::size_t bytes);

    const Gpu &gpu_;
    MemoryType type_;
    CUdeviceptr address_ = 0;
    std::size_t mapped_bytes_ = 0;
};

} // namespace hetcoll::test
