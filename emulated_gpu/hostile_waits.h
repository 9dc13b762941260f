// EMU_HOSTILE: calls that may wait for the device do, and what a call that waits keeps from others.
// Which ones, and who says so: README.md.
#pragma once

#include <condition_variable>
#include <mutex>

namespace hetcoll::emulated_gpu {

struct Context;

// For an entry point that may synchronise: waits for calls that hold the streams of the current
// context, and then for everything submitted to its device, also for another library's kernel that
// waits for another process. Requires no lock.
void may_synchronise();
// The same for a call that names its context or device.
void may_synchronise(int device);

// Entered by calls that give work to a context's streams, and by those that may synchronise. It
// is closed while any call waits that holds the streams.
class SubmissionGate {
public:
    void close();
    void open();
    // Returns when it is open. Requires no lock: whoever has closed it may need any of them.
    void pass();

private:
    std::mutex mutex_;
    std::condition_variable opened_;
    int closed_ = 0; // how often
};

// While it lives, other threads give no work to the context's streams, if the driver is hostile: no
// more than a stream's wait for an event or a number, or the write of one.
// For calls in which a GPU's driver waits, and nobody gets a launch in meanwhile. Its thread must
// give no work to these streams.
class SubmissionsHeld {
public:
    explicit SubmissionsHeld(Context &context);
    ~SubmissionsHeld();
    SubmissionsHeld(const SubmissionsHeld &) = delete;
    SubmissionsHeld &operator=(const SubmissionsHeld &) = delete;

private:
    Context *context_; // null: the driver is kind
};

// Before work is given to a stream of the context: waits for the calls that hold its streams.
// Requires no lock.
void wait_for_holders(Context &context);

// Waits for everything submitted to the context's device, as cuMemFree does, and holds the
// context's streams meanwhile. Requires no lock.
void wait_for_device_of(Context &context);

} // namespace hetcoll::emulated_gpu
