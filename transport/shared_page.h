// Memory that the processes of a node share. It never has a name: whatever happens to the
// processes, nothing is left behind in /dev/shm.
#pragma once

#include "base/file_mark.h"
#include "base/status.h"
#include "transport/node_identity.h"

#include <cstddef>
#include <cstdint>
#include <utility>

namespace hetcoll {

// The data that another process needs to attach. Goes through messages as it is.
struct SharedPageTicket {
    ProcessIdentity owner;
    std::uint64_t bytes; // as given to create()
    std::uint64_t nonce; // also in the page: refuses a file that has taken the number `fd` since
    std::int32_t fd;     // in the owner
    std::int32_t reserved;
};
static_assert(sizeof(SharedPageTicket) == 48);

// The head of a file of shared memory; kAlignment bytes behind that is the page.
struct SharedPageHeader {
    std::uint64_t magic, nonce, bytes;
    static constexpr std::uint64_t kMagic = 0x6865746c6c6f6331u;
};

// Move-only; the memory goes when the last process has let go of it.
class SharedPage {
public:
    SharedPage() noexcept = default;
    SharedPage(SharedPage &&other) noexcept { swap(other); }
    SharedPage &operator=(SharedPage &&other) noexcept
    {
        SharedPage(std::move(other)).swap(*this);
        return *this;
    }
    ~SharedPage();

    // `bytes` zeroed bytes that only this user can open. The memory is taken now: a full `folder`
    // is an error here, not SIGBUS later. `folder` is another one in tests only.
    static Result<SharedPage> create(const ProcessIdentity &self, std::size_t bytes,
                                     const char *folder = "/dev/shm");
    // The page of another process of this node (or of this one), which has not called seal() yet.
    static Result<SharedPage> attach(const SharedPageTicket &ticket);

    // Nobody can attach after this; gives the file descriptor back. The memory stays.
    void seal() noexcept;

    // The bytes that such a page takes of the folder.
    [[nodiscard]] static constexpr std::size_t taken(std::size_t bytes) noexcept
    {
        constexpr std::size_t kPiece = 4096;
        return (kAlignment + bytes + kPiece - 1) / kPiece * kPiece;
    }

    // Aligned to kAlignment.
    static constexpr std::size_t kAlignment = 256;
    [[nodiscard]] void *data() const noexcept { return data_; }                // null: no page
    [[nodiscard]] std::size_t bytes() const noexcept { return ticket_.bytes; } // 0: no page
    // Requires that create() made it and seal() was not called.
    [[nodiscard]] const SharedPageTicket &ticket() const noexcept { return ticket_; }

private:
    void swap(SharedPage &other) noexcept;
    enum class File : std::uint8_t { kFresh, kOfPeer };
    Status map(int fd, File whose);

    void *data_ = nullptr; // kAlignment bytes behind the begin of the mapping
    SharedPageTicket ticket_{};
    FileMark file_; // ticket_.fd's, until seal(); none if attached
};

} // namespace hetcoll
