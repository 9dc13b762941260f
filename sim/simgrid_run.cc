// SimGrid's S4U: an actor for each rank. Its defaults model TCP over a wide area network; what
// is set here makes a transfer take latency plus bytes over the slowest link, no more.
#include "sim/simgrid_run.h"

#include "sim/simgrid_names.h"

#include <simgrid/s4u.hpp>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace hetcoll {
namespace {

namespace sg = simgrid::s4u;
namespace names = simgrid_names;

constexpr double kBytesPerGb = 1e9, kSecondsPerUs = 1e-6;

class SimGridEngine {
public:
    SimGridEngine()
    {
        static std::string words[] = {
            "hetcoll_sim",
            "--log=root.threshold:warning",
            "--cfg=network/model:CM02",
            "--cfg=network/bandwidth-factor:1",
            "--cfg=network/latency-factor:1",
            "--cfg=network/crosstraffic:0",  // full duplex: acknowledgements cost nothing
            "--cfg=network/TCP-gamma:0",     // no window that bounds a transfer by its latency
            "--cfg=network/weight-S:0",      // latency takes no share of a link
            "--cfg=contexts/stack-size:128", // KiB
        };
        static std::vector<char *> argv;
        for (std::string &word : words) {
            argv.push_back(word.data());
        }
        int argc = static_cast<int>(argv.size());
        argv.push_back(nullptr);
        engine_ = std::make_unique<sg::Engine>(&argc, argv.data());
    }
    void run() { engine_->run(); }
    [[nodiscard]] const sg::Engine &of_simgrid() const { return *engine_; }

private:
    std::unique_ptr<sg::Engine> engine_;
};

class Zones {
public:
    Zones(const SimGridEngine &engine, const Platform &platform)
        : engine_(engine.of_simgrid()), platform_(platform)
    {
        root_ = names::add_star(engine_, nullptr, "cluster");
        for (const SimRack &rack : platform.racks) {
            add_rack(rack);
        }
        for (const SimNode &node : platform.nodes) {
            add_node(node);
        }
        for (sg::NetZone *rack : racks_) {
            rack->seal();
        }
        root_->seal();
    }

    std::vector<sg::Host *> hosts;
    std::unordered_map<const sg::Link *, int> number_of; // links that some route crosses

private:
    using Route = names::Route;

    void add_rack(const SimRack &rack)
    {
        const std::string name = "rack" + std::to_string(racks_.size());
        sg::NetZone *zone = names::add_star(engine_, root_, name);
        auto *gateway = names::add_gateway(zone, name);
        const Route out = route(root_, rack.out); // links in the order of their routes
        names::connect(root_, zone, gateway, out, route(root_, rack.in));
        racks_.push_back(zone);
    }

    void add_node(const SimNode &node)
    {
        const std::string name = "node" + std::to_string(nodes_++);
        sg::NetZone *around = node.rack < 0 ? root_ : racks_[static_cast<std::size_t>(node.rack)];
        sg::NetZone *zone = names::add_full(around, name);
        auto *gateway = names::add_router(zone, name + ".gateway");
        const std::size_t first = hosts.size();
        for (std::size_t i = 0; i < node.hosts.size(); ++i) {
            const SimHost &host = node.hosts[i];
            auto *made =
                names::add_host(zone, name + "." + std::to_string(i), host.gbps * kBytesPerGb);
            made->seal();
            hosts.push_back(made);
            if (!host.out.empty()) { // else nothing leaves the node
                names::add_route(zone, made->get_netpoint(), gateway, route(zone, host.out));
                names::add_route(zone, gateway, made->get_netpoint(), route(zone, host.in));
            }
        }
        for (const SimNode::Local &local : node.local) {
            names::add_route(zone,
                             hosts[first + static_cast<std::size_t>(local.from)]->get_netpoint(),
                             hosts[first + static_cast<std::size_t>(local.to)]->get_netpoint(),
                             route(zone, local.path));
        }
        names::connect(around, zone, gateway, Route{}, Route{});
        zone->seal();
    }

    // Links are made by the first route that crosses them.
    Route route(sg::NetZone *zone, const LinkPath &path)
    {
        Route made;
        links_.resize(platform_.links.size());
        for (const int number : path) {
            sg::Link *&link = links_[static_cast<std::size_t>(number)];
            if (link == nullptr) {
                const SimLink &known = platform_.links[static_cast<std::size_t>(number)];
                link = names::add_link(zone, "link" + std::to_string(number),
                                       known.gbps * kBytesPerGb);
                link->set_latency(known.latency_us * kSecondsPerUs);
                if (known.flows > 0) {
                    link->set_concurrency_limit(known.flows);
                }
                link->seal();
                number_of[link] = number;
            }
            made.emplace_back(link);
        }
        return made;
    }

    const sg::Engine &engine_;
    const Platform &platform_;
    sg::NetZone *root_ = nullptr;
    std::vector<sg::NetZone *> racks_;
    std::vector<sg::Link *> links_;
    int nodes_ = 0;
};

// Transfers of one pair and channel end in the order in which they began, so an actor waits for the
// first one of each only: waiting for all of them costs more than the simulation.
class Actor : public Activities {
public:
    Actor(int self, const std::vector<sg::Host *> &host_of, std::uint64_t &transfers)
        : self_(self), host_of_(host_of), transfers_(transfers)
    {
    }

