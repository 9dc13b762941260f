#include "price/link_clocks.h"

#include <algorithm>
#include <queue>
#include <unordered_map>
#include <utility>

namespace hetcoll {
namespace {

struct Event {
    enum class Kind : std::uint8_t { kArrives, kTransferEnds, kWorkEnds };
    double at;
    std::uint64_t order;
    Kind kind;
    int what; // a transfer, or an actor
    int token;

    friend bool operator>(const Event &a, const Event &b)
    {
        return a.at != b.at ? a.at > b.at : a.order > b.order;
    }
};

struct Transfer {
    int from, to, send_token, receive_token; // actors of the platform
    double bytes;
    const HostRoute *route;
};

// What has no partner yet, of two actors and a channel: sends or receives, never both.
class Unmatched {
public:
    struct One {
        int token;
        double bytes; // of a send
        Routes::Far far;
    };
    [[nodiscard]] bool has(bool sends) const { return first_ < all_.size() && sends_ == sends; }
    void add(bool sends, One one)
    {
        sends_ = sends;
        all_.push_back(one);
    }
    One take()
    {
        const One one = all_[first_];
        if (++first_ == all_.size()) {
            all_.clear();
            first_ = 0;
        }
        return one;
    }

private:
    bool sends_ = false;
    std::size_t first_ = 0;
    std::vector<One> all_;
};

template <class T> std::size_t at(T index) { return static_cast<std::size_t>(index); }

} // namespace

class LinkClocks::Engine {
public:
    Engine(Routes &routes, LinkRule rule, bool mirrored)
        : platform_(routes.platform()), routes_(routes), rule_(rule), mirrored_(mirrored),
          free_at_(platform_.links.size()), taken_(platform_.links.size()),
          waiting_(platform_.links.size())
    {
        for (const SimNode &node : platform_.nodes) {
            for (const SimHost &host : node.hosts) {
                hosts_.push_back({host.gbps});
            }
        }
    }

    void add(int host, SimRankPlan plan)
    {
        const int self = static_cast<int>(actors_.size());
        actors_.push_back(std::make_unique<Actor>(*this, self, host, std::move(plan)));
    }

    Outcome run(double most_us)
    {
        std::size_t running = 0;
        for (const auto &actor : actors_) {
            running += actor->rank.begin(*actor) ? 1 : 0;
        }
        while (!events_.empty() && running > 0) {
            const Event event = events_.top();
            events_.pop();
            now_ = event.at;
            if (now_ > most_us) {
                return {.us = most_us, .all_ended = false, .transfers = transfer_count_};
            }
            switch (event.kind) {
            case Event::Kind::kArrives: arrive(event.what); break;
            case Event::Kind::kWorkEnds: running -= ends(event.what, event.token); break;
            case Event::Kind::kTransferEnds: {
                const Transfer transfer = transfers_[at(event.what)];
                unused_.push_back(event.what);
                if (rule_ == LinkRule::kAllTogether) {
                    free_links(*transfer.route);
                }
                running -= ends(transfer.from, transfer.send_token);
                running -= ends(transfer.to, transfer.receive_token);
                break;
            }
            }
        }
        return {.us = now_, .all_ended = running == 0, .transfers = transfer_count_};
    }

private:
    using Far = Routes::Far;
    struct Host {
        double gbps;
        double free_at = 0;
    };

    struct Actor : Transfers {
        Actor(Engine &engine_of_actor, int number, int on_host, SimRankPlan plan)
            : engine(engine_of_actor), self(number), host(on_host), rank(std::move(plan))
        {
        }
        void send(int peer, int channel, double bytes, int token) override
        {
            engine.send(self, peer, channel, bytes, token);
        }
        void receive(int peer, int channel, int token) override
        {
            engine.receive(peer, self, channel, token);
        }
        void work(double bytes, int token) override { engine.work(self, bytes, token); }

        Engine &engine;
        int self, host;
        SimRank rank;
    };

    // 1 if the actor is done.
    std::size_t ends(int number, int token) { return actor(number).rank.end(token) ? 0 : 1; }

    void push(double when, Event::Kind kind, int what, int token = 0)
    {
        events_.push({when, order_++, kind, what, token});
    }

    Unmatched &unmatched(int from, int to, int channel)
    {
        constexpr int kActorBits = 24, kChannelBits = 16;
        return unmatched_[static_cast<std::uint64_t>(from) << (kActorBits + kChannelBits) |
                          static_cast<std::uint64_t>(to) << kChannelBits |
                          static_cast<std::uint64_t>(channel)];
    }

    [[nodiscard]] int count() const { return static_cast<int>(actors_.size()); }
    [[nodiscard]] Far how_far(int actor) const
    {
        return !mirrored_ || actor < count() ? Far::kHere
               : actor < 2 * count()         ? Far::kOtherNode
                                             : Far::kOtherRack;
    }
    [[nodiscard]] Actor &actor(int number)
    {
        return *actors_[at(mirrored_ ? number % count() : number)];
    }

