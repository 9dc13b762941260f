#include "test/mpi/own_allocations.h"

#include <link.h>
#include <malloc.h>
#include <unwind.h>

#include <algorithm>
#include <cstdint>
#include <string_view>

extern "C" {
void *__libc_malloc(std::size_t bytes);
void *__libc_calloc(std::size_t count, std::size_t bytes);
void *__libc_realloc(void *pointer, std::size_t bytes);
void *__libc_memalign(std::size_t alignment, std::size_t bytes);
void __libc_free(void *pointer);
}

namespace hetcoll::test {
namespace {

OwnAllocation watcher = nullptr;
std::size_t largest = 0;
thread_local bool asks = false; // unwinding may allocate

// Where an object that is loaded lies. Both are before anything is watched.
struct Place {
    std::string_view name;
    std::uintptr_t begin = 0, end = 0;
    [[nodiscard]] bool has(std::uintptr_t code) const { return begin <= code && code < end; }
};
Place cpp_library{"libstdc++"}, component{"hetcoll_component"};

int note_place(dl_phdr_info *info, std::size_t, void *)
{
    for (Place *place : {&cpp_library, &component}) {
        if (std::string_view(info->dlpi_name).find(place->name) == std::string_view::npos) {
            continue;
        }
        for (int i = 0; i < info->dlpi_phnum; ++i) {
            const auto &part = info->dlpi_phdr[i];
            const std::uintptr_t begin = info->dlpi_addr + part.p_vaddr;
            if (part.p_type == PT_LOAD) {
                place->begin = place->end == 0 ? begin : std::min(place->begin, begin);
                place->end = std::max(place->end, begin + part.p_memsz);
            }
        }
    }
    return 0;
}

// The first frame after `from` that is not in the C++ library.
struct Search {
    std::uintptr_t from, found = 0;
    bool begun = false;
};

_Unwind_Reason_Code look_at_frame(_Unwind_Context *frame, void *to)
{
    auto *const search = static_cast<Search *>(to);
    const std::uintptr_t code = _Unwind_GetIP(frame);
    search->begun = search->begun || code == search->from;
    if (!search->begun || cpp_library.has(code)) {
        return _URC_NO_REASON;
    }
    search->found = code;
    return _URC_END_OF_STACK;
}

// `caller` is in who called malloc. For the C++ library whoever called that counts.
bool is_hetcolls(const void *caller)
{
    const auto code = reinterpret_cast<std::uintptr_t>(caller);
    if (!cpp_library.has(code)) {
        return component.has(code);
    }
    Search search{code};
    _Unwind_Backtrace(look_at_frame, &search);
    return component.has(search.found);
}

[[maybe_unused]] bool has_memory(const void *caller)
{
    if (watcher == nullptr || asks) {
        return true;
    }
    asks = true;
    const bool has = !is_hetcolls(caller) || watcher();
    asks = false;
    return has;
}

} // namespace

void watch_own_allocations(OwnAllocation its_watcher)
{
    Search nothing{1};
    _Unwind_Backtrace(look_at_frame, &nothing); // the first one allocates
    dl_iterate_phdr(note_place, nullptr);
    watcher = its_watcher;
    largest = 0;
}

std::size_t largest_freed() { return largest; }

} // namespace hetcoll::test

#ifndef __SANITIZE_ADDRESS__ // AddressSanitizer has its own
#pragma GCC visibility push(default)
extern "C" {
using hetcoll::test::has_memory;
void *malloc(std::size_t bytes)
{
    return has_memory(__builtin_return_address(0)) ? __libc_malloc(bytes) : nullptr;
}
void *calloc(std::size_t count, std::size_t bytes)
{
    return has_memory(__builtin_return_address(0)) ? __libc_calloc(count, bytes) : nullptr;
}
void *realloc(void *pointer, std::size_t bytes)
{
    return has_memory(__builtin_return_address(0)) ? __libc_realloc(pointer, bytes) : nullptr;
}
int posix_memalign(void **to, std::size_t alignment, std::size_t bytes)
{
    *to = has_memory(__builtin_return_address(0)) ? __libc_memalign(alignment, bytes) : nullptr;
    return *to != nullptr ? 0 : 12; // ENOMEM
}
void *aligned_alloc(std::size_t alignment, std::size_t bytes)
{
    return has_memory(__builtin_return_address(0)) ? __libc_memalign(alignment, bytes) : nullptr;
}
void free(void *pointer)
{
    if (hetcoll::test::watcher != nullptr && pointer != nullptr) {
        hetcoll::test::largest = std::max(hetcoll::test::largest, malloc_usable_size(pointer));
    }
    __libc_free(pointer);
}
}
#pragma GCC visibility pop
#endif
