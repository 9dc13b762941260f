// Announcements of memory by its owner: by id, once, and with a reason if it cannot.
#include "test/unit/transport_peer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace hetcoll::test {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

TEST(ExporterTest, DescribesTheAllocationAndWhereTheBufferLies)
{
    const Peer owner;
    const PeerAnswer memory = owner.ask({.ask = Ask::kAllocate, .bytes = 5 * kMiB});
    const SharedBuffer buffer = owner.describe(memory.slot, 12345, 100);
    EXPECT_EQ(buffer.kind, SharedKind::kLegacyIpc);
    EXPECT_EQ(buffer.base, memory.address);
    EXPECT_EQ(buffer.bytes, 5 * kMiB);
    EXPECT_EQ(buffer.offset, 12345u);
}

TEST(ExporterTest, AnAllocationIsExportedOnce)
{
    const Peer owner;
    const int slot = owner.allocate(5 * kMiB);
    const SharedBuffer first = owner.describe(slot), second = owner.describe(slot, 4);
    EXPECT_EQ(first.buffer_id, second.buffer_id);
    EXPECT_EQ(owner.calls("cuIpcGetMemHandle"), 1u);
    EXPECT_EQ(owner.ask(Ask::kCounters).exporter.hits, 1u);
}

TEST(ExporterTest, TheLeastRecentlyUsedHandleIsForgotten)
{
    const Peer owner; // keeps 8
    const int first = owner.allocate(1000);
    static_cast<void>(owner.describe(first));
    for (int i = 0; i < 8; ++i) {
        static_cast<void>(owner.describe(owner.allocate(1000)));
    }
    EXPECT_EQ(owner.ask(Ask::kCounters).exporter.evictions, 1u);
    static_cast<void>(owner.describe(first));
    EXPECT_EQ(owner.calls("cuIpcGetMemHandle"), 10u);
}

struct Refused {
    PeerMemoryType type;
    int pieces;
    std::size_t bytes;
    NotShared why;
};

class NotSharedTest : public ::testing::TestWithParam<Refused> {};

TEST_P(NotSharedTest, IsDescribedWithItsReason)
{
    const Peer owner, user;
    const int slot = owner.allocate(4 * kMiB, GetParam().type, GetParam().pieces);
    const SharedBuffer buffer = owner.describe(slot, 0, GetParam().bytes);
    EXPECT_EQ(buffer.kind, SharedKind::kNone);
    EXPECT_EQ(buffer.why, GetParam().why);
    const PeerAnswer mapped = user.map(owner, buffer);
    EXPECT_FALSE(mapped.ok);
    EXPECT_NE(std::string(mapped.message).find(reason(GetParam().why)), std::string::npos);
    EXPECT_NE(owner.map(owner, buffer).address, 0u); // but the owner can use it
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, NotSharedTest,
    ::testing::Values(Refused{PeerMemoryType::kManaged, 1, kMiB, NotShared::kNotExportable},
                      Refused{PeerMemoryType::kPool, 1, kMiB, NotShared::kNotExportable},
                      Refused{PeerMemoryType::kVmmWithoutFd, 1, kMiB, NotShared::kNoFdRequested},
                      Refused{PeerMemoryType::kVmm, 65, 129 * kMiB, NotShared::kTooManyPieces}));

TEST(ExporterTest, ManagedMemoryIsAskedForOnce)
{
    const Peer owner;
    const int slot = owner.allocate(4 * kMiB, PeerMemoryType::kManaged);
    static_cast<void>(owner.describe(slot));
    static_cast<void>(owner.describe(slot, 64));
    EXPECT_EQ(owner.calls("cuMemRetainAllocationHandle"), 1u);
}

