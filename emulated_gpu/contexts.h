// Contexts, primary and others, and the stack of current ones that every thread has.
#pragma once

#include "emulated_gpu/handles.h"
#include "emulated_gpu/hostile_waits.h"
#include "emulated_gpu/streams.h"

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace hetcoll::emulated_gpu {

// Never freed, because threads may have it current; a primary context comes back to life when it is
// retained again.
struct Context {
    CUcontext handle = nullptr; // a later context may have it too
    int device = 0;
    bool primary = false;
    std::atomic<bool> alive{false};
    std::uint64_t life = 0; // differs after a reset
    std::uint64_t id = 0;   // cuCtxGetId: a hostile driver's stays over resets, as the handle does
    int retains = 0;        // of a primary context, guarded by the table of primary contexts
    std::atomic<unsigned> flags{0};
    std::atomic<int> sticky_error{CUDA_SUCCESS}; // stays over a reset
    std::atomic<bool> sync_memops{false};
    std::atomic<unsigned> peers{0}; // devices whose memory cuCtxEnablePeerAccess opened, as bits

    std::mutex submit_mutex; // work enters the streams in one order; guards `streams`
    StreamPointer legacy;
    std::vector<StreamPointer> streams; // all but the legacy one
    SubmissionGate gate;                // before submit_mutex, with no lock

    [[nodiscard]] std::vector<StreamPointer> all_streams();
};

[[nodiscard]] HandleTable<Context> &contexts();

// The context current to this thread, null if there is none.
[[nodiscard]] Context *current_context();
// The same. Fails if there is none, if it was destroyed, and after an
// error that sticks to it.
[[nodiscard]] CUresult usable_context(Context *&context);
// The same for a handle that a call was given.
[[nodiscard]] Context *find_context(CUcontext handle);

// Fails with CUDA_ERROR_INVALID_DEVICE if there is no such device.
[[nodiscard]] CUresult check_device(CUdevice device);

// One line for each primary context still retained, for the leak report.
[[nodiscard]] std::string retained_contexts();

} // namespace hetcoll::emulated_gpu
