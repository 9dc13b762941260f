// Pairs of MPI_MAXLOC and MPI_MINLOC with padding. It is the program's, as are the bytes between
// the elements of any other type: the program may keep something there, and another thread may
// write it during the call. Small calls, and those that Open MPI makes, store value and index
// alone. All others reduce in memory of ours: whole packs of sixteen bytes, by messages, by kernels
// and by peers.
#include "engine/call/loan.h"
#include "engine/call/protocols.h"

namespace hetcoll {
namespace {

// The vector while the call runs.
struct OwnVector {
    Loan<Scratch> borrowed;
    std::byte *data = nullptr; // null: there is none, so this rank must stage
};

// The memory of queued calls, or memory of this call.
OwnVector place(Call &call)
{
    OwnVector vector;
    Status problem;
    if (call.work.uses_reserved) {
        const Scratch &reserved = *call.comm.reserved().scratch;
        problem = fits_attached(call.bytes, reserved);
        vector.data = problem.ok() ? reserved.data() : nullptr;
    } else {
        vector.borrowed = loan(
            call, call.gpus.pool().borrow_scratch(call.work.device->device(), call.bytes), problem);
        vector.data = vector.borrowed != nullptr ? vector.borrowed->data() : nullptr;
    }
    if (problem.ok()) {
        return vector;
    }
    if (call.is_queued()) { // staging would make memory
        call.note(std::move(problem));
    } else {
        must_stage(call, problem);
    }
    return vector;
}

} // namespace

bool needs_own_vector(Call &call)
{
    return call.has_padding() && on_device(call.buffers.recv) && call.comm.p2p().size > 1 &&
           call.work.device != nullptr && !any(call.flags, kFailed | kMustStage) &&
           !is_surely_small(call);
}

Task<int> with_own_vector(Call &call)
{
    const hetcoll_call &given = *call.args;
    const PointerInfo result = call.buffers.recv;
    const OwnVector vector = place(call);
    if (vector.data == nullptr) {
        co_return co_await allreduce(call);
    }
    call.start_copy(vector.data, given.send, call.bytes_in(), call.buffers.device());
    co_await call.copied();

    hetcoll_call own = given;
    own.send = own.recv = vector.data;
    own.dense = 1;
    call.args = &own;
    call.classified.reset();
    look_at_buffers(call);
    const int reduced = co_await allreduce(call);
    call.args = &given;
    call.classified.reset(); // it is the vector's
    if (reduced != HETCOLL_SUCCESS) {
        co_return reduced;
    }
    call.start_copy_out(given.recv, vector.data, result);
    co_await call.copied();
    co_return call.result();
}

} // namespace hetcoll