    void send(int from, int to, int channel, double bytes, int token)
    {
        ++transfer_count_;
        const Far far = how_far(to);
        if (far != Far::kHere) {
            from += count();
            to %= count();
        }
        Unmatched &queue = unmatched(from, to, channel);
        if (!queue.has(false)) {
            queue.add(true, {token, bytes, far});
            return;
        }
        const Unmatched::One receive = queue.take();
        depart(from, to, token, receive.token, bytes, std::max(far, receive.far));
    }

    void receive(int from, int to, int channel, int token)
    {
        const Far far = how_far(from);
        if (far != Far::kHere) {
            from = count() + from % count();
        }
        Unmatched &queue = unmatched(from, to, channel);
        if (!queue.has(true)) {
            queue.add(false, {token, 0, far});
            return;
        }
        const Unmatched::One send = queue.take();
        depart(from, to, send.token, token, send.bytes, std::max(far, send.far));
    }

    void work(int number, double bytes, int token)
    {
        Host &host = hosts_[at(actor(number).host)];
        host.free_at = std::max(host.free_at, now_) + transfer_us(bytes, host.gbps);
        push(host.free_at, Event::Kind::kWorkEnds, number, token);
    }

    void depart(int from, int to, int send_token, int receive_token, double bytes, Far far)
    {
        const HostRoute &way = routes_.find(actor(from).host, actor(to).host, far);
        const Transfer transfer{from, to, send_token, receive_token, bytes, &way};
        int number = static_cast<int>(transfers_.size());
        if (unused_.empty()) {
            transfers_.push_back(transfer);
        } else {
            number = unused_.back();
            unused_.pop_back();
            transfers_[at(number)] = transfer;
        }
        push(now_ + way.latency_us, Event::Kind::kArrives, number);
    }

    [[nodiscard]] bool is_shared(int link) const
    {
        return rule_ == LinkRule::kEachAlone || platform_.links[at(link)].flows != 1;
    }

    void arrive(int number)
    {
        if (try_to_move(number)) {
            return;
        }
        for (const int link : transfers_[at(number)].route->links) {
            if (!is_shared(link)) {
                waiting_[at(link)].push_back(number);
            }
        }
    }

    // False: a link that carries one transfer after the other has one.
    bool try_to_move(int number)
    {
        const Transfer &transfer = transfers_[at(number)];
        for (const int link : transfer.route->links) {
            if (!is_shared(link) && taken_[at(link)]) {
                return false;
            }
        }
        double end = now_;
        for (const int link : transfer.route->links) {
            const double takes = transfer_us(transfer.bytes, platform_.links[at(link)].gbps);
            double done = now_ + takes;
            if (is_shared(link)) {
                done = std::max(free_at_[at(link)], now_) + takes;
                free_at_[at(link)] = done;
            } else {
                taken_[at(link)] = true;
            }
            end = std::max(end, done);
        }
        push(end, Event::Kind::kTransferEnds, number);
        return true;
    }

    void free_links(const HostRoute &route)
    {
        for (const int link : route.links) {
            taken_[at(link)] = false;
        }
        for (const int link : route.links) {
            if (!is_shared(link)) {
                move_waiting(link);
            }
        }
    }

    // Who has waited longest for the link begins, if the rest of its way is free.
    void move_waiting(int link)
    {
        std::vector<int> &queue = waiting_[at(link)];
        for (std::size_t i = 0; i < queue.size() && !taken_[at(link)];) {
            const int number = queue[i];
            if (!try_to_move(number)) {
                ++i;
                continue;
            }
            for (const int crossed : transfers_[at(number)].route->links) {
                if (!is_shared(crossed)) {
                    std::vector<int> &left = waiting_[at(crossed)];
                    left.erase(std::find(left.begin(), left.end(), number));
                }
            }
        }
    }

    const Platform &platform_;
    Routes &routes_;
    LinkRule rule_;
    bool mirrored_;
    std::vector<Host> hosts_;
    std::vector<std::unique_ptr<Actor>> actors_;
    std::vector<double> free_at_;           // by link
    std::vector<bool> taken_;               // likewise, of those that carry one after the other
    std::vector<std::vector<int>> waiting_; // likewise: transfers, in the order of arrival
    std::unordered_map<std::uint64_t, Unmatched> unmatched_; // by actors and channel
    std::vector<Transfer> transfers_;
    std::vector<int> unused_; // of transfers_
    std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
    double now_ = 0;
    std::uint64_t order_ = 0, transfer_count_ = 0;
};

LinkClocks::LinkClocks(Routes &routes, LinkRule rule, bool mirrored)
    : engine_(std::make_unique<Engine>(routes, rule, mirrored))
{
}

LinkClocks::~LinkClocks() = default;

void LinkClocks::add(int host, SimRankPlan plan) { engine_->add(host, std::move(plan)); }

LinkClocks::Outcome LinkClocks::run(double most_us) { return engine_->run(most_us); }

} // namespace hetcoll
