#include "test/seeds/scheduler.h"

#include "engine/process/memory_reserve.h"
#include "test/seeds/report.h"

#include <cstdlib>
#include <numeric>

namespace hetcoll::test {

Scheduler::Scheduler(World &world, Verdict &verdict, Random &random)
    : world_(world), verdict_(verdict), random_(random),
      weights_(std::accumulate(world.plan().weights.begin(), world.plan().weights.end(), 0u))
{
}

void Scheduler::make_trouble()
{
    const Plan &plan = world_.plan();
    if (plan.trouble_turn == world_.turn) {
        switch (plan.trouble) {
        case Trouble::kNone: break;
        case Trouble::kDriver: cuda().emulated_gpu_set_faults(plan.driver_fault.c_str()); break;
        case Trouble::kDeath:
            world_.rank(plan.dying_rank).dead = world_.some_dead = true;
            break_later();
            break;
        case Trouble::kMemory:
            shortage_.emplace(plan.failing_allocation, kReserveBytes, plan.blocks);
            break;
        case Trouble::kMessage:
            world_.network_fails = true;
            world_.communicators().front().network->fail_send(plan.failing_send);
            break_later();
            break;
        }
    }
    if (plan.trouble_turn + plan.hungry_turns == world_.turn) {
        shortage_.reset();
    }
    if (plan.environment_turn == world_.turn) {
        if (plan.visible_devices != nullptr) {
            setenv("CUDA_VISIBLE_DEVICES", plan.visible_devices, 1);
        } else {
            unsetenv("CUDA_VISIBLE_DEVICES");
        }
    }
    tell_of_trouble();
}

void Scheduler::break_later()
{
    const Plan &plan = world_.plan();
    for (int rank = 0; plan.tolerant && rank < plan.ranks; ++rank) {
        breaks_.emplace_back(world_.turn + random_.below(20000), rank);
    }
}

void Scheduler::tell_of_trouble()
{
    for (const auto &[turn, rank] : breaks_) {
        if (turn == world_.turn) {
            for (SimulatedCommunicator &communicator : world_.communicators()) {
                communicator.network->break_for(rank, kBroken);
                communicator.network->end_requests(rank);
            }
        }
    }
}

int Scheduler::some_rank()
{
    const std::vector<unsigned> &weights = world_.plan().weights;
    unsigned pick = random_.below(weights_);
    std::size_t rank = 0;
    while (pick >= weights[rank]) {
        pick -= weights[rank];
        ++rank;
    }
    return static_cast<int>(rank);
}

void Scheduler::end_calls(int number)
{
    Rank &rank = world_.rank(number);
    for (auto call = rank.running.begin(); call != rank.running.end();) {
        if (!call->operation->is_complete()) {
            ++call;
            continue;
        }
        verdict_.of_call(number, *call);
        call = world_.end_call(number, call);
    }
    if (random_.once_in(50)) {
        std::erase_if(rank.buffers, [&](const auto &buffer) {
            Verdict::of_memory(number, *buffer);
            return buffer->user == User::kProgram;
        });
    }
}

// As that rank's process would: with its control register and its memory.
void Scheduler::step_queue(int number, OperationQueue &queue)
{
    const Plan &plan = world_.plan();
    const bool hungry = shortage_ && number == plan.hungry_rank;
    std::optional<UnderFloatMode> mode;
    if (plan.modes[static_cast<std::size_t>(number)]) {
        mode.emplace(*plan.modes[static_cast<std::size_t>(number)]);
    }
    if (hungry) {
        shortage_->turn(true);
    }
    queue.step();
    if (hungry) {
        shortage_->turn(false);
    }
    if (mode && !mode->is_as_set()) {
        fail("rank %d has another floating-point control register after a step", number);
    }
}

void Scheduler::step(int number)
{
    Rank &rank = world_.rank(number);
    if (rank.dead) {
        return;
    }
    rank.enter();
    if (world_.may_start_call(number) && random_.once_in(20)) {
        world_.start_call(number, random_);
        rank.enter();
    }
    int communicator = 0;
    for (SimulatedCommunicator &each : world_.communicators()) {
        const auto index = static_cast<std::size_t>(number);
        witness_.look_at(rank, communicator++, *each.comms[index]);
        step_queue(number, *each.queues[index]);
        witness_.look_away();
    }
    end_calls(number);
}

// One turn.
void Scheduler::go_on()
{
    make_trouble();
    if (random_.once_in(3)) {
        cuda().emulated_gpu_step();
    }
    if (random_.once_in(3)) {
        for (SimulatedCommunicator &communicator : world_.communicators()) {
            const hetcoll_p2p table = communicator.network->rank(0);
            table.progress(table.context);
        }
    }
    step(some_rank());
}

bool Scheduler::is_stuck()
{
    constexpr std::size_t kMostTurns = 3000000, kQuiet = 300000, kFewRanks = 5;
    const std::size_t share = 1 + static_cast<std::size_t>(world_.plan().ranks) / kFewRanks;
    if (world_.open_calls() != open_) {
        open_ = world_.open_calls();
        changed_ = world_.turn;
    }
    ++world_.turn;
    return world_.turn - changed_ > share * kQuiet || world_.turn > share * kMostTurns;
}

void Scheduler::run()
{
    while (!world_.is_over()) {
        go_on();
        if (!is_stuck()) {
            continue;
        }
        // Open MPI without fault tolerance tells nobody of a dead rank or a lost message.
        if (!world_.plan().tolerant && (world_.some_dead || world_.network_fails)) {
            return;
        }
        world_.print_meetings();
        print_log();
        fail("no call has begun or ended for %zu turns, %zu are open", world_.turn - changed_,
             open_);
    }
    while (cuda().emulated_gpu_step() != 0) {
    }
    for (int number = 0; number < world_.plan().ranks; ++number) {
        for (const auto &buffer : world_.rank(number).buffers) {
            Verdict::of_memory(number, *buffer);
        }
    }
}

} // namespace hetcoll::test
