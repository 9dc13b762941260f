#include "emulated_gpu/kernels.h"

#include "emulated_gpu/calls.h"
#include "emulated_gpu/contexts.h"
#include "emulated_gpu/copies.h"
#include "emulated_gpu/footprint.h"
#include "emulated_gpu/hostile_waits.h"
#include "emulated_gpu/links.h"
#include "emulated_gpu/report.h"
#include "emulated_gpu/settings.h"

#include <algorithm>
#include <cfenv>
#include <cstring>

namespace hetcoll::emulated_gpu {
namespace {

constexpr unsigned kMaxBlockThreads = 1024, kMaxSharedBytes = 232448;

bool is_valid_shape(const emulated_gpu_launch &launch)
{
    const auto &[grid, block, shared_bytes, collapse] = launch;
    const bool none_zero =
        grid.x != 0 && grid.y != 0 && grid.z != 0 && block.x != 0 && block.y != 0 && block.z != 0;
    return none_zero && grid.x <= 0x7fffffff && grid.y <= 65535 && grid.z <= 65535 &&
           block.z <= 64 &&
           static_cast<std::uint64_t>(block.x) * block.y * block.z <= kMaxBlockThreads &&
           shared_bytes <= kMaxSharedBytes;
}

// A launch's own copy of its arguments, as the driver makes one.
class Arguments {
public:
    Arguments(const emulated_gpu_kernel &kernel, void **parameters)
    {
        std::size_t bytes = 0;
        for (unsigned i = 0; i < kernel.argument_count; ++i) {
            bytes += round_up(kernel.argument_bytes[i], alignof(std::max_align_t));
        }
        storage_.resize(bytes / sizeof(std::max_align_t) + 1);
        auto *next = reinterpret_cast<char *>(storage_.data());
        for (unsigned i = 0; i < kernel.argument_count; ++i) {
            std::memcpy(next, parameters[i], kernel.argument_bytes[i]);
            argument_.push_back(next);
            next += round_up(kernel.argument_bytes[i], alignof(std::max_align_t));
        }
    }

    [[nodiscard]] void **data() { return argument_.data(); }
    [[nodiscard]] Address word(unsigned argument, std::size_t index) const
    {
        Address value;
        std::memcpy(&value, static_cast<char *>(argument_[argument]) + index * sizeof value,
                    sizeof value);
        return value;
    }
    void set_word(unsigned argument, std::size_t index, Address value)
    {
        std::memcpy(static_cast<char *>(argument_[argument]) + index * sizeof value, &value,
                    sizeof value);
    }

private:
    std::vector<std::max_align_t> storage_;
    std::vector<void *> argument_;
};

// Whether kernels of the context may use what a pointer argument points to; says why not.
bool is_usable(const emulated_gpu_kernel &kernel, unsigned argument, Address address,
               const Context &context)
{
    const char *problem = why_unusable(look_up(address, 1), context);
    if (problem != nullptr) {
        say("kernel %s: argument %u is %#zx: %s", kernel.name, argument, address, problem);
    }
    return problem == nullptr;
}

// Where kernels reach an address: some have a place of their own.
Address place_of(Address address, Footprint &footprint)
{
    for (LateFlag &late : footprint.flags) {
        if (late.flag == reachable(address)) {
            return reinterpret_cast<Address>(&late.written);
        }
    }
    for (AddressList &list : footprint.lists) {
        if (list.list == reachable(address)) {
            return reinterpret_cast<Address>(list.copy.data());
        }
    }
    return reachable(address);
}

// Lets device addresses point to where kernels reach them. False if a pointer is unusable: a GPU
// would fault.
bool translate(const emulated_gpu_kernel &kernel, Arguments &arguments, const Context &context,
               Footprint &footprint)
{
    for (unsigned i = 0; i < kernel.argument_count; ++i) {
        const unsigned kind = kernel.argument_kind[i];
        const std::size_t words =
            kind == EMULATED_GPU_VALUE ? 0 : kernel.argument_bytes[i] / sizeof(Address);
        for (std::size_t index = 0; index < words; ++index) {
            const Address address = arguments.word(i, index);
            if (kind == EMULATED_GPU_POINTER && address != 0 &&
                !is_usable(kernel, i, address, context)) {
                return false;
            }
            arguments.set_word(i, index, place_of(address, footprint));
        }
    }
    return true;
}

// A GPU rounds as it does, whatever the thread that runs its kernels here has inherited.
class GpuFloats {
public:
    GpuFloats()
    {
        std::fegetenv(&found_);
        std::fesetenv(FE_DFL_ENV);
    }
    ~GpuFloats() { std::fesetenv(&found_); }
    GpuFloats(const GpuFloats &) = delete;
    GpuFloats &operator=(const GpuFloats &) = delete;

private:
    std::fenv_t found_{};
};

// A launch, from the call to its turn in the stream.
struct Launch {
    Launch(const emulated_gpu_kernel &of, const emulated_gpu_launch &with_shape, void **parameters)
        : kernel(of), shape(with_shape), arguments(of, parameters)
    {
    }

