#include "bench/cublas_library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <vector>

namespace hetcoll {
namespace {

constexpr int kAsItIs = 0; // CUBLAS_OP_N

Status status(int result, const char *call)
{
    return result == 0 ? Status() : error(Errc::kDriver, "%s answers %d", call, result);
}

std::vector<std::string> names()
{
    const char *home = std::getenv("CUDA_HOME");
    const std::string folder = std::string(home != nullptr ? home : "/usr/local/cuda") + "/lib64/";
    std::vector<std::string> all;
    for (const char *name : {"libcublas.so.13", "libcublas.so.12"}) {
        all.insert(all.end(), {name, folder + name});
    }
    return all;
}

} // namespace

template <class Function> bool CublasLibrary::look_up(const char *name, Function &function) const
{
    function = reinterpret_cast<Function>(dlsym(library_, name));
    return function != nullptr;
}

Status CublasLibrary::load(const std::string &file)
{
    std::string why;
    for (const std::string &name : file.empty() ? names() : std::vector<std::string>{file}) {
        library_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (library_ != nullptr) {
            name_ = name;
            break;
        }
        const char *said = dlerror();
        why += (why.empty() ? "" : "; ") + std::string(said != nullptr ? said : name);
    }
    if (library_ == nullptr) {
        return error(Errc::kUnsupported, "no cuBLAS: %s; name it with --cublas LIB", why.c_str());
    }
    if (!look_up("cublasCreate_v2", create_) || !look_up("cublasDestroy_v2", destroy_) ||
        !look_up("cublasSetStream_v2", set_stream_) || !look_up("cublasSgemm_v2", sgemm_)) {
        return error(Errc::kUnsupported, "%s is not cuBLAS: a call is missing", name_.c_str());
    }
    return {};
}

Result<std::unique_ptr<CublasLibrary>> CublasLibrary::open(const std::string &file, CUstream stream)
{
    std::unique_ptr<CublasLibrary> made(new CublasLibrary);
    Status opened = made->load(file);
    if (opened.ok()) {
        opened = status(made->create_(&made->handle_), "cublasCreate");
    }
    if (opened.ok()) {
        opened = status(made->set_stream_(made->handle_, stream), "cublasSetStream");
    }
    if (!opened.ok()) {
        return opened;
    }
    return made;
}

CublasLibrary::~CublasLibrary()
{
    if (handle_ != nullptr) {
        destroy_(handle_);
    }
}

Status CublasLibrary::multiply(int n, CUdeviceptr a, CUdeviceptr b, CUdeviceptr c) const
{
    constexpr float kOne = 1, kZero = 0;
    return status(sgemm_(handle_, kAsItIs, kAsItIs, n, n, n, &kOne,
                         reinterpret_cast<const float *>(a), n, reinterpret_cast<const float *>(b),
                         n, &kZero, reinterpret_cast<float *>(c), n),
                  "cublasSgemm");
}

} // namespace hetcoll
