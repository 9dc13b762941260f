// Memory of the program, of every kind: what it has put there stays there, but for what a call may
// write.
#pragma once

#include "test/unit/device_cuda.h"

#include <cstddef>
#include <vector>

namespace hetcoll::test {

enum class Memory {
    kHost,
    kPinned,
    kDevice,
    kPool,
    kManaged,
    kVmm,    // that can be shared by a file descriptor
    kOwnVmm, // that cannot
};
inline constexpr unsigned kMemories = 7;

enum class User {
    kProgram, // and any call may have it next
    kRequest, // the program, until its persistent request is started again
    kCall,
};

struct Gpu {
    CUdevice device = 0;
    int devices = 1; // of all ranks
    CUcontext context = nullptr;
    CUstream stream = nullptr; // of the test
    bool lost = false;
};

class Buffer {
public:
    static constexpr std::size_t kGuard = 64;

    Buffer(Gpu &gpu, Memory memory, std::size_t bytes);
    ~Buffer();
    Buffer(const Buffer &) = delete;
    Buffer &operator=(const Buffer &) = delete;

    [[nodiscard]] std::byte *data() const { return reinterpret_cast<std::byte *>(start_) + kGuard; }
    [[nodiscard]] Memory memory() const { return memory_; }
    [[nodiscard]] std::size_t bytes() const { return bytes_; }
    // All of it has that content now, and is expected to keep it.
    void fill(std::vector<std::byte> content);
    // Empty if the device is lost.
    [[nodiscard]] std::vector<std::byte> read() const;
    // Whether it still has what fill() has put there, but for `undefined` bytes from `offset`.
    [[nodiscard]] bool has_kept(std::size_t offset = 0, std::size_t undefined = 0) const;
    // By its place behind data(). Requires that has_kept() is false.
    [[nodiscard]] std::size_t first_changed() const;
    // The program's own numbers, in place of a call's.
    void use_again(User next);
    User user = User::kProgram;

private:
    void map_vmm(std::size_t bytes);
    void unmap_vmm();
    // The processor reads and writes it, also where the GPU is lost.
    [[nodiscard]] bool is_on_host() const
    {
        return memory_ == Memory::kHost || memory_ == Memory::kPinned;
    }
    // On this buffer's GPU, unless that is lost.
    template <class Call> void use(Call call) const;

    Gpu &gpu_;
    Memory memory_;
    std::size_t bytes_;
    CUdeviceptr start_ = 0;
    std::size_t mapped_ = 0; // bytes of VMM memory
    std::vector<std::byte> host_, expected_;
};

} // namespace hetcoll::test
