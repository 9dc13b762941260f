// The flags by name, in one list, so that a bit means one thing in every meeting. Ranks learn that
// some rank has said a flag, not which rank.
#pragma once

#include "engine/meeting/flag_set.h"

namespace hetcoll {

// About a call.
inline constexpr Flags kDeviceMemory{1u << 0};
inline constexpr Flags kHostMemory{1u << 1};
inline constexpr Flags kMustStage{1u << 2}; // cannot run our schedules now
inline constexpr Flags kFailed{1u << 3};    // a driver call failed, the result is lost
inline constexpr Flags kNoMapping{1u << 4}; // peers cannot map its buffers, or it cannot map theirs
inline constexpr Flags kNeverMap{1u << 12}; // it cannot map what stands for peers' buffers either
inline constexpr Flags kNewDevice{1u << 13};   // peers know another device of it
inline constexpr Flags kNewBuffers{1u << 5};   // some peer may have to map them first
inline constexpr Flags kUnknownOp{1u << 6};    // hetcoll does not know the user-defined op
inline constexpr Flags kOutOfRange{1u << 7};   // an element has no fixed point
inline constexpr Flags kInputGone{1u << 14};   // its result has overwritten its only input
inline constexpr Flags kCallsDiffer{1u << 15}; // not said but found: see Meeting::differences()
inline constexpr Flags kMemoryFreed{1u << 8};  // it has, what peers have mapped: its slot says what

// About what a communicator's first calls find out. The first in the exchange that makes the
// control pages, in which no other is said.
inline constexpr Flags kNoPage{1u << 8};        // could not make the node's control page, or attach
inline constexpr Flags kNoRecord{1u << 9};      // cannot say where its GPU is
inline constexpr Flags kUnreachable{1u << 10};  // cannot read the memory of some GPU of its node
inline constexpr Flags kNoAggregator{1u << 11}; // does not reach its aggregator, or has lost it

} // namespace hetcoll
