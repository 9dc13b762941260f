// libgdrapi.so.2 over the emulated GPU's memory: the functions of GDRCopy 2.6 that map device
// memory into the process (https://github.com/NVIDIA/gdrcopy, include/gdrapi.h). As with its
// persistent mappings, a mapping outlives cuMemFree: nobody is told, and it shows freed memory,
// 0xDB. EMU_GDR=1 switches it on; EMU_GDR_FAIL injects faults.
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#define EXPORT extern "C" __attribute__((visibility("default")))

extern "C" {
struct gdr {
    int pins;
};
using gdr_t = gdr *;
struct gdr_mh_t {
    unsigned long h;
};
}

namespace {

constexpr std::uintptr_t kPage = 65536;

struct Pin {
    std::uintptr_t start;
    std::size_t bytes;
    int fd;
    std::int64_t offset;
    void *view;
};

gdr the_gdr;
std::mutex mutex; // of all below

// ---- Faults: EMU_GDR_FAIL=FUNCTION:NTH:ANSWER[,...], as EMU_FAIL. An answer is an errno, or of
// gdr_map `copy` (a mapping of something else) or `private` (of which the device sees no write).

enum Answer : int { kCopy = -1, kPrivate = -2 };

struct Fault {
    std::string function;
    unsigned long nth;
    bool onwards;
    int answer;
    unsigned long seen = 0;
};

bool parse(std::string_view text, Fault &fault)
{
    const auto first = text.find(':'), second = text.find(':', first + 1);
    if (first == text.npos || second == text.npos) {
        return false;
    }
    std::string nth(text.substr(first + 1, second - first - 1));
    const std::string answer(text.substr(second + 1));
    fault.function = text.substr(0, first);
    fault.onwards = nth == "*" || nth.starts_with('+');
    fault.nth = nth == "*" ? 1 : std::strtoul(nth.c_str() + (fault.onwards ? 1 : 0), nullptr, 10);
    fault.answer = answer == "copy"      ? kCopy
                   : answer == "private" ? kPrivate
                                         : std::atoi(answer.c_str());
    return fault.function.starts_with("gdr_") && fault.nth > 0 && fault.answer != 0;
}

bool is_spared()
{
    const char *const only = std::getenv("EMU_FAIL_RANK");
    const char *rank = std::getenv("OMPI_COMM_WORLD_RANK");
    rank = rank != nullptr ? rank : std::getenv("PMIX_RANK");
    return only != nullptr && *only != '\0' && (rank == nullptr || std::strcmp(rank, only) != 0);
}

std::vector<Fault> read_faults(const char *text)
{
    std::vector<Fault> faults;
    std::string_view rest = text == nullptr ? "" : text;
    while (!rest.empty()) {
        const auto comma = rest.find(',');
        Fault fault;
        if (!parse(rest.substr(0, comma), fault)) {
            std::fprintf(
                stderr,
                "[emulated GPU, pid %d] EMU_GDR_FAIL='%s' is not FUNCTION:NTH:ERRNO[,...], "
                "no fault is injected\n",
                static_cast<int>(getpid()), text);
            return {};
        }
        faults.push_back(fault);
        rest = comma == rest.npos ? std::string_view() : rest.substr(comma + 1);
    }
    return faults;
}

std::vector<Fault> &faults()
{
    static auto &list =
        *new std::vector<Fault>(read_faults(is_spared() ? nullptr : std::getenv("EMU_GDR_FAIL")));
    return list;
}

// The injected answer of this call; 0: none. Requires the lock.
int fault_of(std::string_view function)
{
    int answer = 0;
    for (Fault &fault : faults()) {
        if (fault.function == function) {
            ++fault.seen;
            if (fault.seen == fault.nth || (fault.onwards && fault.seen > fault.nth)) {
                answer = fault.answer;
            }
        }
    }
    return answer;
}

Pin *pin_of(gdr_mh_t handle) { return reinterpret_cast<Pin *>(handle.h); }

// The emulated driver of this process; null: another driver, or none.
using OpenMemory = int (*)(std::uint64_t, std::uint64_t, std::int64_t *);
OpenMemory driver()
{
    void *const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    return library == nullptr
               ? nullptr
               : reinterpret_cast<OpenMemory>(dlsym(library, "emulated_gpu_open_memory"));
}

// The memory's content now, in another place.
void *map_copy(const Pin &pin)
{
    void *const copy =
        mmap(nullptr, pin.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (copy != MAP_FAILED && pread(pin.fd, copy, pin.bytes, pin.offset) < 0) {
        std::memset(copy, 0, pin.bytes);
    }
    return copy;
}

} // namespace

// For tests: replaces EMU_GDR_FAIL.
EXPORT void emulated_gdr_set_faults(const char *text)
{
    const std::lock_guard lock(mutex);
    faults() = read_faults(text);
}
// Pins that were not given back.
EXPORT int emulated_gdr_pins(void)
{
    const std::lock_guard lock(mutex);
    return the_gdr.pins;
}

EXPORT gdr_t gdr_open(void)
{
    const std::lock_guard lock(mutex);
    const char *const on = std::getenv("EMU_GDR");
    return on == nullptr || std::strcmp(on, "1") != 0 || driver() == nullptr ||
                   fault_of("gdr_open") != 0
               ? nullptr
               : &the_gdr;
}

EXPORT int gdr_close(gdr_t g) { return g == &the_gdr ? 0 : EINVAL; }

EXPORT void gdr_runtime_get_version(int *major, int *minor)
{
    const std::lock_guard lock(mutex);
    *major = 2;
    *minor = fault_of("gdr_runtime_get_version") != 0 ? 4 : 6;
}

EXPORT int gdr_driver_get_version(gdr_t, int *major, int *minor)
{
    const std::lock_guard lock(mutex);
    *major = 2;
    *minor = fault_of("gdr_driver_get_version") != 0 ? 4 : 6;
    return 0;
}

EXPORT int gdr_pin_buffer(gdr_t g, unsigned long address, std::size_t bytes, std::uint64_t,
                          std::uint32_t, gdr_mh_t *handle)
{
    const std::lock_guard lock(mutex);
    if (const int answer = fault_of("gdr_pin_buffer"); answer != 0) {
        return answer;
    }
    if (g != &the_gdr || handle == nullptr || bytes == 0 || address % kPage != 0 ||
        bytes % kPage != 0) {
        return EINVAL;
    }
    const OpenMemory open_memory = driver();
    std::int64_t offset = 0;
    const int fd = open_memory == nullptr ? -1 : open_memory(address, bytes, &offset);
    if (fd < 0) {
        return EINVAL;
    }
    ++g->pins;
    handle->h = reinterpret_cast<unsigned long>(new Pin{address, bytes, fd, offset, nullptr});
    return 0;
}

EXPORT int gdr_unpin_buffer(gdr_t g, gdr_mh_t handle)
{
    const std::lock_guard lock(mutex);
    if (const int answer = fault_of("gdr_unpin_buffer"); answer != 0) {
        return answer;
    }
    Pin *const pin = pin_of(handle);
    if (pin->view != nullptr) {
        munmap(pin->view, pin->bytes);
    }
    close(pin->fd);
    delete pin;
    --g->pins;
    return 0;
}

EXPORT int gdr_map(gdr_t, gdr_mh_t handle, void **view, std::size_t bytes)
{
    const std::lock_guard lock(mutex);
    Pin *const pin = pin_of(handle);
    const int answer = fault_of("gdr_map");
    if (answer > 0 || pin->view != nullptr || bytes > pin->bytes) {
        return answer > 0 ? answer : EINVAL;
    }
    void *const at = answer == kCopy ? map_copy(*pin)
                                     : mmap(nullptr, pin->bytes, PROT_READ | PROT_WRITE,
                                            answer == kPrivate ? MAP_PRIVATE : MAP_SHARED, pin->fd,
                                            static_cast<off_t>(pin->offset));
    if (at == MAP_FAILED) {
        return errno;
    }
    *view = pin->view = at;
    return 0;
}

EXPORT int gdr_unmap(gdr_t, gdr_mh_t handle, void *view, std::size_t)
{
    const std::lock_guard lock(mutex);
    Pin *const pin = pin_of(handle);
    const int answer = fault_of("gdr_unmap");
    if (answer != 0 || view != pin->view) {
        return answer != 0 ? answer : EINVAL;
    }
    munmap(pin->view, pin->bytes);
    pin->view = nullptr;
    return 0;
}

EXPORT int gdr_copy_to_mapping(gdr_mh_t, void *to, const void *from, std::size_t bytes)
{
    {
        const std::lock_guard lock(mutex);
        if (const int answer = fault_of("gdr_copy_to_mapping"); answer != 0) {
            return answer;
        }
    }
    std::memcpy(to, from, bytes);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return 0;
}

EXPORT int gdr_copy_from_mapping(gdr_mh_t, void *to, const void *from, std::size_t bytes)
{
    {
        const std::lock_guard lock(mutex);
        if (const int answer = fault_of("gdr_copy_from_mapping"); answer != 0) {
            return answer;
        }
    }
    std::memcpy(to, from, bytes);
    return 0;
}
