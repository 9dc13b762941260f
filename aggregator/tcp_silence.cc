#include "aggregator/tcp_silence.h"

#include <cstdlib>
#include <dirent.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace hetcoll {

void limit_tcp_silence(int seconds)
{
    DIR *const folder = opendir("/proc/self/fd");
    if (folder == nullptr) {
        return; // no /proc: the system's limit holds
    }
    const unsigned milliseconds = static_cast<unsigned>(seconds) * 1000;
    while (const dirent *const entry = readdir(folder)) {
        // Fails for anything but a TCP socket.
        (void)setsockopt(std::atoi(entry->d_name), IPPROTO_TCP, TCP_USER_TIMEOUT, &milliseconds,
                         sizeof milliseconds);
    }
    closedir(folder);
}

} // namespace hetcoll
