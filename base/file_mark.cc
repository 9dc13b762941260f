#include "base/file_mark.h"

#include <sys/stat.h>
#include <unistd.h>

namespace hetcoll {

FileMark::FileMark(int fd) noexcept
{
    struct stat file {};
    known_ = fd >= 0 && fstat(fd, &file) == 0;
    device_ = file.st_dev;
    number_ = file.st_ino;
}

bool FileMark::fits(int fd) const noexcept
{
    struct stat file {};
    return known_ && fstat(fd, &file) == 0 && file.st_dev == device_ && file.st_ino == number_;
}

void FileMark::close(int fd) const noexcept
{
    if (fits(fd)) {
        ::close(fd);
    }
}

} // namespace hetcoll
