#include "tools/line_output.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>

namespace hetcoll {

// O_NONBLOCK belongs to the open file, which other processes may share, so a pipe or terminal is
// opened again. A socket, which journald gives, is told with every send. Where /proc does not allow
// that, poll() tells whether a pipe takes a line; somebody else may fill it in between.
LineOutput::LineOutput(int fd) : fd_(fd)
{
    struct stat file {};
    if (fstat(fd, &file) != 0) {
        return;
    }
    if (S_ISSOCK(file.st_mode)) {
        method_ = Method::kSend;
    } else if (S_ISREG(file.st_mode)) {
        method_ = Method::kWrite;
    } else {
        const std::string path = "/proc/self/fd/" + std::to_string(fd);
        const int own = open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (own >= 0) {
            method_ = Method::kWrite;
            owned_ = true;
            fd_ = own;
        }
    }
}

LineOutput::~LineOutput()
{
    if (owned_) {
        close(fd_);
    }
}

// False if it was dropped. rest_ keeps the rest of a line whose beginning a reader has taken.
bool LineOutput::put(std::string_view text)
{
    pollfd asked{.fd = fd_, .events = POLLOUT, .revents = 0};
    if (method_ == Method::kAsk && (poll(&asked, 1, 0) != 1 || (asked.revents & POLLOUT) == 0)) {
        return false;
    }
    const ssize_t done = method_ == Method::kSend
                             ? send(fd_, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL)
                             : ::write(fd_, text.data(), text.size());
    if (done < 0) {
        const bool reader = errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ||
                            errno == EPIPE || errno == ECONNRESET;
        problem_ = reader ? problem_ : errno;
        return false;
    }
    rest_ = text.substr(static_cast<std::size_t>(done));
    return true;
}

void LineOutput::write(std::string_view line)
{
    if (const std::string rest = rest_; !rest.empty() && (!put(rest) || !rest_.empty())) {
        ++dropped_;
        ++untold_;
        return;
    }
    // A pipe takes this much as a whole or not at all.
    std::string text(line.substr(0, PIPE_BUF - 64));
    if (untold_ > 0) {
        text += ", " + std::to_string(untold_) + " lines before this one found no reader";
    }
    if (put(text + "\n")) {
        untold_ = 0;
    } else {
        ++dropped_;
        ++untold_;
    }
}

} // namespace hetcoll
