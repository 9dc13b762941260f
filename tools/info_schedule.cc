#include "tools/info_schedule.h"

#include "measure/command_line.h"
#include "schedule/print.h"
#include "schedule/verify.h"

namespace hetcoll {
namespace {

// By which an algorithm cuts the vector, unless --bytes says it.
constexpr std::size_t kBytes = std::size_t{1} << 20;
// The proof runs all blocks of all ranks: seconds up to this number, and then minutes.
constexpr int kMostRanks = 1024;
constexpr int kMostParticipants = 1 << 20; // with aggregators

// "rank 3", "aggregator 4": what takes part.
std::string participant(const AllSchedules &all, int who)
{
    const bool is_rank = all.contract.ranks == 0 || who < all.contract.ranks;
    return (is_rank ? "rank " : "aggregator ") + std::to_string(who);
}

// The ranks' data at the end.
std::string result_of(const Contract &contract)
{
    const std::string root = "rank " + std::to_string(contract.root);
    switch (contract.last) {
    case Holders::kOwner: return "every rank ends with its share of the sum";
    case Holders::kRoot: return root + " ends with the sum";
    case Holders::kEveryRank: break;
    }
    switch (contract.first) {
    case Holders::kOwner: return "every rank ends with the shares of all";
    case Holders::kRoot: return "every rank ends with the vector of " + root;
    case Holders::kEveryRank: break;
    }
    return std::string("every rank ends with the same bits of the sum") +
           (contract.in_rank_order ? ", added in the order of the ranks" : "");
}

std::string title_of(const ScheduleRequest &request, const CallRequest &call, const Query &query,
                     const std::string &how)
{
    const bool rooted = call.collective == "bcast" || call.collective == "reduce";
    std::string title = call.collective + " by " + request.name + ", " +
                        std::to_string(query.ranks) + (query.ranks == 1 ? " rank" : " ranks");
    if (query.nodes > 1) {
        title += " on " + std::to_string(query.nodes) + " nodes";
    }
    return title + (rooted ? ", root " + std::to_string(request.root) : "") +
           (how.empty() ? "" : ": " + how);
}

} // namespace

void add_schedule_options(CommandLine &line, ScheduleRequest &request, CallRequest &call)
{
    line.add_option("ALGORITHM", request.name,
                    "hetcoll's, such as ring; for another --collective pipeline, direct, binomial "
                    "or trees")
        .required()
        .type_name("");
    line.add_option("--rank", request.rank, "the steps of this rank only")
        .check(whole_number(0, kMostParticipants))
        .type_name("R");
    line.add_option("--root", request.root, "of bcast and reduce (0)")
        .check(whole_number(0, kMostParticipants))
        .type_name("R");
    add_call_options(line, call, {"allreduce", "bcast", "reduce", "allgather", "reduce_scatter"});
}

Status check_schedule(const CommandLine &line, const ScheduleRequest &request,
                      const CallRequest &call)
{
    if (Status status = check_collective(line, call); !status.ok()) {
        return status;
    }
    Result<Query> query = parse_call(call);
    if (!query.ok()) {
        return query.take_status();
    }
    if (query->ranks > kMostRanks) {
        return error(Errc::kInvalid, "%d ranks are too many for a proof: write %d at most",
                     query->ranks, kMostRanks);
    }
    if (call.bytes.size() > 1) {
        return error(Errc::kInvalid, "a schedule is for one size of the vector, --bytes has %zu",
                     call.bytes.size());
    }
    if (request.root >= query->ranks) {
        return error(Errc::kInvalid, "--root %d is no rank: %d ranks are 0 to %d", request.root,
                     query->ranks, query->ranks - 1);
    }
    return check_schedule_name(request.name, call.collective);
}

Proved print_and_prove(const AllSchedules &all, const std::string &title, int rank)
{
    Proved shown{.text = title + "\n"};
    std::size_t steps = 0;
    for (int who = 0; who < static_cast<int>(all.schedules.size()); ++who) {
        const Schedule &schedule = all.schedules[static_cast<std::size_t>(who)];
        steps += schedule.steps.size();
        if (rank < 0 || rank == who) {
            shown.text += "\n" + participant(all, who) + ": " + print_schedule(schedule);
        }
    }
    const Status status = verify_schedules(all.schedules, all.contract);
    shown.ok = status.ok();
    shown.text += status.ok()
                      ? format("\nproved: no race and no deadlock in all %zu steps, and ", steps) +
                            result_of(all.contract) + "\n"
                      : "\nWRONG: " + status.message() + "\n";
    return shown;
}

Result<Proved> show_schedule(const ScheduleRequest &request, const CallRequest &call,
                             const Topology *topology)
{
    Result<Query> query = parse_call(call);
    if (!query.ok()) {
        return query.take_status();
    }
    query->bytes = call.bytes.empty() ? kBytes : call.bytes.front();
    Result<AllSchedules> all = build_all(request.name, call, *query, topology, request.root);
    if (!all.ok()) {
        return all.take_status();
    }
    if (const int count = static_cast<int>(all->schedules.size()); request.rank >= count) {
        return error(Errc::kInvalid, "--rank %d does not take part: %d participants are 0 to %d",
                     request.rank, count, count - 1);
    }
    return print_and_prove(*all, title_of(request, call, *query, all->how), request.rank);
}

} // namespace hetcoll
