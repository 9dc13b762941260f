// The path `cpu` of a small call: this rank's processor reads its vector out of device memory and
// writes the sum there, in place of copies. Local: what a rank does here changes nothing that
// others see. Where it cannot, or not yet, the vector is copied.
#pragma once

#include <memory>

namespace hetcoll {

class HostView;

// State of one call. A persistent one keeps the views.
struct CpuPath {
    std::shared_ptr<const HostView> send, recv; // null: none
    bool reads = false, writes = false;         // in this call
    bool send_due = false, recv_due = false;    // it gets a view in this call
    bool planned = false, asked = false;        // all of this is known; and that it can be done
    bool again = false;                         // the buffers were found by an earlier start
    unsigned polls = 0;                         // of the legacy stream

    void rewind() noexcept
    {
        reads = writes = send_due = recv_due = planned = asked = false;
        again = true;
        polls = 0;
    }
};

} // namespace hetcoll
