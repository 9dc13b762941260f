// The host and the time, for the headers of results. No MPI.
#pragma once

#include <string>

namespace hetcoll {

[[nodiscard]] std::string cpu_model();
[[nodiscard]] int cores_of_machine();
[[nodiscard]] std::string now_utc(); // "2026-11-21 15:31:10 UTC"

} // namespace hetcoll
