// cuBLAS, if it is there: found at run time, so that nothing here needs its headers. Declared are
// the few calls of a product, as NVIDIA documents them (the cuBLAS library's user guide).
#pragma once

#include "base/status.h"

#include <cuda.h>

#include <memory>
#include <string>

namespace hetcoll {

class CublasLibrary {
public:
    // `file`: a path or a name that the loader finds; "": version 13, else 12, where the loader
    // looks, then in CUDA_HOME. Requires a current context.
    static Result<std::unique_ptr<CublasLibrary>> open(const std::string &file, CUstream stream);
    ~CublasLibrary();
    CublasLibrary(const CublasLibrary &) = delete;
    CublasLibrary &operator=(const CublasLibrary &) = delete;

    [[nodiscard]] const std::string &name() const noexcept { return name_; }
    // Starts c = a * b of n x n floats, by columns.
    Status multiply(int n, CUdeviceptr a, CUdeviceptr b, CUdeviceptr c) const;

private:
    using Handle = void *; // cublasHandle_t
    CublasLibrary() = default;
    template <class Function> bool look_up(const char *name, Function &function) const;
    Status load(const std::string &file);

    std::string name_;
    void *library_ = nullptr; // never closed: it has state of its own in the context
    Handle handle_ = nullptr;
    int (*create_)(Handle *) = nullptr;
    int (*destroy_)(Handle) = nullptr;
    int (*set_stream_)(Handle, CUstream) = nullptr;
    int (*sgemm_)(Handle, int a_as, int b_as, int m, int n, int k, const float *alpha,
                  const float *a, int lda, const float *b, int ldb, const float *beta, float *c,
                  int ldc) = nullptr;
};

} // namespace hetcoll
