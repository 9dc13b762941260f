#include "engine/communicator/warnings.h"

namespace hetcoll {

void say_split_machine(Process &process, const NodeGroup &group,
                       std::span<const hetcoll_facts> facts)
{
    if (group.all().rank != 0 || process.place().has_node_word()) {
        return;
    }
    for (const hetcoll_facts &other : facts) {
        if (other.identity.machine == facts[0].identity.machine &&
            other.identity.host != facts[0].identity.host &&
            process.notices().first_time(Notice::kSplitMachine)) {
            log(process.log(), 0,
                "hetcoll: ranks on one machine are in different containers or namespaces, so data "
                "between their GPUs goes through messages, which is slower: start the containers "
                "with the host's PID and IPC namespaces and /dev/shm (--pid=host --ipc=host), or "
                "set coll_hetcoll_node to a word of its own for each to keep it so");
            return;
        }
    }
}

void say_what_differs(Process &process, const NodeGroup &group, const AgreedSettings &agreed)
{
    if (group.all().rank != 0) {
        return;
    }
    const hetcoll_facts &facts = agreed.facts();
    if (group.settings_differ()) {
        log(process.log(), 0,
            "hetcoll: the ranks of a communicator set coll_hetcoll_algorithm or "
            "coll_hetcoll_chunk_bytes, or its info keys, to different values while the program "
            "ran, so hetcoll chooses there%s: set the same on every rank before its first "
            "MPI_Allreduce",
            facts.reproducible != 0 ? ", in the order of the ranks" : "");
    }
    const auto say = [&process](bool differs, Notice notice, const Log &to, const char *text) {
        if (differs && process.notices().first_time(notice)) {
            log(to, 0, "%s", text);
        }
    };
    say(facts.tuning_table_differs != 0, Notice::kTablesDiffer, process.node_log(),
        "hetcoll ignores its tuning table and chooses algorithms by price: the ranks of this "
        "communicator "
        "have not all read the same one; put the same file where coll_hetcoll_tuning_table points "
        "on every node, or set it to none (coll_hetcoll_verbose 1 says what a rank could not "
        "read)");
    say(facts.aggregators_differs != 0, Notice::kAggregatorsDiffer, process.log(),
        "hetcoll uses no aggregators: the ranks of this communicator have different "
        "coll_hetcoll_aggregators, _window or _copy, or some could not read the key; set the same "
        "on every rank");
    say(facts.fixed_point_differs != 0, Notice::kFixedPointDiffers, process.log(),
        "hetcoll adds floats as usual: the ranks of this communicator have different "
        "coll_hetcoll_fixed_point; set the same on every rank");
    say(facts.adapters_differs != 0, Notice::kAdaptersDiffer, process.log(),
        "hetcoll uses no network adapters on a node: the ranks of this communicator have different "
        "coll_hetcoll_adapters; set the same on every rank");
}

void say_page_problem(Process &process, NodeGroup &group)
{
    static_assert(ControlPage::kSlotPayloadBytes == 1024);
    const char *const what =
        group.uses_pages()
            ? "ranks of a node sum vectors of more than 1024 bytes piece by piece"
            : "ranks of a node do without shared memory and exchange messages instead";
    if (const Status problem = group.problem().take(); !problem.ok()) {
        log(process.log(), process.notices().first_time(Notice::kWithoutPage) ? 0 : 1,
            "hetcoll: %s: %s", what, problem.message().c_str());
    }
    if (group.problem().take_shortage() && process.notices().first_time(Notice::kShmSpent)) {
        log(process.log(), 1,
            "hetcoll: %s on communicator %u: the pages of a job take at most half of what was "
            "free in /dev/shm, %zu bytes of each process here; free communicators, or enlarge "
            "/dev/shm (docker run --shm-size)",
            what, group.all().comm_id, process.shm_budget().limit());
    }
}

} // namespace hetcoll
