#pragma once

#include "engine/call/call.h"

#include <memory>

namespace hetcoll {

// Memory that goes back to the process's pool by itself.
struct GiveBack {
    Pool *pool = nullptr;
    template <class Memory> void operator()(Memory *memory) const noexcept
    {
        pool->give_back(std::unique_ptr<Memory>(memory));
    }
};
template <class Memory> using Loan = std::unique_ptr<Memory, GiveBack>;
// Nothing where it could not be borrowed, and why.
template <class Memory>
[[nodiscard]] Loan<Memory> loan(Call &call, Result<std::unique_ptr<Memory>> borrowed, Status &why)
{
    if (!borrowed.ok()) {
        why = borrowed.take_status();
        return {};
    }
    return Loan<Memory>(borrowed->release(), GiveBack{&call.gpus.pool()});
}

} // namespace hetcoll
