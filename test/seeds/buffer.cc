#include "test/seeds/buffer.h"

#include <algorithm>
#include <utility>

namespace hetcoll::test {
namespace {

// The test's own driver calls. An injected fault that it meets is over then; false if
// the device is lost.
template <class Call> bool ask(Call call)
{
    for (int attempt = 0; attempt < 2; ++attempt) {
        if (call() == CUDA_SUCCESS) {
            return true;
        }
        cuda().emulated_gpu_set_faults(nullptr);
    }
    return false;
}

CUdeviceptr address_of(const std::vector<std::byte> &bytes)
{
    return reinterpret_cast<CUdeviceptr>(bytes.data());
}

} // namespace

template <class Call> void Buffer::use(Call call) const
{
    if (!gpu_.lost) {
        gpu_.lost =
            !ask([this] { return cuda().driver->cuCtxSetCurrent(gpu_.context); }) || !ask(call);
    }
}

Buffer::Buffer(Gpu &gpu, Memory memory, std::size_t bytes)
    : gpu_(gpu), memory_(memory), bytes_(bytes)
{
    const Driver &driver = *cuda().driver;
    const std::size_t all = bytes + 2 * kGuard;
    switch (memory) {
    case Memory::kHost: break;
    case Memory::kPinned:
        use([&] { return driver.cuMemHostAlloc(reinterpret_cast<void **>(&start_), all, 0); });
        break;
    case Memory::kDevice: use([&] { return driver.cuMemAlloc(&start_, all); }); break;
    case Memory::kPool:
        use([&] { return cuda().cuMemAllocAsync(&start_, all, gpu.stream); });
        use([&] { return driver.cuStreamSynchronize(gpu.stream); });
        break;
    case Memory::kManaged:
        use([&] { return driver.cuMemAllocManaged(&start_, all, CU_MEM_ATTACH_GLOBAL); });
        break;
    case Memory::kVmm:
    case Memory::kOwnVmm: map_vmm(all); break;
    }
    if (start_ == 0) { // as asked for, or because the device is lost
        memory_ = Memory::kHost;
        host_.resize(all);
        start_ = address_of(host_);
    }
}

Buffer::~Buffer()
{
    const Driver &driver = *cuda().driver;
    switch (memory_) {
    case Memory::kHost: break;
    case Memory::kPinned: use([&] { return driver.cuMemFreeHost(pointer(start_)); }); break;
    case Memory::kDevice:
    case Memory::kManaged: use([&] { return driver.cuMemFree(start_); }); break;
    case Memory::kPool: use([&] { return cuda().cuMemFreeAsync(start_, gpu_.stream); }); break;
    case Memory::kVmm:
    case Memory::kOwnVmm: unmap_vmm(); break;
    }
}

void Buffer::map_vmm(std::size_t bytes)
{
    constexpr std::size_t kGranularity = std::size_t{2} << 20;
    mapped_ = (bytes + kGranularity - 1) / kGranularity * kGranularity;
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, gpu_.device};
    properties.requestedHandleTypes = memory_ == Memory::kVmm
                                          ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
                                          : CU_MEM_HANDLE_TYPE_NONE;
    std::vector<CUmemAccessDesc> access; // of all GPUs, as mapping would give it between processes
    for (int device = 0; device < gpu_.devices; ++device) {
        access.push_back(
            {{CU_MEM_LOCATION_TYPE_DEVICE, device}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE});
    }
    CUmemGenericAllocationHandle handle = 0;
    use([&] { return cuda().cuMemAddressReserve(&start_, mapped_, 0, 0, 0); });
    use([&] { return cuda().cuMemCreate(&handle, mapped_, &properties, 0); });
    use([&] { return cuda().cuMemMap(start_, mapped_, 0, handle, 0); });
    use([&] { return cuda().cuMemSetAccess(start_, mapped_, access.data(), access.size()); });
    use([&] { return cuda().cuMemRelease(handle); }); // the mapping keeps it
    if (gpu_.lost) {
        start_ = 0;
    }
}

void Buffer::unmap_vmm()
{
    use([&] { return cuda().cuMemUnmap(start_, mapped_); });
    use([&] { return cuda().cuMemAddressFree(start_, mapped_); });
}

void Buffer::fill(std::vector<std::byte> content)
{
    content.resize(bytes_, std::byte{0xab});
    expected_.assign(bytes_ + 2 * kGuard, std::byte{0xcd});
    std::copy(content.begin(), content.end(), expected_.begin() + kGuard);
    if (is_on_host()) {
        std::copy(expected_.begin(), expected_.end(), reinterpret_cast<std::byte *>(start_));
        return;
    }
    use([&] {
        return cuda().driver->cuMemcpyAsync(start_, address_of(expected_), expected_.size(),
                                            gpu_.stream);
    });
    use([&] { return cuda().driver->cuStreamSynchronize(gpu_.stream); });
}

std::vector<std::byte> Buffer::read() const
{
    std::vector<std::byte> content(expected_.size());
    if (is_on_host()) {
        std::copy_n(reinterpret_cast<const std::byte *>(start_), content.size(), content.begin());
        return content;
    }
    use([&] {
        return cuda().driver->cuMemcpyDtoHAsync(content.data(), start_, content.size(),
                                                gpu_.stream);
    });
    use([&] { return cuda().driver->cuStreamSynchronize(gpu_.stream); });
    return gpu_.lost ? std::vector<std::byte>() : content;
}

bool Buffer::has_kept(std::size_t offset, std::size_t undefined) const
{
    const auto now = read();
    const std::size_t from = kGuard + offset, to = from + undefined;
    return now.empty() || (std::equal(now.begin(), now.begin() + from, expected_.begin()) &&
                           std::equal(now.begin() + to, now.end(), expected_.begin() + to));
}

std::size_t Buffer::first_changed() const
{
    const auto now = read();
    const auto pair = std::mismatch(now.begin(), now.end(), expected_.begin());
    return static_cast<std::size_t>(pair.first - now.begin()) - kGuard;
}

void Buffer::use_again(User next)
{
    fill(std::vector<std::byte>(bytes_, std::byte{0x5a}));
    user = next;
}

} // namespace hetcoll::test
