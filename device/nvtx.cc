#include "device/nvtx.h"

#include "hetcoll_config.h"

#include <cstdio>

#if HETCOLL_WITH_NVTX
// The header defines all of NVTX's functions, 28 KB otherwise.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("Os")
#endif
#include <nvtx3/nvToolsExt.h>
#endif

namespace hetcoll {

#if HETCOLL_WITH_NVTX

namespace {

nvtxDomainHandle_t domain_of(void *domain) { return static_cast<nvtxDomainHandle_t>(domain); }

} // namespace

Nvtx::Nvtx() noexcept : domain_(nvtxDomainCreateA("hetcoll")) {}

Nvtx::~Nvtx()
{
    if (domain_ != nullptr) {
        nvtxDomainDestroy(domain_of(domain_));
    }
}

std::uint64_t Nvtx::start_named(const char *call, const char *algorithm,
                                std::size_t bytes) const noexcept
{
    char name[96];
    std::snprintf(name, sizeof name, "hetcoll %s %s %zu", call, algorithm, bytes);
    nvtxEventAttributes_t event{};
    event.version = NVTX_VERSION;
    event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    event.messageType = NVTX_MESSAGE_TYPE_ASCII;
    event.message.ascii = name;
    return nvtxDomainRangeStartEx(domain_of(domain_), &event);
}

void Nvtx::end(std::uint64_t range) const noexcept
{
    if (range != 0) {
        nvtxDomainRangeEnd(domain_of(domain_), range);
    }
}

#else

Nvtx::Nvtx() noexcept = default;
Nvtx::~Nvtx() = default;
std::uint64_t Nvtx::start_named(const char *, const char *, std::size_t) const noexcept
{
    return 0;
}
void Nvtx::end(std::uint64_t) const noexcept {}

#endif

} // namespace hetcoll
