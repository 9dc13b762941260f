// Where a call is, in words.
#include "engine/call/operation.h"
#include "engine/call/protocols.h"

namespace hetcoll {

// How far the call has come. An algorithm's name stands behind it, or nothing.
const char *Operation::place() const noexcept
{
    Communicator &comm = call_.comm;
    const bool has_begun =
        call_.report.record.served >= 0 || call_.report.record.schedule != nullptr;
    if (!comm.is_ready()) {
        return "in the communicator's first call";
    }
    if (has_begun) {
        return call_.work.executor_runs || call_.work.kernel_runs ? "in " : "in a meeting of ";
    }
    if (joins(call_)) {
        return "while the ranks join their aggregators";
    }
    if (call_.planner.peers().searches()) {
        return "while the ranks find out who reaches whose memory";
    }
    return call_.mapped ? "while the ranks map each other's memory"
                        : "before the ranks have agreed";
}

void Operation::look_at_wait()
{
    if (call_.comm.watch().is_due(moves())) {
        say_why_it_waits();
    }
}

void Operation::say_why_it_waits()
{
    Communicator &comm = call_.comm;
    Watch &watch = comm.watch();
    if (call_.work.kernel_runs) {
        watch.say_own_gpu("a kernel");
    } else if (call_.work.copying) {
        watch.say_own_gpu("a copy, or the program's work before it");
    } else if (call_.work.executor_runs) {
        watch.say_schedule(call_.planner.executor());
    } else if (!comm.is_ready() && comm.p2p().size > 1) {
        watch.say_first_call();
    } else {
        watch.say_meeting(call_.meeting);
    }
}

} // namespace hetcoll
