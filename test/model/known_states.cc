// A number for all that the rest of an execution depends on: Mode::kStates. Left out is what nobody
// can see any more: which messages were read on the way here, those that every thread has seen
// newer ones of, and plain accesses that happened before all that is to come.
//
// The sums do not depend on the order in which locations and bytes were first used.
#include "state.h"

#include <algorithm>
#include <cstring>

namespace model {
namespace {

std::uint64_t hash_of(const Knowledge &knowledge)
{
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < knowledge.seen.size(); ++i) {
        if (knowledge.seen[i] != 0) {
            sum += mix(state.locations[i].address, knowledge.seen[i]);
        }
    }
    for (const std::uint32_t clock : knowledge.clock) {
        sum = mix(sum, clock);
    }
    return sum;
}

std::uint64_t hash_of(const std::vector<Read> &reads)
{
    std::uint64_t hash = reads.size();
    for (const Read &read : reads) {
        hash = mix(hash, mix(state.locations[read.location].address, read.change));
    }
    return hash;
}

// Frames and registers.
std::uint64_t hash_of_stack(const Thread &thread)
{
    std::uint64_t hash = thread.begun ? 1 : 0, word = 0;
    if (!thread.begun || thread.next.kind == Kind::kEnd) {
        return hash;
    }
    const char *const end = thread.stack.get() + kStackBytes;
    for (const char *at = thread.deepest; at < end; at += sizeof word) {
        std::memcpy(&word, at, sizeof word);
        hash = mix(hash, word);
    }
    const auto *const registers = reinterpret_cast<const char *>(thread.jump->__jmpbuf);
    for (std::size_t i = 0; i < sizeof thread.jump->__jmpbuf; i += sizeof word) {
        std::memcpy(&word, registers + i, sizeof word);
        hash = mix(hash, word);
    }
    return hash;
}

std::uint64_t hash_of(const Thread &thread)
{
    const Operation &next = thread.next;
    std::uint64_t hash = hash_of_stack(thread);
    for (const std::uint64_t part :
         {static_cast<std::uint64_t>(next.kind), static_cast<std::uint64_t>(next.address),
          static_cast<std::uint64_t>(next.order), next.value, next.expected, thread.stores,
          hash_of(thread.now), hash_of(thread.acquired), hash_of(thread.released),
          hash_of(thread.round), static_cast<std::uint64_t>(thread.later_than)}) {
        hash = mix(hash, part);
    }
    const bool compares = thread.waiting || !thread.wrote; // see begin_wait()
    hash = mix(hash, compares ? hash_of(thread.last_round) : 0);
    return mix(hash, (thread.wrote ? 1u : 0u) | (thread.waits_for_last ? 2u : 0u) |
                         (thread.waiting ? 4u : 0u) | (thread.went_on ? 8u : 0u));
}

// The messages that some thread may still read.
std::uint64_t hash_of_messages(std::size_t location)
{
    const Location &at = state.locations[location];
    std::size_t oldest = at.messages.size() - 1;
    for (const auto &thread : state.threads) {
        oldest = std::min<std::size_t>(oldest, seen_at(thread->now.seen, location));
    }
    std::uint64_t hash = mix(at.address, static_cast<std::uint64_t>(at.writer));
    hash = mix(hash, seen_at(state.seen_by_all, location));
    for (std::size_t i = oldest; i < at.messages.size(); ++i) {
        const Message &message = at.messages[i];
        hash = mix(hash, mix(i, mix(message.value, message.change)));
        hash = mix(hash, hash_of(message.with));
    }
    return hash;
}

// Whether everything from now on happens after that moment of a thread.
bool is_past(int index, std::uint32_t clock)
{
    for (int i = 0; i < static_cast<int>(state.threads.size()); ++i) {
        const Thread &thread = *state.threads[static_cast<std::size_t>(i)];
        if (i != index && thread.next.kind != Kind::kEnd && thread.now.clock[index] < clock) {
            return false;
        }
    }
    return true;
}

std::uint64_t hash_of(const Cell &cell)
{
    std::uint64_t hash = cell.atomic ? 1 : 0;
    if (cell.writer >= 0 && !is_past(cell.writer, cell.write_clock)) {
        hash = mix(hash, mix(static_cast<std::uint64_t>(cell.writer) + 1, cell.write_clock));
    }
    for (int i = 0; i < static_cast<int>(state.threads.size()); ++i) {
        if (cell.read_clock[i] != 0 && !is_past(i, cell.read_clock[i])) {
            hash = mix(hash, mix(static_cast<std::uint64_t>(i) + 16, cell.read_clock[i]));
        }
    }
    return hash;
}

std::uint64_t hash_of_plain_memory()
{
    std::uint64_t sum = 0;
    for (const Undo &undo : state.undo) {
        const auto *const now = reinterpret_cast<const std::uint8_t *>(undo.address);
        std::uint64_t changes = 0; // from what was there at first
        for (std::size_t i = 0; i < sizeof undo.old; ++i) {
            changes = changes << 8 | (undo.written[i] ? now[i] ^ undo.old[i] : 0);
        }
        sum += changes == 0 ? 0 : mix(undo.address, changes);
    }
    for (const Cell *cell : state.touched) {
        const std::uint64_t hash = hash_of(*cell);
        sum += hash == 0 ? 0 : mix(reinterpret_cast<std::uintptr_t>(cell), hash);
    }
    return sum;
}

} // namespace

bool is_new_state()
{
    std::uint64_t hash = hash_of_plain_memory();
    for (std::size_t i = 0; i < state.locations.size(); ++i) {
        hash += hash_of_messages(i);
    }
    for (const auto &thread : state.threads) {
        hash = mix(hash, hash_of(*thread));
    }
    return state.known.insert(hash).second;
}

} // namespace model
