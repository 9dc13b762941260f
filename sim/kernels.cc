#include "sim/kernels.h"

#include "price/meeting_time.h"
#include "price/rank_plans.h"
#include "sim/gpu_host.h"

#include <utility>

namespace hetcoll {
namespace {

// One kernel on each rank of a node, or on one of them. Its reads and writes move at
// the same time.
class KernelRun {
public:
    KernelRun(const Cluster &cluster, const Ranks &ranks, const SimCall &call, Algorithm algorithm)
        : cluster_(cluster), ranks_(ranks), algorithm_(algorithm), size_(ranks.size()),
          bytes_(static_cast<double>(call.bytes)),
          meeting_us_(call.meetings ? meeting_us(cluster, ranks) : 0), most_s_(call.most_s)
    {
    }

    Result<ChildOutcome> run()
    {
        Result<Platform> machine =
            build_platform(cluster_, {.shares = true, .mapped_latency_us = 0});
        if (!machine.ok()) {
            return machine.take_status();
        }
        std::vector<SimActor> actors;
        for (int rank = 0; rank < size_; ++rank) {
            actors.push_back(
                {gpu_host(machine->host_of, ranks_, rank),
                 [this, rank](Activities &activities) { run_rank(rank, activities); }});
        }
        return run_in_child(*machine, actors, most_s_);
    }

private:
    void run_rank(int rank, Activities &activities) const
    {
        const bool leads = has(algorithm_, Trait::kLeads);
        const double launch_us =
            launches_us(ranks_.query.links, leads ? 1 : ranks_.query.ranks_per_gpu);
        activities.sleep_us(meeting_us_);
        if (has(algorithm_, Trait::kCopiesIn)) {
            activities.sleep_us(launch_us);
            activities.work(2 * bytes_, 0);
            static_cast<void>(activities.wait());
        }
        if (!leads || rank == 0) {
            const bool writes_all = !row_of(algorithm_).has(Trait::kOwnResult);
            activities.sleep_us(launch_us + many_vectors_us(size_) +
                                (writes_all ? kRemoteWriteUs : 0));
            const double share = has(algorithm_, Trait::kByShares) ? bytes_ / size_ : bytes_;
            int begun = 0;
            for (int writes = 0; writes < (writes_all ? 2 : 1); ++writes) {
                for (int distance = 1; distance < size_; ++distance, ++begun) {
                    const int peer = (rank + distance) % size_;
                    activities.copy(writes != 0 ? rank : peer, writes != 0 ? peer : rank, share, 0);
                }
            }
            activities.work(writes_all ? 2 * bytes_ : (size_ + 1) * bytes_, 0);
            for (++begun; begun > 0; --begun) {
                static_cast<void>(activities.wait());
            }
        }
        activities.sleep_us(meeting_us_);
    }

    const Cluster &cluster_;
    const Ranks &ranks_;
    Algorithm algorithm_;
    int size_;
    double bytes_, meeting_us_, most_s_;
};

// Copies out, a sum on each node, an exchange of the nodes' leaders, copies in.
class HostRun {
public:
    HostRun(const Cluster &cluster, const Ranks &ranks, const SimCall &call)
        : cluster_(cluster), ranks_(ranks), call_(call)
    {
    }

    Result<ChildOutcome> run()
    {
        Result<Platform> machine = build_platform(cluster_, {.path = MessagePath::kHost});
        if (!machine.ok()) {
            return machine.take_status();
        }
        std::vector<SimActor> actors;
        for (int node = 0; node < cluster_.node_count(); ++node) {
            const int leader = group(node).front().front();
            actors.push_back(
                {gpu_host(machine->host_of, ranks_, leader),
                 [this, node](Activities &activities) { run_node(node, activities); }});
        }
        return run_in_child(*machine, actors, call_.most_s);
    }

private:
    [[nodiscard]] const NodeGroups &group(int node) const
    {
        return ranks_.groups.nodes[static_cast<std::size_t>(node)];
    }

    void run_node(int node, Activities &activities) const
    {
        const Query &query = ranks_.query;
        std::size_t ranks = 0;
        for (const GpuGroup &gpu : group(node)) {
            ranks += gpu.size();
        }
        const LeaderTimes times =
            leader_times(query.links, ranks, query.ranks_per_gpu, call_.bytes);
        activities.sleep_us(times.before_us);
        run_to_end(SimRank(leader_plan(node, cluster_.node_count(), call_.bytes,
                                       call_.element_bytes, cluster_.kind_of(node).memory_gbps)),
                   activities);
        activities.sleep_us(times.after_us);
    }

    const Cluster &cluster_;
    const Ranks &ranks_;
    const SimCall &call_;
};

} // namespace

Result<ChildOutcome> run_kernels(const Cluster &cluster, const Ranks &ranks, const SimCall &call,
                                 Algorithm algorithm)
{
    return is(algorithm, Form::kHost) ? HostRun(cluster, ranks, call).run()
                                      : KernelRun(cluster, ranks, call, algorithm).run();
}

} // namespace hetcoll
