// A control page as a hostile rank would write it.
#pragma once

#include <cstddef>
#include <span>

namespace hetcoll::test {

// Three ranks come to a meeting. The first byte says which of them is honest; the others change,
// bit by bit, all that the slots of the two others hold except buffers. The honest rank steps, and
// hetcoll_info --live reads the page. True if the honest rank's meeting ended and it found no call
// that differs from its own.
bool read_control_page(std::span<const std::byte> bytes);

} // namespace hetcoll::test
