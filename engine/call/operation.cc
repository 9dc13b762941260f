#include "engine/call/operation.h"

#include "engine/call/ways.h"

namespace hetcoll {

Operation::Operation(Engine &engine, const hetcoll_call &call, Start start) noexcept
    : given_(call), call_(engine, call, start == Start::kPersistent)
{
}

Operation::~Operation()
{
    way_ = {};
    call_.classified.reset();
    settle();
}

void Operation::begin()
{
    begun_ = true;
    call_.engine.begin_call(given_);
    call_.report.begin(given_);
    if (call_.engine.uses_fixed_point(given_)) {
        way_ = fixed_point(call_, given_);
    } else if (call_.is_collective()) {
        way_ = collective(call_);
    } else {
        look_at_buffers(call_);
        way_ = allreduce(call_);
    }
    way_.start();
}

bool Operation::step()
{
    if (!begun_ && call_.engine.broken() != 0) {
        call_.report.begin(given_);
        log(call_.process().log(), 1,
            "hetcoll: %s fails at once, because a call of this communicator has ended on this rank "
            "alone: free the communicator",
            mpi_name());
        finish(call_.engine.broken());
        return true;
    }
    if (!begun_) {
        begin();
    }
    const bool is_over = call_.frames.step();
    if (call_.ended) {
        finish(*call_.ended);
        return true;
    }
    if (is_over) {
        finish(way_.result());
        return true;
    }
    if (call_.mapped) {
        call_.engine.mapped().serve();
    }
    if (call_.engine.watch().is_due(moves())) {
        say_why_it_waits();
    }
    call_.leave_context();
    return false;
}

void Operation::say_why_it_waits()
{
    Engine &engine = call_.engine;
    Watch &watch = engine.watch();
    if (call_.kernel_runs) {
        watch.say_own_gpu("a kernel");
    } else if (call_.copying) {
        watch.say_own_gpu("a copy, or the program's work before it");
    } else if (call_.executor_runs) {
        watch.say_schedule(engine.executor());
    } else if (!engine.is_ready() && engine.p2p().size > 1) {
        watch.say_first_call();
    } else {
        watch.say_meeting(call_.meeting);
    }
}

std::uint64_t Operation::moves() const noexcept
{
    return call_.frames.waits() + (call_.executor_runs ? call_.engine.executor().moves() : 0);
}

void Operation::fail_without_memory() noexcept
{
    log(call_.process().log(), 0, "hetcoll: %s failed: out of host memory", mpi_name());
    finish(HETCOLL_ERROR_NO_MEMORY);
}

void Operation::finish(int result) noexcept
{
    way_ = {}; // with all that it has borrowed
    call_.made = &given_;
    result_ = result;
    call_.report.end(result, call_.flags);
    call_.leave_context();
    settle();
}

// The bounces go back, but for what a persistent call will need again.
void Operation::settle() noexcept
{
    Process &process = call_.process();
    process.store().give_back(std::move(call_.host));
    if (!call_.failure.ok()) {
        call_.classified.reset();
        process.store().discard(
            std::move(call_.device)); // the store takes nothing back of this device
        return;
    }
    if (result_ != HETCOLL_SUCCESS) {
        call_.classified.reset();
    }
    if (!call_.classified) {
        process.store().give_back(std::move(call_.device));
    }
}

void Operation::rewind() noexcept
{
    complete_.store(false, std::memory_order_relaxed);
    begun_ = false;
    result_ = HETCOLL_SUCCESS;
    call_.rewind();
}

const char *Operation::mpi_name() const noexcept { return hetcoll::mpi_name(given_.collective); }

} // namespace hetcoll
