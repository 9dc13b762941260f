#include "engine/communicator/departure.h"

namespace hetcoll {

bool Departure::leave(int code) noexcept
{
    if (membership_.is_left()) {
        return true;
    }
    if (!step()) {
        return false;
    }
    close_dead();
    membership_.break_off(code);
    return true;
}

bool Departure::step() noexcept
{
    planner_.abandon();
    return requests_.drain() && group_.leave();
}

// Their memory is the GPU's as long as it is mapped here.
void Departure::close_dead() noexcept
{
    for (const int rank : group_.local_ranks()) {
        const ProcessIdentity &owner = group_.process(rank);
        if (!is_alive(process_state(owner))) {
            gpus_.sharing().memory->close_owner(owner);
        }
    }
}

} // namespace hetcoll