TEST(ExporterTest, WhatAPeerCouldNotMapIsSharedNoMoreAndAllElseIs)
{
    const Peer owner;
    for (const PeerMemoryType type : {PeerMemoryType::kPlain, PeerMemoryType::kVmm}) {
        const int withdrawn = owner.allocate(4 * kMiB, type),
                  other = owner.allocate(4 * kMiB, type);
        const SharedBuffer buffer = owner.describe(withdrawn);
        EXPECT_NE(buffer.kind, SharedKind::kNone);
        owner.tell({.ask = Ask::kWithdraw, .buffer = buffer});
        const SharedBuffer described = owner.describe(withdrawn, 64);
        EXPECT_EQ(described.kind, SharedKind::kNone);
        EXPECT_EQ(described.why, NotShared::kPeerRefused);
        EXPECT_NE(owner.describe(other).kind, SharedKind::kNone);
        owner.free(withdrawn);
        EXPECT_NE(owner.describe(owner.allocate(4 * kMiB, type)).kind, SharedKind::kNone);
    }
}

TEST(ExporterTest, AsManyPiecesAsTheLimitAllowsAreShared)
{
    const Peer owner({"EMU_MEM_MB=512"}), user({"EMU_MEM_MB=512"});
    const int slot = owner.allocate(0, PeerMemoryType::kVmm, 64);
    owner.fill(slot, 5, 126 * kMiB);
    const PeerAnswer mapped = user.map(owner, owner.describe(slot, 0, 128 * kMiB));
    ASSERT_TRUE(mapped.ok) << mapped.message;
    EXPECT_EQ(user.read(mapped.address + 126 * kMiB), 5u);
}

// The device has no memory for the next round if that of an earlier one is kept.
TEST(ExporterTest, VmmMemoryThatIsGoneIsLetGoWhenOtherIsDescribed)
{
    const Peer owner({"EMU_MEM_MB=64", "EMU_NODE=small"});
    for (int i = 0; i < 5; ++i) {
        const int large = owner.allocate(0, PeerMemoryType::kVmm, 16);
        EXPECT_EQ(owner.describe(large, 0, 32 * kMiB).kind, SharedKind::kVmm);
        owner.free(large);
        const int small = owner.allocate(0, PeerMemoryType::kVmm);
        EXPECT_EQ(owner.describe(small).kind, SharedKind::kVmm);
        owner.free(small);
    }
}

// ---- what is freed ----

std::vector<std::uint64_t> ids_of(const FreedMemory &freed)
{
    return {freed.buffer_ids.begin(),
            freed.buffer_ids.begin() +
                static_cast<std::ptrdiff_t>(std::min(freed.count, FreedMemory::kMost))};
}

using Ids = std::vector<std::uint64_t>;

TEST(ExporterTest, FreedMemoryIsToldOnceToEachPeer)
{
    const Peer owner, one, other;
    const int kept = owner.allocate(4 * kMiB), freed = owner.allocate(4 * kMiB);
    static_cast<void>(owner.describe(kept));
    const std::uint64_t id = owner.describe(freed).buffer_id;
    EXPECT_EQ(ids_of(owner.tell_freed(one)), Ids{});
    owner.free(freed);
    EXPECT_EQ(ids_of(owner.tell_freed(one)), Ids{id});
    EXPECT_EQ(ids_of(owner.tell_freed(one)), Ids{});
    EXPECT_EQ(ids_of(owner.tell_freed(other)), Ids{id});
}

TEST(ExporterTest, MemoryThatIsAllocatedAgainAtTheAddressIsFreedAllTheSame)
{
    const Peer owner, peer;
    const int first = owner.allocate(4 * kMiB);
    const SharedBuffer described = owner.describe(first);
    owner.free(first);
    EXPECT_EQ(owner.describe(owner.allocate(4 * kMiB)).base, described.base);
    EXPECT_EQ(ids_of(owner.tell_freed(peer)), Ids{described.buffer_id});
}

TEST(ExporterTest, VmmMemoryOfWhichAnyPieceIsUnmappedIsFreedAndLetGo)
{
    const Peer owner({"EMU_MEM_MB=64", "EMU_NODE=pieces"}), peer;
    for (int i = 0; i < 5; ++i) {
        const int memory = owner.allocate(0, PeerMemoryType::kVmm, 16);
        const SharedBuffer described = owner.describe(memory, 0, 32 * kMiB);
        ASSERT_EQ(described.kind, SharedKind::kVmm);
        EXPECT_EQ(ids_of(owner.tell_freed(peer)), Ids{});
        owner.free(memory);
        EXPECT_EQ(ids_of(owner.tell_freed(peer)), Ids{described.buffer_id});
    }
}