    void send(int peer, int channel, double bytes, int token) override
    {
        ++transfers_;
        Queue &queue = queue_of(peer, channel, Direction::kSend);
        add(queue, queue.box->put_async(&nothing_, whole(bytes)), token);
    }
    void receive(int peer, int channel, int token) override
    {
        Queue &queue = queue_of(peer, channel, Direction::kReceive);
        add(queue, queue.box->get_async<void>(&nowhere_), token);
    }
    void copy(int from, int to, double bytes, int token) override
    {
        ++transfers_;
        wait_for(sg::Comm::sendto_async(host_of_[static_cast<std::size_t>(from)],
                                        host_of_[static_cast<std::size_t>(to)], whole(bytes)),
                 token, nullptr);
    }
    void work(double bytes, int token) override
    {
        wait_for(sg::this_actor::exec_async(bytes), token, nullptr);
    }

    int wait() override
    {
        const std::size_t ended = names::wait_any(running_);
        const auto [token, queue] = known_[ended];
        if (queue != nullptr && !queue->behind.empty()) {
            running_[ended] = std::move(queue->behind.front().first);
            known_[ended].first = queue->behind.front().second;
            queue->behind.pop_front();
            return token;
        }
        if (queue != nullptr) {
            queue->has_first = false;
        }
        running_[ended] = std::move(running_.back());
        known_[ended] = known_.back();
        running_.pop_back();
        known_.pop_back();
        return token;
    }
    void sleep_us(double us) override
    {
        if (us > 0) {
            sg::this_actor::sleep_for(us * kSecondsPerUs);
        }
    }

private:
    struct Queue {
        sg::Mailbox *box = nullptr;
        bool has_first = false;                             // which is in running_
        std::deque<std::pair<sg::ActivityPtr, int>> behind; // with their tokens
    };

    // A transfer of nothing never ends.
    static std::uint64_t whole(double bytes)
    {
        return static_cast<std::uint64_t>(std::max(bytes, 1.0));
    }
    void add(Queue &queue, sg::ActivityPtr activity, int token)
    {
        if (queue.has_first) {
            queue.behind.emplace_back(std::move(activity), token);
            return;
        }
        queue.has_first = true;
        wait_for(std::move(activity), token, &queue);
    }
    void wait_for(sg::ActivityPtr activity, int token, Queue *queue)
    {
        running_.push_back(std::move(activity));
        known_.emplace_back(token, queue);
    }
    enum class Direction : std::uint8_t { kReceive, kSend };
    Queue &queue_of(int peer, int channel, Direction direction)
    {
        const bool sends = direction == Direction::kSend;
        const std::uint64_t key = std::uint64_t{static_cast<std::uint32_t>(peer)} << 10 |
                                  static_cast<unsigned>(channel) << 1 | (sends ? 1U : 0U);
        Queue &queue = queues_[key];
        if (queue.box == nullptr) {
            const int from = sends ? self_ : peer, to = sends ? peer : self_;
            queue.box = sg::Mailbox::by_name(std::to_string(from) + ">" + std::to_string(to) + "/" +
                                             std::to_string(channel));
        }
        return queue;
    }

    inline static char nothing_;
    inline static void *nowhere_;
    int self_;
    const std::vector<sg::Host *> &host_of_;
    std::uint64_t &transfers_;
    std::unordered_map<std::uint64_t, Queue> queues_; // its elements stay where they are
    std::vector<sg::ActivityPtr> running_;
    std::vector<std::pair<int, Queue *>> known_; // token and queue of each
};

} // namespace

SimOutcome run_simgrid(const Platform &platform, const std::vector<SimActor> &actors)
{
    SimGridEngine engine;
    const Zones zones(engine, platform);
    SimOutcome outcome;
    std::size_t ended = 0;
    std::vector<sg::Host *> host_of;
    for (const SimActor &actor : actors) {
        host_of.push_back(zones.hosts[static_cast<std::size_t>(actor.host)]);
    }
    for (int i = 0; i < static_cast<int>(actors.size()); ++i) {
        const SimActor &actor = actors[static_cast<std::size_t>(i)];
        names::add_actor(host_of[static_cast<std::size_t>(i)], std::to_string(i), [&, i] {
            Actor activities(i, host_of, outcome.transfers);
            actor.body(activities);
            ++ended;
            outcome.us = std::max(outcome.us, sg::Engine::get_clock() / kSecondsPerUs);
        });
    }
    engine.run();
    outcome.all_ended = ended == actors.size();
    return outcome;
}

std::vector<SimRoute> simgrid_routes(const Platform &platform, const std::vector<SimRoute> &asked)
{
    const SimGridEngine engine;
    const Zones zones(engine, platform);
    std::vector<SimRoute> found = asked;
    for (SimRoute &route : found) {
        std::vector<sg::Link *> links;
        double latency = 0;
        zones.hosts[static_cast<std::size_t>(route.from)]->route_to(
            zones.hosts[static_cast<std::size_t>(route.to)], links, &latency);
        for (const sg::Link *link : links) {
            route.links.push_back(zones.number_of.at(link));
        }
        route.latency_us = latency / kSecondsPerUs;
    }
    return found;
}

} // namespace hetcoll
