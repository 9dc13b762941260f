// A build without CUDA knows host memory only.
#include "wsp/vectors.h"

namespace hetcoll {

Result<std::unique_ptr<WaveVectors>> make_device_vectors(const void *, std::size_t, ElementKind)
{
    return std::unique_ptr<WaveVectors>();
}

} // namespace hetcoll
