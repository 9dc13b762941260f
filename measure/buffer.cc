#include "measure/buffer.h"

#include "device/context.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace hetcoll {

namespace {

constexpr std::array<const char *, 4> kMemoryNames = {"host", "pinned", "device", "managed"};

// Reinterprets what cuMemAlloc hands out: a number in the API, an address for everybody else.
CUdeviceptr to_device(const void *pointer)
{
    return static_cast<CUdeviceptr>(reinterpret_cast<std::uintptr_t>(pointer));
}

} // namespace

const char *memory_name(Memory memory) noexcept
{
    return kMemoryNames[static_cast<std::size_t>(memory)];
}

std::optional<Memory> find_memory(std::string_view name) noexcept
{
    for (std::size_t i = 0; i < kMemoryNames.size(); ++i) {
        if (name == kMemoryNames[i]) {
            return static_cast<Memory>(i);
        }
    }
    return std::nullopt;
}

Result<std::unique_ptr<Gpu>> Gpu::open(int local_rank)
{
    std::unique_ptr<Gpu> gpu(new Gpu);
    if (gpu->library_.get() == nullptr) {
        return error(Errc::kUnsupported, "no GPU: %s",
                     gpu->library_.load_error().message().c_str());
    }
    const Driver &driver = gpu->driver();
    Status status = driver_status(driver, driver.cuInit(0), "cuInit", "opening the GPU");
    int devices = 0;
    if (status.ok()) {
        status = driver_status(driver, driver.cuDeviceGetCount(&devices), "cuDeviceGetCount",
                               "opening the GPU");
    }
    if (!status.ok()) {
        return status;
    }
    if (devices == 0) {
        return error(Errc::kUnsupported, "no GPU: the driver is there but shows no device");
    }
    gpu->ordinal_ = local_rank % devices;
    status = driver_status(driver, driver.cuDeviceGet(&gpu->device_, gpu->ordinal_), "cuDeviceGet",
                           "opening the GPU");
    if (status.ok()) {
        status =
            driver_status(driver, driver.cuDevicePrimaryCtxRetain(&gpu->context_, gpu->device_),
                          "cuDevicePrimaryCtxRetain", "opening the GPU");
    }
    if (status.ok()) {
        status = driver_status(driver, driver.cuCtxSetCurrent(gpu->context_), "cuCtxSetCurrent",
                               "opening the GPU");
    }
    if (!status.ok()) {
        return status;
    }
    return gpu;
}

Gpu::~Gpu()
{
    if (context_ != nullptr) {
        driver().cuCtxSetCurrent(nullptr);
        driver().cuDevicePrimaryCtxRelease(device_);
    }
}

std::string Gpu::name() const
{
    std::array<char, 256> text{};
    if (driver().cuDeviceGetName(text.data(), text.size(), device_) != CUDA_SUCCESS) {
        return "unknown";
    }
    return text.data();
}

std::string Gpu::driver_version() const
{
    int version = 0;
    if (driver().cuDriverGetVersion(&version) != CUDA_SUCCESS) {
        return "unknown";
    }
    return cuda_release(version);
}

Result<Buffer> Buffer::allocate(const Gpu *gpu, Memory memory, std::size_t bytes)
{
    Buffer buffer;
    buffer.memory_ = memory;
    buffer.bytes_ = bytes;
    const std::size_t at_least = bytes == 0 ? 1 : bytes; // the driver refuses to allocate nothing
    if (memory == Memory::kHost) {
        buffer.data_ = static_cast<char *>(std::malloc(at_least));
        if (buffer.data_ == nullptr) {
            return error(Errc::kNoMemory, "no %zu bytes of host memory", bytes);
        }
        return buffer;
    }
    if (gpu == nullptr) {
        return error(Errc::kInvalid, "%s memory needs a GPU", memory_name(memory));
    }
    const Driver &driver = gpu->driver();
    const ContextScope scope(driver, gpu->context());
    CUdeviceptr address = 0;
    void *host = nullptr;
    Status status;
    switch (memory) {
    case Memory::kPinned:
        status = driver_status(driver, driver.cuMemHostAlloc(&host, at_least, 0), "cuMemHostAlloc",
                               "allocating a buffer");
        break;
    case Memory::kManaged:
        status = driver_status(driver,
                               driver.cuMemAllocManaged(&address, at_least, CU_MEM_ATTACH_GLOBAL),
                               "cuMemAllocManaged", "allocating a buffer");
        break;
    default:
        status = driver_status(driver, driver.cuMemAlloc(&address, at_least), "cuMemAlloc",
                               "allocating a buffer");
        break;
    }
    if (!status.ok()) {
        return status;
    }
    buffer.gpu_ = gpu;
    buffer.data_ = host != nullptr ? static_cast<char *>(host)
                                   : reinterpret_cast<char *>(static_cast<std::uintptr_t>(address));
    return buffer;
}

Buffer Buffer::borrow(const Gpu &gpu, void *data, std::size_t bytes,
                      std::shared_ptr<const void> owner)
{
    Buffer buffer;
    buffer.gpu_ = &gpu;
    buffer.memory_ = Memory::kDevice;
    buffer.data_ = static_cast<char *>(data);
    buffer.bytes_ = bytes;
    buffer.owner_ = std::move(owner);
    return buffer;
}

Buffer::~Buffer()
{
    if (data_ == nullptr || owner_ != nullptr) {
        return;
    }
    if (memory_ == Memory::kHost) {
        std::free(data_);
        return;
    }
    const CUresult result = memory_ == Memory::kPinned ? gpu_->driver().cuMemFreeHost(data_)
                                                       : gpu_->driver().cuMemFree(to_device(data_));
    if (result != CUDA_SUCCESS && !is_torn_down(result)) {
        std::fprintf(stderr, "cannot free a %s buffer: driver error %d\n", memory_name(memory_),
                     static_cast<int>(result));
    }
}

void Buffer::swap(Buffer &other) noexcept
{
    std::swap(gpu_, other.gpu_);
    std::swap(memory_, other.memory_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(owner_, other.owner_);
}

Status Buffer::write(std::size_t offset, const void *from, std::size_t bytes) const
{
    if (bytes == 0) {
        return {};
    }
    if (memory_ == Memory::kHost || memory_ == Memory::kPinned) {
        std::memcpy(data_ + offset, from, bytes);
        return {};
    }
    const Driver &driver = gpu_->driver();
    const ContextScope scope(driver, gpu_->context());
    Status status =
        driver_status(driver, driver.cuMemcpyHtoD(to_device(data_ + offset), from, bytes),
                      "cuMemcpyHtoD", "filling a buffer");
    if (status.ok()) { // managed memory: the host must not look before the GPU is done
        status = driver_status(driver, driver.cuCtxSynchronize(), "cuCtxSynchronize",
                               "filling a buffer");
    }
    return status;
}

Status Buffer::read(std::size_t offset, void *to, std::size_t bytes) const
{
    if (bytes == 0) {
        return {};
    }
    if (memory_ == Memory::kHost || memory_ == Memory::kPinned) {
        std::memcpy(to, data_ + offset, bytes);
        return {};
    }
    const Driver &driver = gpu_->driver();
    return driver_status(driver, driver.cuMemcpyDtoH(to, to_device(data_ + offset), bytes),
                         "cuMemcpyDtoH", "reading a buffer");
}

} // namespace hetcoll
