#include "tools/info_live.h"

#include "base/counted.h"
#include "measure/command_line.h"
#include "measure/json_document.h"
#include "tools/info_call.h"
#include "tools/live_pages.h"

#include <unistd.h>

namespace hetcoll {
namespace {

constexpr int kMostPid = 1 << 22; // of Linux

const char *state_name(ProcessState state) noexcept
{
    switch (state) {
    case ProcessState::kRuns: return "runs";
    case ProcessState::kSleeps: return "sleeps";
    case ProcessState::kStopped: return "stopped";
    case ProcessState::kDied: return "died";
    case ProcessState::kGone: return "ended";
    case ProcessState::kUnknown: return "unknown";
    }
    return "";
}

std::string host_name()
{
    char name[256] = "";
    gethostname(name, sizeof name - 1);
    return name;
}

std::vector<int> ranks_behind(const LivePage &page)
{
    std::vector<int> behind;
    const std::uint32_t last = page.last_meeting();
    for (const LiveRank &rank : page.here) {
        if (LivePage::is_behind(rank.meeting, last)) {
            behind.push_back(rank.rank);
        }
    }
    return behind;
}

std::string call_text(const LiveRank &rank)
{
    if (rank.meeting == 0) {
        return "none yet";
    }
    return rank.call ? describe(*rank.call).text : "unreadable";
}

std::string print(const LivePage &page, const std::string &host)
{
    std::string text = format("communicator %u: %s, %zu of them here on %s", page.comm_id,
                              counted(static_cast<std::size_t>(page.ranks), "rank").c_str(),
                              page.here.size(), host.c_str());
    const std::vector<int> behind = ranks_behind(page);
    for (std::size_t i = 0; i < behind.size(); ++i) {
        text += format(
            "%s%d", i == 0 ? (behind.size() == 1 ? "; missing rank " : "; missing ranks ") : ", ",
            behind[i]);
    }
    text += format("\n%8s %8s %-8s %10s %10s %9s  %s\n", "rank", "pid", "process", "meeting",
                   "call", "looked_s", "last call");
    for (const LiveRank &rank : page.here) {
        const std::string looked = rank.looked_s_ago ? format("%.1f", *rank.looked_s_ago) : "-";
        text += format("%8d %8d %-8s %10u %10u %9s  %s\n", rank.rank, rank.process.pid,
                       state_name(rank.state), rank.meeting, rank.call_number, looked.c_str(),
                       call_text(rank).c_str());
    }
    return text;
}

Json json_of(const LiveRank &rank)
{
    Json json{{"rank", rank.rank},
              {"pid", rank.process.pid},
              {"state", state_name(rank.state)},
              {"meeting", rank.meeting},
              {"call", rank.call_number}};
    if (rank.looked_s_ago) {
        json["looked_s"] = *rank.looked_s_ago;
    }
    if (rank.meeting != 0 && rank.call) {
        json["collective"] = collective_of(*rank.call);
        json["bytes"] = bytes_of(*rank.call);
        json["type"] = type_of(*rank.call);
        json["op"] = op_of(*rank.call);
        json["root"] = rank.call->root();
    }
    return json;
}

std::string print_json(const LivePage &page, const std::string &host)
{
    Json json{{"schema", kJsonSchema},          {"host", host},
              {"communicator", page.comm_id},   {"ranks", page.ranks},
              {"meeting", page.last_meeting()}, {"missing", ranks_behind(page)},
              {"here", Json::array()}};
    for (const LiveRank &rank : page.here) {
        json["here"].push_back(json_of(rank));
    }
    return json.line() + "\n";
}

} // namespace

void add_live_options(CommandLine &line, LiveRequest &request)
{
    line.add_option("PID", request.pid, "of this process only, not of all processes of this user")
        .check(whole_number(1, kMostPid))
        .type_name("");
}

Result<std::string> show_live(const LiveRequest &request)
{
    Result<std::vector<LivePage>> pages =
        find_live_pages(request.pid != 0 ? std::optional(request.pid) : std::nullopt);
    if (!pages.ok()) {
        return pages.take_status();
    }
    const std::string host = host_name();
    std::string text;
    for (const LivePage &page : *pages) {
        text += request.json ? print_json(page, host) : print(page, host);
    }
    return text;
}

} // namespace hetcoll
