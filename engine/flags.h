// What ranks tell each other when they meet. Combined by OR, so a bit means "some rank".
#pragma once

#include "engine/exchange.h"

namespace hetcoll {

inline constexpr Flags kDeviceMemory = 1;
inline constexpr Flags kHostMemory = 2;
inline constexpr Flags kMustStage = 4;   // cannot run our schedules now
inline constexpr Flags kFailed = 8;      // a driver call failed, the result is lost
inline constexpr Flags kNotShared = 16;  // cannot share its buffers, or map those of others
inline constexpr Flags kNewBuffers = 32; // some peer may have to map them first
inline constexpr Flags kUnknownOp = 64;  // the user-defined op is none that hetcoll knows

inline constexpr Flags kOutOfRange = 128; // an element has no fixed point

} // namespace hetcoll
