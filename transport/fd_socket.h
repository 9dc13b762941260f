// Passes file descriptors between the processes of a node: the only way to share VMM memory. A
// process asks the owner of a ticket; the owner's next step() answers. Each process listens on one
// unix socket in the abstract namespace, so that no file is left behind. Whose user is another one
// is disconnected as soon as it connects. (pidfd_getfd would need no answer, but Yama and the
// default profiles of containers refuse it.)
#pragma once

#include "base/file_mark.h"
#include "base/log.h"
#include "base/status.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace hetcoll {

class UniqueFd {
public:
    UniqueFd() noexcept = default;
    explicit UniqueFd(int fd) noexcept : fd_(fd), mark_(fd) {}
    UniqueFd(UniqueFd &&other) noexcept : fd_(std::exchange(other.fd_, -1)), mark_(other.mark_) {}
    UniqueFd &operator=(UniqueFd &&other) noexcept
    {
        std::swap(fd_, other.fd_);
        std::swap(mark_, other.mark_);
        return *this;
    }
    ~UniqueFd();
    [[nodiscard]] int get() const noexcept { return fd_; }
    // The program has not closed it, and opened something else.
    [[nodiscard]] bool is_ours() const noexcept { return mark_.fits(fd_); }

private:
    int fd_ = -1;
    FileMark mark_;
};

// Where to ask, and for what.
struct FdTicket {
    std::uint64_t socket; // FdSocket::name() of the owner
    std::uint64_t token;
};

inline constexpr int kMaxFds = 64; // of one ticket

struct FdBundle {
    std::vector<UniqueFd> fds;
    std::vector<std::uint64_t> bytes; // of the memory behind each
};

// The owner's side.
class FdSource {
public:
    virtual ~FdSource() = default;
    // At most kMaxFds; an error if the token is not known (any more). Called by step().
    [[nodiscard]] virtual Result<FdBundle> fds_of(std::uint64_t token) = 0;
};

// Thread safe. Nothing waits.
class FdSocket {
public:
    static Result<std::shared_ptr<FdSocket>> create(const Log &log);
    ~FdSocket();
    FdSocket(const FdSocket &) = delete;
    FdSocket &operator=(const FdSocket &) = delete;

    // Random, not 0.
    [[nodiscard]] std::uint64_t name() const noexcept;
    // The source answers peers. Set it to null before the source goes.
    void set_source(FdSource *source) noexcept;

    // Answers what peers have asked. Call it as long as peers may ask.
    void step() noexcept;

    // The descriptors of the ticket, or nothing yet: then it has asked the owner, and is to be
    // called again. The answer is handed out once.
    [[nodiscard]] Result<std::optional<FdBundle>> take(const FdTicket &ticket);

private:
    struct Impl;
    explicit FdSocket(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

} // namespace hetcoll
