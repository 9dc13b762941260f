// Prints a violation in words.
#include "state.h"

#include <cstdio>
#include <unistd.h>

namespace model {

std::string name_of(std::uintptr_t address)
{
    char text[32];
    const Region *const region = region_of(address);
    if (region != nullptr) {
        std::snprintf(text, sizeof text, "+%zu", address - region->first);
        return region->name + text;
    }
    std::snprintf(text, sizeof text, "%#zx", address);
    return text;
}

// FILE:LINE of the call before pc. Requires a program that is not position independent.
std::string line_of(const void *pc)
{
    char command[100];
    std::snprintf(command, sizeof command, "addr2line -e /proc/%d/exe -s %p 2>/dev/null",
                  static_cast<int>(getpid()),
                  static_cast<const void *>(static_cast<const char *>(pc) - 1));
    std::string line;
    if (FILE *const pipe = popen(command, "r")) {
        for (int c = std::fgetc(pipe); c != EOF && c != '\n'; c = std::fgetc(pipe)) {
            line += static_cast<char>(c);
        }
        pclose(pipe);
    }
    return line.empty() ? "?" : line;
}

namespace {

constexpr std::size_t kMostLines = 60; // of a trace, the last ones

std::string text_of(const Event &event)
{
    static const char *const orders[] = {"relaxed", "consume", "acquire",
                                         "release", "acq_rel", "seq_cst"};
    const std::string thread = "thread " + std::to_string(event.thread) + ": ";
    if (!event.text.empty()) {
        return thread + event.text;
    }
    const Operation &op = event.operation;
    const char *const kind = op.kind == Kind::kLoad    ? "load "
                             : op.kind == Kind::kStore ? "store "
                             : op.kind == Kind::kFence ? "fence "
                                                       : "rmw ";
    std::string text = thread + kind + orders[op.order & 7];
    if (op.kind != Kind::kFence) {
        text += " " + name_of(op.address) + " = " + std::to_string(event.value);
    }
    return text + (event.stale ? " [not the newest]" : "") + "  (" + line_of(op.pc) + ")";
}

} // namespace

void violation(const std::string &what)
{
    if (state.failed) {
        return;
    }
    state.failed = true;
    state.exploring = false;
    state.report->ok = false;
    state.report->what = what;
    const std::size_t count = state.events.size();
    for (std::size_t i = count > kMostLines ? count - kMostLines : 0; i < count; ++i) {
        state.report->trace.push_back(text_of(state.events[i]));
    }
}

void violation_in_thread(const std::string &what)
{
    violation(what);
    leave_thread();
}

} // namespace model
