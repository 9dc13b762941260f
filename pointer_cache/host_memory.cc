#include "pointer_cache/host_memory.h"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <link.h>
#include <pthread.h>
#include <unistd.h>

namespace hetcoll {
namespace {

// The upper part of a reported stack that is trusted: with an unlimited stack the main thread's
// reaches down to the next mapping, and new mappings may be made in between.
constexpr std::uintptr_t kMostStackBytes = std::uintptr_t{64} << 20;

struct StackRange {
    std::uintptr_t low, high; // 0, 0: not asked yet
};
constinit thread_local StackRange own_stack{0, 0};

StackRange ask_own_stack()
{
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) {
        return {1, 1};
    }
    void *low = nullptr;
    std::size_t bytes = 0;
    pthread_attr_getstack(&attributes, &low, &bytes);
    pthread_attr_destroy(&attributes);
    const auto first = reinterpret_cast<std::uintptr_t>(low), end = first + bytes;
    return {std::max(first, end - std::min(end, kMostStackBytes)), end};
}

// Live frames only, and only if this function itself runs on the thread's own stack: a coroutine's
// stack is a mapping like any other.
[[gnu::noinline]] bool is_on_own_stack(std::uintptr_t address)
{
    if (own_stack.high == 0) {
        own_stack = ask_own_stack();
    }
    const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    return here >= own_stack.low && address >= here && address < own_stack.high;
}

// Field 47 of /proc/self/stat, proc(5). The second field is the program's name in parentheses,
// which may hold any character.
std::uintptr_t read_start_brk()
{
    constexpr int kStartBrk = 47, kFirstAfterName = 3;
    char text[2048];
    std::FILE *const file = std::fopen("/proc/self/stat", "re");
    if (file == nullptr) {
        return UINTPTR_MAX;
    }
    text[std::fread(text, 1, sizeof text - 1, file)] = '\0';
    std::fclose(file);
    const char *at = std::strrchr(text, ')');
    for (int field = kFirstAfterName - 1; at != nullptr && field < kStartBrk; ++field) {
        at = std::strchr(at + 1, ' ');
    }
    const std::uintptr_t brk = at != nullptr ? std::strtoull(at, nullptr, 10) : 0;
    return brk != 0 ? brk : UINTPTR_MAX; // 0 where the kernel hides it
}

} // namespace

HostMemory::HostMemory() noexcept : heap_first_(read_start_brk()), program_{}
{
    const auto add_segments = [](dl_phdr_info *info, std::size_t, void *out) {
        auto &ranges = *static_cast<decltype(program_) *>(out);
        const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
        std::size_t used = 0;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
            const ElfW(Phdr) &segment = info->dlpi_phdr[i];
            const std::uintptr_t first = (info->dlpi_addr + segment.p_vaddr) / page * page;
            const std::uintptr_t end = info->dlpi_addr + segment.p_vaddr + segment.p_memsz;
            if (segment.p_type != PT_LOAD) {
                continue;
            }
            if (used != 0 && first <= (ranges[used - 1].end + page - 1) / page * page) {
                ranges[used - 1].end = end;
            } else if (used < ranges.size()) {
                ranges[used++] = {first, end};
            }
        }
        return 1; // the main program comes first, and is never unloaded
    };
    dl_iterate_phdr(add_segments, &program_);
}

bool HostMemory::contains_elsewhere(std::uintptr_t address) const noexcept
{
    constexpr std::uintptr_t kNullPage = 4096;
    if (address < kNullPage) {
        return true;
    }
    for (const Range &range : program_) {
        if (address >= range.first && address < range.end) {
            return true;
        }
    }
    return is_on_own_stack(address);
}

} // namespace hetcoll
