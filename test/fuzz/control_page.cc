#include "test/fuzz/control_page.h"

#include "engine/meeting/meeting.h"
#include "test/fuzz/targets.h"
#include "test/unit/memory_network.h"
#include "tools/live_pages.h"

#include <unistd.h>

#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace hetcoll::test {
namespace {

using Bytes = std::span<const std::byte>;
using Slot = ControlPage::Slot;
constexpr int kRanks = 3;
constexpr std::size_t kHeadBytes = offsetof(Slot, offer); // buffers are PeerMemory's to check

// The ranks of one node, all in this process, whose page stays from input to input.
class Node {
public:
    Node()
    {
        const Result<NodeIdentity> self = node_identity(nullptr);
        require(self.ok(), "this process has an identity");
        const std::vector<ProcessIdentity> processes(kRanks, self->process);
        for (int rank = 0; rank < kRanks; ++rank) {
            ranks_[rank].group =
                std::make_unique<NodeGroup>(network_.rank(rank), processes, std::uint64_t{0});
            group(rank).leave_page_open();
            group(rank).own_call().compare_all();
        }
        const auto made = [this] {
            bool all = true;
            for (int rank = 0; rank < kRanks; ++rank) {
                all &= group(rank).make_pages(1) == Progress::kDone;
            }
            return all;
        };
        while (!made()) {
            network_.rank(0).progress(network_.rank(0).context);
        }
        require(group(0).uses_pages(), "there is memory for a page");
    }

    void come_together()
    {
        constexpr std::array<float, 2> kPart{1.0F, 2.0F};
        hetcoll_call call{};
        call.collective = HETCOLL_ALLREDUCE;
        call.kind = HETCOLL_FLOAT32;
        call.op = HETCOLL_SUM;
        call.span = sizeof kPart;
        call.dense = 1;
        for (Rank &rank : ranks_) {
            rank.group->own_call().begin(signature_of(call));
            std::byte *const mine = Meeting::payload(*rank.group, sizeof kPart, rank.messages.mine);
            std::memcpy(mine, kPart.data(), sizeof kPart);
            rank.meeting.start(*rank.group, rank.messages, mine, 1, sizeof kPart, kPart.size(),
                               host_reduce(ReduceOp::kSum, ElementKind::kFloat32), Flags{});
        }
    }

    // What `rank` reads of the others. True: its meeting has ended, and all call the same.
    bool look(int rank)
    {
        Meeting &meeting = ranks_[rank].meeting;
        (void)meeting.flags_without((rank + 1) % kRanks);
        if (meeting.step() != Progress::kDone) {
            return false;
        }
        if (meeting.differences() == Differences::kNone) {
            return true;
        }
        (void)error_of(meeting.differences());
        if (const auto calls = meeting.different_calls()) {
            require(calls->one.call != calls->other.call, "two calls that differ are shown");
            (void)describe(calls->one.call);
            (void)describe(calls->other.call);
        }
        return false;
    }

    void look_from_outside()
    {
        const Result<LivePage> page =
            read_live_page(group(0).page().memory().ticket().fd, getpid());
        if (!page.ok()) {
            return;
        }
        (void)page->last_meeting();
        for (const LiveRank &rank : page->here) {
            if (rank.call) {
                (void)describe(*rank.call);
            }
        }
    }

    // The same again takes it back.
    void change(int but, Bytes bits)
    {
        for (int rank = 0; rank < kRanks; ++rank) {
            if (rank == but) {
                continue;
            }
            auto *const head = reinterpret_cast<std::byte *>(&group(0).slot(rank));
            const Bytes some = bits.first(std::min(bits.size(), kHeadBytes));
            for (std::size_t i = 0; i < some.size(); ++i) {
                head[i] ^= some[i];
            }
            bits = bits.subspan(some.size());
        }
    }

    // So that the next input finds a sound page.
    void part()
    {
        for (Rank &rank : ranks_) {
            require(rank.meeting.step() == Progress::kDone, "nothing of it lasts");
        }
    }

private:
    struct Rank {
        std::unique_ptr<NodeGroup> group;
        Messages messages;
        Meeting meeting;
    };
    NodeGroup &group(int rank) { return *ranks_[rank].group; }

    MemoryNetwork network_{kRanks, false, 1};
    std::array<Rank, kRanks> ranks_;
};

} // namespace

bool read_control_page(Bytes bytes)
{
    static Node node;
    if (bytes.empty()) {
        return false;
    }
    const int honest = std::to_integer<int>(bytes[0]) % kRanks;
    const Bytes bits = bytes.subspan(1);
    node.come_together();
    node.change(honest, bits);
    const bool same = node.look(honest);
    node.look_from_outside();
    node.change(honest, bits);
    node.part();
    return same;
}

} // namespace hetcoll::test
