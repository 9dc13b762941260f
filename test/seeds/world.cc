#include "test/seeds/world.h"

#include "test/seeds/report.h"
#include "test/seeds/vectors.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

namespace hetcoll::test {
namespace {

hetcoll_facts merged(const std::vector<hetcoll_facts> &facts)
{
    hetcoll_facts all = facts[0];
    for (const hetcoll_facts &other : facts) {
        hetcoll_facts_merge(&all, &other);
    }
    return all;
}

// Open MPI's own would be given each rank's input, and gives each the sum.
int previous_allreduce(void *context, const void *in, void *out)
{
    Running &of = *static_cast<Running *>(context);
    of.spoiled = std::memcmp(in, of.input.data(), of.input.size()) != 0;
    std::memcpy(out, of.expected.data(), of.expected.size());
    return 0;
}

// Mostly of one kind on all ranks; programs mix.
Memory some_memory(const PlannedCall &plan, Random &random)
{
    if (plan.salt % 4 == 0) {
        return static_cast<Memory>(random.below(kMemories));
    }
    switch (plan.salt % 16) {
    case 1: return Memory::kHost;
    case 2:
    case 3: return Memory::kPool;
    case 5:
    case 6: return Memory::kVmm;
    case 7: return Memory::kOwnVmm;
    default: return Memory::kDevice;
    }
}

hetcoll_call call_of(Running &made, bool has_result)
{
    const PlannedCall &plan = made.plan;
    hetcoll_call call{};
    call.send = made.send->data();
    call.recv = has_result ? made.recv->data() : nullptr;
    call.collective = plan.collective;
    call.root = plan.root;
    call.kind = plan.type.kind;
    call.op = plan.type.op;
    call.count = plan.count;
    call.span = plan.count * plan.type.bytes;
    call.dense = 1;
    call.tag = HETCOLL_TAGS;
    call.context = &made;
    if (plan.blocking && plan.collective == HETCOLL_ALLREDUCE) {
        call.previous_allreduce = previous_allreduce;
    }
    return call;
}

} // namespace

World::World(const Plan &plan, unsigned seed, LogFunction *log) : plan_(plan)
{
    setenv("EMU_STEPPED", "1", 1);
    setenv("EMU_SEED", std::to_string(seed).c_str(), 1);
    setenv("EMU_NUM_DEVICES", std::to_string(plan.devices).c_str(), 1);
    setenv("EMU_HOSTILE", plan.hostile ? "waits,handles,contexts,errors,limits" : "0", 1);
    make_gpus();
    hetcoll_settings settings = plan.settings;
    settings.log = log;
    for (int rank = 0; rank < plan.ranks; ++rank) {
        Rank &made = ranks_.emplace_back();
        made.process = make_process(settings);
        made.gpu = &gpus_[static_cast<std::size_t>(rank % plan.devices)];
    }
    make_communicators();
}

void World::make_gpus()
{
    for (int device = 0; device < plan_.devices; ++device) {
        Gpu &gpu = gpus_.emplace_back();
        gpu.device = device;
        gpu.devices = plan_.devices;
        HETCOLL_REQUIRE(cuda().driver->cuDevicePrimaryCtxRetain(&gpu.context, device));
        HETCOLL_REQUIRE(cuda().driver->cuCtxSetCurrent(gpu.context));
        HETCOLL_REQUIRE(cuda().driver->cuStreamCreate(&gpu.stream, CU_STREAM_NON_BLOCKING));
    }
    for (const Gpu &gpu : gpus_) { // as IPC would between processes
        HETCOLL_REQUIRE(cuda().driver->cuCtxSetCurrent(gpu.context));
        for (const Gpu &other : gpus_) {
            if (&other != &gpu) {
                HETCOLL_REQUIRE(cuda().driver->cuCtxEnablePeerAccess(other.context, 0));
            }
        }
    }
}

void World::make_communicators()
{
    std::vector<hetcoll_facts> facts;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
        facts.push_back(ranks_[rank].process->facts());
        facts.back().identity.host += plan_.nodes[rank];
        facts.back().identity.machine += plan_.nodes[rank];
    }
    const hetcoll_facts agreed = merged(facts);
    for (const Plan::Network &planned : plan_.networks) {
        SimulatedCommunicator &made = communicators_.emplace_back();
        made.network =
            std::make_unique<MemoryNetwork>(plan_.ranks, planned.synchronous, planned.seed);
        made.network->allow_shorter(); // as MPI does
        made.network->has_one_thread();
        if (plan_.tolerant) {
            made.network->may_break();
        }
        for (int rank = 0; rank < plan_.ranks; ++rank) {
            made.comms.push_back(std::make_unique<Communicator>(
                *this->rank(rank).process, made.network->rank(rank), agreed, facts));
            made.queues.push_back(std::make_unique<OperationQueue>());
        }
    }
}

// One that an earlier call had, or a new one.
Buffer *World::buffer_for(Rank &rank, Memory memory, std::size_t bytes, Random &random)
{
    for (const auto &known : rank.buffers) {
        if (known->user == User::kProgram && known->memory() == memory && known->bytes() >= bytes &&
            !random.once_in(3)) {
            return known.get();
        }
    }
    return rank.buffers.emplace_back(std::make_unique<Buffer>(*rank.gpu, memory, bytes)).get();
}

