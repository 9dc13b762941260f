#include "tools/job_table.h"

#include "machine/topology_links.h"
#include "tuning/common_table.h"

#include <numeric>
#include <utility>

namespace hetcoll {
namespace {

// The rules that a job would use in place of those of --machine.
std::string print_job(const Result<Table> &job)
{
    if (!job.ok()) {
        return "ignores the table: " + job.status().message();
    }
    return "takes those for " + (job->machine().empty() ? "every machine" : job->machine());
}

} // namespace

Result<JobTable> table_of_job(const TableFile &file, const std::string &machine,
                              const std::vector<Topology> &nodes, const std::string &driver)
{
    std::vector<Fingerprint> machines;
    for (const Topology &node : nodes) {
        machines.push_back(fingerprint_of(node, driver));
    }
    if (!nodes.empty() && machine.empty()) {
        Result<Table> job = common_table(file, machines);
        return job.ok() ? JobTable{std::move(*job), ""}
                        : JobTable{{}, "a job ignores it: " + job.status().message()};
    }
    Result<Table> named = Table::select_named(file, machine);
    if (!named.ok()) {
        return named.take_status();
    }
    std::string note;
    if (nodes.empty() && machine.empty() && !named->machine().empty()) {
        note = "rules for " + named->machine() +
               ", which a job takes on that machine alone: name this one with --topology";
    } else if (!nodes.empty()) {
        const Result<Table> job = common_table(file, machines);
        if (!job.ok() || job->hash() != named->hash()) {
            note = "rules for " + machine + ", as --machine says; a job on such a machine " +
                   print_job(job);
        }
    }
    return JobTable{std::move(*named), std::move(note)};
}

Result<JobTable> table_of_call(const TableFile &file, const std::string &machine,
                               const Query &query, const Topology *topology,
                               const std::string &driver)
{
    std::vector<Topology> nodes;
    if (topology != nullptr) {
        std::vector<int> used(static_cast<std::size_t>(most_gpus_on_a_node(query)));
        std::iota(used.begin(), used.end(), 0);
        Result<Topology> node = fragment(*topology, used);
        if (!node.ok()) {
            return node.take_status();
        }
        nodes.push_back(std::move(*node));
    }
    return table_of_job(file, machine, nodes, driver);
}

} // namespace hetcoll
