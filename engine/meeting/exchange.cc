// Recursive doubling (Thakur, Rabenseifner, Gropp 2005): ceil(log2 n) rounds, every rank sends its
// whole part in each. If n is not a power of two, the first 2(n - 2^k) ranks fold in pairs before,
// and unfold after. Groups are consecutive ranks, so "lower rank first" is the same expression on
// both sides.
#include "engine/meeting/exchange.h"

#include <cstring>

namespace hetcoll {

void Exchange::start(const hetcoll_p2p &p2p, int tag, std::byte *mine, std::byte *theirs,
                     std::size_t payload_bytes, std::size_t count, HostReduce reduce, Flags flags,
                     const Compare &compare) noexcept
{
    p2p_ = p2p;
    compare_ = compare;
    other_ = {};
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
        post(Direction::kSend, p2p_.rank + 1);
    } else {
        group_rank_ = p2p_.rank / 2;
        post(Direction::kReceive, p2p_.rank - 1);
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
            flags_ = {};
            read_flags(mine_); // the result arrived in place
        }
        if (part_ == Part::kUnfold) {
            part_ = Part::kDone;
        } else if (part_ == Part::kFold && group_rank_ < 0) {
            part_ = Part::kUnfold;
            combines_ = false;
            post(Direction::kReceive, p2p_.rank + 1);
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
        post(Direction::kBoth, peer < rest_ ? 2 * peer + 1 : peer + rest_);
        combines_ = true;
    } else if (p2p_.rank < 2 * rest_) {
        part_ = Part::kUnfold;
        post(Direction::kSend, p2p_.rank - 1);
    } else {
        part_ = Part::kDone;
    }
}

void Exchange::post(Direction direction, int peer) noexcept
{
    peer_ = peer;
    if (direction != Direction::kSend) {
        // Before the rounds a folded rank has nothing to combine: the result may overwrite its
        // part.
        std::byte *to = part_ == Part::kUnfold ? mine_ : theirs_;
        code_ = compares() ? p2p_.irecv(p2p_.context, to - kHeaderBytes,
                                        kHeaderBytes + compare_.most_bytes, peer, tag_, &receive_)
                           : p2p_.irecv(p2p_.context, to, payload_bytes_ + kFlagBytes, peer, tag_,
                                        &receive_);
    }
    if (direction != Direction::kReceive && code_ == 0) {
        write_flags();
        code_ = p2p_.isend(p2p_.context, compares() ? mine_ - kHeaderBytes : mine_,
                           payload_bytes_ + (compares() ? kHeaderBytes : kFlagBytes), peer, tag_,
                           &send_);
    }
}

namespace {

struct Header {
    CallSignature call;
    std::uint32_t newest;
    Flags flags;
    Differences known;
    std::uint8_t unused;
};
static_assert(sizeof(Header) == Exchange::kHeaderBytes);

} // namespace

void Exchange::write_flags() noexcept
{
    if (compares()) {
        const Header header{compare_.call, compare_.newest, flags_, compare_.known, {}};
        std::memcpy(mine_ - kHeaderBytes, &header, sizeof header);
    } else {
        std::memcpy(mine_ + payload_bytes_, &flags_, kFlagBytes); // not aligned
    }
}

void Exchange::read_flags(const std::byte *message) noexcept
{
    if (!compares()) {
        Flags flags;
        std::memcpy(&flags, message + payload_bytes_, kFlagBytes);
        flags_ |= flags;
        return;
    }
    Header header;
    std::memcpy(&header, message - kHeaderBytes, sizeof header);
    flags_ |= header.flags;
    compare_.newest = later(compare_.newest, header.newest);
    compare(header.known, header.call);
}

// If two ranks find that they differ, one says so, and only if nobody has before: the one into
// which another folds, else the first ranks of two groups, and of these the one before the other.
void Exchange::compare(Differences known, const CallSignature &theirs) noexcept
{
    if (theirs != compare_.call) {
        const bool first = part_ == Part::kFold || (part_ == Part::kRounds && peer_ > p2p_.rank &&
                                                    (group_rank_ & (mask_ / 2 - 1)) == 0);
        if (first && known == Differences::kNone && compare_.known == Differences::kNone) {
            other_ = {peer_, theirs};
        }
        compare_.known |= differences_of(theirs, compare_.call);
    }
    compare_.known |= known;
}

// A rank in the first round may itself wait for one that folds into it; who does so knows that.
Exchange::Awaited Exchange::awaited() const noexcept
{
    if (part_ == Part::kFold && receive_ != nullptr) {
        return {.peer = peer_};
    }
    if (part_ != Part::kRounds || mask_ != 2 || receive_ == nullptr) {
        return {};
    }
    return {.peer = peer_, .or_peer = peer_ < 2 * rest_ ? peer_ - 1 : -1};
}

void Exchange::combine() noexcept
{
    read_flags(theirs_);
    if (reduce_ == nullptr || compare_.known != Differences::kNone) {
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
