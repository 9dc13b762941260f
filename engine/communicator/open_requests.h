// The messages of a communicator that may break (hetcoll_p2p::broken): it knows which are under
// way, so that a call that is given up can wait for their ends. Then nothing writes to the memory
// that they had, and it goes back to where it came from.
#pragma once

#include "base/p2p.h"

#include <memory>
#include <vector>

namespace hetcoll {

class OpenRequests {
public:
    // Hands everything on to `ranks`.
    explicit OpenRequests(const hetcoll_p2p &ranks);
    OpenRequests(const OpenRequests &) = delete;
    OpenRequests &operator=(const OpenRequests &) = delete;

    // With the same ranks; `ranks` itself if those never break. Once they have, none of its
    // messages starts any more, and those that fail look pending forever: whoever waits for them
    // is told by broken() alone, wherever it waits.
    [[nodiscard]] const hetcoll_p2p &table() const noexcept { return table_; }
    // True when no message is under way. Requires that the ranks have broken, and that nobody tests
    // a request again.
    [[nodiscard]] bool drain() noexcept;

private:
    struct Open {
        [[nodiscard]] static Open &of(void *context) noexcept
        {
            return *static_cast<Open *>(context);
        }
        template <class Start> int start(void **request, Start how);
        int test(void **request);

        const hetcoll_p2p ranks;
        std::vector<void *> requests;
    };

    hetcoll_p2p table_;
    std::unique_ptr<Open> open_; // null: those never break
};

} // namespace hetcoll
