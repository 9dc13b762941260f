// The protocols that serve a call. Each is a coroutine that returns the call's result as
// hetcoll_allreduce() does. The facts that decide between them are the same on every rank: they
// that do not depend on the rank, and what the ranks have told each other:
// docs/internals/architecture.md.
#pragma once

#include "choice/arrivals.h"
#include "choice/choose.h"
#include "choice/chunk_tuner.h"
#include "engine/call/call.h"
#include "engine/call/late_ranks.h"
#include "engine/call/task.h"
#include "engine/communicator/built_schedule.h"
#include "engine/communicator/means.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace hetcoll {

// ---- look.cc: what a rank knows of a call by itself ----

// Describes the vector, if hetcoll reduces it or may do so on other ranks.
[[nodiscard]] std::size_t vector_bytes(const hetcoll_call &args) noexcept;
// Finds out where the buffers are.
void look_at_buffers(Call &call);
// Where the first byte of a buffer lies.
void find(Call &call, const void *first, PointerInfo &info);
// coll_hetcoll_pre_sync=context.
void wait_for_contexts(Call &call);
// This rank cannot use its GPU now.
void must_stage(Call &call, const Status &problem);

// ---- choosing.cc: which protocol serves a call ----

// The one that it begins with. `call` is of what was given.
[[nodiscard]] Task<int> protocol_of(Call &call, const hetcoll_call &given);
// All ranks do what a rank that does not know a user-defined op does in its first meeting.
[[nodiscard]] bool is_small_user_op(const Call &call);
// Its first meeting is that of host(), known before it.
[[nodiscard]] bool is_surely_small(Call &call);
[[nodiscard]] Choice choose_way(Call &call, Means means);
// UCX waits for its own copies, which a queued call may not, and adapters' streams for the legacy
// stream.
[[nodiscard]] inline Means any_means(const Call &call)
{
    const bool may_wait = !call.is_attached();
    return {.mapped = true, .aggregators = may_wait, .adapters = may_wait};
}
// Whether calls of this choice read the memory of other ranks where they can.
[[nodiscard]] bool uses_mapping(const Call &call, const Choice &choice) noexcept;
[[nodiscard]] const BuiltSchedule &schedule_of(const Call &call, const Choice &choice);
// When a schedule began whose chunk is still being looked for.
struct Timed {
    ChunkTuner *tuner = nullptr; // null: nobody looks
    std::uint64_t started_ns = 0;
};
// Gives the choice the chunk that is tried next.
[[nodiscard]] Timed find_chunk(Call &call, Choice &choice);
// Takes the waits of all ranks, which they have told each other.
void take_arrivals(Call &call, std::span<const std::uint64_t> of_all);

// ---- borrowed.cc: what a call borrows ----

// A bounce is borrowed if a buffer is on a device, once it is known whether Open MPI's messages can
// carry that. True, too, when there is none: then this rank must stage.
[[nodiscard]] bool try_borrow_bounce(Call &call);
// A rank whose result goes to host memory takes part in a mixed call with host kernels.
void borrow_for_mixed(Call &call);
// The memory that queued calls' vectors are copied to, and whether peers have mapped it. Null: the
// call uses it not.
[[nodiscard]] const Scratch *reserved_memory(const Call &call) noexcept;
[[nodiscard]] bool reserved_is_mapped(const Call &call) noexcept;
// The application's work on a buffer for which no stream of ours is ordered after it. True, too,
// when this rank has failed.
[[nodiscard]] bool poll_work(Call &call, const PointerInfo &info);

// ---- cpu_path.cc: small vectors in device memory that the processor reads and writes ----

// Whether the path may be taken at all. Never by calls that are queued on a stream or wait for one
// that the program names: what the processor writes is not ordered for work that a stream has been
// given before, and only the legacy stream is asked whether it is idle.
[[nodiscard]] bool may_use_cpu(const Call &call) noexcept;
// The processor's part of this call. False: the program's work is not done yet, ask again.
[[nodiscard]] bool poll_cpu(Call &call);
// Something is left to be copied.
[[nodiscard]] bool needs_bounce(const Call &call) noexcept;
// The vector to `to`, and the sum to where the application wants it. False: it must be copied.
[[nodiscard]] bool read_by_cpu(Call &call, std::byte *to);
[[nodiscard]] bool write_by_cpu(Call &call, const std::byte *sum);
// Buffers get their views, if it is time. The vector is read, the sum is not copied out yet.
[[nodiscard]] Task<> make_views(Call &call);

// The communicator's first call makes its control pages.
[[nodiscard]] bool poll_pages(Call &call);
// And then there is a bounce, and the application's work in a send buffer's own context is waited
// for.
[[nodiscard]] Polled make_ready(Call &call) noexcept;

// ---- allreduce.cc: one MPI_Allreduce from agreement to close ----

[[nodiscard]] Task<int> allreduce(Call &call);

// ---- own_vector.cc: pairs with padding ----

