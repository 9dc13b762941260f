// Resources that the process still holds when it ends.
#pragma once

#include <string>

namespace hetcoll::emulated_gpu {

// Their parts of the report: one line a thing, empty if there is nothing.
[[nodiscard]] std::string leaked_vmm();
[[nodiscard]] std::string leaked_pools();

// EMU_LEAKS to stderr, EMU_LEAKS_FILE to a file. Nothing is written if nothing leaked.
void report_leaks();

} // namespace hetcoll::emulated_gpu
