// Questions about modules, and about threads and addresses whose context is missing or gone.
#include "emulated_gpu/conformance.h"

#include <thread>

namespace hetcoll::conformance {

void ask_about_modules()
{
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    answer("load of garbage", cu().cuModuleLoadData(&module, "this is no image at all"));
    const CUresult loaded = cu().cuModuleLoadData(&module, kNothing);
    answer("load of PTX", loaded);
    if (loaded == CUDA_SUCCESS) {
        answer("function that the module lacks",
               cu().cuModuleGetFunction(&function, module, "hetcoll_something"));
        answer("unload", cu().cuModuleUnload(module));
    }
    const auto find = [](const char *name, int version) {
        void *found = nullptr;
        CUdriverProcAddressQueryResult status;
        cu().cuGetProcAddress(name, &found, version, 0, &status);
        return found;
    };
    answer("cuGetProcAddress finds cuMemAlloc_v2",
           find("cuMemAlloc", 12000) == reinterpret_cast<void *>(cu().cuMemAlloc));
    answer("cuGetProcAddress finds what is not there", find("cuNoSuchCall", 12000) != nullptr);
}

void ask_about_contexts()
{
    CUcontext primary = nullptr, current = nullptr, own = nullptr;
    require(cu().cuCtxGetCurrent(&primary), "cuCtxGetCurrent");
    const CUdeviceptr memory = allocate(kLarge);
    const CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
    std::thread([&] {
        CUdeviceptr other = 0;
        unsigned type = 0;
        answer("no context, cuMemAlloc", cu().cuMemAlloc(&other, 4));
        answer("no context, cuPointerGetAttribute",
               cu().cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory));
        answer("no context, cuCtxGetCurrent", cu().cuCtxGetCurrent(&current));
        answer("no context, cuStreamQuery of a stream", cu().cuStreamQuery(stream));
        answer("no context, cuCtxGetDevice", [] {
            CUdevice device = 0;
            return cu().cuCtxGetDevice(&device);
        }());
        answer("no context, cuCtxPopCurrent", cu().cuCtxPopCurrent(&current));
    }).join();
    require(cu().cuCtxCreate_v2(&own, 0, 0), "cuCtxCreate_v2");
    const CUdeviceptr in_own = allocate(1000);
    answer("own context, free memory of the primary context", cu().cuMemFree(memory));
    require(cu().cuCtxDestroy(own), "cuCtxDestroy");
    answer("destroyed context, its memory has a buffer id", buffer_id(in_own) != 0);
    require(cu().cuCtxGetCurrent(&current), "cuCtxGetCurrent");
    answer("destroyed context, the one before is current", current == primary);
    const CUdeviceptr in_primary = allocate(kLarge);
    const unsigned long long id = id_of(primary);
    require(cu().cuDevicePrimaryCtxReset(0), "cuDevicePrimaryCtxReset");
    unsigned flags = 0;
    int active = 1;
    require(cu().cuDevicePrimaryCtxGetState(0, &flags, &active), "cuDevicePrimaryCtxGetState");
    answer("reset context, is active", active != 0);
    answer("reset context, its memory has a buffer id", buffer_id(in_primary) != 0);
    CUdeviceptr other = 0;
    answer("reset context, cuMemAlloc", cu().cuMemAlloc(&other, 4));
    require(cu().cuDevicePrimaryCtxRetain(&own, 0), "cuDevicePrimaryCtxRetain");
    answer("reset context, retained again is the same handle", own == primary);
    if (id != 0) {
        answer("reset context, retained again has another id", id_of(own) != id);
    }
    answer("reset context, cuMemAlloc after that", cu().cuMemAlloc(&other, 4));
}

} // namespace hetcoll::conformance
