// Resumable functions: a call's protocol is a coroutine that says with co_await what it waits for,
// and goes on where it stopped whenever its owner steps it. Locals live in its frame; frames come
// from memory that the owner brings, so a call allocates nothing. An exception (memory exhaustion)
// leaves through the awaiting coroutines and comes out of step(). Dropping a task that waits frees
// its frames, with the destructors of all that lives in them.
#pragma once

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <new>
#include <span>
#include <utility>

namespace hetcoll {

// Something that is waited for. Asked at every step until it is over.
class Wait {
public:
    [[nodiscard]] virtual bool is_over() = 0;

protected:
    ~Wait() = default;
};

// The coroutine frames of one operation, last in, first out, and where the innermost one waits.
class Frames {
public:
    // Without memory all come from the heap.
    explicit Frames(std::span<std::byte> memory = {}) noexcept : memory_(memory) {}
    Frames(const Frames &) = delete;
    Frames &operator=(const Frames &) = delete;

    // Aligned for everything, and of nobody else while there are frames. Requires that there are
    // none.
    void use(std::span<std::byte> memory) noexcept { memory_ = memory; }

    // Goes on with `innermost` once what it waits for is over, up to the next wait. True: nothing
    // is waited for any more, so the outermost coroutine has ended. Requires a task that has
    // started.
    [[nodiscard]] bool step()
    {
        if (wait_ != nullptr && !wait_->is_over()) {
            return false;
        }
        wait_ = nullptr;
        innermost_.resume();
        return wait_ == nullptr;
    }
    void start(std::coroutine_handle<> outermost) noexcept
    {
        innermost_ = outermost;
        wait_ = nullptr;
    }
    void suspend(std::coroutine_handle<> innermost, Wait &wait) noexcept
    {
        innermost_ = innermost;
        wait_ = &wait;
        ++waits_;
    }
    // How often something was waited for.
    [[nodiscard]] std::uint64_t waits() const noexcept { return waits_; }

    // Memory of one frame. From the heap where there is not enough left: frames are larger in
    // builds that do not optimise.
    [[nodiscard]] void *take(std::size_t bytes)
    {
        bytes = rounded(bytes);
        if (bytes > memory_.size() - used_) {
            return ::operator new(bytes);
        }
        void *const frame = memory_.data() + used_;
        used_ += bytes;
        return frame;
    }
    void give_back(void *frame, std::size_t bytes) noexcept
    {
        if (frame < memory_.data() || frame >= memory_.data() + memory_.size()) {
            ::operator delete(frame);
        } else {
            used_ -= rounded(bytes);
        }
    }

private:
    [[nodiscard]] static constexpr std::size_t rounded(std::size_t bytes) noexcept
    {
        constexpr std::size_t kUnit = alignof(std::max_align_t);
        return (bytes + kUnit - 1) / kUnit * kUnit;
    }

    std::span<std::byte> memory_;
    std::coroutine_handle<> innermost_;
    Wait *wait_ = nullptr;
    std::uint64_t waits_ = 0;
    std::size_t used_ = 0;
};

// The part that the promises of all tasks share. The first parameter of a coroutine has a member
// `frames`, a Frames & or a Frames.
class TaskPromise {
public:
    template <class Owner, class... Rest> explicit TaskPromise(Owner &owner, Rest &...) noexcept
        : frames_(owner.frames)
    {
    }

    template <class Owner, class... Rest>
    static void *operator new(std::size_t bytes, Owner &owner, Rest &...)
    {
        Frames &frames = owner.frames;
        void *const start = frames.take(bytes + kHeader);
        *static_cast<Frames **>(start) = &frames;
        return static_cast<std::byte *>(start) + kHeader;
    }
    static void operator delete(void *frame, std::size_t bytes) noexcept
    {
        std::byte *const start = static_cast<std::byte *>(frame) - kHeader;
        (*reinterpret_cast<Frames **>(start))->give_back(start, bytes + kHeader);
    }