// Schedules and kernels write whole elements, their padding too, to where the result goes.
[[nodiscard]] bool needs_own_vector(Call &call);
// allreduce() in a vector of ours, of which values and indices go to where the program wants them.
[[nodiscard]] Task<int> with_own_vector(Call &call);

// ---- reach.cc: whose memory can be read ----

// The ranks find out whose GPUs reach each other.
[[nodiscard]] bool peers_are_known(const Call &call) noexcept;
void start_finding_peers(Call &call);
[[nodiscard]] bool poll_peers(Call &call);
// A rank's memory is of a device that its peers do not know.
void tell_new_device(Call &call);
// The bounce's device is the one that they know.
[[nodiscard]] bool is_known_device(const Call &call) noexcept;
// The carrier of such calls next to Open MPI's messages; null: none.
[[nodiscard]] Carrier *carrier_of(const Call &call, const Choice &choice) noexcept;
// This rank cannot map a buffer of a peer.
void note_unmapped(Call &call, const Status &problem);

// ---- publish.cc: whose memory is read ----

// Makes the buffers ready for peers to read and write, if the choice may need that, and announces
// them.
[[nodiscard]] Task<> publish(Call &call, const Choice &choice, Published &published);
// Maps peers' memory, or returns why it cannot.
[[nodiscard]] Task<Status> map(Call &call, const Choice &choice);
// Where some rank's buffers are new. If any rank could not map one, the call is not `mapped`, and
// other memory takes the buffer's place in further calls. If it could not map that, nobody maps on
// this communicator again.
[[nodiscard]] Task<> agree_on_mapping(Call &call, const Status &problem, LateRanks *late);
void note_mapped(Call &call, Status problem);

// ---- host.cc, staged.cc, in_network.cc, fixed_point.cc, as_floats.cc, collective.cc ----

// One rank: the input is the result.
[[nodiscard]] Task<int> alone(Call &call);
// Up to the small limit: one meeting that sums the vector, whatever the memory.
[[nodiscard]] Task<int> host(Call &call);
// Serves by copies on the host what hetcoll does not, or cannot now, reduce. `all`: what the
// ranks have said so far.
[[nodiscard]] Task<int> staged(Call &call, Flags all);
// No other module can be called now, or another module's order of summation is not ours: what runs
// on the host does so by our schedules.
[[nodiscard]] bool runs_on_host(const Call &call, Flags all) noexcept;
// The first call that could use aggregators joins them.
[[nodiscard]] bool should_join(const Call &call);
[[nodiscard]] bool joins(const Call &call) noexcept;
[[nodiscard]] Polled join(Call &call);
// A vector that aggregators reduce, piece by piece.
[[nodiscard]] Task<int> in_network(Call &call, Choice choice);
// coll_hetcoll_fixed_point: an allreduce of integers in place of `given`, which sums floats.
[[nodiscard]] Task<int> fixed_point(Call &call, const hetcoll_call &given);
// A sum of 8-bit floats, which is always kept in float and rounded once.
[[nodiscard]] bool is_float8_sum(const Call &call) noexcept;
// Rounded after every addition, or by something that cannot add such numbers.
[[nodiscard]] inline bool goes_as_floats(const Call &call, const Choice &choice) noexcept
{
    return is_float8_sum(call) && !contains(kAtOnceAlgorithms, choice.algorithm);
}
// Such a sum as one of floats.
[[nodiscard]] Task<int> as_floats(Call &call);
// A broadcast, reduce, allgather or reduce-scatter.
[[nodiscard]] Task<int> collective(Call &call);
// Makes the means of queued calls, mapped by the ranks of a node. After a call of this
// communicator with memory in the same context.
[[nodiscard]] Task<int> attach(Call &call);
// One whose stream has its work already: prepared.h.
[[nodiscard]] Task<int> prepared(Call &call);
// After that was declined: has each rank copied what it reads to the host?
[[nodiscard]] Task<int> copies(Call &call);

// ---- run.cc: schedules and kernels ----

// Copies an input that is foreign to the result, where the schedule then reads it: its buffers are
// of one kind and context. co_await Call::copied().
void bring_input(Call &call);
// Runs what was chosen: co_await ran(), then close().
[[nodiscard]] Timed start_run(Call &call, Choice choice, LateRanks *late);
// Before that: if a peer has left, its memory is not touched, and the wait ends with the call.
[[nodiscard]] Polled peers_stay(Call &call) noexcept;
[[nodiscard]] Polled ran(Call &call) noexcept;
// The stand-in for a kind that this rank does not know: integers of the op's size.
[[nodiscard]] inline ElementKind unknown_kind(const Call &call) noexcept
{
    return call.args->user_op == 1 ? ElementKind::kUint8 : ElementKind::kUint16;
}
// A choice for a call that runs by messages though the first choice was something else.
[[nodiscard]] Choice message_choice(const Call &call);
// Whether the call succeeded on all ranks. The ranks also learn how long the slowest of them took
// while a chunk is being looked for; and now and then how long each has waited at the beginning.
[[nodiscard]] Task<Flags> close(Call &call, Timed timed = {});

} // namespace hetcoll
