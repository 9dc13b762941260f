// GDRCopy (https://github.com/NVIDIA/gdrcopy), found at run time by dlopen: it maps device memory
// into the process, by a kernel module. From 2.5 on its mappings stay when the memory is freed, so
// reading one that is stale is no crash; whether it is stale, BUFFER_ID tells. Older ones are not
// used.
#pragma once

#include "base/status.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

namespace hetcoll {

// Thread safe, which GDRCopy's own functions are not.
class GdrLibrary {
public:
    // libgdrapi.so.2, which is never closed. An error says why it cannot be used.
    [[nodiscard]] static Result<std::unique_ptr<GdrLibrary>> open();
    ~GdrLibrary();
    GdrLibrary(const GdrLibrary &) = delete;
    GdrLibrary &operator=(const GdrLibrary &) = delete;

    static constexpr std::uintptr_t kPageBytes = 65536; // of a GPU, as it pins them

    struct Mapping {
        unsigned long handle = 0;
        void *at = nullptr;
        std::size_t bytes = 0;
    };
    // Whole pages of device memory.
    [[nodiscard]] Result<Mapping> map(std::uintptr_t first, std::size_t bytes);
    void unmap(const Mapping &mapping) noexcept;
    // False: it refused. A write is complete, as later work of the GPU sees it, on return.
    [[nodiscard]] bool read(const Mapping &from, std::size_t offset, void *to,
                            std::size_t bytes) const noexcept;
    [[nodiscard]] bool write(const Mapping &to, std::size_t offset, const void *from,
                             std::size_t bytes) const noexcept;

private:
    // As gdrapi.h declares them.
    struct Handle {
        unsigned long h;
    };
    struct Functions {
        void *(*open)();
        int (*close)(void *);
        int (*pin_buffer)(void *, unsigned long, std::size_t, std::uint64_t, std::uint32_t,
                          Handle *);
        int (*unpin_buffer)(void *, Handle);
        int (*map)(void *, Handle, void **, std::size_t);
        int (*unmap)(void *, Handle, void *, std::size_t);
        int (*copy_to_mapping)(Handle, void *, const void *, std::size_t);
        int (*copy_from_mapping)(Handle, void *, const void *, std::size_t);
        void (*runtime_get_version)(int *, int *);
        int (*driver_get_version)(void *, int *, int *);
    };

    explicit GdrLibrary(const Functions &functions) noexcept : call_(functions) {}
    [[nodiscard]] static Result<Functions> look_up();

    const Functions call_;
    void *gdr_ = nullptr;
    std::mutex mutex_; // of pins and mappings
};

} // namespace hetcoll
