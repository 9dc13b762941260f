// UCX's libucm patches the driver's functions that allocate and free memory. It can move aside what
// real ones begin with: saving registers. GCC mixes that with other work unless told otherwise.
#pragma once

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-omit-frame-pointer", "no-schedule-insns2")
#endif
