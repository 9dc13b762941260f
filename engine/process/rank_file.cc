#include "engine/process/rank_file.h"

#include "base/own_user.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace hetcoll {

std::string RankFile::expand(std::string_view pattern, int rank)
{
    std::string path;
    bool unique = false;
    for (std::size_t i = 0; i < pattern.size(); ++i) {
        const char next = pattern[i] == '%' && i + 1 < pattern.size() ? pattern[i + 1] : '\0';
        if (next == 'r' || next == 'p') {
            path += std::to_string(next == 'r' ? rank : static_cast<int>(getpid()));
            unique = true;
        } else if (next == '%') {
            path += '%';
        } else {
            path += pattern[i];
            continue;
        }
        ++i;
    }
    return unique ? path : path + "." + std::to_string(rank);
}

std::string RankFile::unknown_sign(std::string_view pattern)
{
    for (std::size_t i = 0; i < pattern.size(); ++i) {
        if (pattern[i] != '%') {
            continue;
        }
        const std::string_view sign = pattern.substr(i, 2);
        if (sign != "%r" && sign != "%p" && sign != "%%") {
            return std::string(sign);
        }
        ++i;
    }
    return {};
}

Result<std::unique_ptr<RankFile>> RankFile::open(const char *parameter, std::string_view pattern,
                                                 int rank)
{
    std::string path = expand(pattern, rank);
    const auto problem = [parameter, &path](const char *why) {
        return error(Errc::kInvalid, "%s: %s cannot be written (%s)", parameter, path.c_str(), why);
    };
    // Appends, so that a file that is cut while the job runs has no hole. Never waits for a pipe.
    const int file = ::open(
        path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
    if (file < 0) {
        return problem(errno == ELOOP ? "it is a symbolic link" : std::strerror(errno));
    }
    std::unique_ptr<RankFile> made(new RankFile(path, file));
    struct stat status {};
    if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
        return problem("it is not a file");
    }
    if (!is_own_user(status.st_uid)) {
        return problem("it is another user's file");
    }
    if (status.st_nlink != 1) {
        return problem("it has another name too");
    }
    if (flock(file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        return problem("another process writes it: put %p into the name");
    }
    if (ftruncate(file, 0) != 0) {
        return problem(std::strerror(errno));
    }
    return made;
}

RankFile::~RankFile() { mark_.close(file_); }

// Returns zero or an error number.
int RankFile::put(std::string_view line) noexcept
{
    ssize_t put;
    do {               // Linux appends whatever the offset says
        errno = EBADF; // if the program has closed it, and opened a file of its own perhaps
        put = mark_.fits(file_) ? pwrite(file_, line.data(), line.size(), 0) : -1;
    } while (put < 0 && errno == EINTR);
    if (put == static_cast<ssize_t>(line.size())) {
        bytes_ += line.size();
        return 0;
    }
    const int why = put < 0 ? errno : ENOSPC;
    struct stat status {};
    has_part_ = put > 0 && (fstat(file_, &status) != 0 ||
                            ftruncate(file_, status.st_size - static_cast<off_t>(put)) != 0);
    return why;
}

} // namespace hetcoll
