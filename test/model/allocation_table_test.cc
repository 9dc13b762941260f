// pointer_cache/allocation_table.h in everything that C++ allows: a reader without a lock sees one
// allocation whole or none, and what was released is not found again, whoever inserts meanwhile.
//
// The table here has two sets of one entry (local.mk makes its header): forget() looks at all
// entries, and entries have nothing to do with each other.
#include "ranks.h"

#include "pointer_cache/allocation_table.h"

namespace model {
namespace {

using hetcoll::AllocationTable;
using hetcoll::KnownAllocation;
using hetcoll::MemoryKind;

constexpr std::uintptr_t kAddress = 1000;

// All numbers of an allocation follow from one.
KnownAllocation allocation(std::uint64_t id)
{
    KnownAllocation known;
    known.info.kind = MemoryKind::kDevice;
    known.info.device = static_cast<int>(id);
    known.info.context = reinterpret_cast<CUcontext>(id * 16);
    known.info.buffer_id = id;
    known.info.base = kAddress - id;
    known.info.bytes = 100 * id;
    known.always_query = id % 2 != 0;
    return known;
}

bool is_whole(const KnownAllocation &found)
{
    const KnownAllocation expected = allocation(found.info.buffer_id);
    return found.info.device == expected.info.device &&
           found.info.context == expected.info.context && found.info.base == expected.info.base &&
           found.info.bytes == expected.info.bytes && found.always_query == expected.always_query;
}

bool finds(const AllocationTable &table)
{
    KnownAllocation found;
    if (!table.find(kAddress, &found)) {
        return false;
    }
    require(is_whole(found), "an allocation is found whole");
    return true;
}

Report explore_interleavings(const Threads &threads)
{
    forget_shares();
    return explore(threads, {.mode = Mode::kInterleavings});
}

class AllocationTableModel : public ::testing::Test {
public:
    AllocationTable &table = *new AllocationTable;
};

TEST_F(AllocationTableModel, AReaderFindsOneAllocationWholeWhileAnotherTakesItsPlace)
{
    table.insert(kAddress, allocation(1), 0);
    EXPECT_TRUE(proved(explore_interleavings({[this] { table.insert(kAddress, allocation(2), 0); },
                                              [this] { static_cast<void>(finds(table)); }})));
}

TEST_F(AllocationTableModel, AReaderFindsOneAllocationWholeWhileItIsReleased)
{
    table.insert(kAddress, allocation(1), 0);
    EXPECT_TRUE(proved(explore_interleavings(
        {[this] { table.forget(kAddress, 1); }, [this] { static_cast<void>(finds(table)); }})));
}

// The driver's answer is of the time when the generation was read.
TEST_F(AllocationTableModel, AnAnswerThatAReleaseHasOvertakenIsNotKept)
{
    EXPECT_TRUE(
        proved(explore_interleavings({[this] {
                                          const std::uint64_t generation = table.generation();
                                          if (generation == 0) {
                                              table.insert(kAddress, allocation(1), generation);
                                          }
                                      },
                                      [this] {
                                          table.forget(kAddress, 1);
                                          require(!finds(table), "what was released is not found");
                                      }})));
}

TEST_F(AllocationTableModel, AReaderFindsOneAllocationWholeWhileTwoComeAndGo)
{
    EXPECT_TRUE(proved(explore_interleavings({[this] { table.insert(kAddress, allocation(1), 0); },
                                              [this] {
                                                  table.insert(kAddress, allocation(2), 0);
                                                  static_cast<void>(finds(table));
                                              }})));
}

} // namespace
} // namespace model
