#include "transport/shared_page.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

namespace hetcoll {
namespace {

static_assert(sizeof(SharedPageHeader) <= SharedPage::kAlignment);

std::size_t file_bytes(std::uint64_t bytes) { return SharedPage::kAlignment + bytes; }

// A file without a name, or -1 with errno set.
int open_nameless(const char *folder)
{
    // O_EXCL: nobody can give it a name later.
    const int fd = open(folder, O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)) {
        return fd;
    }
    // A file system or kernel without O_TMPFILE: it has a name for a moment.
    std::string path = std::string(folder) + "/hetcoll.XXXXXX";
    const int named = mkostemp(path.data(), O_CLOEXEC); // mode 0600
    if (named >= 0) {
        unlink(path.c_str());
    }
    return named;
}

const char *create_remedy(int code)
{
    switch (code) {
    case ENOSPC: return ": it is full, see df, in a container enlarge it (docker run --shm-size)";
    case EACCES:
    case EPERM: return ": make it writable for this user";
    case ENOENT: return ": mount a tmpfs there";
    case EMFILE:
    case ENFILE: return ": too many open files, raise ulimit -n";
    default: return "";
    }
}

const char *attach_remedy(int code)
{
    switch (code) {
    case ENOENT:
        return ": it has closed it, or runs in another PID namespace, let the containers share "
               "one (docker run --pid)";
    case EACCES:
    case EPERM:
        return ": run both as the same user, without hidepid on /proc, and without setuid or "
               "prctl(PR_SET_DUMPABLE, 0), which forbid it as they forbid ptrace";
    case EMFILE:
    case ENFILE: return ": too many open files, raise ulimit -n";
    default: return "";
    }
}

Status attach_error(const SharedPageTicket &ticket, const char *what, int code)
{
    return error(Errc::kUnsupported, "the memory that process %d shares cannot be %s (%s)%s",
                 ticket.owner.pid, what, std::strerror(code), attach_remedy(code));
}

} // namespace

Result<SharedPage> SharedPage::create(const ProcessIdentity &self, std::size_t bytes,
                                      const char *folder)
{
    const int fd = open_nameless(folder);
    if (fd < 0) {
        const int code = errno;
        return error(Errc::kUnsupported, "no file for shared memory can be made in %s (%s)%s",
                     folder, std::strerror(code), create_remedy(code));
    }
    SharedPage page;
    page.file_ = FileMark(fd);
    page.ticket_ = {.owner = self, .bytes = bytes, .nonce = 0, .fd = fd, .reserved = 0};
    int code = EINTR; // a profiler's timer, say
    while (code == EINTR) {
        code = posix_fallocate(fd, 0, static_cast<off_t>(file_bytes(bytes)));
    }
    if (code != 0) {
        return error(Errc::kNoMemory, "%zu bytes of shared memory cannot be taken in %s (%s)%s",
                     file_bytes(bytes), folder, std::strerror(code), create_remedy(code));
    }
    if (getrandom(&page.ticket_.nonce, sizeof page.ticket_.nonce, GRND_NONBLOCK) !=
        sizeof page.ticket_.nonce) {
        return error(Errc::kUnsupported, "the kernel gives no random number (%s)",
                     std::strerror(errno));
    }
    if (Status status = page.map(fd, File::kFresh); !status.ok()) {
        return status;
    }
    return page;
}

Result<SharedPage> SharedPage::attach(const SharedPageTicket &ticket)
{
    if (Status status = check_alive(ticket.owner); !status.ok()) {
        return status;
    }
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%d/fd/%d", ticket.owner.pid, ticket.fd);
    // The number may stand for a pipe or a device by now, which is not to be opened.
    struct stat file {};
    if (stat(path, &file) == 0 && !S_ISREG(file.st_mode)) {
        return error(Errc::kInvalid, "file %d of process %d is not shared memory (any more)",
                     ticket.fd, ticket.owner.pid);
    }
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        return attach_error(ticket, "opened", errno);
    }
    SharedPage page;
    page.ticket_ = ticket;
    Status status = page.map(fd, File::kOfPeer);
    close(fd);
    if (!status.ok()) {
        return status;
    }
    return page;
}

// Requires ticket_. A fresh page gets its header, an attached one has to have the same.
Status SharedPage::map(int fd, File whose)
{
    const std::size_t bytes = file_bytes(ticket_.bytes);
    struct stat file {};
    if (fstat(fd, &file) != 0 || !S_ISREG(file.st_mode) ||
        file.st_size != static_cast<off_t>(bytes)) {
        return error(Errc::kInvalid,
                     "file %d of process %d is not the %zu bytes of shared memory that were "
                     "announced: it has closed the file",
                     ticket_.fd, ticket_.owner.pid, bytes);
    }
    void *const mapping = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mapping == MAP_FAILED) {
        return attach_error(ticket_, "mapped", errno);
    }
    data_ = static_cast<std::byte *>(mapping) + kAlignment;
    const SharedPageHeader expected{
        .magic = SharedPageHeader::kMagic, .nonce = ticket_.nonce, .bytes = ticket_.bytes};
    if (whose == File::kFresh) {
        std::memcpy(mapping, &expected, sizeof expected);
    } else if (std::memcmp(mapping, &expected, sizeof expected) != 0) {
        return error(Errc::kInvalid,
                     "file %d of process %d holds other shared memory than was announced: it has "
                     "closed the file",
                     ticket_.fd, ticket_.owner.pid);
    }
    return {};
}

SharedPage::~SharedPage()
{
    if (data_ != nullptr) {
        munmap(static_cast<std::byte *>(data_) - kAlignment, file_bytes(ticket_.bytes));
    }
    seal();
}

void SharedPage::seal() noexcept
{
    file_.close(ticket_.fd);
    file_ = FileMark();
}

void SharedPage::swap(SharedPage &other) noexcept
{
    std::swap(data_, other.data_);
    std::swap(ticket_, other.ticket_);
    std::swap(file_, other.file_);
}

} // namespace hetcoll
