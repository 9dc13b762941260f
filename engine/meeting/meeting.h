// All ranks of a communicator come together: each says some flags, all learn what any of them
// said, and a small vector is summed on the way. On a node through the control page, between nodes
// by an exchange of the nodes' leaders, without pages by an exchange of all. A rank that has come
// to one meeting has done with the slots of the one before; so two of everything, used in turn, are
// enough. Where the pages have no room for a vector yet, the ranks make it in two meetings before
// that one, or sum the vector piece by piece.
#pragma once

#include "engine/meeting/call_mismatch.h"
#include "engine/meeting/exchange.h"
#include "engine/meeting/messages.h"
#include "engine/meeting/node_group.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace hetcoll {

class Meeting {
public:
    // Where this rank puts its part of the next meeting's sum: in the control page, or `otherwise`,
    // which has room for the flags behind it, for Exchange::kHeaderBytes before it, and for
    // ControlPage::kPayloadBytes.
    [[nodiscard]] static std::byte *payload(const NodeGroup &group, std::size_t bytes,
                                            std::byte *otherwise) noexcept;

    // `bytes` are at `mine`, from payload(): `count` elements that `reduction` combines; between
    // nodes, and without pages, two operands at a time. No payload: messages.mine, 0, 0, nullptr.
    // Group, messages and `mine` live until step() has returned something else than kPending.
    void start(NodeGroup &group, Messages &messages, std::byte *mine, int tag, std::size_t bytes,
               std::size_t count, const HostReduction &reduction, Flags flags) noexcept;
    // Flags only.
    void start(NodeGroup &group, Messages &messages, int tag, Flags flags) noexcept
    {
        start(group, messages, messages.mine, tag, 0, 0, nullptr, flags);
    }
    // A few numbers, each combined with the others' of its place.
    void start(NodeGroup &group, Messages &messages, int tag,
               std::span<const std::uint64_t> numbers, ReduceOp op, Flags flags) noexcept;
    [[nodiscard]] Progress step() noexcept;
    // The flags of all ranks but `local_rank`; nothing until they have. Requires one node and its
    // page, and that step() has not returned kDone.
    [[nodiscard]] std::optional<Flags> flags_without(int local_rank) const noexcept;

    // The results. Require that step() returned kDone.
    [[nodiscard]] Flags flags() const noexcept { return flags_; }
    // If these have kCallsDiffer: how the calls differ, and what this rank has to say of that, if
    // anything. Then there is no sum.
    [[nodiscard]] Differences differences() const noexcept { return mismatch_.differences(); }
    [[nodiscard]] std::uint32_t newest() const noexcept { return mismatch_.newest(); }
    [[nodiscard]] std::optional<CallMismatch::Calls> different_calls() const noexcept
    {
        return mismatch_.calls(*group_, number_ % 2, exchange());
    }
    // The sum: at `mine`, or in the control page and valid until the next but one meeting.
    [[nodiscard]] const std::byte *sum() const noexcept { return sum_; }
    // The same as numbers, as many as there is room for.
    void sum(std::span<std::uint64_t> numbers) const noexcept;
    [[nodiscard]] int code() const noexcept { return exchange().code(); } // requires kFailed
    // Requires several nodes, or no pages of ranks. Requires that step() has returned kPending.
    [[nodiscard]] const Exchange &exchange() const noexcept { return messages_->exchange(); }

private:
    enum class Part : std::uint8_t { kExchange, kArrive, kLeaders, kRelease, kDone };
    // One start() is one round, but where the pages have no room for the vector: two that sum
    // nothing, in which the ranks make rooms, before that one, or in its place one for each piece.
    enum class Round : std::uint8_t { kWhole, kOffer, kAttach, kPiece };
    static constexpr unsigned kPollsPerLook = 32;

    [[nodiscard]] bool all_arrived() noexcept;
    [[nodiscard]] bool find_elsewhere() noexcept;
    void sum_node() noexcept;
    void start_round(std::size_t bytes, std::size_t count, Flags flags) noexcept;
    void start_piece() noexcept;
    [[nodiscard]] bool next_round() noexcept;
    [[nodiscard]] Progress step_round() noexcept;
    [[nodiscard]] std::byte *leader_part() noexcept;
    void start_exchange(const hetcoll_p2p &among, std::byte *mine) noexcept;

    NodeGroup *group_ = nullptr;
    Messages *messages_ = nullptr;
    Part part_ = Part::kDone;
    std::uint32_t number_ = 0;
    int seen_ = 0; // ranks of the node, from the first on, that have arrived
    // Until the next look at those that have not.
    unsigned polls_left_ = kPollsPerLook;
    int tag_ = 0;
    Round round_ = Round::kWhole;
    std::size_t bytes_ = 0, count_ = 0; // of the round
    struct Vector {                     // which the pages have no room for
        std::size_t bytes = 0, count = 0, done = 0;
        Flags flags{};
    };
    Vector vector_;
    std::byte *mine_ = nullptr;
    HostReduction reduction_ = nullptr;
    Flags flags_{};
    CallMismatch mismatch_;
    const std::byte *sum_ = nullptr;
};

} // namespace hetcoll
