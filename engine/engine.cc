#include "engine/engine.h"

#include "tuning/build_schedule.h"

#include <cstring>
#include <new>

namespace hetcoll {

Engine::Engine(Process &process, const hetcoll_p2p &p2p, const hetcoll_facts &agreed)
    : process_(process), p2p_(p2p), agreed_(agreed)
{
    process_.add_small_calls(host_calls_);
}

Engine::~Engine() { process_.remove_small_calls(host_calls_); }

std::optional<int> Engine::try_host(const hetcoll_call &call) noexcept
{
    if (call.kind < 0 || call.user_op != 0 || call.span > agreed_.small_limit || p2p_.size == 1) {
        return std::nullopt;
    }
    PointerCache &pointers = process_.pointers();
    if (!pointers.is_surely_host(call.recv) ||
        (call.send != call.recv && !pointers.is_surely_host(call.send))) {
        return std::nullopt;
    }
    host_calls_.store(host_calls_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    std::byte *const mine = messages_->mine;
    std::memcpy(mine, call.send, call.span);
    exchange_.start(
        p2p_, call.tag, mine, messages_->theirs, call.span, call.count,
        host_reduce(static_cast<ReduceOp>(call.op), static_cast<ElementKind>(call.kind)), 0);
    Progress progress;
    while ((progress = exchange_.step()) == Progress::kPending) {
        p2p_.progress(p2p_.context);
    }
    if (progress == Progress::kFailed) {
        process_.count(HETCOLL_CALLS_FAILED);
        abandon_messages();
        return exchange_.code();
    }
    if (exchange_.flags() != 0) {
        process_.count(HETCOLL_CALLS_FAILED);
        log(process_.log(), 0,
            "hetcoll: MPI_Allreduce failed, the receive buffer is undefined: a "
            "driver call failed on another rank, which says more");
        return HETCOLL_ERROR_DEVICE;
    }
    std::memcpy(call.recv, mine, call.span);
    return HETCOLL_SUCCESS;
}

void Engine::abandon_messages() noexcept
{
    if (auto *fresh = new (std::nothrow) Messages) {
        static_cast<void>(messages_.release());
        messages_.reset(fresh);
    }
}

Choice Engine::choice(std::size_t bytes) const noexcept
{
    Query query{
        .bytes = bytes, .ranks = p2p_.size, .forced = {}, .chunk_bytes = agreed_.chunk_bytes};
    if (agreed_.algorithm != 0) {
        query.forced = static_cast<Algorithm>(agreed_.algorithm - 1);
    }
    return choose(query);
}

const Schedule &Engine::schedule(Algorithm algorithm)
{
    std::optional<Schedule> &schedule = schedules_[static_cast<std::size_t>(algorithm)];
    if (!schedule) {
        schedule = build_schedule(algorithm, p2p_.rank, p2p_.size);
    }
    return *schedule;
}

} // namespace hetcoll
