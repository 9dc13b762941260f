// Plain memory: races, by vector clocks (FastTrack: Flanagan and Freund, PLDI 2009), and what was
// there before, so that each execution begins alike.
#include "state.h"

#include <algorithm>

namespace model {
namespace {

bool is_on_a_stack(std::uintptr_t address)
{
    for (const auto &thread : state.threads) {
        const auto first = reinterpret_cast<std::uintptr_t>(thread->stack.get());
        if (address >= first && address < first + kStackBytes) {
            return true;
        }
    }
    return false;
}

void keep(std::uintptr_t address, std::size_t bytes)
{
    for (const std::uintptr_t end = address + bytes; address < end;) {
        const std::uintptr_t word = address / 8 * 8, next = std::min(end, word + 8);
        const auto [found, is_new] = state.undo_at.try_emplace(word, state.undo.size());
        if (is_new) {
            state.undo.push_back({word, {}, {}});
        }
        for (Undo &undo = state.undo[found->second]; address < next; ++address) {
            if (!std::exchange(undo.written[address - word], true)) {
                undo.old[address - word] = *reinterpret_cast<const std::uint8_t *>(address);
            }
        }
    }
}

// Reports that the running thread's access to a byte is not ordered with another one.
[[noreturn]] void race(std::uintptr_t address, bool writes, const void *pc, const Cell &cell,
                       const std::string &other)
{
    violation_in_thread("data race: thread " + std::to_string(state.running_index) +
                        (writes ? " writes " : " reads ") + name_of(address) + " (" + line_of(pc) +
                        ") while " + other +
                        (cell.write_pc != nullptr ? " (" + line_of(cell.write_pc) + ")" : ""));
}

void look(Cell &cell, std::uintptr_t address, bool writes, const Thread &self, const void *pc)
{
    const int me = state.running_index;
    const std::uint32_t *const clock = self.now.clock;
    touch(cell);
    if (cell.atomic) {
        race(address, writes, pc, cell, "it is an atomic");
    }
    if (cell.writer >= 0 && cell.writer != me && cell.write_clock > clock[cell.writer]) {
        race(address, writes, pc, cell, "thread " + std::to_string(cell.writer) + " writes it");
    }
    if (!writes) {
        cell.read_clock[me] = clock[me];
        return;
    }
    for (int other = 0; other < static_cast<int>(state.threads.size()); ++other) {
        if (other != me && cell.read_clock[other] > clock[other]) {
            race(address, writes, pc, cell, "thread " + std::to_string(other) + " reads it");
        }
    }
    cell.writer = static_cast<std::int8_t>(me);
    cell.write_clock = clock[me];
    cell.write_pc = pc;
}

} // namespace

Region *region_of(std::uintptr_t address)
{
    for (Region &region : state.regions) {
        if (address >= region.first && address < region.end) {
            return &region;
        }
    }
    return nullptr;
}

void touch(Cell &cell)
{
    if (!cell.touched) {
        cell.touched = true;
        state.touched.push_back(&cell);
    }
}

void plain_access(std::uintptr_t address, std::size_t bytes, bool writes, const void *pc)
{
    if (!is_watched()) {
        return;
    }
    const Thread &self = *state.running;
    const Aside aside;
    if (is_on_a_stack(address)) {
        return;
    }
    if (writes) {
        if (state.location_at.contains(address)) {
            violation_in_thread("a plain write to " + name_of(address) +
                                ", which was used as an atomic (" + line_of(pc) + ")");
        }
        keep(address, bytes);
    }
    Region *const region = region_of(address);
    if (region == nullptr) {
        return;
    }
    for (std::uintptr_t i = address; i < address + bytes && i < region->end; ++i) {
        look(region->cells[i - region->first], i, writes, self, pc);
    }
}

void roll_back()
{
    for (; !state.undo.empty(); state.undo.pop_back()) {
        const Undo &undo = state.undo.back();
        for (std::size_t i = 0; i < sizeof undo.old; ++i) {
            if (undo.written[i]) {
                reinterpret_cast<std::uint8_t *>(undo.address)[i] = undo.old[i];
            }
        }
    }
    state.undo_at.clear();
    for (Cell *cell : state.touched) {
        *cell = Cell{};
    }
    state.touched.clear();
    state.locations.clear();
    state.location_at.clear();
    state.events.clear();
    state.seen_by_all.clear();
    state.order_of_all = 0;
}

} // namespace model
