// The behaviours of a hostile driver, by groups: EMU_HOSTILE. README.md lists them and the evidence
// that a driver may behave so.
#pragma once

namespace hetcoll::emulated_gpu {

enum class Hostility {
    kWaits,    // calls that may wait for the device do
    kHolds,    // those that a GPU waits in keep others from giving work to streams; kWaits has it
    kHandles,  // handles come back immediately, and dead ones end the program
    kContexts, // so do contexts and what ended with one; the id of a primary one stays over resets
    kErrors,   // an error that ruins a context is the answer of nearly every later call
    kLimits,   // eight peers, one importing context a device, gaps in NVLinks' numbers, pitches
    kLate,     // work begins and ends as late as it may
    kCount
};

[[nodiscard]] bool is_hostile(Hostility in);

} // namespace hetcoll::emulated_gpu
