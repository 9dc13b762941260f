// Host copies of the device buffers of one call, for code that reads and writes host memory only:
// what the call reads is copied in, what it has written is copied back. Knows bytes and pieces; the
// component says which. Nothing here waits; the caller polls.
#pragma once

#include "base/status.h"
#include "engine/process/pinned_pipe.h"
#include "engine/process/process.h"

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace hetcoll {

class Stage {
public:
    explicit Stage(Process &process) noexcept : process_(process) {}
    ~Stage();
    Stage(const Stage &) = delete;
    Stage &operator=(const Stage &) = delete;

    // Begins a buffer. `found` is what the pointer cache said of its first byte in use; an error
    // makes the call fail, but host memory is given in any case, so that it can take place.
    void add(void *buffer, Result<PointerInfo> found);
    // A piece of the buffer that was added last, relative to its address: read, written, or both.
    void add_piece(std::ptrdiff_t offset, std::size_t bytes, bool read, bool written);
    // Host memory for that buffer and its pieces: the address to use in place of the buffer's.
    // Bytes that are neither read nor written may be missing. Null: there is no host memory.
    [[nodiscard]] void *host();

    // Start the copies; is_done() tells when they are complete. A failure is remembered.
    void start_read();
    void start_write();
    [[nodiscard]] bool is_done();
    // What was to be read is in host memory, by whatever way.
    [[nodiscard]] bool has_input() const noexcept { return has_input_; }
    // The first failure since the last call of this.
    [[nodiscard]] Status take_failure() noexcept { return std::exchange(failure_, Status()); }

private:
    struct Piece {
        std::ptrdiff_t offset;
        std::size_t bytes;
    };
    struct Buffer {
        std::byte *data = nullptr;
        PointerInfo info;
        std::shared_ptr<Device> device; // null: nothing is known of the memory
        Status unknown;                 // why
        std::vector<Piece> read, written;
        std::byte *host = nullptr; // stands for `data`
        std::unique_ptr<StagingMemory> memory;
        std::unique_ptr<PinnedPipe> pipe; // to and from pageable memory
        bool copying = false;
        PinnedPipe::Way started{}; // of the copies that were started last

        [[nodiscard]] const std::vector<Piece> &pieces(PinnedPipe::Way way) const noexcept
        {
            return way == PinnedPipe::Way::kToHost ? read : written;
        }
    };

    void find_device(Buffer &buffer);
    void copy(Buffer &buffer, PinnedPipe::Way way);
    Status start_copies(Buffer &buffer, PinnedPipe::Way way);
    [[nodiscard]] Status start_pipe(Buffer &buffer, PinnedPipe::Way way);
    void copy_otherwise(Buffer &buffer, Status why);
    [[nodiscard]] Status wait_copies(Buffer &buffer, PinnedPipe::Way way);
    [[nodiscard]] bool copy_plainly(Buffer &buffer, PinnedPipe::Way way);
    void finish(Buffer &buffer) noexcept;
    static void merge(std::vector<Piece> &pieces);
    void note(Status status) noexcept;

    Process &process_;
    std::vector<Buffer> buffers_;
    Status failure_;
    bool failed_ever_ = false, has_input_ = true;
};

} // namespace hetcoll
