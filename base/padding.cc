#include "base/padding.h"

#include <cstring>

namespace hetcoll {
namespace {

constexpr ElementPart kShortAndInt[] = {{0, 2}, {4, 4}}, kEightBytesAndInt[] = {{0, 12}};

} // namespace

std::span<const ElementPart> element_parts(ElementKind kind) noexcept
{
    return kind == ElementKind::kInt16Int32 ? std::span<const ElementPart>(kShortAndInt)
                                            : std::span<const ElementPart>(kEightBytesAndInt);
}

std::size_t data_span(ElementKind kind, std::size_t count) noexcept
{
    const ElementPart &last = element_parts(kind).back();
    return count == 0 ? 0 : (count - 1) * element_bytes(kind) + last.offset + last.bytes;
}

void copy_elements(void *to, const void *from, std::size_t count, ElementKind kind) noexcept
{
    const std::size_t element = element_bytes(kind);
    for (const ElementPart &part : element_parts(kind)) {
        auto *out = static_cast<std::byte *>(to) + part.offset;
        const auto *in = static_cast<const std::byte *>(from) + part.offset;
        for (std::size_t i = 0; i < count; ++i, out += element, in += element) {
            std::memcpy(out, in, part.bytes);
        }
    }
}

} // namespace hetcoll
