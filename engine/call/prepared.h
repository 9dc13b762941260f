// Calls whose work on the GPU their stream has been given when they were queued: a copy in, a
// kernel, a copy out, and before each a wait for a number that the host stores. So hetcoll's thread
// gives a stream nothing while the program's stream stands still. It could not: a driver call of
// another thread that waits for that stream (cuMemFree, a copy, a module's first launch) holds
// whatever is given to any stream of the context meanwhile (docs/internals/stream-order.md).
//
//   stream                         host
//   copy in, store `come`          sees it; all ranks meet; stores `go`
//   wait for `go`, kernel          sees `ran`; all ranks meet; stores `done`
//   wait for `done`, copy out
//
// No wait is for what the caller's thread gives the stream later, because that thread may be held
// in the middle. All ranks do the same: it follows from the call's size and
// from what they found out when the stream was attached.
#pragma once

#include "engine/call/call.h"
#include "engine/communicator/mapped_call.h"
#include "plan/facts.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

namespace hetcoll {

class PreparedCall;

// The means of the calls of one stream.
class PreparedStream {
public:
    enum class Shape : std::uint8_t {
        kNone,    // not prepared: the thread makes driver calls
        kMeeting, // page-locked memory, which a meeting of the ranks sums
        kKernel,  // device memory that peers have mapped, and one kernel a rank
    };
    struct Plan {
        Shape shape = Shape::kNone;
        Algorithm algorithm = kOnHost; // of a kernel
    };
    static constexpr int kMostCalls = 64; // pending at a time
    // Words of page-locked memory that the host and the stream tell each other by. Each holds a
    // number, but for `skip`; numbers begin with 1 and wrap.
    struct Words {
        std::uint32_t come;  // stream: of the call that it has come to, with its input
        std::uint32_t done;  // host: of the last call that is complete
        std::uint32_t go;    // host: of the last kernel that may begin
        std::uint32_t skip;  // host, before `go`: that kernel is to do nothing. One word is enough:
                             // the next `go` comes when the stream has come to the next call
        std::uint32_t ran;   // kernel: its number, when it is over
        std::uint32_t tried; // at the attach
    };

    PreparedStream(Communicator &comm, CUstream stream)
        : comm_(comm), chooser_(comm.planner().chooser()), stream_(stream),
          mapped_(comm.process(), comm.group(), comm.planner().peers())
    {
    }
    ~PreparedStream();
    PreparedStream(const PreparedStream &) = delete;
    PreparedStream &operator=(const PreparedStream &) = delete;

    // Makes what this rank needs, for calls of at most `most_bytes`; the device's context is
    // current.
    Status make(const std::shared_ptr<Device> &device, std::size_t most_bytes);
    // By all ranks: they map each other's memory, if they can, and learn which calls are prepared.
    // The last flags of any rank.
    [[nodiscard]] static Task<Flags> attach(Call &call, PreparedStream &stream);

    // The same on all ranks, and any thread may ask. A meeting wherever one can be: it takes the
    // caller four driver calls, and the ranks meet once; with a kernel there are six, and two.
    [[nodiscard]] Plan plan(const hetcoll_call &call) const noexcept;
    // The event of has_come(), once the stream is there.
    Status mark(std::uint32_t number)
    {
        return device_->write_async(waits_by_, address_ + offsetof(Words, come), number, stream_);
    }
    [[nodiscard]] Result<bool> has_come(std::uint32_t number);
    // Makes the stream wait until set_done().
    Status wait_done(std::uint32_t number) { return wait(offsetof(Words, done), number); }
    void set_done(std::uint32_t number) noexcept
    {
        __atomic_store_n(&words_->done, number, __ATOMIC_RELEASE);
    }

private:
    friend class PreparedCall;
    static constexpr std::size_t kSizeClasses = 65; // by highest bit

    Status find_how_to_wait();
    Status wait(std::size_t word, std::uint32_t number)
    {
        return device_->wait_async(waits_by_, address_ + word, number, stream_);
    }
    // Whether the word has come to the number. An error if the stream has failed, which is asked
    // for now and then.
    [[nodiscard]] Result<bool> is_at(const std::uint32_t &word, std::uint32_t number);
    [[nodiscard]] Status share(Call &call);
    [[nodiscard]] bool poll_map(Call &call, Status &problem);
    [[nodiscard]] bool learn_kernels(); // false: no call is served by one
    void give_up_kernels() noexcept;

    Communicator &comm_;
    Chooser &chooser_;
    const CUstream stream_;
    std::shared_ptr<Device> device_; // before what is made in it
    StreamHandle own_;               // which is asked whether the context works
    PinnedMemory memory_;            // the words, and behind them lists and a meeting's vector
    Words *words_ = nullptr;
    CUdeviceptr address_ = 0; // of the words for the GPU
    unsigned polls_ = 0;
    Device::WaitsBy waits_by_ = Device::WaitsBy::kDriver;
    OperandLists *lists_ = nullptr; // of pending kernels, by the remainders of their numbers
    std::uint32_t list_count_ = 1;
    std::byte *meeting_vector_ = nullptr;
    DeviceMemory arrived_; // of Signal
    std::size_t most_bytes_ = 0;
    std::unique_ptr<Scratch> scratch_; // null: no kernels
    PointerInfo scratch_info_{};
    MappedCall mapped_;                                          // whose mappings stay
    std::array<std::optional<Algorithm>, kSizeClasses> kernels_; // for vectors of up to 2^i bytes
    std::uint32_t kernels_planned_ = 0;
};

// One call of a stream.
class PreparedCall final : public GivenWork {
public:
    // A call is planned before anything is given to the stream.
    void begin(PreparedStream &stream, const hetcoll_call &call) noexcept;
    [[nodiscard]] PreparedStream::Shape shape() const noexcept { return plan_.shape; }
    // Its input and result are on the device, and copied.
    [[nodiscard]] bool is_staged() const noexcept { return vector_ != nullptr; }
    // The caller's thread, in this order: before the call is told of, which then works on other
    // memory; and after that. Nothing is copied where a buffer is host memory.
    Status give_input(hetcoll_call &call);
    void give_kernel(const hetcoll_call &call) noexcept;
    Status give_output();

    // The rank that runs the call, and the facts about its buffers that need no driver call.
    void look(Call &call) const;
    // The kernel is to run.
    void go() noexcept { tell(0); }
    void skip() noexcept override { tell(1); }
    [[nodiscard]] Result<bool> kernel_done() override;
    [[nodiscard]] Algorithm algorithm() const noexcept { return plan_.algorithm; }
    [[nodiscard]] std::size_t bytes_mapped() const noexcept { return bytes_mapped_; }

private:
    enum class Given : std::uint8_t { kNotYet, kKernel, kNothing };

    void tell(std::uint32_t skip) noexcept;
    [[nodiscard]] Result<bool> is_device_memory(const void *buffer) const;
    Status start_kernel(const hetcoll_call &call);

    PreparedStream *stream_ = nullptr;
    PreparedStream::Plan plan_;
    std::uint32_t number_ = 0;    // of the kernel, from 1
    std::byte *vector_ = nullptr; // that the input is copied to; null: it is not
    void *out_to_ = nullptr;      // the result is copied to; null: it is there
    std::size_t bytes_ = 0, bytes_mapped_ = 0;
    std::size_t count_ = 0; // elements of `kind_`
    ElementKind kind_{};
    Status failure_;
    std::atomic<Given> given_{Given::kNotYet};
    bool told_ = false;
};

} // namespace hetcoll
