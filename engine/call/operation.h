// One MPI_Allreduce from the first look at its buffers to the complete result, or another
// collective that hetcoll serves: resumable. The order of meetings of the ranks follows from facts
// that are the same on all of them and from what they told each other, never from this rank's
// buffers alone; docs/internals/architecture.md has the protocol, engine/call/allreduce.cc the
// code.
#pragma once

#include "engine/call/call.h"
#include "engine/call/operation_queue.h"
#include "engine/call/refusal.h"
#include "engine/call/task.h"

#include <cstdint>
#include <optional>

namespace hetcoll {

enum class Start : std::uint8_t {
    kOnce,
    kPersistent, // run again after rewind(); keeps what it has found out about its buffers
};

// An event that an operation waits for before it looks at its buffers or sends anything.
class Gate {
public:
    virtual ~Gate() = default;
    // An error if it will never be known: the operation begins with it, so that others hear of it.
    [[nodiscard]] virtual Result<bool> is_open() = 0;
    // The work that the call's stream was given, if that is all of the call; null: it is not.
    [[nodiscard]] virtual GivenWork *prepared() noexcept { return nullptr; }
};

class Operation final : public Queued {
public:
    // All outlive the operation; `gate` may be null.
    Operation(Communicator &comm, const hetcoll_call &call, Start start = Start::kOnce,
              Gate *gate = nullptr) noexcept;
    ~Operation();
    Operation(const Operation &) = delete;
    Operation &operator=(const Operation &) = delete;

    // Throws only where the process's reserve (MemoryReserve) was not enough.
    [[nodiscard]] bool step() override;
    // Changes whenever step() came further.
    [[nodiscard]] std::uint64_t moves() const noexcept;
    // As hetcoll_allreduce() returns it. Requires step() to have returned true.
    [[nodiscard]] int result() const noexcept { return result_; }
    // Nobody knows what this rank has told others, so no further call of the communicator is made.
    void fail_without_memory() noexcept override;
    // Requires step() to have returned true.
    void rewind() noexcept;

    [[nodiscard]] const char *mpi_name() const noexcept; // "MPI_Allreduce"

private:
    [[nodiscard]] bool may_begin();
    void begin();
    [[nodiscard]] bool run();
    [[nodiscard]] bool may_refuse() const noexcept;
    void start_refusal() noexcept
    {
        refusal_.emplace(call_.comm, HETCOLL_HAS_NO_MEMORY, given_.tag);
    }
    void drop_protocol() noexcept;
    void refuse(int code) noexcept;
    [[nodiscard]] const char *place() const noexcept;
    void start_leaving(int code) noexcept;
    [[nodiscard]] bool leave();
    void finish(int result) noexcept;
    void look_at_wait();
    void say_why_it_waits();

    const hetcoll_call &given_;
    Gate *const gate_;
    Call call_;
    Task<int> protocol_;             // after call_, where its frames are
    std::optional<Refusal> refusal_; // in place of protocol_
    bool begun_ = false;
    std::uint32_t meetings_before_ = 0;
    int leaves_ = 0; // with that code, because ranks may never come
    int result_ = HETCOLL_SUCCESS;
};

} // namespace hetcoll
