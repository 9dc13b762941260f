// Which file a descriptor is of. Programs close descriptors that are not their own (all up to a
// limit, before they become daemons), and open files that get the numbers: ours is not to be closed
// or written to then.
#pragma once

#include <sys/types.h>

namespace hetcoll {

// Marks the file of a descriptor that was opened just now; none if fd < 0. Descriptors of the
// kernel's one anonymous file (epoll, eventfd) are not told from each other.
class FileMark {
public:
    FileMark() noexcept = default;
    explicit FileMark(int fd) noexcept;
    // `fd` still is of that file.
    [[nodiscard]] bool fits(int fd) const noexcept;
    // Closes it if so.
    void close(int fd) const noexcept;

private:
    dev_t device_ = 0;
    ino_t number_ = 0;
    bool known_ = false;
};

} // namespace hetcoll
