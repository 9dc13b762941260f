// Device memory of one process, mapped by another: what is seen, what is kept, what is closed.
#include "test/unit/transport_peer.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

namespace hetcoll::test {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

TEST(PeerMemoryTest, APeerReadsWhatItsOwnerWrote)
{
    const Peer owner, user;
    const int slot = owner.allocate(4 * kMiB);
    owner.fill(slot, 17);
    const PeerAnswer mapped = user.map(owner, owner.describe(slot));
    EXPECT_TRUE(mapped.ok) << mapped.message;
    EXPECT_EQ(mapped.word, 17u);
    owner.fill(slot, 18);
    EXPECT_EQ(user.read(mapped.address), 18u);
}

TEST(PeerMemoryTest, AddressesMayBeTheSameInBothProcesses)
{
    const std::vector<std::string> same{"EMU_VA=same"};
    const Peer owner(same), user(same);
    const int slot = owner.allocate(4 * kMiB), own = user.allocate(4 * kMiB);
    owner.fill(slot, 17, 40);
    user.fill(own, 99, 40);
    EXPECT_EQ(user.map(owner, owner.describe(slot, 40)).word, 17u);
}

TEST(PeerMemoryTest, TheOwnerItselfGetsTheBuffer)
{
    const Peer owner;
    const int slot = owner.allocate(4 * kMiB);
    owner.fill(slot, 17, 64);
    const SharedBuffer buffer = owner.describe(slot, 64);
    EXPECT_EQ(owner.map(owner, buffer).address, buffer.base + 64);
    EXPECT_EQ(owner.calls("cuIpcOpenMemHandle"), 0u);
}

TEST(PeerMemoryTest, SmallAllocationsOfOneBlockAreToldApart)
{
    const Peer owner, user;
    const int first = owner.allocate(1000), second = owner.allocate(1000);
    owner.fill(first, 1, 996);
    owner.fill(second, 2, 500);
    EXPECT_EQ(user.map(owner, owner.describe(first, 996)).word, 1u);
    EXPECT_EQ(user.map(owner, owner.describe(second, 500)).word, 2u);
    EXPECT_EQ(user.counters().mappings, 2u);
    EXPECT_EQ(user.counters().replaced, 0u);
}

TEST(PeerMemoryTest, TheSecondMapOfAnAllocationMakesNoDriverCall)
{
    const Peer owner, user;
    const int slot = owner.allocate(4 * kMiB);
    owner.fill(slot, 5, 4096);
    static_cast<void>(user.map(owner, owner.describe(slot)));
    const SharedBuffer again = owner.describe(slot, 4096);
    const std::uint32_t before = user.calls("all_calls"), copies = user.calls("cuMemcpyDtoH");
    EXPECT_EQ(user.map(owner, again).word, 5u);
    EXPECT_EQ(user.calls("all_calls") - before, user.calls("cuMemcpyDtoH") - copies);
    EXPECT_EQ(user.counters().hits, 1u);
    EXPECT_EQ(owner.calls("cuIpcGetMemHandle"), 1u);
}

class PeerVmmTest : public ::testing::TestWithParam<const char *> {}; // EMU_ID_STAYS

TEST_P(PeerVmmTest, BuffersOfSeveralPiecesAreMappedInOrder)
{
    const Peer owner({GetParam()}), user({GetParam()});
    const int slot = owner.allocate(0, PeerMemoryType::kVmm, 3);
    for (std::uint32_t piece = 0; piece < 3; ++piece) {
        owner.fill(slot, 100 + piece, piece * 2 * kMiB + 8);
    }
    const SharedBuffer buffer = owner.describe(slot, 8, 5 * kMiB);
    EXPECT_EQ(buffer.kind, SharedKind::kVmm);
    EXPECT_EQ(buffer.pieces, 3);
    const PeerAnswer mapped = user.map(owner, buffer);
    ASSERT_TRUE(mapped.ok) << mapped.message;
    for (std::uint32_t piece = 0; piece < 3; ++piece) {
        EXPECT_EQ(user.read(mapped.address + piece * 2 * kMiB), 100 + piece);
    }
}

TEST_P(PeerVmmTest, OnlyThePiecesOfTheBufferAreShared)
{
    const Peer owner({GetParam()}), user({GetParam()});
    const int slot = owner.allocate(0, PeerMemoryType::kVmm, 3);
    owner.fill(slot, 7, 2 * kMiB + 12);
    const SharedBuffer buffer = owner.describe(slot, 2 * kMiB + 12, 100);
    EXPECT_EQ(buffer.pieces, 1);
    EXPECT_EQ(buffer.offset, 12u);
    EXPECT_EQ(user.map(owner, buffer).word, 7u);
}

TEST_P(PeerVmmTest, BuffersWithAPieceInCommonStayMappedTogether)
{
    const Peer owner({GetParam()}), user({GetParam()});
    const int slot = owner.allocate(0, PeerMemoryType::kVmm, 3);
    const SharedBuffer low = owner.describe(slot, 0, 3 * kMiB),
                       high = owner.describe(slot, 3 * kMiB, 3 * kMiB);
    EXPECT_TRUE(user.map(owner, low).ok);
    EXPECT_TRUE(user.map(owner, high).ok);
    EXPECT_TRUE(user.map(owner, low).ok);
    EXPECT_EQ(user.counters().opens, 2u);
    EXPECT_EQ(user.counters().closes, 0u);
}

TEST_P(PeerVmmTest, OtherMemoryAtTheSameAddressIsSeenAsSuch)
{
    const Peer owner({GetParam()}), user({GetParam()});
    const PeerQuestion allocate{.ask = Ask::kAllocate, .type = PeerMemoryType::kVmm};
    const PeerAnswer first = owner.ask(allocate);
    owner.fill(first.slot, 1);
    const SharedBuffer old = owner.describe(first.slot);
    EXPECT_EQ(user.map(owner, old).word, 1u);
    user.tell(Ask::kRelease);
    owner.free(first.slot);
    const PeerAnswer second = owner.ask(allocate);
    ASSERT_EQ(second.address, first.address);
    owner.fill(second.slot, 2);
    const SharedBuffer now = owner.describe(second.slot);
    EXPECT_NE(now.buffer_id, old.buffer_id);
    EXPECT_EQ(user.map(owner, now).word, 2u);
    EXPECT_EQ(user.counters().replaced, 1u);
    EXPECT_EQ(user.counters().mappings, 1u);
}

INSTANTIATE_TEST_SUITE_P(Ids, PeerVmmTest, ::testing::Values("EMU_ID_STAYS=0", "EMU_ID_STAYS=1"));

TEST(PeerMemoryTest, NewMemoryAtAnOldAddressReplacesTheOldMapping)
{
    const Peer owner, user;
    const PeerQuestion allocate{.ask = Ask::kAllocate, .bytes = 4 * kMiB};
    const PeerAnswer first = owner.ask(allocate);
    owner.fill(first.slot, 1);
    EXPECT_EQ(user.map(owner, owner.describe(first.slot)).word, 1u);
    user.tell(Ask::kRelease);
    owner.free(first.slot);
    const PeerAnswer second = owner.ask(allocate);
    ASSERT_EQ(second.address, first.address);
    owner.fill(second.slot, 2);
    EXPECT_EQ(user.map(owner, owner.describe(second.slot)).word, 2u);
    const PeerCounters counters = user.counters();
    EXPECT_EQ(counters.replaced, 1u);
    EXPECT_EQ(counters.already_mapped, 0u);
    EXPECT_EQ(counters.mappings, 1u);
    EXPECT_EQ(counters.bytes, 4 * kMiB);
}

constexpr int kEnough = 10; // allocations until a block has been begun

// Two allocations that fill a block of 2 MiB, as small ones share it.
std::array<PeerAnswer, 2> allocate_halves(const Peer &owner)
{
    std::array<PeerAnswer, 2> halves{};
    for (int i = 0; i < kEnough; ++i) { // what is left of other blocks goes first
        halves[0] = halves[1];
        halves[1] = owner.ask({.ask = Ask::kAllocate, .bytes = kMiB});
        if (i > 0 && halves[0].address % (2 * kMiB) == 0 &&
            halves[1].address == halves[0].address + kMiB) {
            return halves;
        }
    }
    ADD_FAILURE() << "no block has room for two of its halves";
    return halves;
}

// Has something in the block that `halves` were in: not in the place of the one that is mapped.
PeerAnswer use_again(const Peer &owner, const std::array<PeerAnswer, 2> &halves)
{
    owner.free(halves[0].slot);
    owner.free(halves[1].slot); // and with it the block
    PeerAnswer small{};
    for (int i = 0; i < kEnough && small.address != halves[0].address; ++i) {
        small = owner.ask({.ask = Ask::kAllocate, .bytes = kMiB});
    }
    EXPECT_EQ(small.address, halves[0].address);
    owner.fill(small.slot, 3);
    return small;
}

// The new allocation overlaps the block of the old one, not the old one itself.
TEST(PeerMemoryTest, Error208ClosesWhatSharesABlockAndTriesAgain)
{
    const Peer owner, user({"EMU_HOSTILE=limits"});
    const auto halves = allocate_halves(owner);
    EXPECT_TRUE(user.map(owner, owner.describe(halves[1].slot)).ok);
    user.tell(Ask::kRelease);
    const PeerAnswer small = use_again(owner, halves);
    const PeerAnswer mapped = user.map(owner, owner.describe(small.slot));
    EXPECT_TRUE(mapped.ok) << mapped.message;
    EXPECT_EQ(mapped.word, 3u);
    EXPECT_EQ(user.counters().already_mapped, 1u);
    EXPECT_EQ(user.counters().mappings, 1u);
}

// A driver that maps both shows each as it is, also to a call that still holds the old one.
TEST(PeerMemoryTest, WithoutError208ABlockIsMappedBesideTheOneThatWasThere)
{
    const Peer owner, user({"EMU_HOSTILE=0"});
    const auto halves = allocate_halves(owner);
    owner.fill(halves[1].slot, 2);
    const PeerAnswer old = user.map(owner, owner.describe(halves[1].slot));
    EXPECT_EQ(old.word, 2u);
    const PeerAnswer small = use_again(owner, halves);
    EXPECT_EQ(user.map(owner, owner.describe(small.slot)).word, 3u);
    EXPECT_NE(user.read(old.address), 3u);
    const PeerAnswer again = owner.ask({.ask = Ask::kAllocate, .bytes = kMiB});
    ASSERT_EQ(again.address, halves[1].address);
    owner.fill(again.slot, 4);
    EXPECT_EQ(user.map(owner, owner.describe(again.slot)).word, 4u);
    EXPECT_EQ(user.map(owner, owner.describe(small.slot)).word, 3u);
    user.tell(Ask::kRelease);
    EXPECT_EQ(user.counters().already_mapped, 0u);
    EXPECT_EQ(user.counters().replaced, 1u);
    EXPECT_EQ(user.counters().mappings, 2u);
}

// The owner frees a buffer when its own call is over. A thread here may not have come that far.
TEST(PeerMemoryTest, Error208WaitsForAnotherCallThatHoldsTheOldBlock)
{
    const Peer owner, user({"EMU_HOSTILE=limits"});
    const auto halves = allocate_halves(owner);
    EXPECT_TRUE(user.map(owner, owner.describe(halves[1].slot)).ok);
    const PeerAnswer small = use_again(owner, halves);
    const PeerQuestion question{
        .ask = Ask::kMapElsewhere, .owner = owner.identity(), .buffer = owner.describe(small.slot)};
    const PeerAnswer early = user.ask(question);
    EXPECT_TRUE(early.ok) << early.message;
    EXPECT_EQ(early.address, 0u);
    user.tell(Ask::kRelease);
    const PeerAnswer mapped = user.ask(question);
    EXPECT_TRUE(mapped.ok) << mapped.message;
    EXPECT_EQ(mapped.word, 3u);
}

TEST(PeerMemoryTest, TheLeastRecentlyUsedMappingGoesFirst)
{
    const Peer owner, user;
    user.set_limits(2, 1 << 30);
    SharedBuffer buffer[3];
    for (SharedBuffer &each : buffer) {
        each = owner.describe(owner.allocate(4 * kMiB));
    }
    for (const int i : {0, 1, 0, 2}) { // 1 has to go
        EXPECT_TRUE(user.map(owner, buffer[i]).ok);
        user.tell(Ask::kRelease);
    }
    EXPECT_EQ(user.counters().evictions, 1u);
    EXPECT_TRUE(user.map(owner, buffer[0]).ok);
    EXPECT_EQ(user.counters().opens, 3u);
    EXPECT_TRUE(user.map(owner, buffer[1]).ok);
    EXPECT_EQ(user.counters().opens, 4u);
}

TEST(PeerMemoryTest, MappingsAreLimitedByTheirBytesToo)
{
    const Peer owner, user;
    user.set_limits(100, 9 * kMiB);
    for (int i = 0; i < 3; ++i) {
        EXPECT_TRUE(user.map(owner, owner.describe(owner.allocate(4 * kMiB))).ok);
        user.tell(Ask::kRelease);
    }
    EXPECT_EQ(user.counters().evictions, 1u);
    EXPECT_EQ(user.counters().bytes, 8 * kMiB);
    EXPECT_TRUE(user.map(owner, owner.describe(owner.allocate(16 * kMiB))).ok); // more than all
    EXPECT_EQ(user.counters().mappings, 1u);
}

TEST(PeerMemoryTest, ALeaseKeepsMappingsOpen)
{
    const Peer owner, user;
    user.set_limits(1, 1 << 30);
    const int first = owner.allocate(4 * kMiB), second = owner.allocate(4 * kMiB);
    owner.fill(first, 1);
    const PeerAnswer mapped = user.map(owner, owner.describe(first));
    EXPECT_TRUE(user.map(owner, owner.describe(second)).ok);
    EXPECT_EQ(user.counters().mappings, 2u);
    user.tell(Ask::kCloseAll);
    EXPECT_EQ(user.read(mapped.address), 1u);
    user.tell(Ask::kRelease);
    EXPECT_EQ(user.counters().mappings, 0u);
    EXPECT_EQ(user.counters().closes, 2u);
    EXPECT_FALSE(user.ask({.ask = Ask::kRead, .address = mapped.address}).ok);
}

TEST(PeerMemoryTest, MappingsTogetherAreHalfAsLargeAsTheDeviceUnlessLimitsSayOtherwise)
{
    const Peer owner, user({"EMU_MEM_MB=32"});
    for (int i = 0; i < 5; ++i) {
        EXPECT_TRUE(user.map(owner, owner.describe(owner.allocate(4 * kMiB))).ok);
        user.tell(Ask::kRelease);
    }
    EXPECT_EQ(user.counters().evictions, 1u);
    EXPECT_EQ(user.counters().bytes, 16 * kMiB);
}

TEST(PeerMemoryTest, WhatItsOwnerHasFreedIsClosedWhenAsked)
{
    const Peer owner, user;
    const int kept = owner.allocate(4 * kMiB), freed = owner.allocate(4 * kMiB);
    const SharedBuffer kept_buffer = owner.describe(kept), freed_buffer = owner.describe(freed);
    EXPECT_TRUE(user.map(owner, kept_buffer).ok);
    EXPECT_TRUE(user.map(owner, freed_buffer).ok);
    user.tell(Ask::kRelease);
    owner.free(freed);
    user.tell({.ask = Ask::kForget, .owner = owner.identity(), .freed = owner.tell_freed(user)});
    EXPECT_EQ(user.counters().mappings, 2u);
    user.tell(Ask::kCloseFreed);
    EXPECT_EQ(user.counters().mappings, 1u);
    EXPECT_TRUE(user.map(owner, kept_buffer).ok);
    EXPECT_EQ(user.counters().opens, 2u);
}

TEST(PeerMemoryTest, FreedMemoryThatACallUsesIsClosedAtItsEnd)
{
    const Peer owner, user;
    const int freed = owner.allocate(4 * kMiB);
    const PeerAnswer mapped = user.map(owner, owner.describe(freed));
    owner.free(freed);
    user.tell({.ask = Ask::kForget, .owner = owner.identity(), .freed = owner.tell_freed(user)});
    user.tell(Ask::kCloseFreed);
    EXPECT_TRUE(user.ask({.ask = Ask::kRead, .address = mapped.address}).ok);
    user.tell(Ask::kRelease);
    EXPECT_EQ(user.counters().mappings, 0u);
}

TEST(PeerMemoryTest, WhereAnyMemoryMayBeFreedWhatACallUsesStays)
{
    const Peer owner, user;
    const SharedBuffer used = owner.describe(owner.allocate(4 * kMiB));
    EXPECT_TRUE(user.map(owner, owner.describe(owner.allocate(4 * kMiB))).ok);
    user.tell(Ask::kRelease);
    EXPECT_TRUE(user.map(owner, used).ok);
    user.tell({.ask = Ask::kForget,
               .owner = owner.identity(),
               .freed = {.count = FreedMemory::kMost + 1, .buffer_ids = {}}});
    user.tell(Ask::kCloseFreed);
    EXPECT_EQ(user.counters().mappings, 1u);
    user.tell(Ask::kRelease);
    EXPECT_TRUE(user.map(owner, used).ok);
    EXPECT_EQ(user.counters().opens, 2u);
}

// Its owner had only forgotten it, or the driver refuses to map new memory next to old memory
// (error 208).
TEST(PeerMemoryTest, ForgottenMemoryThatIsAnnouncedOnceMoreIsMappedAnew)
{
    const Peer owner, user({"EMU_HOSTILE=limits"});
    const SharedBuffer buffer = owner.describe(owner.allocate(4 * kMiB));
    EXPECT_TRUE(user.map(owner, buffer).ok);
    user.tell(Ask::kRelease);
    user.tell({.ask = Ask::kForget,
               .owner = owner.identity(),
               .freed = {.count = 1, .buffer_ids = {buffer.buffer_id}}});
    EXPECT_TRUE(user.map(owner, buffer).ok);
    EXPECT_EQ(user.counters().mappings, 1u);
    EXPECT_EQ(user.counters().opens, 2u);
}

TEST(PeerMemoryTest, TheMappingsOfOneOwnerCanBeClosed)
{
    const Peer one, other, user;
    EXPECT_TRUE(user.map(one, one.describe(one.allocate(4 * kMiB))).ok);
    EXPECT_TRUE(user.map(other, other.describe(other.allocate(4 * kMiB))).ok);
    user.tell(Ask::kRelease);
    user.tell({.ask = Ask::kCloseOwner, .owner = one.identity()});
    EXPECT_EQ(user.counters().mappings, 1u);
}

TEST(PeerMemoryTest, TwoOwnersMayHaveTheSameIdsAndAddresses)
{
    const std::vector<std::string> same{"EMU_VA=same"};
    const Peer one(same), other(same), user(same);
    const int slot = one.allocate(4 * kMiB), other_slot = other.allocate(4 * kMiB);
    one.fill(slot, 1);
    other.fill(other_slot, 2);
    const SharedBuffer buffer = one.describe(slot), other_buffer = other.describe(other_slot);
    EXPECT_EQ(buffer.buffer_id, other_buffer.buffer_id);
    EXPECT_EQ(user.map(one, buffer).word, 1u);
    EXPECT_EQ(user.map(other, other_buffer).word, 2u);
    EXPECT_EQ(user.counters().replaced, 0u);
}

TEST(PeerMemoryTest, MemoryOfAnotherDeviceIsMapped)
{
    const std::vector<std::string> two{"EMU_NUM_DEVICES=2"};
    const Peer owner(two, 0), user(two, 1);
    const int slot = owner.allocate(4 * kMiB);
    owner.fill(slot, 21);
    EXPECT_EQ(user.map(owner, owner.describe(slot)).word, 21u);
    const int vmm = owner.allocate(0, PeerMemoryType::kVmm);
    owner.fill(vmm, 22);
    EXPECT_EQ(user.map(owner, owner.describe(vmm)).word, 22u);
}

TEST(PeerMemoryTest, DevicesAreKnownByTheirUuidWhateverTheirNumber)
{
    const Peer one({"EMU_NUM_DEVICES=2"}, 1),
        other({"EMU_NUM_DEVICES=2", "CUDA_VISIBLE_DEVICES=1"}, 0);
    const SharedBuffer buffer = one.describe(one.allocate(4 * kMiB)),
                       other_buffer = other.describe(other.allocate(4 * kMiB));
    EXPECT_EQ(std::memcmp(buffer.uuid, other_buffer.uuid, 16), 0);
    EXPECT_TRUE(other.map(one, buffer).ok);
}

TEST(PeerMemoryTest, MappingsOfAContextThatIsGoneAreForgotten)
{
    const Peer owner, user;
    const int slot = owner.allocate(4 * kMiB), vmm = owner.allocate(0, PeerMemoryType::kVmm);
    owner.fill(slot, 6);
    EXPECT_TRUE(user.map(owner, owner.describe(slot)).ok);
    EXPECT_TRUE(user.map(owner, owner.describe(vmm)).ok);
    user.tell(Ask::kRelease);
    user.tell(Ask::kReset);
    EXPECT_EQ(user.map(owner, owner.describe(slot)).word, 6u);
    EXPECT_EQ(user.counters().mappings, 1u);
    EXPECT_EQ(user.calls("cuIpcCloseMemHandle"), 0u);
}

TEST(PeerMemoryTest, ThreadsMapAndCloseTheSameBuffer)
{
    const Peer owner, user;
    const int slot = owner.allocate(4 * kMiB);
    owner.fill(slot, 77);
    const PeerAnswer answer = user.ask({.ask = Ask::kMapInThreads,
                                        .pieces = 4,
                                        .bytes = 200,
                                        .word = 77,
                                        .owner = owner.identity(),
                                        .buffer = owner.describe(slot)});
    EXPECT_EQ(answer.word, 4 * 200u);
}

} // namespace
} // namespace hetcoll::test
