// Atomic memory: what each load may return, and what a thread learns by it. The views of Kang et
// al. (POPL 2017) and Podkopaev et al., without promises.
#include "state.h"

#include <algorithm>
#include <cstring>

namespace model {

void join(Seen &seen, const Seen &other)
{
    if (seen.size() < other.size()) {
        seen.resize(other.size());
    }
    for (std::size_t i = 0; i < other.size(); ++i) {
        seen[i] = std::max(seen[i], other[i]);
    }
}

std::uint16_t seen_at(const Seen &seen, std::size_t location)
{
    return location < seen.size() ? seen[location] : std::uint16_t{0};
}

void see(Seen &seen, std::size_t location, std::uint16_t message)
{
    if (seen.size() <= location) {
        seen.resize(location + 1);
    }
    seen[location] = std::max(seen[location], message);
}

void Knowledge::join(const Knowledge &other)
{
    model::join(seen, other.seen);
    for (int i = 0; i < kMostThreads; ++i) {
        clock[i] = std::max(clock[i], other.clock[i]);
    }
}

std::uint64_t mix(std::uint64_t a, std::uint64_t b)
{
    a ^= b + 0x9e3779b97f4a7c15u + (a << 6) + (a >> 2);
    a *= 0xff51afd7ed558ccdu;
    return a ^ a >> 29;
}

namespace {

constexpr std::size_t kMostOperations = 5000; // of one execution: there it is an endless loop

bool acquires(int order)
{
    return order == __ATOMIC_ACQUIRE || order == __ATOMIC_CONSUME || order >= __ATOMIC_ACQ_REL;
}
bool releases(int order) { return order == __ATOMIC_RELEASE || order >= __ATOMIC_ACQ_REL; }

std::uint64_t value_at(std::uintptr_t address, int bytes)
{
    std::uint64_t value = 0;
    std::memcpy(&value, reinterpret_cast<const void *>(address), static_cast<std::size_t>(bytes));
    return value;
}

std::uint64_t updated(const Operation &op, std::uint64_t old)
{
    std::uint64_t value = op.value;
    switch (op.rmw) {
    case Rmw::kExchange: break;
    case Rmw::kAdd: value = old + op.value; break;
    case Rmw::kSub: value = old - op.value; break;
    case Rmw::kAnd: value = old & op.value; break;
    case Rmw::kOr: value = old | op.value; break;
    case Rmw::kXor: value = old ^ op.value; break;
    }
    return op.bytes == 8 ? value : value & ((std::uint64_t{1} << 8 * op.bytes) - 1);
}

// Operations of memory_order_seq_cst are in one order, which is the one in which they are done
// here. A load or store is related to it by what it reads and who reads it; a fence has to do
// with all before it.
void take_turn(Thread &thread)
{
    state.order_of_all = mix(state.order_of_all, thread.history);
    thread.history = mix(thread.history, state.order_of_all);
}

void read(Thread &thread, std::size_t at, std::size_t message, int order)
{
    const Message &source = state.locations[at].messages[message];
    const auto number = static_cast<std::uint16_t>(message);
    see(thread.now.seen, at, number);
    (acquires(order) ? thread.now : thread.acquired).join(source.with);
    thread.round.push_back({at, source.change});
    thread.history = mix(thread.history, mix(at * 1000003 + message, source.id));
    if (order == __ATOMIC_SEQ_CST) {
        see(state.seen_by_all, at, number);
    }
}

// `continues`: what a read-modify-write has read. Who acquires its message learns that one's too.
void write(Thread &thread, int index, std::size_t at, std::uint64_t value, int order,
           const Message *continues)
{
    Location &location = state.locations[at];
    if (follows_graphs()) {
        if (location.writer >= 0 && location.writer != index) {
            violation(name_of(location.address) + " has two writers: take another mode");
            return;
        }
        location.writer = index;
    }
    const Message &last = location.messages.back();
    const bool changes = value != last.value;
    const auto change = static_cast<std::uint16_t>(last.change + (changes ? 1 : 0));
    Message message{value, releases(order) ? thread.now : thread.released, 0, change};
    const auto number = static_cast<std::uint16_t>(location.messages.size());
    if (continues != nullptr) {
        message.with.join(continues->with);
    }
    see(message.with.seen, at, number);
    if (order == __ATOMIC_SEQ_CST) {
        see(state.seen_by_all, at, number);
    }
    thread.history = mix(thread.history, mix(at, value + 77));
    message.id = thread.history;
    see(thread.now.seen, at, number);
    ++thread.now.clock[index];
    location.messages.push_back(std::move(message));
    thread.wrote = thread.wrote || changes;
}

// A read-modify-write always reads the newest.
void update(Thread &thread, int index, const Operation &op)
{
    const std::size_t at = location_of(op.address, op.bytes);
    const Message source = state.locations[at].messages.back();
    read(thread, at, newest(at), op.order);
    thread.result = source.value;
    if (op.kind == Kind::kCas && source.value != op.expected) {
        return;
    }
    const std::uint64_t value = op.kind == Kind::kCas ? op.value : updated(op, source.value);
    write(thread, index, at, value, op.order, &source);
}

void fence(Thread &thread, int index, int order)
{
    if (acquires(order)) {
        thread.now.join(thread.acquired);
    }
    thread.history = mix(thread.history, 5);
    if (order == __ATOMIC_SEQ_CST) {
        join(thread.now.seen, state.seen_by_all);
        join(state.seen_by_all, thread.now.seen);
        take_turn(thread);
    }
    if (releases(order)) {
        thread.released = thread.now;
        ++thread.now.clock[index];
    }
}

} // namespace

std::size_t newest(std::size_t location) { return state.locations[location].messages.size() - 1; }

std::size_t oldest_readable(const Thread &thread, std::size_t location)
{
    std::uint16_t oldest = seen_at(thread.now.seen, location);
    if (thread.next.order == __ATOMIC_SEQ_CST) {
        oldest = std::max(oldest, seen_at(state.seen_by_all, location));
    }
    return oldest;
}

std::size_t location_of(std::uintptr_t address, int bytes)
{
    const auto [found, is_new] = state.location_at.try_emplace(address, state.locations.size());
    if (is_new) {
        state.locations.push_back({address, -1, {{value_at(address, bytes), {}, 0, 0}}});
        Region *const region = region_of(address);
        for (std::uintptr_t i = address; region != nullptr && i < address + bytes; ++i) {
            Cell &cell = region->cells[i - region->first];
            touch(cell);
            cell.atomic = true;
        }
    }
    return found->second;
}

void perform(int index, std::size_t message)
{
    Thread &thread = *state.threads[static_cast<std::size_t>(index)];
    const Operation op = thread.next;
    ++state.report->operations;
    const bool updates = op.kind == Kind::kRmw || op.kind == Kind::kCas;
    if (follows_graphs() && (updates || (op.order == __ATOMIC_SEQ_CST && !is_turn(op)))) {
        violation(std::string("a ") +
                  (updates ? "read-modify-write" : "sequentially consistent operation") +
                  ": take another mode");
        return;
    }
    bool stale = false;
    switch (op.kind) {
    case Kind::kLoad: {
        const std::size_t at = location_of(op.address, op.bytes);
        read(thread, at, message, op.order);
        thread.result = state.locations[at].messages[message].value;
        stale = message != newest(at);
        break;
    }
    case Kind::kStore:
        write(thread, index, location_of(op.address, op.bytes), op.value, op.order, nullptr);
        thread.result = op.value;
        break;
    case Kind::kRmw:
    case Kind::kCas: update(thread, index, op); break;
    case Kind::kFence: fence(thread, index, op.order); break;
    default: return;
    }
    state.events.push_back({index, op, thread.result, stale, {}});
    if (state.events.size() == kMostOperations) {
        violation("an execution does not end");
    }
}

} // namespace model
