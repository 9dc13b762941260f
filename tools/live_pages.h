// The control pages of jobs that run on this host, read from outside: nothing is written, no rank
// is asked, so it works while ranks are stopped. The leader of a communicator's ranks on a node
// keeps the descriptor of their page open; /proc leads there.
#pragma once

#include "base/status.h"
#include "engine/meeting/call_signature.h"
#include "transport/node_identity.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace hetcoll {

struct LiveRank {
    int rank;
    ProcessIdentity process;
    ProcessState state;
    std::uint32_t meeting;              // the last that it has come to; 0: none
    std::uint32_t call_number;          // the call of that meeting
    std::optional<CallSignature> call;  // nothing: the page holds no call's bits there
    std::optional<double> looked_s_ago; // since it looked at a call that it waits in; none: never
};

struct LivePage {
    std::uint32_t comm_id;
    int ranks;                  // of the communicator
    std::vector<LiveRank> here; // those on this node, ascending
    [[nodiscard]] std::uint32_t last_meeting() const noexcept;
    [[nodiscard]] static bool is_behind(std::uint32_t meeting, std::uint32_t last) noexcept
    {
        return static_cast<std::int32_t>(meeting - last) < 0; // the numbers may wrap
    }
};

// The pages of all processes of this user (of everybody, for root), or those that process `pid` has
// a slot in. An error says why there are none: it has ended, is another user's, takes part in no
// communicator yet, or is of a hetcoll whose pages look different.
[[nodiscard]] Result<std::vector<LivePage>> find_live_pages(std::optional<int> pid);

// The page in a file that process `owner` has open. kInvalid: it is none; kUnsupported: one of
// another version. Whatever is in the file, numbers and calls that come back are sound.
[[nodiscard]] Result<LivePage> read_live_page(int fd, int owner);

} // namespace hetcoll
