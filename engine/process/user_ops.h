// Which user-defined MPI operations hetcoll reduces itself: those of include/hetcoll_types.h, known
// by a mark in their code, and functions of 16-bit floats known by their exact symbol, each of
// which was called once on known numbers and answered as our kernels do. Every other function is
// left alone.
#pragma once

#include "base/element.h"
#include "base/log.h"
#include "base/status.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hetcoll {

struct UserOp {
    ReduceOp op;
    ElementKind kind;
    friend bool operator==(const UserOp &, const UserOp &) = default;
};

class UserOps {
public:
    // Calls a function that MPI_Op_create was given: inout = in op inout, elements of two bytes.
    struct Caller {
        void (*call)(void *context, const void *in, void *inout, int count);
        void *context;
    };
    using Function = void (*)();

    // `entries` as coll_hetcoll_user_ops has them: "symbol=half:sum,symbol=bfloat16:max". One that
    // cannot be read is left out. If a symbol has several, the last one counts, even
    // before the built-in ones, which are Horovod's.
    UserOps(std::string_view entries, const Log &log, const Log &node_log);
    UserOps(const UserOps &) = delete;
    UserOps &operator=(const UserOps &) = delete;

    // Thread safe. The answer is kept by function, and stays good while the function's library is
    // loaded. After kMostFunctions different ones nothing new is recognised. A function in the
    // table is called through `caller` at its first use, others never are.
    [[nodiscard]] std::optional<UserOp> recognize(Function function, const Caller &caller);

    // Equal for equal tables, never 0.
    [[nodiscard]] std::uint64_t hash() const noexcept;

    static constexpr std::size_t kMostFunctions = 64;

private:
    struct Entry {
        std::string symbol;
        UserOp op;
    };
    struct Answer {
        Function function = nullptr;
        std::optional<UserOp> op;
    };

    void add(std::string symbol, UserOp op);
    [[nodiscard]] const Answer *find(Function function) const noexcept;
    [[nodiscard]] std::optional<UserOp> look_up(Function function, const Caller &caller) const;

    Log log_, node_log_;
    std::vector<Entry> entries_;
    std::mutex mutex_; // of adding answers; those before count_ never change
    std::array<Answer, kMostFunctions> answers_{};
    std::atomic<std::size_t> count_{0};
};

// Names the entries that cannot be read, all that fit a line.
[[nodiscard]] Status check_user_ops(std::string_view entries);

// Why the function is not what the table says, or nothing: it is called on finite numbers of all
// sizes and has to answer what host_reduce() does, and to touch nothing else.
[[nodiscard]] std::optional<std::string> refute(UserOp op, const UserOps::Caller &caller);

} // namespace hetcoll
