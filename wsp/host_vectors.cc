#include "cuda_kernels/reduction.h"
#include "wsp/vectors.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

namespace hetcoll {
namespace {

constexpr std::size_t kPart = 4096; // elements of all inputs that stay in the nearest cache

struct Free {
    void operator()(void *memory) const noexcept { std::free(memory); }
};

const char *at(const void *vector, std::size_t bytes)
{
    return static_cast<const char *>(vector) + bytes;
}

class HostVectors final : public WaveVectors {
public:
    HostVectors(std::size_t count, ElementKind kind)
        : count_(count), width_(element_bytes(kind)), sum_(host_reduce(ReduceOp::kSum, kind))
    {
    }

    Result<void *> make() override
    {
        void *const memory = std::malloc(count_ * width_);
        if (memory == nullptr) {
            return error(Errc::kNoMemory, "no %zu bytes of host memory for a vector",
                         count_ * width_);
        }
        made_.emplace_back(memory);
        return memory;
    }

    Status check(const void *) override { return {}; } // it would crash in the program as well

    Status clear(void *to) override
    {
        std::memset(to, 0, count_ * width_);
        return {};
    }

    Status add(void *to, std::span<const void *const> in) override
    {
        for (std::size_t first = 0; first < count_; first += kPart) {
            const std::size_t count = std::min(kPart, count_ - first), offset = first * width_;
            char *const part = static_cast<char *>(to) + offset;
            if (in.size() == 1) {
                std::memmove(part, at(in[0], offset), count * width_);
                continue;
            }
            sum_(part, at(in[0], offset), at(in[1], offset), count);
            for (const void *const next : in.subspan(2)) {
                sum_(part, part, at(next, offset), count);
            }
        }
        return {};
    }

    Status finish() override { return {}; }
    [[nodiscard]] bool on_device() const noexcept override { return false; }

private:
    std::size_t count_, width_;
    HostReduce sum_;
    std::vector<std::unique_ptr<void, Free>> made_;
};

} // namespace

std::unique_ptr<WaveVectors> make_host_vectors(std::size_t count, ElementKind kind)
{
    return std::make_unique<HostVectors>(count, kind);
}

Result<std::unique_ptr<WaveVectors>> make_vectors(const void *vector, std::size_t count,
                                                  ElementKind kind)
{
    Result<std::unique_ptr<WaveVectors>> device = make_device_vectors(vector, count, kind);
    if (!device.ok() || *device != nullptr) {
        return device;
    }
    return make_host_vectors(count, kind);
}

} // namespace hetcoll
