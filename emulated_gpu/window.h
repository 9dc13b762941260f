// The device's addresses. The application sees device memory in an address window in which nothing
// can be read or written; the same pages are mapped a second time, at a constant distance, in an
// alias window that only copies and kernels use. So host code that touches device memory faults, a
// system call that is given some answers EFAULT, and no processor feature is needed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hetcoll::emulated_gpu {

using Address = std::uintptr_t;

inline constexpr std::size_t kGranule = std::size_t{2} << 20; // the driver's block size

[[nodiscard]] constexpr std::size_t round_up(std::size_t bytes, std::size_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

// Reserves both windows. False if the process has no room for them. Called once, by cuInit.
[[nodiscard]] bool reserve_window();

[[nodiscard]] bool in_window(Address address);
[[nodiscard]] bool in_alias_window(Address address);
// The device address of an alias.
[[nodiscard]] Address device_address(Address alias);

// Where device code reaches `address`: the alias of device memory, any other address unchanged.
[[nodiscard]] Address reachable(Address address);
template <class T> [[nodiscard]] T *reachable_as(Address address)
{
    return reinterpret_cast<T *>(reachable(address));
}

// An unused range of the window, in granules; 0 if there is none. Ranges given back last are handed
// out first, which finds stale pointers and caches (EMU_VA_REUSE=0 avoids it as long as it can).
// Require the lock of the memory registry.
[[nodiscard]] Address take_range(std::size_t bytes);
void give_range(Address start, std::size_t bytes);

// Maps part of a file at a range: device memory as alias only, managed memory for the host too.
[[nodiscard]] bool map_device(Address start, std::size_t bytes, int fd, std::size_t offset);
[[nodiscard]] bool map_managed(Address start, std::size_t bytes, int fd);
// Fresh page-locked host memory.
[[nodiscard]] bool map_host(Address start, std::size_t bytes);
// Nothing is reachable in the range any more.
void unmap_range(Address start, std::size_t bytes);

} // namespace hetcoll::emulated_gpu
