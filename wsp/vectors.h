// Vectors of one length in one kind of memory, and the few things that wave-synchronous training
// does with them. All of them are of one rank and used by one thread at a time.
#pragma once

#include "base/element.h"
#include "base/status.h"

#include <cstddef>
#include <memory>
#include <span>

namespace hetcoll {

class WaveVectors {
public:
    virtual ~WaveVectors() = default;

    // One more vector, of undefined content. It lives as long as this object.
    virtual Result<void *> make() = 0;
    // An error if the program's vector is not in memory of this kind.
    virtual Status check(const void *vector) = 0;

    // Their work is complete after finish(). Vectors overlap only where a comment allows it.
    virtual Status clear(void *to) = 0;
    // to = ((in[0] + in[1]) + in[2]) + ...; `to` may be in[0]. Requires one input or more.
    virtual Status add(void *to, std::span<const void *const> in) = 0;
    // Everything is complete for every thread, stream and MPI call.
    virtual Status finish() = 0;

    [[nodiscard]] virtual bool on_device() const noexcept = 0;
};

// For vectors like `vector`, the program's: host memory, or memory of its GPU. Requires kFloat16,
// kBfloat16, kFloat32 or kFloat64.
[[nodiscard]] Result<std::unique_ptr<WaveVectors>>
make_vectors(const void *vector, std::size_t count, ElementKind kind);

// The two kinds. make_device_vectors() answers null for host memory.
[[nodiscard]] std::unique_ptr<WaveVectors> make_host_vectors(std::size_t count, ElementKind kind);
[[nodiscard]] Result<std::unique_ptr<WaveVectors>>
make_device_vectors(const void *vector, std::size_t count, ElementKind kind);

} // namespace hetcoll
