#include "schedule/print.h"

#include "base/counted.h"
#include "schedule/cost.h"

#include <cstdio>

namespace hetcoll {
namespace {

// "0" or "0-3"; error messages describe impossible ranges too.
std::string numbers(BlockRange blocks)
{
    const std::int64_t last = std::int64_t{blocks.first} + blocks.count - 1;
    const std::string first = std::to_string(blocks.first);
    return blocks.count == 1 ? first : first + "-" + std::to_string(last);
}

std::string print_after(const Schedule &schedule, const Step &step)
{
    std::string text;
    for (const int index : schedule.after_of(step)) {
        text += (text.empty() ? "" : " ") + std::to_string(index);
    }
    return text.empty() ? "-" : text;
}

} // namespace

const char *step_kind_name(StepKind kind) noexcept
{
    switch (kind) {
    case StepKind::kSend: return "send";
    case StepKind::kRecv: return "recv";
    case StepKind::kRecvReduce: return "recv_reduce";
    }
    return "unknown";
}

std::string describe(BlockRange blocks)
{
    return (blocks.count == 1 ? "block " : "blocks ") + numbers(blocks);
}

std::string describe(const Step &step)
{
    return std::string(step_kind_name(step.kind)) + " " + describe(step.blocks) +
           (step.kind == StepKind::kSend ? " to rank " : " from rank ") + std::to_string(step.peer);
}

std::string print_schedule(const Schedule &schedule)
{
    const ScheduleCost cost = cost_of(schedule);
    std::string text = counted(schedule.block_count, "block") + ", " +
                       counted(schedule.steps.size(), "step") + ": sends " +
                       counted(cost.messages_sent, "message") + " with " +
                       counted(cost.blocks_sent, "block") + ", reduces " +
                       counted(cost.blocks_reduced, "block") + "\n";
    if (schedule.steps.empty()) {
        return text;
    }
    const bool channels = schedule.channel_count > 1;
    text += channels ? "step  channel  kind         peer  blocks     operand  after\n"
                     : "step  kind         peer  blocks     operand  after\n";
    int index = 0;
    for (const Step &step : schedule.steps) {
        // A plain receive has no operand.
        const char *operand = step.kind == StepKind::kRecv ? "-"
                              : step.from_input            ? "input"
                                                           : "result";
        const char *kind = !step.fused                    ? step_kind_name(step.kind)
                           : step.kind == StepKind::kSend ? "  +send"
                                                          : "  +reduce";
        char line[80];
        char channel[16] = "";
        if (channels) {
            std::snprintf(channel, sizeof channel, "%7d  ", step.channel);
        }
        std::snprintf(line, sizeof line, "%4d  %s%-11s  %4d  %-9s  %-7s  ", index++, channel, kind,
                      step.peer, numbers(step.blocks).c_str(), operand);
        text += line + print_after(schedule, step) + "\n";
    }
    return text;
}

} // namespace hetcoll