Running &World::make_call(int number, const PlannedCall &plan, Random &random)
{
    Rank &caller = rank(number);
    Running &made = caller.running.emplace_back();
    made.plan = plan;
    const std::size_t bytes = plan.count * plan.type.bytes;
    const Memory memory = some_memory(plan, random);
    const bool in_place = plan.collective == HETCOLL_BCAST || random.once_in(2);
    const bool has_result = plan.collective != HETCOLL_REDUCE || plan.root == number;
    made.recv = made.send = buffer_for(caller, memory, bytes, random);
    made.recv->user = User::kCall;
    if (!in_place || !has_result) {
        made.send = buffer_for(caller, memory, bytes, random);
    }
    made.call = call_of(made, has_result);
    const auto index = static_cast<std::size_t>(number);
    made.operation.emplace(
        *communicators_[static_cast<std::size_t>(plan.communicator)].comms[index], made.call,
        plan.persistent ? Start::kPersistent : Start::kOnce);
    return made;
}

void World::fill_vectors(int number, Running &made)
{
    Vectors vectors = vectors_of(made.plan, number, plan_.ranks);
    made.input = vectors.input;
    made.expected = std::move(vectors.expected);
    made.send->user = made.recv->user = User::kCall;
    if (made.send != made.recv) {
        made.recv->fill({});
    } else {
        vectors.input.insert(vectors.input.begin(), vectors.input_place, std::byte{0xee});
    }
    made.send->fill(std::move(vectors.input));
}

bool World::may_start_call(int number) const
{
    const Rank &rank = ranks_[static_cast<std::size_t>(number)];
    if (rank.next == plan_.calls.size() ||
        (!rank.running.empty() && rank.running.back().plan.blocking)) {
        return false;
    }
    const int again = plan_.calls[rank.next].again;
    return std::none_of(rank.running.begin(), rank.running.end(), [&](const Running &call) {
        return again >= 0 && call.request() == static_cast<std::size_t>(again);
    });
}

void World::start_call(int number, Random &random)
{
    Rank &caller = rank(number);
    const std::size_t next = caller.next++;
    PlannedCall plan = plan_.calls[next];
    if (plan.differs == number) {
        plan.count += plan.collective == HETCOLL_ALLREDUCE ? 1 : ranks_.size();
    }
    const auto request =
        std::find_if(caller.requests.begin(), caller.requests.end(), [&](const Running &call) {
            return plan.again >= 0 && call.request() == static_cast<std::size_t>(plan.again);
        });
    const bool is_new = request == caller.requests.end(); // or lost, where peers went on with it
    if (!is_new) {
        caller.running.splice(caller.running.end(), caller.requests, request);
        caller.running.back().operation->rewind();
    }
    Running &made = is_new ? make_call(number, plan, random) : caller.running.back();
    made.plan = plan;
    made.number = next;
    made.spoiled = made.lost_result = false;
    fill_vectors(number, made);
    communicators_[static_cast<std::size_t>(plan.communicator)]
        .queues[static_cast<std::size_t>(number)]
        ->push(*made.operation);
    say("turn %zu: rank %d begins call %zu: collective %d, %zu elements, kind %d, op %d, memory "
        "%d%s%s",
        turn, number, made.number, plan.collective, plan.count, plan.type.kind, plan.type.op,
        static_cast<int>(made.recv->memory()), made.send == made.recv ? ", in place" : "",
        !plan.persistent ? "" : (is_new ? ", persistent" : ", started again"));
}

bool World::is_started_after(const Running &call) const
{
    return std::any_of(
        plan_.calls.begin() + static_cast<std::ptrdiff_t>(call.number) + 1, plan_.calls.end(),
        [&](const PlannedCall &later) { return later.again == static_cast<int>(call.request()); });
}

std::list<Running>::iterator World::end_call(int number, std::list<Running>::iterator call)
{
    Rank &rank = this->rank(number);
    const bool is_lost = goes_on(number, *call), again = is_started_after(*call);
    const auto next = std::next(call);
    if (!is_lost) {
        call->send->use_again(again ? User::kRequest : User::kProgram);
        call->recv->use_again(again ? User::kRequest : User::kProgram);
    }
    if (again && !is_lost) {
        rank.requests.splice(rank.requests.end(), rank.running, call);
    } else {
        rank.running.erase(call);
    }
    return next;
}

bool World::goes_on(int number, const Running &call) const
{
    const unsigned node = plan_.nodes[static_cast<std::size_t>(number)];
    const auto on_node = std::count(plan_.nodes.begin(), plan_.nodes.end(), node);
    const int result = call.operation->result();
    const bool told = result == HETCOLL_SUCCESS || result == kBroken;
    const Memory memory = call.recv->memory();
    const bool on_host = memory == Memory::kHost || memory == Memory::kPinned;
    return (some_dead || network_fails) && !told &&
           (on_host || (plan_.settings.ipc != HETCOLL_IPC_NEVER && on_node > 1));
}

bool World::is_over() const
{
    return std::all_of(ranks_.begin(), ranks_.end(), [this](const Rank &rank) {
        return rank.dead || (rank.next == plan_.calls.size() && rank.running.empty());
    });
}

std::size_t World::open_calls() const
{
    std::size_t open = 0;
    for (const Rank &rank : ranks_) {
        open += rank.running.size() + plan_.calls.size() - rank.next;
    }
    return open;
}

void World::print_meetings()
{
    for (int number = 0; number < plan_.ranks; ++number) {
        for (SimulatedCommunicator &communicator : communicators_) {
            NodeGroup &group = communicator.comms[static_cast<std::size_t>(number)]->group();
            if (group.page().exists()) {
                const ControlPage::Slot &slot = group.own_slot();
                std::printf("rank %d: %u meetings, said %x and %x\n", number,
                            static_cast<unsigned>(slot.arrived),
                            static_cast<unsigned>(slot.said[0]),
                            static_cast<unsigned>(slot.said[1]));
            }
        }
    }
}

} // namespace hetcoll::test
