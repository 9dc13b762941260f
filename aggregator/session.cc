#include "aggregator/session.h"

namespace hetcoll {
namespace {

// An aggregator that many strangers connect to may show one out that is about to show the key.
constexpr int kAttempts = 3;

} // namespace

Status Session::connect(const Endpoint &to)
{
    ++attempts_;
    to_ = to;
    Result<Connection> connection = wire_.connect(to, key_);
    if (!connection.ok()) {
        return connection.take_status();
    }
    connection_ = *connection;
    wire_.allow_payload(connection_, member_.message_bytes);
    const HeaderBytes join = encode(Join{member_});
    header_bytes_out_ += join.view().size();
    wire_.send(connection_, join);
    return {};
}

void Session::fail(Status why)
{
    if (state_ != SessionState::kFailed) {
        state_ = SessionState::kFailed;
        status_ = std::move(why);
        wire_.close(connection_);
    }
}

void Session::on_lost(const std::string &why)
{
    const bool hopeless = why.find(kWrongKey) != std::string::npos || why.starts_with(kUnknownHost);
    if (hopeless) {
        fail(error(Errc::kUnsupported, "aggregator %s: %s", where_.c_str(), why.c_str()));
    } else if (state_ == SessionState::kJoining && attempts_ < kAttempts) {
        if (Status again = connect(to_); !again.ok()) {
            fail(std::move(again));
        }
    } else {
        fail(error(Errc::kUnsupported, "the connection to aggregator %s is lost: %s%s",
                   where_.c_str(), why.c_str(),
                   state_ == SessionState::kJoining ? "; is hetcoll_aggregator running there?"
                                                    : ""));
    }
}

// A server that answers like this is not an aggregator of ours, or is of another release.
void Session::on_wrong(const char *what)
{
    fail(error(Errc::kInvalid,
               "aggregator %s has sent %s, so it is not used: is it the same release of hetcoll?",
               where_.c_str(), what));
}

void Session::on_message(std::span<const std::byte> header, Payload payload)
{
    if (state_ == SessionState::kFailed) {
        return;
    }
    const std::optional<Message> message = decode(header, payload.size());
    header_bytes_in_ += header.size();
    ++messages_in_;
    if (!message) {
        on_wrong("something that is not a message of hetcoll's");
    } else if (const auto *const ready = std::get_if<Ready>(&*message)) {
        if (state_ != SessionState::kJoining || ready->window > member_.window) {
            on_wrong("a message out of turn");
            return;
        }
        window_ = ready->window;
        state_ = SessionState::kJoined;
    } else if (const auto *const refused = std::get_if<Refused>(&*message)) {
        fail(error(Errc::kUnsupported, "aggregator %s: %s", where_.c_str(), refused->why.c_str()));
    } else if (const auto *const sum = std::get_if<PartSum>(&*message)) {
        on_sum(*sum, std::move(payload));
    } else if (!std::holds_alternative<Alive>(*message)) {
        on_wrong("a worker's message");
    }
}

void Session::on_sum(const PartSum &sum, Payload payload)
{
    if (state_ != SessionState::kJoined || sum.sequence != received_ || sum.sequence >= sent_) {
        on_wrong("a sum that this side does not expect");
        return;
    }
    ++received_;
    sums_.on_sum(sum.sequence, std::move(payload));
}

void Session::begin(ReduceOp op, ElementKind kind, std::uint64_t count)
{
    next_ = Reduction{.job = member_.job,
                      .comm = member_.comm,
                      .op = op,
                      .kind = kind,
                      .window = window_,
                      .message_bytes = member_.message_bytes,
                      .count = count};
}

void Session::send(std::span<const std::byte> part, SendBuffer *buffer)
{
    const HeaderBytes header =
        encode(Part{.sequence = sent_, .reduction = std::exchange(next_, {})});
    ++sent_;
    header_bytes_out_ += header.view().size();
    wire_.send(connection_, header, part, buffer);
}

} // namespace hetcoll