    void run()
    {
        translate(footprint.lists);
        hold_back(footprint.flags);
        carry(footprint.crossings, [this] {
            const CheckedKernel check(kernel, footprint);
            const GpuFloats floats;
            kernel.run(&shape, arguments.data());
        });
        count(Counter::kKernelReadBytes, footprint.read_bytes);
        count(Counter::kKernelWriteBytes, footprint.written_bytes);
        let_go(footprint.flags);
    }

    const emulated_gpu_kernel &kernel;
    const emulated_gpu_launch shape;
    Arguments arguments;
    Footprint footprint;
};

CUresult launch(CUfunction handle, const emulated_gpu_launch &shape, CUstream stream_handle,
                void **parameters, void **extra)
{
    StreamPointer stream;
    EMULATED_TRY(find_stream_for_work(stream_handle, stream));
    const std::shared_ptr<Function> function = functions().find(handle);
    if (function == nullptr ||
        (function->context != nullptr && function->context != stream->context)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (function->is_new_to(stream->context->life)) {
        may_synchronise();
    }
    const emulated_gpu_kernel &kernel = *function->kernel;
    if (!is_valid_shape(shape) || (parameters == nullptr && kernel.argument_count > 0)) {
        return extra != nullptr ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
    }
    count(Counter::kLaunches, 1);
    auto made = std::make_shared<Launch>(kernel, shape, parameters);
    Context *context = stream->context;
    if (!read_footprint(kernel, shape, made->arguments.data(), *context, made->footprint) ||
        !translate(kernel, made->arguments, *context, made->footprint)) {
        return submit(stream,
                      {[context] { context->sticky_error.store(CUDA_ERROR_ILLEGAL_ADDRESS); },
                       WorkKind::kInstant});
    }
    return submit(stream, {[made] { made->run(); }, WorkKind::kDevice});
}

CUresult function_attribute(int *value, CUfunction_attribute attribute)
{
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = kMaxBlockThreads; return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NUM_REGS: *value = 32; return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
        *value = settings().compute_capability;
        return CUDA_SUCCESS;
    default: *value = 0; return CUDA_SUCCESS;
    }
}

} // namespace

bool Function::is_new_to(std::uint64_t context_life)
{
    const std::lock_guard lock(mutex_);
    return context == nullptr && loaded_in_.insert(context_life).second;
}

HandleTable<Function> &functions()
{
    static HandleTable<Function> &the = *new HandleTable<Function>("function");
    return the;
}

} // namespace hetcoll::emulated_gpu

using namespace hetcoll::emulated_gpu;

EMULATED_GPU_EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
                                            unsigned grid_z, unsigned block_x, unsigned block_y,
                                            unsigned block_z, unsigned shared_bytes,
                                            CUstream stream, void **parameters, void **extra)
{
    EMULATED_CALL(cuLaunchKernel);
    return launch(
        function,
        {{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes, settings().collapse},
        stream, parameters, extra);
}

EMULATED_GPU_EXPORT CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function,
                                              void **parameters, void **extra)
{
    EMULATED_CALL(cuLaunchKernelEx);
    return launch(function,
                  {{config->gridDimX, config->gridDimY, config->gridDimZ},
                   {config->blockDimX, config->blockDimY, config->blockDimZ},
                   config->sharedMemBytes,
                   settings().collapse},
                  config->hStream, parameters, extra);
}

EMULATED_GPU_EXPORT CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute,
                                                CUfunction function)
{
    EMULATED_CALL(cuFuncGetAttribute);
    return functions().find(function) != nullptr ? function_attribute(value, attribute)
                                                 : CUDA_ERROR_INVALID_HANDLE;
}

EMULATED_GPU_EXPORT CUresult cuKernelGetAttribute(int *value, CUfunction_attribute attribute,
                                                  CUkernel kernel, CUdevice)
{
    EMULATED_CALL(cuKernelGetAttribute);
    return functions().find(kernel) != nullptr ? function_attribute(value, attribute)
                                               : CUDA_ERROR_INVALID_HANDLE;
}

EMULATED_GPU_EXPORT CUresult cuFuncSetAttribute(CUfunction, CUfunction_attribute, int)
{
    EMULATED_CALL(cuFuncSetAttribute);
    return CUDA_SUCCESS;
}

EMULATED_GPU_EXPORT CUresult cuFuncSetCacheConfig(CUfunction, CUfunc_cache)
{
    EMULATED_CALL(cuFuncSetCacheConfig);
    return CUDA_SUCCESS;
}

EMULATED_GPU_EXPORT CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction,
                                                                         int block_threads, size_t)
{
    EMULATED_CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor);
    *blocks = block_threads > 0 ? std::clamp(2048 / block_threads, 1, 32) : 0;
    return CUDA_SUCCESS;
}