TEST(ExporterTest, WhatItForgetsIsToldAsFreed)
{
    const Peer owner, peer; // keeps 8
    const std::uint64_t first = owner.describe(owner.allocate(1000)).buffer_id;
    for (int i = 0; i < 8; ++i) {
        static_cast<void>(owner.describe(owner.allocate(1000)));
    }
    EXPECT_EQ(ids_of(owner.tell_freed(peer)), Ids{first});
}

TEST(ExporterTest, MoreFreedMemoryThanThereIsRoomForIsAnyOfIt)
{
    const Peer owner, peer;
    for (std::size_t i = 0; i <= FreedMemory::kMost; ++i) {
        const int memory = owner.allocate(4 * kMiB);
        static_cast<void>(owner.describe(memory));
        owner.free(memory);
        owner.tell(Ask::kLook);
    }
    EXPECT_TRUE(owner.tell_freed(peer).has(0));
    EXPECT_EQ(owner.tell_freed(peer).count, 0u);
}

// As long as nothing new is described and nothing is found.
TEST(ExporterTest, SmallCallsAskTheDriverLessAndLessOften)
{
    const Peer owner;
    const int memory = owner.allocate(4 * kMiB);
    static_cast<void>(owner.describe(memory));
    const auto calls_until_asked = [&] {
        const std::uint32_t before = owner.calls("cuPointerGetAttribute");
        int calls = 0;
        while (owner.calls("cuPointerGetAttribute") == before) {
            owner.tell(Ask::kLookInCall);
            ++calls;
        }
        return calls;
    };
    for (const int calls : {2, 2, 4, 8, 16, 32, 64, 64}) {
        EXPECT_EQ(calls_until_asked(), calls);
    }
    static_cast<void>(owner.describe(owner.allocate(4 * kMiB)));
    EXPECT_EQ(calls_until_asked(), 1);
    owner.free(memory);
    EXPECT_EQ(calls_until_asked(), 1); // and finds that
    EXPECT_EQ(calls_until_asked(), 1);
}

// One for each piece of VMM memory.
TEST(ExporterTest, LooksAskSixteenQuestionsInTurn)
{
    const Peer owner({"EMU_MEM_MB=128"});
    for (int i = 0; i < 2; ++i) {
        const int memory = owner.allocate(0, PeerMemoryType::kVmm, 16);
        ASSERT_EQ(owner.describe(memory, 0, 32 * kMiB).kind, SharedKind::kVmm);
    }
    owner.tell(Ask::kLook);
    const std::uint32_t before = owner.calls("cuMemRetainAllocationHandle");
    for (std::uint32_t looks = 1; looks <= 4; ++looks) {
        owner.tell(Ask::kLook);
        EXPECT_EQ(owner.calls("cuMemRetainAllocationHandle"), before + 16 * looks);
    }
}

TEST(ExporterTest, ALookDoesNotAskForWhatWasDescribedSinceTheLast)
{
    const Peer owner;
    const int one = owner.allocate(4 * kMiB), other = owner.allocate(4 * kMiB);
    static_cast<void>(owner.describe(other));
    owner.tell(Ask::kLook);
    static_cast<void>(owner.describe(one));
    const std::uint32_t before = owner.calls("cuPointerGetAttribute");
    owner.tell(Ask::kLook);
    EXPECT_EQ(owner.calls("cuPointerGetAttribute"), before + 1);
    static_cast<void>(owner.describe(one));
    static_cast<void>(owner.describe(other));
    owner.tell(Ask::kLook);
    EXPECT_EQ(owner.calls("cuPointerGetAttribute"), before + 1);
}

} // namespace
} // namespace hetcoll::test
