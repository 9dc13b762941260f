// A recorded list of MPI calls (bench/traces/README.md), and the order in which they are played. No
// MPI.
#pragma once

#include "base/element.h"
#include "base/status.h"

#include <cstddef>
#include <string>
#include <vector>

namespace hetcoll {

enum class TracedCall : std::uint8_t {
    kAllreduce,
    kReduceScatter,
    kBcast,
    kAllgatherv,
    kAlltoallv,
};

// "Allreduce", "Reduce_scatter", ...: as in the file.
[[nodiscard]] const char *traced_call_name(TracedCall call) noexcept;

// A collective on tensors: in a GPU program their memory is the GPU's.
struct DataCall {
    TracedCall call;
    ElementKind kind;
    ReduceOp op;
    bool user_op; // Horovod's half: a type of two bytes and a user-defined operation
    bool in_place;
    std::size_t count; // elements
};

// What Horovod does in host memory before a data call: its ranks agree on what is ready.
struct Negotiation {
    std::vector<std::size_t> agreed_words; // 64-bit words of an MPI_Allreduce each
    // At least 0: tensors that are new are announced with Gather and Gatherv, and the answer, of so
    // many bytes, comes with Bcast. -1: none is.
    long response_bytes = -1;
};

struct PlayedCall {
    Negotiation before;
    DataCall data;
};

// Reads a file of bench/traces. Kinds of calls that training makes only at its beginning and end,
// communicators above all, are left out.
//
// A trace says how often each kind of call was made, not when. It is played in rounds: the first
// call of each kind in the file's order, then the second of those that have one, and so on;
// broadcasts, of which each is one tensor's, all in the first. The negotiations are shared out
// evenly.
Result<std::vector<PlayedCall>> read_trace(const std::string &path);

// Every data call with 1/divisor of its elements, at least one.
void shrink(std::vector<PlayedCall> &calls, std::size_t divisor);

} // namespace hetcoll
