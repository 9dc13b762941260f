// How long TCP waits for a machine that no longer answers.
#pragma once

namespace hetcoll {

// Makes all TCP sockets that this process has now give up after so long. UCX leaves them the
// system's limit, a quarter of an hour while something is on its way. For programs whose sockets
// are all UCX's.
void limit_tcp_silence(int seconds);

} // namespace hetcoll
