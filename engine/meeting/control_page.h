// Memory that the ranks of one communicator on one node share. Each rank has a slot of memory that
// it alone writes and all others read. Nothing waits in here; its callers do.
//
// Order: a rank writes what others shall read, then stores the number of the meeting in `arrived`
// (release); they load that number (acquire), then read. engine/meeting/meeting.h says what a
// meeting is for, and when a slot may be written again.
#pragma once

#include "engine/meeting/call_signature.h"
#include "engine/meeting/flag_set.h"
#include "engine/meeting/rank_set.h"
#include "transport/exporter.h"
#include "transport/reach_probe.h"
#include "transport/shared_page.h"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace hetcoll {

class ControlPage {
public:
    static constexpr std::size_t kPayloadBytes = 32u << 10;    // of a call in host memory
    static constexpr std::size_t kSlotPayloadBytes = 1u << 10; // of one that needs no room
    static constexpr int kWords = 1024;                        // progress counters of a rank
    static constexpr int kHandedOn = 16;                       // calls, of which others still see

    // Some of the buffers that the ranks of a node have announced: whose they are.
    struct Buffers {
        RankSet inputs, outputs;
    };
    // Whose slot it is, for who reads the page from outside: hetcoll_info --live. Nothing in here
    // is read by ranks.
    struct Who {
        std::uint64_t layout; // kLayout; first in the page in every version
        ProcessIdentity process;
        std::int32_t rank, ranks, node_ranks; // in the communicator, of it, of them on this node
        std::uint32_t comm_id;
    };
    struct Slot {
        alignas(64) Who who;
        // The last meeting that the rank has come to, and what it said there, by parity.
        alignas(64) std::atomic<std::uint32_t> arrived;
        Flags said[2];
        // In which call, likewise: what it is, and how many the communicator had before and with
        // it.
        CallSignature call[2];
        std::uint32_t call_number[2];
        // In the slot of the node's first rank: the last meeting that has ended on all nodes, and
        // its result.
        alignas(64) std::atomic<std::uint32_t> released;
        Flags result[2];
        Differences differences[2];
        std::uint32_t newest[2]; // of the numbers of the calls, if they differ
        // When the rank has last looked at a call that it waits in: its monotonic clock, now and
        // then. In the slot of the first rank: the last line about a meeting in which ranks wait,
        // and about a call of Open MPI's.
        alignas(64) std::atomic<std::uint64_t> looked_ns, spoken, spoken_in_open_mpi;
        // Where ranks may die: the rank's GPU may be reading or writing peers' memory; and the rank
        // has given up the running call, so its memory is not to be touched any more.
        alignas(64) std::atomic<std::uint32_t> works, left;
        // For trying whether peers can read this rank's GPU, and which ranks of the node it can
        // read.
        alignas(64) ReachOffer offer;
        RankSet reach;
        // The buffers of the running call; and which of other ranks' this one could not map.
        alignas(64) SharedBuffer input, output;
        Buffers unmapped;
        // The last calls that the rank has handed on to Open MPI, by the remainders of their
        // numbers. A `rest` of 0: none.
        struct HandedOn {
            std::atomic<std::uint64_t> what, rest; // of CallSignature
        };
        alignas(64) HandedOn handed_on[kHandedOn];
        // If the rank has said kMemoryFreed, by parity.
        FreedMemory freed[2];
        // Bytes of each step of the running schedule that are done, see Executor.
        alignas(64) std::atomic<std::uint64_t> progress[kWords];
        // In the slot of the node's first rank: where the rooms are, written before it comes to the
        // first meeting that needs them. `reserved` of each rank: its budget has none left.
        SharedPageTicket rooms;
        // The rank's vector of a small call, and the result if this rank computes it; by parity.
        alignas(256) std::byte payload[2][kSlotPayloadBytes];
        alignas(256) std::byte sum[2][kSlotPayloadBytes];
    };
    // For larger vectors. Many communicators never have one, and /dev/shm may be small, so rooms
    // are memory of their own, which the ranks make at their first such meeting.
    struct Room {
        alignas(256) std::byte payload[2][kPayloadBytes];
        alignas(256) std::byte sum[2][kPayloadBytes];
    };

    // Tells pages of other versions apart: a number to count up when the meaning of Slot changes,
    // and its size.
    static constexpr std::uint64_t kLayout =
        0x6865'7463ull << 32 | std::uint64_t{6} << 24 | sizeof(Slot);
    static_assert(sizeof(Slot) < 1u << 24);

    [[nodiscard]] static constexpr std::size_t bytes(int ranks) noexcept
    {
        return static_cast<std::size_t>(ranks) * sizeof(Slot);
    }
    [[nodiscard]] static constexpr std::size_t room_bytes(int ranks) noexcept
    {
        return static_cast<std::size_t>(ranks) * sizeof(Room);
    }

    ControlPage() noexcept = default;
    explicit ControlPage(SharedPage page) noexcept : page_(std::move(page)) {}

    [[nodiscard]] bool exists() const noexcept { return page_.bytes() != 0; }
    // The slot of a rank, by its number on the node. All zero at first.
    [[nodiscard]] Slot &slot(int local_rank) const noexcept
    {
        return static_cast<Slot *>(page_.data())[local_rank];
    }
    [[nodiscard]] SharedPage &memory() noexcept { return page_; }
    [[nodiscard]] Room &room(int local_rank) const noexcept
    {
        return static_cast<Room *>(rooms_.data())[local_rank];
    }
    [[nodiscard]] SharedPage &rooms() noexcept { return rooms_; }

private:
    SharedPage page_, rooms_;
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

} // namespace hetcoll
