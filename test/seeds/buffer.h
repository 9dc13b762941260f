// Memory of the program, of every kind: what it has put there stays there, but for what a call may
// write.
#pragma once

#include "test/unit/device_cuda.h"

#include <cstddef>
#include <vector>

namespace hetcoll::test {

enum class Memory { kHost, kPinned, kDevice, kPool, kManaged };

struct Gpu {
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
    void use_again();
    bool in_use = false; // by a call

private:
    // On this buffer's GPU, unless that is lost.
    template <class Call> void use(Call call) const;

    Gpu &gpu_;
    Memory memory_;
    std::size_t bytes_;
    CUdeviceptr start_ = 0;
    std::vector<std::byte> host_, expected_;
};

} // namespace hetcoll::test
