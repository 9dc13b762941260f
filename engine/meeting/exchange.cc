// Recursive doubling (Thakur, Rabenseifner, Gropp 2005): ceil(log2 n) rounds, every rank sends its
// whole part in each. If n is not a power of two, the first 2(n - 2^k) ranks fold in pairs before,
// and unfold after. Groups are consecutive ranks, so "lower rank first" is the same expression on
// both sides.
#include "engine/meeting/exchange.h"

#include <cstring>

namespace hetcoll {

void Exchange::start(const hetcoll_p2p &p2p, int tag, std::byte *mine, std::byte *theirs,
                     std::size_t payload_bytes, std::size_t count, HostReduce reduce,
                     Flags flags) noexcept
{
    p2p_ = p2p;
    tag_ = tag;
    mine_ = mine;
    theirs_ = theirs;
    payload_bytes_ = payload_bytes;
    count_ = count;
    reduce_ = reduce;
    flags_ = flags;
    send_ = receive_ = nullptr;
    combines_ = false;
    code_ = 0;
    mask_ = 1;

    power_ = 1;
    while (power_ * 2 <= p2p_.size) {
        power_ *= 2;
    }
    rest_ = p2p_.size - power_;
    if (p2p_.rank >= 2 * rest_) {
        group_rank_ = p2p_.rank - rest_;
        part_ = Part::kRounds;
        enter_next();
        return;
    }
    part_ = Part::kFold;
    if (p2p_.rank % 2 == 0) {
        group_rank_ = -1;
        post(Way::kSend, p2p_.rank + 1);
    } else {
        group_rank_ = p2p_.rank / 2;
        post(Way::kReceive, p2p_.rank - 1);
        combines_ = true;
    }
}

Progress Exchange::step() noexcept
{
    while (part_ != Part::kDone) {
        const bool sent = poll(send_), received = poll(receive_);
        if (code_ != 0) {
            return Progress::kFailed;
        }
        if (!sent || !received) {
            return Progress::kPending;
        }
        if (combines_) {
            combine();
        } else if (part_ == Part::kUnfold && group_rank_ < 0) {
            flags_ = flags_of(mine_); // the result arrived in place
        }
        if (part_ == Part::kUnfold) {
            part_ = Part::kDone;
        } else if (part_ == Part::kFold && group_rank_ < 0) {
            part_ = Part::kUnfold;
            combines_ = false;
            post(Way::kReceive, p2p_.rank + 1);
        } else {
            part_ = Part::kRounds;
            enter_next();
        }
        if (code_ != 0) {
            return Progress::kFailed;
        }
    }
    return Progress::kDone;
}

// Posts the next round, or the unfolding message, or ends.
void Exchange::enter_next() noexcept
{
    combines_ = false;
    if (mask_ < power_) {
        const int peer = group_rank_ ^ mask_;
        mask_ *= 2;
        post(Way::kBoth, peer < rest_ ? 2 * peer + 1 : peer + rest_);
        combines_ = true;
    } else if (p2p_.rank < 2 * rest_) {
        part_ = Part::kUnfold;
        post(Way::kSend, p2p_.rank - 1);
    } else {
        part_ = Part::kDone;
    }
}

void Exchange::post(Way way, int peer) noexcept
{
    peer_ = peer;
    const std::size_t bytes = payload_bytes_ + kFlagBytes;
    if (way != Way::kSend) {
        // Before the rounds a folded rank has nothing to combine: the result may overwrite its
        // part.
        std::byte *to = part_ == Part::kUnfold ? mine_ : theirs_;
        code_ = p2p_.irecv(p2p_.context, to, bytes, peer, tag_, &receive_);
    }
    if (way != Way::kReceive && code_ == 0) {
        std::memcpy(mine_ + payload_bytes_, &flags_, kFlagBytes); // not aligned
        code_ = p2p_.isend(p2p_.context, mine_, bytes, peer, tag_, &send_);
    }
}

Flags Exchange::flags_of(const std::byte *message) const noexcept
{
    Flags flags;
    std::memcpy(&flags, message + payload_bytes_, kFlagBytes);
    return flags;
}

void Exchange::combine() noexcept
{
    flags_ |= flags_of(theirs_);
    if (reduce_ == nullptr) {
        return;
    }
    if (peer_ < p2p_.rank) {
        reduce_(mine_, theirs_, mine_, count_);
    } else {
        reduce_(mine_, mine_, theirs_, count_);
    }
}

// True if there is no request any more. Sets code_ if it failed.
bool Exchange::poll(void *&request) noexcept
{
    if (request == nullptr) {
        return true;
    }
    const int state = p2p_.test(p2p_.context, &request);
    if (state == 0) {
        return false;
    }
    request = nullptr;
    if (state < 0) {
        code_ = state;
    }
    return true;
}

} // namespace hetcoll
