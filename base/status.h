// Status and Result: how every layer reports a failure. Success costs one null pointer, so hot
// paths return them freely; the message is formatted only when there is something to say.
#pragma once

#include <cassert>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace hetcoll {

enum class Errc : std::uint8_t {
    kInvalid,     // the caller's argument or a file's content is wrong
    kUnsupported, // correct, but not possible here
    kNoMemory,    // host, pinned or device memory ran out
    kDriver,      // a CUDA driver call failed
};

// Holds an error or none. The code that first knows that something is an error words it, once.
class [[nodiscard]] Status {
public:
    Status() noexcept = default; // success
    Status(Errc code, std::string message) : error_(new Error{code, std::move(message)}) {}

    // kNoMemory, and takes none.
    [[nodiscard]] static Status out_of_memory() noexcept;

    [[nodiscard]] bool ok() const noexcept { return error_ == nullptr; }
    // Require !ok().
    [[nodiscard]] Errc code() const noexcept { return error_->code; }
    [[nodiscard]] const std::string &message() const noexcept { return error_->message; }

private:
    struct Error {
        Errc code;
        std::string message;
        bool is_static = false; // no_memory()'s, perhaps of another file that was loaded
    };
    struct Drop {
        void operator()(Error *error) const noexcept;
    };
    [[nodiscard]] static Error *no_memory() noexcept;
    std::unique_ptr<Error, Drop> error_;
};

// The one way to make an error: what, where, the value, the consequence, the way out. Without
// memory for that, Status::out_of_memory().
[[gnu::format(printf, 2, 3)]] Status error(Errc code, const char *format, ...);

// A value, or the Status that says why there is none.
template <class T> class [[nodiscard]] Result {
public:
    Result(T value) : value_(std::move(value)) {}
    Result(Status status) : status_(std::move(status)) { assert(!status_.ok()); }

    [[nodiscard]] bool ok() const noexcept { return value_.has_value(); }
    // Require ok().
    [[nodiscard]] T &operator*() noexcept { return *value_; }
    [[nodiscard]] const T &operator*() const noexcept { return *value_; }
    [[nodiscard]] T *operator->() noexcept { return &*value_; }
    [[nodiscard]] const T *operator->() const noexcept { return &*value_; }
    // Requires !ok(); hands the error on.
    [[nodiscard]] Status take_status() noexcept { return std::move(status_); }
    [[nodiscard]] const Status &status() const noexcept { return status_; }

private:
    std::optional<T> value_;
    Status status_;
};

} // namespace hetcoll
