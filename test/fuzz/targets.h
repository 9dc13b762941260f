// Everything that hetcoll reads and did not write itself: files, parameters, and what peers say of
// themselves. libFuzzer runs these targets (make check-fuzz); make check runs them on the corpus
// and on changed copies of it.
#pragma once

#include <cstddef>
#include <span>

namespace hetcoll::test {

struct FuzzTarget {
    const char *name; // of the folder of its corpus too
    // True if the bytes are what the target reads. Ends the program if what must hold for any bytes
    // does not hold: the sanitizers see the rest.
    bool (*read)(std::span<const std::byte> bytes);
    std::size_t most_bytes; // longer inputs find nothing new
    const char *seeds;      // more to begin with: a folder of the source tree; null: none
};

[[nodiscard]] std::span<const FuzzTarget> fuzz_targets();

// Ends the program if it does not hold.
void require(bool holds, const char *what);

} // namespace hetcoll::test
