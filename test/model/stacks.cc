// The threads run one at a time, each on a stack of its own, up to its next operation on an atomic.
// longjmp() changes stacks: swapcontext() would ask the kernel for the signal mask each time.
#include "state.h"

#include <cstring>

namespace model {
namespace {

[[noreturn]] void end_thread()
{
    Thread &self = *state.running;
    self.next = {};
    self.next.kind = Kind::kEnd;
    leave_thread();
}

void run_body()
{
    (*state.bodies)[static_cast<std::size_t>(state.running_index)]();
    end_thread();
}

void begin(Thread &thread)
{
    thread.begun = true;
    if (state.options.mode ==
        Mode::kStates) { // else what earlier calls have left tells states apart
        std::memset(thread.stack.get(), 0, kStackBytes);
    }
    getcontext(&thread.context);
    thread.context.uc_stack.ss_sp = thread.stack.get();
    thread.context.uc_stack.ss_size = kStackBytes;
    thread.context.uc_link = nullptr;
    makecontext(&thread.context, run_body, 0);
    setcontext(&thread.context);
}

} // namespace

[[gnu::noinline]] void leave_thread()
{
    state.threads[static_cast<std::size_t>(state.running_index)]->deepest =
        static_cast<const char *>(__builtin_frame_address(0));
    longjmp(state.explorer, 1);
}

void may_die()
{
    if (state.running_index == state.options.dies &&
        ++state.running->stores == state.options.at_store) {
        ++state.report->deaths;
        state.options.dying();
        end_thread();
    }
}

void resume(int index)
{
    state.running = state.threads[static_cast<std::size_t>(index)].get();
    state.running_index = index;
    if (setjmp(state.explorer) == 0) {
        if (state.running->begun) {
            longjmp(state.running->jump, 1);
        }
        begin(*state.running);
    }
    state.running = nullptr;
}

std::uint64_t announce(const Operation &op)
{
    Thread &self = *state.running;
    self.next = op;
    if (setjmp(self.jump) == 0) {
        leave_thread();
    }
    return self.result;
}

} // namespace model
