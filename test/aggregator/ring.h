// Allreduce around a ring, over the same wire as aggregators: a comparison for them. Sums in
// 2(n-1) steps, cut into messages that are passed on as soon as they have come.
#pragma once

#include "aggregator/wire.h"
#include "base/element.h"

#include <memory>
#include <string>
#include <vector>

namespace hetcoll::test {

class Ring {
public:
    // Waits for its neighbours, for some seconds. `at`: where each rank listens.
    static Result<std::unique_ptr<Ring>> create(const std::vector<Endpoint> &at, int rank,
                                                std::size_t message_bytes);
    virtual ~Ring() = default;
    // out = sum of all ranks' in. `count` is a multiple of the number of ranks.
    virtual Status reduce(const std::byte *in, std::byte *out, std::size_t count,
                          ElementKind kind) = 0;
    // Before a rank goes, in the same order on all.
    virtual void part() = 0;
};

} // namespace hetcoll::test
