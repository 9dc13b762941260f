// Starts a program again that has crashed.
#pragma once

#include "tools/line_output.h"

namespace hetcoll {

// Runs `serve` in a child process, and once more a second after each time that a signal has ended
// it. SIGTERM, SIGINT and SIGUSR1 go to the child. Answers the exit code of a child that has ended
// by itself; a child of a supervisor that is gone ends as by SIGTERM. Call it before anything that
// a child must not share is made. `serve` answers an exit code. Events go to `log`.
[[nodiscard]] int supervise(int (*serve)(void *context), void *context, LineOutput &log);

} // namespace hetcoll
