#include "test/seeds/plan.h"

#include "test/unit/engine_process.h"

#include <iterator>

namespace hetcoll::test {
namespace {

constexpr Type kFloatSum = {HETCOLL_FLOAT32, HETCOLL_SUM, 4};
constexpr std::array<Type, 5> kTypes = {{{HETCOLL_INT32, HETCOLL_SUM, 4},
                                         kFloatSum,
                                         {HETCOLL_UINT8, HETCOLL_MAX, 1},
                                         {HETCOLL_FLOAT64, HETCOLL_MIN, 8},
                                         {HETCOLL_INT64, HETCOLL_BXOR, 8}}};

Trouble some_trouble(Random &random)
{
    if (random.once_in(3)) {
        return Trouble::kDriver;
    }
    if (random.once_in(8)) {
        return Trouble::kDeath;
    }
    if (random.once_in(4)) {
        return Trouble::kMemory;
    }
    return random.once_in(12) ? Trouble::kMessage : Trouble::kNone;
}

hetcoll_settings some_settings(Random &random, Trouble trouble)
{
    constexpr std::array<const char *, 13> kAlgorithms = {"auto",
                                                          "auto",
                                                          "recursive_doubling",
                                                          "rabenseifner",
                                                          "ring",
                                                          "one_shot",
                                                          "two_shot",
                                                          "leader",
                                                          "tree",
                                                          "hierarchical",
                                                          "copy_in",
                                                          "ordered",
                                                          "recursive_multiplying"};
    hetcoll_settings settings = default_settings();
    settings.algorithm = random.of(kAlgorithms);
    settings.chunk_bytes = random.once_in(2) ? 4096 : 0;
    settings.check = random.once_in(4) ? HETCOLL_CHECK_OFF : HETCOLL_CHECK_ON;
    settings.skew = random.once_in(6);
    // A dead process's kernels die with it; here they are of this process, and would go on in
    // peers' memory.
    const bool maps = trouble != Trouble::kDeath && !random.once_in(4);
    settings.ipc = maps ? HETCOLL_IPC_AUTO : HETCOLL_IPC_NEVER;
    settings.reproducible = random.once_in(6);
    settings.fixed_point = random.once_in(6) ? 8 : 0;
    settings.report_after = 0;
    if (random.once_in(8)) {
        settings.max_memory = 512ul << 10;
    } else if (!random.once_in(8)) { // enough for all, and quickly made
        settings.max_memory = 4ul << 20;
    }
    if (random.once_in(8)) {
        settings.small_limit = 0;
    }
    return settings;
}

// Seldom dozens, because each of their turns is one of many: then all on one GPU, or some.
void draw_ranks(Random &random, Plan &plan)
{
    constexpr std::array<int, 6> kRanks = {2, 2, 3, 3, 4, 5};
    constexpr unsigned kMostRanks = 40, kMostDevices = 8;
    if (random.once_in(50)) {
        plan.ranks = 6 + static_cast<int>(random.below(kMostRanks - 5));
        plan.devices = random.once_in(2) ? 1 : 1 + static_cast<int>(random.below(kMostDevices));
    } else {
        plan.ranks = random.of(kRanks);
        plan.devices = 1 + static_cast<int>(random.below(static_cast<unsigned>(plan.ranks)));
    }
}

void place_ranks(Random &random, Plan &plan)
{
    for (int rank = 0; rank < plan.ranks; ++rank) {
        plan.weights.push_back(random.once_in(4) ? 1 : 20);
    }
    const unsigned nodes = random.once_in(3) ? 2 : 1;
    for (int rank = 0; rank < plan.ranks; ++rank) {
        plan.nodes.push_back(random.below(nodes));
        plan.about += rank == 0 ? ", on nodes " : " ";
        plan.about += std::to_string(plan.nodes.back());
    }
    for (int left = random.once_in(3) ? 2 : 1; left > 0; --left) {
        const unsigned seed = random.below(1u << 30);
        plan.networks.push_back({.synchronous = !random.once_in(4), .seed = seed});
    }
}

PlannedCall some_call(Random &random, const Plan &plan)
{
    constexpr std::array<std::size_t, 7> kCounts = {1, 3, 100, 2048, 5000, 12000, 40000};
    constexpr std::array<hetcoll_collective, 4> kOthers = {
        HETCOLL_BCAST, HETCOLL_REDUCE, HETCOLL_ALLGATHER, HETCOLL_REDUCE_SCATTER};
    const auto ranks = static_cast<unsigned>(plan.ranks);
    PlannedCall call;
    call.collective = random.once_in(4) ? random.of(kOthers) : HETCOLL_ALLREDUCE;
    call.type = random.of(kTypes);
    if (plan.settings.fixed_point != 0 && random.once_in(2)) {
        call.type = kFloatSum; // nothing else has a fixed point
    }
    call.root = static_cast<int>(random.below(ranks));
    call.count = random.of(kCounts);
    call.communicator = static_cast<int>(random.below(static_cast<unsigned>(plan.networks.size())));
    call.blocking = call.collective != HETCOLL_ALLREDUCE || random.once_in(2);
    call.persistent = !call.blocking && random.once_in(2);
    call.salt = random.below(1000);
    call.subnormal = plan.settings.fixed_point == 0 && random.once_in(3);
    if (call.collective != HETCOLL_ALLREDUCE) {
        call.count *= ranks;
    }
    return call;
}

// With other numbers, or nothing if there is no request.
std::optional<PlannedCall> some_call_again(Random &random, const Plan &plan)
{
    std::vector<PlannedCall> requests;
    for (std::size_t i = 0; i < plan.calls.size(); ++i) {
        if (plan.calls[i].persistent && plan.calls[i].again < 0) {
            requests.push_back(plan.calls[i]);
            requests.back().again = static_cast<int>(i);
        }
    }
    if (requests.empty() || random.once_in(2)) {
        return {};
    }
    PlannedCall call = requests[random.below(static_cast<unsigned>(requests.size()))];
    call.salt = random.below(1000);
    return call;
}

void draw_calls(Random &random, Plan &plan)
{
    for (unsigned left = 1 + random.below(6); left > 0; --left) {
        const std::optional<PlannedCall> again = some_call_again(random, plan);
        plan.calls.push_back(again ? *again : some_call(random, plan));
    }
    PlannedCall &last = plan.calls.back();
    if (plan.settings.check == HETCOLL_CHECK_ON && last.again < 0 && random.once_in(20)) {
        last.differs = static_cast<int>(random.below(static_cast<unsigned>(plan.ranks)));
    }
}

void draw_driver_fault(Random &random, Plan &plan)
{
    constexpr std::array<const char *, 28> kCalls = {"cuMemAlloc",
                                                     "cuMemHostAlloc",
                                                     "cuMemcpyHtoDAsync",
                                                     "cuMemcpyDtoHAsync",
                                                     "cuMemcpyDtoDAsync",
                                                     "cuMemcpyAsync",
                                                     "cuLaunchKernel",
                                                     "cuEventRecord",
                                                     "cuEventQuery",
                                                     "cuEventCreate",
                                                     "cuStreamCreate",
                                                     "cuStreamCreateWithPriority",
                                                     "cuStreamWaitEvent",
                                                     "cuStreamQuery",
                                                     "cuIpcGetMemHandle",
                                                     "cuIpcOpenMemHandle",
                                                     "cuPointerGetAttributes",
                                                     "cuPointerGetAttribute",
                                                     "cuCtxPushCurrent",
                                                     "cuModuleLoadData",
                                                     "cuMemAllocManaged",
                                                     "cuCtxSetCurrent",
                                                     "cuMemRetainAllocationHandle",
                                                     "cuMemExportToShareableHandle",
                                                     "cuMemImportFromShareableHandle",
                                                     "cuMemAddressReserve",
                                                     "cuMemMap",
                                                     "cuMemSetAccess"};
    constexpr std::array<const char *, 5> kCodes = {"2", "700", "709", "719", "999"};
    const unsigned number = 1 + random.below(20);
    const std::string nth = (random.once_in(4) ? "+" : "") + std::to_string(number);
    const std::string code = random.of(kCodes), call = random.of(kCalls);
    plan.driver_fault = call + ":" + nth + ":" + code;
    plan.trouble_turn = random.below(4000);
    plan.about += ", " + plan.driver_fault + " at turn " + std::to_string(plan.trouble_turn);
}

void draw_trouble(Random &random, Plan &plan)
{
    switch (plan.trouble) {
    case Trouble::kNone: break;
    case Trouble::kDriver: draw_driver_fault(random, plan); break;
    case Trouble::kDeath:
        plan.dying_rank = static_cast<int>(random.below(static_cast<unsigned>(plan.ranks)));
        plan.trouble_turn = random.below(20000);
        plan.about += ", rank " + std::to_string(plan.dying_rank) + " dies at turn " +
                      std::to_string(plan.trouble_turn);
        break;
    case Trouble::kMessage:
        plan.failing_send = static_cast<int>(1 + random.below(10));
        plan.trouble_turn = random.below(10000);
        plan.about += ", a message fails";
        break;
    case Trouble::kMemory:
        plan.hungry_rank = static_cast<int>(random.below(static_cast<unsigned>(plan.ranks)));
        plan.trouble_turn = random.below(1000);
        plan.blocks = random.once_in(2) ? Blocks::kAll : Blocks::kSmall;
        plan.failing_allocation = static_cast<int>(1 + random.below(100));
        plan.hungry_turns = random.once_in(3) ? 200000 : random.below(4000);
        plan.about += ", rank " + std::to_string(plan.hungry_rank) + " has no memory for " +
                      std::to_string(plan.hungry_turns) + " turns from turn " +
                      std::to_string(plan.trouble_turn) + ", allocation " +
                      std::to_string(plan.failing_allocation) + ", on";
        break;
    }
}

// The symbol of a library that ranks have loaded, or of the program.
void draw_modes(Random &random, Plan &plan)
{
    const bool some = random.once_in(3);
    for (int rank = 0; rank < plan.ranks; ++rank) {
        plan.modes.emplace_back();
        if (some && random.once_in(2)) {
            const auto mode = random.below(std::size(kFloatModes));
            plan.modes.back() = kFloatModes[mode];
            plan.about += ", rank " + std::to_string(rank) + " has " + kFloatModeNames[mode];
        }
    }
}

void draw_environment(Random &random, Plan &plan)
{
    constexpr std::array<const char *, 4> kVisible = {nullptr, "", "-1", "0"};
    plan.visible_devices = random.of(kVisible);
    plan.environment_turn = random.below(8000);
}

} // namespace

Plan draw_plan(Random &random)
{
    Plan plan;
    plan.trouble = some_trouble(random);
    plan.tolerant = random.once_in(2);
    draw_ranks(random, plan);
    plan.settings = some_settings(random, plan.trouble);
    plan.about = std::to_string(plan.ranks) + " ranks, " + std::to_string(plan.devices) +
                 " GPUs, " + plan.settings.algorithm + (plan.tolerant ? ", tolerant" : "");
    plan.hostile = !random.once_in(3);
    place_ranks(random, plan);
    draw_calls(random, plan);
    draw_trouble(random, plan);
    draw_modes(random, plan);
    draw_environment(random, plan);
    return plan;
}

} // namespace hetcoll::test
