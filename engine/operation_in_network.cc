// A vector that aggregators reduce, piece by piece. All ranks end a piece together: only then is
// its input given up. A rank that has lost its aggregator says so there, and the rest of the
// vector, from that piece on, takes another algorithm.
#include "engine/flags.h"
#include "engine/operation.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace hetcoll {
namespace {

constexpr std::uint64_t kNobody = ~std::uint64_t{0};

} // namespace

// The first call that could use aggregators joins them.
bool Operation::should_join() const noexcept
{
    return engine_.aggregation().is_untried() && !is_collective() && call_.kind >= 0 &&
           call_.user_op == 0 && !in_order_ && bytes_ > engine_.small_limit();
}

void Operation::begin_pieces()
{
    piece_ = {};
    if (host_ == nullptr && device_->direct()) { // aggregators take host memory only
        auto bounce = process_.borrow_device(recv_, false);
        if (bounce.ok()) {
            process_.give_back(std::move(device_));
            device_ = std::move(*bounce);
            classified_ = false;
        } else {
            lose_aggregator();
        }
    }
    begin_piece();
}

// Keeps the input where the result would overwrite it.
void Operation::begin_piece()
{
    const std::size_t element = element_bytes(kind());
    const std::size_t most =
        std::max<std::size_t>(engine_.aggregation().piece_bytes() / element, 1);
    piece_.first += piece_.count;
    piece_.count = std::min(call_.count - piece_.first, most);
    piece_.kept = nullptr;
    state_ = State::kPieceCopy;
    if (!overwrites_input()) {
        return;
    }
    const std::size_t bytes = piece_.count * element;
    const bool device = host_ == nullptr;
    if (device && scratch_ == nullptr && device_->enter().ok()) {
        auto borrowed = process_.borrow_scratch(device_->device(), bytes);
        scratch_ = borrowed.ok() ? std::move(*borrowed) : nullptr;
    } else if (!device && staged_send_ == nullptr) {
        auto borrowed = process_.borrow_staging(nullptr, bytes);
        staged_send_ = borrowed.ok() ? std::move(*borrowed) : nullptr;
    }
    if (device && scratch_ != nullptr) {
        piece_.kept = scratch_->data();
        start_copy(piece_.kept, result_piece(), bytes, recv_);
    } else if (!device && staged_send_ != nullptr) {
        piece_.kept = staged_send_->data();
        std::memcpy(piece_.kept, result_piece(), bytes);
    }
}

std::byte *Operation::result_piece() const noexcept
{
    return static_cast<std::byte *>(out_) + piece_.first * element_bytes(kind());
}

// The vectors from the current piece on.
Vectors Operation::piece_vectors(std::size_t count) const noexcept
{
    const std::byte *const in = static_cast<const std::byte *>(overwrites_input() ? out_ : in_) +
                                piece_.first * element_bytes(kind());
    return {
        .send = in, .recv = result_piece(), .count = count, .op = op(), .kind = kind(), .user = {}};
}

void Operation::run_piece()
{
    state_ = State::kPiece;
    Aggregation &network = engine_.aggregation();
    const std::size_t element = element_bytes(kind());
    const std::size_t message =
        std::min(choice_.chunk_bytes, network.message_bytes()) / element * element;
    const auto slices = static_cast<std::size_t>(network.slices());
    const int messages = message_count((piece_.count + slices - 1) / slices * element, message);
    const hetcoll_p2p &table = network.begin(op(), kind(), piece_.count, messages);
    engine_.executor().start(engine_.in_network_schedule(messages), table, call_.tag, bounce(),
                             piece_vectors(piece_.count), message, !failure_.ok());
}

// As advance(), of the states of a piece.
bool Operation::running_piece()
{
    switch (state_) {
    case State::kPieceCopy:
        if (!copy_done()) {
            return false;
        }
        run_piece();
        return true;
    case State::kPiece: {
        Aggregation &network = engine_.aggregation();
        network.progress(); // the executor's messages learn of a failure
        const Progress progress = engine_.executor().step();
        if (progress == Progress::kPending) {
            return false;
        }
        if (progress == Progress::kFailed) { // among the ranks
            network.disconnect();
            static_cast<void>(host_.release());
            network_failed(engine_.executor().code());
            return true;
        }
        if (network.is_lost()) {
            lose_aggregator();
        }
        process_.count(HETCOLL_BYTES_BOUNCE, engine_.executor().bytes_sent());
        record_.bounced = true;
        note(engine_.executor().take_failure());
        if (piece_.lost && piece_.kept == nullptr && overwrites_input()) {
            note(error(Errc::kNoMemory, "an aggregator was lost, and there was no memory to keep "
                                        "the input of a call in place"));
        }
        end_piece();
        return true;
    }
    case State::kPieceClose:
        if (!meeting_done()) {
            return false;
        }
        piece_ended();
        return true;
    case State::kPieceBack:
        if (!copy_done()) {
            return false;
        }
        if (piece_.kept != nullptr) {
            bring_back();
        } else {
            run_rest();
        }
        return true;
    default: return true;
    }
}

// From here on nothing touches the slots.
void Operation::lose_aggregator()
{
    piece_.lost = true;
    engine_.aggregation().disconnect();
}

// Did all ranks get this piece? Else the first that has lost its aggregator will say so.
void Operation::end_piece()
{
    state_ = State::kPieceClose;
    process_.count(HETCOLL_AGREEMENTS);
    const std::uint64_t lost =
        piece_.lost ? static_cast<std::uint64_t>(engine_.p2p().rank) : kNobody;
    const Flags told = flags_to_tell() & static_cast<Flags>(~kNotShared);
    meeting_.start(engine_.group(), engine_.messages(), call_.tag, std::span(&lost, 1),
                   ReduceOp::kMin, piece_.lost ? told | kNotShared : told);
}

void Operation::piece_ended()
{
    if (state_ == State::kDone) {
        return;
    }
    const Flags all = meeting_.flags();
    const bool lost = (all & kNotShared) != 0;
    if (lost) {
        std::uint64_t first = 0;
        meeting_.sum(std::span(&first, 1));
        engine_.aggregation().abandon(static_cast<int>(first));
    }
    if ((all & kFailed) != 0) {
        fail_together();
    } else if (lost) {
        state_ = State::kPieceBack;
    } else if (piece_.first + piece_.count < call_.count) {
        begin_piece();
    } else {
        serve(HETCOLL_CALLS_IN_NETWORK);
        finish(HETCOLL_SUCCESS);
    }
}

void Operation::bring_back()
{
    const std::byte *const kept = std::exchange(piece_.kept, nullptr);
    const std::size_t bytes = piece_.count * element_bytes(kind());
    if (host_ == nullptr) {
        start_copy(result_piece(), kept, bytes, recv_);
    } else {
        std::memcpy(result_piece(), kept, bytes);
    }
}

// By messages among the ranks, whose memory need not be mapped for that.
void Operation::run_rest()
{
    const std::size_t count = call_.count - piece_.first;
    choice_ = message_choice();
    serve(choice_.algorithm);
    state_ = State::kRun;
    record_.chunk_bytes = choice_.chunk_bytes;
    engine_.executor().start(engine_.schedule(choice_, bytes_).schedule, engine_.p2p(), call_.tag,
                             bounce(), piece_vectors(count), choice_.chunk_bytes, !failure_.ok());
}

} // namespace hetcoll
