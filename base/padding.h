// Pairs of MPI_MAXLOC and MPI_MINLOC have bytes that are neither value nor index. In the program's
// memory they are the program's, as those between the elements of any other type, and stay as they
// are.
#pragma once

#include "base/element.h"

#include <span>

namespace hetcoll {

[[nodiscard]] constexpr bool has_padding(ElementKind kind) noexcept
{
    return kind == ElementKind::kInt16Int32 || kind == ElementKind::kInt64Int32 ||
           kind == ElementKind::kFloat64Int32;
}

struct ElementPart {
    std::size_t offset, bytes;
};
// The bytes of an element of a kind with padding that are data.
[[nodiscard]] std::span<const ElementPart> element_parts(ElementKind kind) noexcept;

// Bytes from the first element to the end of the last one's data. Requires a kind with padding.
[[nodiscard]] std::size_t data_span(ElementKind kind, std::size_t count) noexcept;
// Copies the data of elements in host memory, and no padding. The buffers do not overlap. Requires
// a kind with padding.
void copy_elements(void *to, const void *from, std::size_t count, ElementKind kind) noexcept;

} // namespace hetcoll
