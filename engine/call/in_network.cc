// A vector that aggregators reduce, piece by piece. All ranks end a piece together: only then is
// its input given up. A rank that has lost its aggregator says so there, and the rest of the
// vector, from that piece on, takes another algorithm.
#include "base/lost.h"
#include "engine/call/loan.h"
#include "engine/call/protocols.h"
#include "plan/facts.h"

#include <algorithm>
#include <cstring>

namespace hetcoll {
namespace {

constexpr std::uint64_t kNobody = ~std::uint64_t{0};

struct Piece {
    std::size_t first = 0, count = 0; // elements
    std::byte *kept = nullptr;        // a copy of its input; null: there is none
    bool lost = false;                // this rank has lost its aggregator
};

// Where inputs are kept that results would overwrite: on the GPU or on the host.
struct Kept {
    Loan<Scratch> device;
    Loan<StagingMemory> host;
};

// From here on nothing touches the slots.
void lose_aggregator(Call &call, Piece &piece)
{
    piece.lost = true;
    call.planner.aggregation().disconnect();
}

// Aggregators take host memory only.
void leave_direct_bounce(Call &call, Piece &piece)
{
    if (call.work.host != nullptr || !call.work.device->direct()) {
        return;
    }
    auto bounce = call.gpus.pool().borrow_device(call.buffers.recv, Sends::kBounced);
    if (bounce.ok()) {
        call.gpus.pool().give_back(std::move(call.work.device));
        call.work.device = std::move(*bounce);
        call.classified.reset();
    } else {
        lose_aggregator(call, piece);
    }
}

std::size_t offset_of(const Call &call, const Piece &piece) noexcept
{
    return piece.first * element_bytes(call.kind());
}

std::size_t bytes_of(const Call &call, const Piece &piece) noexcept
{
    return piece.count * element_bytes(call.kind());
}

std::byte *result_of(const Call &call, const Piece &piece) noexcept
{
    return static_cast<std::byte *>(call.buffers.out) + offset_of(call, piece);
}

// The vectors from the piece on.
Vectors vectors_from(const Call &call, const Piece &piece, std::size_t count) noexcept
{
    const Buffers &buffers = call.buffers;
    const void *const in = buffers.overwrites_input() ? buffers.out : buffers.in;
    return {.send = static_cast<const std::byte *>(in) + offset_of(call, piece),
            .recv = result_of(call, piece),
            .count = count,
            .op = call.op(),
            .kind = call.kind(),
            .user = {}};
}

void next_piece(const Call &call, Piece &piece)
{
    const std::size_t most = std::max<std::size_t>(
        call.planner.aggregation().piece_bytes() / element_bytes(call.kind()), 1);
    piece.first += piece.count;
    piece.count = std::min(call.args->count - piece.first, most);
    piece.kept = nullptr;
}

// Keeps the input where the result would overwrite it, if there is memory for that.
void keep_input(Call &call, Piece &piece, Kept &kept)
{
    if (!call.buffers.overwrites_input()) {
        return;
    }
    const std::size_t bytes = bytes_of(call, piece);
    const bool device = call.work.host == nullptr;
    Status why;
    if (device && kept.device == nullptr && call.work.device->enter().ok()) {
        kept.device =
            loan(call, call.gpus.pool().borrow_scratch(call.work.device->device(), bytes), why);
    } else if (!device && kept.host == nullptr) {
        kept.host = loan(call, call.gpus.pool().borrow_staging(nullptr, bytes), why);
    }
    if (device && kept.device != nullptr) {
        piece.kept = kept.device->data();
        call.start_copy(piece.kept, result_of(call, piece), bytes, call.buffers.recv);
    } else if (!device && kept.host != nullptr) {
        piece.kept = kept.host->data();
        std::memcpy(piece.kept, result_of(call, piece), bytes);
    }
}

void start_piece(Call &call, const Choice &choice, const Piece &piece)
{
    Aggregation &network = call.planner.aggregation();
    const std::size_t element = element_bytes(call.kind());
    const std::size_t message =
        std::min(choice.chunk_bytes, network.message_bytes()) / element * element;
    const auto slices = static_cast<std::size_t>(network.slices());
    const int messages = message_count((piece.count + slices - 1) / slices * element, message);
    const hetcoll_p2p &table = network.begin(call.op(), call.kind(), piece.count, messages);
    call.work.executor_runs = true;
    call.planner.executor().start(
        call.planner.schedules().in_network(messages), table, call.args->tag, call.work.bounce(),
        vectors_from(call, piece, piece.count), message, !call.failure.ok());
}

bool piece_is_done(Call &call)
{
    Aggregation &network = call.planner.aggregation();
    network.progress(); // the executor's messages learn of a failure
    switch (call.planner.executor().step()) {
    case Progress::kPending: return false;
    case Progress::kFailed: // among the ranks
        network.disconnect();
        lose(std::move(call.work.host));
        call.lose_network(call.planner.executor().code());
        return false;
    case Progress::kDone: return true;
    }
    return false;
}

void note_piece(Call &call, Piece &piece)
{
    call.work.executor_runs = false;
    if (call.planner.aggregation().is_lost()) {
        lose_aggregator(call, piece);
    }
    call.report.count(HETCOLL_BYTES_BOUNCE, call.planner.executor().bytes_sent());
    call.report.record.bounced = true;
    call.note(call.planner.executor().take_failure());
}

bool input_is_gone(const Call &call, const Piece &piece) noexcept
{
    return piece.kept == nullptr && call.buffers.overwrites_input();
}

// Did all ranks get this piece? Else the first that has lost its aggregator will say so.
void start_closing(Call &call, const Piece &piece)
{
    const std::uint64_t lost =
        piece.lost ? static_cast<std::uint64_t>(call.comm.p2p().rank) : kNobody;
    call.start_agreement(std::span(&lost, 1), ReduceOp::kMin,
                         call.to_tell() | flags_if(piece.lost, kNoAggregator) |
                             flags_if(input_is_gone(call, piece), kInputGone));
}

// Nobody can do this piece once more without the input of each rank, so all fail together.
int fail_without_input(Call &call, const Piece &piece, Flags all)
{
    if (input_is_gone(call, piece)) {
        call.note(error(Errc::kNoMemory, "an aggregator was lost, and there was no memory to keep "
                                         "the input of a call in place"));
    }
    return call.fail_together(all | kFailed);
}

void abandon_aggregators(Call &call)
{
    std::uint64_t first = 0;
    call.meeting.sum(std::span(&first, 1));
    call.planner.aggregation().abandon(static_cast<int>(first));
}

void start_bringing_back(Call &call, const Piece &piece)
{
    const std::size_t bytes = bytes_of(call, piece);
    if (piece.kept == nullptr) {
        return;
    }
    if (call.work.host == nullptr) {
        call.start_copy(result_of(call, piece), piece.kept, bytes, call.buffers.recv);
    } else {
        std::memcpy(result_of(call, piece), piece.kept, bytes);
    }
}

// By messages among the ranks, whose memory need not be mapped for that.
void start_rest(Call &call, const Piece &piece)
{
    const Choice choice = message_choice(call);
    call.report.serve(choice.algorithm);
    call.report.record.chunk_bytes = choice.chunk_bytes;
    call.work.executor_runs = true;
    call.planner.executor().start(call.planner.schedules().of(choice, call.bytes).schedule,
                                  call.comm.p2p(), call.args->tag, call.work.bounce(),
                                  vectors_from(call, piece, call.args->count - piece.first),
                                  choice.chunk_bytes, !call.failure.ok());
}

} // namespace

bool should_join(const Call &call)
{
    return call.planner.aggregation().is_untried() && call.args->kind >= 0 && !call.is_attached() &&
           call.args->user_op == 0 && !call.in_order &&
           call.bytes > call.comm.agreed().small_limit();
}

bool joins(const Call &call) noexcept { return call.planner.aggregation().joins(); }

namespace {

bool poll_join(Call &call)
{
    Aggregation &aggregators = call.planner.aggregation();
    switch (aggregators.step()) {
    case Progress::kPending: return false;
    case Progress::kFailed: call.lose_network(aggregators.code()); return false;
    case Progress::kDone: break;
    }
    if (any(aggregators.heard(), kCallsDiffer)) {
        call.ended = call.comm.same_calls().fail_differing(aggregators.meeting());
        return false;
    }
    return true;
}

} // namespace

Polled join(Call &call)
{
    call.planner.aggregation().start(call.comm.messages(), call.args->tag);
    return Polled({poll_join, call});
}

Task<int> in_network(Call &call, Choice choice)
{
    Kept kept;
    Piece piece;
    leave_direct_bounce(call, piece);
    call.report.record.schedule = algorithm_name(choice.algorithm);
    do {
        next_piece(call, piece);
        keep_input(call, piece, kept);
        co_await call.copied();
        start_piece(call, choice, piece);
        co_await until([&call] { return piece_is_done(call); });
        note_piece(call, piece);
        start_closing(call, piece);
        const Flags all = co_await call.all_met();
        const bool lost = any(all, kNoAggregator);
        if (lost) {
            abandon_aggregators(call);
        }
        if (any(all, kFailed)) {
            co_return call.fail_together(all);
        }
        if (lost && any(all, kInputGone)) {
            co_return fail_without_input(call, piece, all);
        }
        if (lost) {
            start_bringing_back(call, piece);
            co_await call.copied();
            start_rest(call, piece);
            co_await ran(call);
            const Flags closed = co_await close(call);
            co_return any(closed, kFailed) ? call.fail_together(closed) : HETCOLL_SUCCESS;
        }
    } while (piece.first + piece.count < call.args->count);
    call.report.serve(kByServers);
    co_return HETCOLL_SUCCESS;
}

} // namespace hetcoll
