// How long TCP waits for a machine that does not answer any more.
#pragma once

namespace hetcoll {

// All TCP sockets that this process has now give up after so long. UCX leaves them with the
// system's limit, which is a quarter of an hour where something is on its way. For programs whose
// sockets are all UCX's.
void limit_tcp_silence(int seconds);

} // namespace hetcoll
