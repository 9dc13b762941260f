// Holds an operation until the stream that its communicator names has come to where it was when the
// operation was started.
#pragma once

#include "engine/call/operation.h"

#include <new>
#include <optional>
#include <utility>

namespace hetcoll {

class StreamGate final : public Gate {
public:
    explicit StreamGate(Communicator &comm) noexcept : comm_(comm) {}
    StreamGate(const StreamGate &) = delete;
    StreamGate &operator=(const StreamGate &) = delete;

    // The operation starts now.
    void close() noexcept
    {
        mark_.reset();
        problem_ = {};
        if (!comm_.named_stream().exists()) {
            return;
        }
        try {
            Result<NamedStream::Mark> marked = comm_.named_stream().mark();
            if (marked.ok()) {
                mark_.emplace(std::move(*marked));
            } else {
                problem_ = marked.take_status();
            }
        } catch (const std::bad_alloc &) {
            problem_ = Status::out_of_memory();
        }
    }

    [[nodiscard]] Result<bool> is_open() override
    {
        if (!problem_.ok()) {
            return std::move(problem_);
        }
        if (!mark_) {
            return true;
        }
        Result<bool> done = mark_->is_done();
        if (done.ok() && *done) {
            comm_.named_stream().give_back(std::move(*mark_));
            mark_.reset();
        }
        return done;
    }

private:
    Communicator &comm_;
    std::optional<NamedStream::Mark> mark_; // nothing: there is none to wait for
    Status problem_;
};

} // namespace hetcoll