    // A task begins when it is awaited, or stepped.
    [[nodiscard]] std::suspend_always initial_suspend() const noexcept { return {}; }
    // Then the awaiting one goes on.
    struct ToParent {
        [[nodiscard]] bool await_ready() const noexcept { return false; }
        template <class Promise> [[nodiscard]] std::coroutine_handle<>
        await_suspend(std::coroutine_handle<Promise> self) const noexcept
        {
            return self.promise().parent_;
        }
        void await_resume() const noexcept {}
    };
    [[nodiscard]] ToParent final_suspend() const noexcept { return {}; }
    void unhandled_exception() noexcept { exception_ = std::current_exception(); }

    [[nodiscard]] Frames &frames() const noexcept { return frames_; }
    void set_parent(std::coroutine_handle<> parent) noexcept { parent_ = parent; }
    void rethrow() const
    {
        if (exception_) {
            std::rethrow_exception(exception_);
        }
    }

private:
    // In front of a frame: whose it is.
    static constexpr std::size_t kHeader = alignof(std::max_align_t);

    Frames &frames_;
    std::coroutine_handle<> parent_ = std::noop_coroutine();
    std::exception_ptr exception_;
};

// Either part of a promise, which the language does not allow together.
template <class T> class ValuePromise : public TaskPromise {
public:
    using TaskPromise::TaskPromise;
    void return_value(T value) noexcept { value_ = std::move(value); }
    [[nodiscard]] T take()
    {
        rethrow();
        return std::move(value_);
    }

private:
    T value_{};
};
template <> class ValuePromise<void> : public TaskPromise {
public:
    using TaskPromise::TaskPromise;
    void return_void() const noexcept {}
    void take() const { rethrow(); }
};

template <class T = void> class [[nodiscard]] Task {
public:
    struct promise_type : ValuePromise<T> {
        using ValuePromise<T>::ValuePromise;
        Task get_return_object() noexcept
        {
            return Task(std::coroutine_handle<promise_type>::from_promise(*this));
        }
    };

    Task() noexcept = default; // none
    Task(Task &&other) noexcept : handle_(std::exchange(other.handle_, {})) {}
    Task &operator=(Task &&other) noexcept
    {
        drop();
        handle_ = std::exchange(other.handle_, {});
        return *this;
    }
    ~Task() { drop(); }

    // For the owner of an outermost task, which steps its Frames.
    void start() noexcept { handle_.promise().frames().start(handle_); }
    // Once it has ended.
    [[nodiscard]] T result() { return handle_.promise().take(); }

    // co_await: runs it to its end, and is its result.
    [[nodiscard]] bool await_ready() const noexcept { return false; }
    [[nodiscard]] std::coroutine_handle<> await_suspend(std::coroutine_handle<> parent) noexcept
    {
        handle_.promise().set_parent(parent);
        return handle_;
    }
    T await_resume() { return handle_.promise().take(); }

private:
    explicit Task(std::coroutine_handle<promise_type> handle) noexcept : handle_(handle) {}
    void drop() noexcept
    {
        if (handle_) {
            std::exchange(handle_, {}).destroy();
        }
    }

    std::coroutine_handle<promise_type> handle_;
};

// co_await until(poll): goes on when poll() is true. co_await until(poll, value) is then value().
struct NoValue {
    void operator()() const noexcept {}
};
template <class Poll, class Value> class Until final : public Wait {
public:
    explicit Until(Poll poll, Value value = {}) noexcept : poll_(poll), value_(value) {}

    [[nodiscard]] bool is_over() override { return poll_(); }
    [[nodiscard]] bool await_ready() { return poll_(); }
    template <class Promise> void await_suspend(std::coroutine_handle<Promise> self) noexcept
    {
        self.promise().frames().suspend(self, *this);
    }
    auto await_resume() { return value_(); }

private:
    Poll poll_;
    Value value_;
};
template <class Poll, class Value = NoValue>
[[nodiscard]] auto until(Poll poll, Value value = {}) noexcept
{
    return Until<Poll, Value>(poll, value);
}

struct Call;

// A wait of a call whose poll is a function, so that a header can declare who returns it.
struct PollOfCall {
    bool (*poll)(Call &);
    Call &call;
    [[nodiscard]] bool operator()() const { return poll(call); }
};
using Polled = Until<PollOfCall, NoValue>;

} // namespace hetcoll
