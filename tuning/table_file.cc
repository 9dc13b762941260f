#include "tuning/table_file.h"

#include <cerrno>
#include <cstring>
#include <exception>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace hetcoll {
namespace {

class Descriptor {
public:
    explicit Descriptor(int fd) : fd_(fd) {}
    Descriptor(const Descriptor &) = delete;
    Descriptor &operator=(const Descriptor &) = delete;
    ~Descriptor()
    {
        if (fd_ >= 0) {
            ::close(fd_);
        }
    }
    [[nodiscard]] int get() const { return fd_; }

private:
    int fd_;
};

// Looks at what it is and at its size first: a pipe does not block, a huge file costs nothing.
Result<TableFile> read(const std::string &path)
{
    const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    struct stat facts {};
    if (file.get() < 0 || ::fstat(file.get(), &facts) != 0) {
        return table_error(path, 0, std::string("cannot be opened: ") + std::strerror(errno));
    }
    if (!S_ISREG(facts.st_mode)) {
        return table_error(path, 0, "it is not a file");
    }
    if (facts.st_size > static_cast<off_t>(kMaxTableBytes)) {
        return table_error(path, 0,
                           "it has " + std::to_string(facts.st_size) +
                               " bytes, a table has at most " + std::to_string(kMaxTableBytes));
    }
    std::string text(kMaxTableBytes + 1, '\0'); // it may grow while it is read
    std::size_t filled = 0;
    while (filled < text.size()) {
        const ssize_t got = ::read(file.get(), text.data() + filled, text.size() - filled);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return table_error(path, 0, std::string("cannot be read: ") + std::strerror(errno));
        }
        if (got == 0) {
            break;
        }
        filled += static_cast<std::size_t>(got);
    }
    return parse_table({text.data(), filled}, path);
}

} // namespace

Status table_error(const std::string &path, int line, const std::string &cause)
{
    return Status(Errc::kInvalid, path + (line > 0 ? ":" + std::to_string(line) : "") + ": " +
                                      cause + "; make a new table with hetcoll_tune");
}

Result<TableFile> read_table(const std::string &path) noexcept
{
    try {
        return read(path);
    } catch (const std::exception &) { // std::bad_alloc
        return error(Errc::kNoMemory, "no memory for a tuning table");
    }
}

} // namespace hetcoll
