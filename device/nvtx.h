// Ranges for NVIDIA's profilers (NVTX): shown by a profiler next to kernels and copies. Costs a
// test of a pointer where no profiler is attached, and nothing at all in a build without NVTX's
// headers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hetcoll {

// One per process. A profiler must have set up NVTX's injection before it is made.
class Nvtx {
public:
    Nvtx() noexcept;
    ~Nvtx();
    Nvtx(const Nvtx &) = delete;
    Nvtx &operator=(const Nvtx &) = delete;

    // "hetcoll CALL ALGORITHM BYTES", from here to end(), which may be called on another thread.
    // Zero if no profiler is attached.
    [[nodiscard]] std::uint64_t start(const char *call, const char *algorithm,
                                      std::size_t bytes) const noexcept
    {
        return domain_ != nullptr ? start_named(call, algorithm, bytes) : 0;
    }
    void end(std::uint64_t range) const noexcept;

private:
    [[nodiscard]] std::uint64_t start_named(const char *call, const char *algorithm,
                                            std::size_t bytes) const noexcept;

    void *domain_ = nullptr; // null: no profiler
};

} // namespace hetcoll
