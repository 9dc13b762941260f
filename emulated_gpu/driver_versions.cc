#include "emulated_gpu/driver_versions.h"

#include "emulated_gpu/calls.h"
#include "emulated_gpu/report.h"
#include "emulated_gpu/settings.h"

#include <sys/mman.h>

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace hetcoll::emulated_gpu {
namespace {

// The CUDA release in which each version of an entry point appeared. The k-th version is called
// name_v<k>, the first plain name.
struct EntryPointVersions {
    const char *name;
    int since[6];
};
constexpr EntryPointVersions kVersions[] = {
#include "emulated_gpu/entry_point_versions.inc"
};

// A release that can be played, and the last device attribute in its cuda.h.
struct Release {
    const char *name;
    int version;
    int last_attribute;
};
constexpr Release kReleases[] = {{"11.8", 11080, 124},
                                 {"12.2", 12020, 134},
                                 {"12.9", 12090, 143},
                                 {"13.0", 13000, CU_DEVICE_ATTRIBUTE_MAX - 1}};
constexpr Release kNewest = {"", CUDA_VERSION, CU_DEVICE_ATTRIBUTE_MAX - 1};

Release read_release()
{
    const char *text = std::getenv("EMU_DRIVER");
    if (text == nullptr || *text == '\0') {
        return kNewest;
    }
    for (const Release &release : kReleases) {
        if (std::strcmp(release.name, text) == 0) {
            return release;
        }
    }
    say("EMU_DRIVER='%s' is not 11.8, 12.2, 12.9 or 13.0, the newest driver is played", text);
    return kNewest;
}

const Release &release()
{
    static const Release read = read_release();
    return read;
}

std::string versioned(const char *name, int k)
{
    return k == 1 ? std::string(name) : std::string(name) + "_v" + std::to_string(k);
}

// Takes a symbol out of this library's table, as the loader reads it: dlsym finds it no more.
void hide(const std::string &symbol)
{
    void *const address = dlsym(own_library(), symbol.c_str());
    Dl_info info;
    ElfW(Sym) *entry = nullptr;
    if (address == nullptr ||
        dladdr1(address, &info, reinterpret_cast<void **>(&entry), RTLD_DL_SYMENT) == 0 ||
        entry == nullptr || info.dli_sname == nullptr || symbol != info.dli_sname) {
        return;
    }
    const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    const auto first = reinterpret_cast<std::uintptr_t>(entry) / page * page;
    const auto end = reinterpret_cast<std::uintptr_t>(entry + 1);
    auto *const pages = reinterpret_cast<void *>(first);
    if (mprotect(pages, end - first, PROT_READ | PROT_WRITE) != 0) {
        say("EMU_DRIVER: %s cannot be hidden: %m", symbol.c_str());
        return;
    }
    entry->st_value = 0;
    entry->st_shndx = SHN_UNDEF;
    mprotect(pages, end - first, PROT_READ);
}

// Before the program can look anything up.
__attribute__((constructor)) void hide_what_came_later()
{
    if (release().version == kNewest.version) {
        return;
    }
    for (const EntryPointVersions &known : kVersions) {
        for (int k = 1; k <= 6 && known.since[k - 1] != 0; ++k) {
            if (known.since[k - 1] > release().version) {
                for (const char *const suffix : {"", "_ptds", "_ptsz"}) {
                    hide(versioned(known.name, k) + suffix);
                }
            }
        }
    }
}

} // namespace

int driver_version()
{
    return settings().driver_version != 0 ? settings().driver_version : release().version;
}

bool knows(CUdevice_attribute attribute)
{
    return attribute > 0 && static_cast<int>(attribute) <= release().last_attribute;
}

std::string symbol_name(std::string_view call, int version)
{
    for (const EntryPointVersions &known : kVersions) {
        if (call != known.name) {
            continue;
        }
        int newest = 0;
        for (int k = 0; k < 6 && known.since[k] != 0 && known.since[k] <= version; ++k) {
            newest = k + 1;
        }
        return newest == 0 ? std::string() : versioned(known.name, newest);
    }
    return std::string(call);
}

} // namespace hetcoll::emulated_gpu
