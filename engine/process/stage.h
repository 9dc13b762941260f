// Host copies of the device buffers of one call, for code that reads and writes host memory only:
// what the call reads is copied in, what it has written is copied back, and nothing else: what lies
// between may change meanwhile, or be other allocations. Knows bytes and runs; the component says
// which. Nothing here waits; the caller polls.
#pragma once

#include "base/status.h"
#include "engine/process/pinned_pipe.h"
#include "engine/process/process.h"
#include "engine/types/call.h"

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace hetcoll {

class Stage {
public:
    // The process outlives it.
    explicit Stage(Process &process) noexcept
        : settings_(process.settings()), contexts_(process.gpus().contexts()),
          pool_(process.gpus().pool()), counters_(process.counters())
    {
    }
    ~Stage();
    Stage(const Stage &) = delete;
    Stage &operator=(const Stage &) = delete;

    // Begins a buffer. `found` is what the pointer cache said of its first byte in use; an error
    // makes the call fail, but host memory is given in any case, so that it can take place.
    void add(void *buffer, Result<PointerInfo> found);
    // The use of the buffer that was added last: read, written, or both.
    void add_run(const hetcoll_run &run, bool read, bool written);
    // Host memory for that buffer and its runs: the address to use in place of the buffer's.
    // Bytes that are neither read nor written may be missing. Null: there is no host memory.
    [[nodiscard]] void *host();

    // Start the copies; is_done() tells when they are complete. A failure is remembered.
    void start_read();
    void start_write();
    [[nodiscard]] bool is_done();
    // One of these has thrown: this takes the place of its copies, and is a failure.
    void end_without_memory() noexcept;
    // The data to read is in host memory.
    [[nodiscard]] bool has_input() const noexcept { return has_input_; }
    // The first failure since the last call of this.
    [[nodiscard]] Status take_failure() noexcept { return std::exchange(failure_, Status()); }

private:
    using Run = hetcoll_run;
    // An extent of memory, from the buffer's address.
    struct Extent {
        std::ptrdiff_t offset, end;
    };
    struct Unmap {
        std::size_t bytes;
        void operator()(std::byte *memory) const noexcept;
    };
    struct Buffer {
        std::byte *data = nullptr;
        PointerInfo info;
        std::shared_ptr<Device> device; // null: nothing is known of the memory
        Status unknown;                 // why
        std::vector<Run> read, written;
        std::byte *host = nullptr; // stands for `data`
        std::unique_ptr<StagingMemory> memory;
        // The copies of data that lies far apart; then `memory` has its stream alone.
        std::vector<std::unique_ptr<std::byte, Unmap>> mapped;
        std::unique_ptr<PinnedPipe> pipe; // to and from pageable memory
        bool copying = false;
        PinnedPipe::Direction started{}; // of the copies that were started last

        [[nodiscard]] const std::vector<Run> &runs(PinnedPipe::Direction direction) const noexcept
        {
            return direction == PinnedPipe::Direction::kToHost ? read : written;
        }
    };

    void find_device(Buffer &buffer);
    void copy(Buffer &buffer, PinnedPipe::Direction direction);
    Status start_copies(Buffer &buffer, PinnedPipe::Direction direction);
    [[nodiscard]] Status start_pipe(Buffer &buffer, PinnedPipe::Direction direction);
    void copy_otherwise(Buffer &buffer, Status why);
    [[nodiscard]] Status wait_copies(Buffer &buffer, PinnedPipe::Direction direction);
    [[nodiscard]] Status copy_plainly(Buffer &buffer, PinnedPipe::Direction direction);
    template <class Copy> [[nodiscard]] static Status
    copy_rows(const Buffer &buffer, PinnedPipe::Direction direction, Copy copy);
    void finish(Buffer &buffer) noexcept;
    [[nodiscard]] std::byte *memory_for(Buffer &buffer, std::size_t bytes, std::size_t data_bytes);
    [[nodiscard]] Status copy_run(const Buffer &buffer, PinnedPipe::Direction direction,
                                  const Run &run) const;
    [[nodiscard]] static std::vector<Extent> extents_of(const Buffer &buffer);
    [[nodiscard]] static bool map(Buffer &buffer, const std::vector<Extent> &extents,
                                  std::ptrdiff_t shift);
    static void merge(std::vector<Run> &runs);
    void note(Status status) noexcept;

    const hetcoll_settings &settings_;
    Contexts &contexts_;
    Pool &pool_;
    Counters &counters_;
    std::vector<Buffer> buffers_;
    Status failure_;
    bool failed_ever_ = false, has_input_ = true;
};

} // namespace hetcoll
