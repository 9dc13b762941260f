#include "device/gdr_library.h"

#include <cstring>
#include <dlfcn.h>

namespace hetcoll {
namespace {

constexpr const char *kLibrary = "libgdrapi.so.2";

// Of 2.5 or newer, but of the same interface.
constexpr bool has_lasting_mappings(int major, int minor) { return major == 2 && minor >= 5; }

} // namespace

Result<GdrLibrary::Functions> GdrLibrary::look_up()
{
    void *const library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        return error(Errc::kUnsupported, "%s", dlerror());
    }
    Functions found{};
    const char *missing = nullptr;
    const auto look_up = [&](auto &function, const char *name) {
        function =
            reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
        missing = function == nullptr ? name : missing;
    };
    look_up(found.open, "gdr_open");
    look_up(found.close, "gdr_close");
    look_up(found.pin_buffer, "gdr_pin_buffer");
    look_up(found.unpin_buffer, "gdr_unpin_buffer");
    look_up(found.map, "gdr_map");
    look_up(found.unmap, "gdr_unmap");
    look_up(found.copy_to_mapping, "gdr_copy_to_mapping");
    look_up(found.copy_from_mapping, "gdr_copy_from_mapping");
    look_up(found.runtime_get_version, "gdr_runtime_get_version");
    look_up(found.driver_get_version, "gdr_driver_get_version");
    if (missing != nullptr) {
        return error(Errc::kUnsupported, "%s lacks %s, install GDRCopy 2.5 or newer", kLibrary,
                     missing);
    }
    return found;
}

Result<std::unique_ptr<GdrLibrary>> GdrLibrary::open()
{
    auto functions = look_up();
    if (!functions.ok()) {
        return functions.take_status();
    }
    std::unique_ptr<GdrLibrary> library(new GdrLibrary(*functions));
    int major = 0, minor = 0;
    functions->runtime_get_version(&major, &minor);
    if (!has_lasting_mappings(major, minor)) {
        return error(Errc::kUnsupported, "%s is of GDRCopy %d.%d, install 2.5 or newer", kLibrary,
                     major, minor);
    }
    library->gdr_ = functions->open();
    if (library->gdr_ == nullptr) {
        return error(Errc::kUnsupported,
                     "GDRCopy cannot open /dev/gdrdrv: load its kernel module gdrdrv");
    }
    if (functions->driver_get_version(library->gdr_, &major, &minor) != 0 ||
        !has_lasting_mappings(major, minor)) {
        return error(Errc::kUnsupported,
                     "GDRCopy's kernel module gdrdrv is of %d.%d, install 2.5 or newer", major,
                     minor);
    }
    return library;
}

GdrLibrary::~GdrLibrary()
{
    if (gdr_ != nullptr) {
        call_.close(gdr_);
    }
}

Result<GdrLibrary::Mapping> GdrLibrary::map(std::uintptr_t first, std::size_t bytes)
{
    const std::lock_guard lock(mutex_);
    Handle handle{};
    if (const int code = call_.pin_buffer(gdr_, first, bytes, 0, 0, &handle); code != 0) {
        return error(Errc::kDriver, "gdr_pin_buffer failed: %s", std::strerror(code));
    }
    Mapping mapping{.handle = handle.h, .at = nullptr, .bytes = bytes};
    if (const int code = call_.map(gdr_, handle, &mapping.at, bytes); code != 0) {
        call_.unpin_buffer(gdr_, handle);
        return error(Errc::kDriver, "gdr_map failed: %s", std::strerror(code));
    }
    return mapping;
}

void GdrLibrary::unmap(const Mapping &mapping) noexcept
{
    const std::lock_guard lock(mutex_);
    call_.unmap(gdr_, Handle{mapping.handle}, mapping.at, mapping.bytes);
    call_.unpin_buffer(gdr_, Handle{mapping.handle});
}

bool GdrLibrary::read(const Mapping &from, std::size_t offset, void *to,
                      std::size_t bytes) const noexcept
{
    const auto *const source = static_cast<const std::byte *>(from.at) + offset;
    return call_.copy_from_mapping(Handle{from.handle}, to, source, bytes) == 0;
}

bool GdrLibrary::write(const Mapping &to, std::size_t offset, const void *from,
                       std::size_t bytes) const noexcept
{
    auto *const target = static_cast<std::byte *>(to.at) + offset;
    return call_.copy_to_mapping(Handle{to.handle}, target, from, bytes) == 0;
}

} // namespace hetcoll
