#include "price/link_clocks.h"

#include "price/connections.h"
#include "price/events.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

namespace hetcoll {
namespace {

struct Transfer {
    int from, to, send_token, receive_token; // actors of the platform
    double bytes;
    const HostRoute *route;
    double alone_end = 0; // when it would end if links waited for nobody
    // State of a transfer whose pace changes as others come and go:
    bool at_a_pace = false;
    double gbps = 0, left = 0, since = 0; // bytes that were left at that time
    double not_before = 0;                // by links that know already when they are done
    double end = 0, looked_at = 0;        // and when it is looked at next, no later than that
    int looks = 0;                        // what is not the last of them is void
};

template <class T> std::size_t at(T index) { return static_cast<std::size_t>(index); }

} // namespace

class LinkClocks::Clocks {
public:
    Clocks(Routes &routes, LinkRule rule, bool mirrored)
        : platform_(routes.platform()), routes_(routes), rule_(rule), mirrored_(mirrored),
          waiting_(platform_.links.size())
    {
        for (const SimLink &link : platform_.links) {
            links_.push_back({.gbps = link.gbps,
                              .flows = rule == LinkRule::kEachAlone ? 0 : link.flows,
                              .share = link.gbps});
        }
        for (const SimNode &node : platform_.nodes) {
            for (const SimHost &host : node.hosts) {
                hosts_.push_back({host.gbps});
            }
        }
    }

    void expect(const std::vector<double> &bytes)
    {
        for (std::size_t link = 0; link < bytes.size(); ++link) {
            links_[link].left = bytes[link];
        }
    }

    void add(int host, SimRankPlan plan)
    {
        const int self = static_cast<int>(actors_.size());
        actors_.push_back(std::make_unique<Actor>(*this, self, host, std::move(plan)));
    }

    Outcome run(double most_us)
    {
        most_us_ = most_us * (1 + kRounding);
        std::size_t running = 0;
        for (const auto &actor : actors_) {
            running += actor->rank.begin(*actor) ? 1 : 0;
        }
        while (!events_.empty() && running > 0) {
            const Event event = events_.pop();
            now_ = event.at;
            if (now_ > most_us || takes_longer_) {
                return {.us = most_us, .all_ended = false, .transfers = transfer_count_};
            }
            switch (event.kind()) {
            case Event::Kind::kArrives: arrive(event.what); break;
            case Event::Kind::kWorkEnds: running -= ends(event.what, event.token); break;
            case Event::Kind::kPacesChange: change_paces(); break;
            case Event::Kind::kTransferEnds: {
                if (!has_ended(event.what, event.token)) {
                    break;
                }
                const Transfer &transfer = transfers_[at(event.what)];
                const int from = transfer.from, to = transfer.to;
                const int send_token = transfer.send_token;
                const int receive_token = transfer.receive_token;
                unused_.push_back(event.what);
                if (rule_ == LinkRule::kAllTogether) {
                    free_links(event.what, *transfer.route);
                }
                running -= ends(from, send_token);
                running -= ends(to, receive_token);
                break;
            }
            }
        }
        return {.us = now_,
                .all_ended = running == 0,
                .as_alone = as_alone_,
                .transfers = transfer_count_};
    }

private:
    using Far = Routes::Far;
    // Sums of rounded times may be that much less than what they are compared with.
    static constexpr double kRounding = 1e-9;
    struct Host {
        double gbps;
        double free_at = 0;
    };
    struct Link {
        double gbps;
        int flows;    // most concurrent transfers; 0: takes all that comes, one after the other
        double share; // what each transfer gets
        bool changed = false;
        std::vector<int> moving{}; // transfers, where `flows` is not 0
        double free_at = 0;        // where it is
        double alone_free_at = 0;  // likewise, if links waited for nobody
        double left = 0;           // bytes that it has yet to begin with, at least

        [[nodiscard]] bool full() const { return std::ssize(moving) >= flows; }
    };

    struct Actor : Transfers {
        Actor(Clocks &clocks_of_actor, int number, int on_host, SimRankPlan plan)
            : clocks(clocks_of_actor), self(number), host(on_host), rank(std::move(plan))
        {
        }
        void send(int peer, int channel, double bytes, int token) override
        {
            clocks.send(self, peer, channel, bytes, token);
        }
        void receive(int peer, int channel, int token) override
        {
            clocks.receive(peer, self, channel, token);
        }
        void work(double bytes, int token) override { clocks.work(self, bytes, token); }

        Clocks &clocks;
        int self, host;
        SimRank rank;
    };

    // 1 if the actor is done.
    std::size_t ends(int number, int token) { return actor(number).rank.end(token) ? 0 : 1; }

    [[nodiscard]] int count() const { return static_cast<int>(actors_.size()); }
    [[nodiscard]] Far how_far(int actor) const
    {
        return !mirrored_ || actor < count() ? Far::kHere
               : actor < 2 * count()         ? Far::kOtherNode
                                             : Far::kOtherRack;
    }
    [[nodiscard]] Actor &actor(int number)
    {
        return *actors_[at(number < count() ? number : number % count())];
    }

    void send(int from, int to, int channel, double bytes, int token)
    {
        ++transfer_count_;
        const Far far = how_far(to);
        if (far != Far::kHere) {
            from += count();
            to %= count();
        }
        Connections::Connection &on = connections_.find(from, to, channel);
        if (!Connections::waits(on, false)) {
            connections_.add(on, true, {token, bytes, far});
            return;
        }
        const Connections::One receive = connections_.take(on);
        const HostRoute &way = way_of(on, from, to, std::max(far, receive.far));
        depart({from, to, token, receive.token, bytes, &way});
    }

    void receive(int from, int to, int channel, int token)
    {
        const Far far = how_far(from);
        if (far != Far::kHere) {
            from = count() + from % count();
        }
        Connections::Connection &on = connections_.find(from, to, channel);
        if (!Connections::waits(on, true)) {
            connections_.add(on, false, {token, 0, far});
            return;
        }
        const Connections::One send = connections_.take(on);
        const HostRoute &way = way_of(on, from, to, std::max(far, send.far));
        depart({from, to, send.token, token, send.bytes, &way});
    }

    const HostRoute &way_of(Connections::Connection &on, int from, int to, Far far)
    {
        const HostRoute *&way = on.ways[at(far)];
        if (way == nullptr) {
            way = &routes_.find(actor(from).host, actor(to).host, far);
        }
        return *way;
    }

    void work(int number, double bytes, int token)
    {
        Host &host = hosts_[at(actor(number).host)];
        host.free_at = std::max(host.free_at, now_) + transfer_us(bytes, host.gbps);
        events_.push(host.free_at, Event::Kind::kWorkEnds, number, token);
    }

    void depart(const Transfer &transfer)
    {
        int number = static_cast<int>(transfers_.size());
        if (unused_.empty()) {
            transfers_.push_back(transfer);
        } else {
            number = unused_.back();
            unused_.pop_back();
            const int looks = transfers_[at(number)].looks + 1;
            transfers_[at(number)] = transfer;
            transfers_[at(number)].looks = looks;
        }
        events_.push_after(now_, transfer.route->latency_us, Event::Kind::kArrives, number);
    }

    void arrive(int number)
    {
        if (rule_ == LinkRule::kAllTogether && as_alone_) {
            find_alone_end(transfers_[at(number)]);
        }
        if (try_to_move(number)) {
            return;
        }
        as_alone_ = false;
        for (const int crossed : transfers_[at(number)].route->links) {
            if (links_[at(crossed)].flows > 0) {
                waiting_[at(crossed)].push_back(number);
            }
        }
    }

    void find_alone_end(Transfer &transfer)
    {
        transfer.alone_end = now_;
        for (const int crossed : transfer.route->links) {
            Link &link = links_[at(crossed)];
            link.alone_free_at =
                std::max(link.alone_free_at, now_) + transfer_us(transfer.bytes, link.gbps);
            transfer.alone_end = std::max(transfer.alone_end, link.alone_free_at);
        }
    }

    // False: a link has as many transfers as it can carry.
    bool try_to_move(int number)
    {
        Transfer &transfer = transfers_[at(number)];
        const LinkPath &path = transfer.route->links;
        for (const int crossed : path) {
            if (links_[at(crossed)].flows > 0 && links_[at(crossed)].full()) {
                return false;
            }
        }
        double end = now_;
        transfer.at_a_pace = false;
        for (const int crossed : path) {
            Link &link = links_[at(crossed)];
            const double takes = transfer_us(transfer.bytes, link.gbps);
            if (link.flows == 0) {
                link.free_at = std::max(link.free_at, now_) + takes;
                end = std::max(end, link.free_at);
            } else {
                link.moving.push_back(number);
                transfer.at_a_pace = transfer.at_a_pace || link.flows > 1;
                end = std::max(end, link.flows == 1 ? now_ + takes : now_);
                deal(crossed);
            }
        }
        for (const int crossed : path) {
            Link &link = links_[at(crossed)];
            link.left -= transfer.bytes;
            const double free_at = link.flows == 0 ? link.free_at : link.flows > 1 ? now_ : end;
            takes_longer_ = takes_longer_ || free_at + transfer_us(link.left, link.gbps) > most_us_;
        }
        if (transfer.at_a_pace) {
            transfer.gbps = 0;
            transfer.left = transfer.bytes;
            transfer.not_before = end;
            transfer.looked_at = std::numeric_limits<double>::infinity();
            return true;
        }
        as_alone_ = as_alone_ && (rule_ == LinkRule::kEachAlone || end == transfer.alone_end);
        transfer.end = end;
        look_at(number, end);
        return true;
    }

    // A link that several share has more of them, or fewer.
    void deal(int number)
    {
        Link &link = links_[at(number)];
        if (link.flows <= 1) {
            return;
        }
        link.share = link.gbps / static_cast<double>(std::max(link.moving.size(), std::size_t{1}));
        if (changed_.empty()) { // what else comes at this time is dealt with together
            events_.push(now_, Event::Kind::kPacesChange, 0);
        }
        if (!std::exchange(link.changed, true)) {
            changed_.push_back(number);
        }
    }

    // A transfer is as fast as the least share that it has.
    void change_paces()
    {
        for (const int number : changed_) {
            links_[at(number)].changed = false;
            for (const int moving : links_[at(number)].moving) {
                Transfer &transfer = transfers_[at(moving)];
                double gbps = std::numeric_limits<double>::infinity();
                for (const int crossed : transfer.route->links) {
                    if (links_[at(crossed)].flows > 0) {
                        gbps = std::min(gbps, links_[at(crossed)].share);
                    }
                }
                if (gbps == transfer.gbps) {
                    continue;
                }
                transfer.left -= (now_ - transfer.since) * transfer.gbps * 1e3;
                transfer.gbps = gbps;
                transfer.since = now_;
                transfer.end = std::max(transfer.not_before,
                                        now_ + transfer_us(std::max(transfer.left, 0.0), gbps));
                if (transfer.end < transfer.looked_at) {
                    look_at(moving, transfer.end);
                }
            }
        }
        changed_.clear();
    }

    void look_at(int number, double then)
    {
        Transfer &transfer = transfers_[at(number)];
        transfer.looked_at = then;
        events_.push(then, Event::Kind::kTransferEnds, number, ++transfer.looks);
    }

    bool has_ended(int number, int look)
    {
        Transfer &transfer = transfers_[at(number)];
        if (look != transfer.looks) {
            return false;
        }
        if (transfer.end > now_) { // it has become slower
            look_at(number, transfer.end);
            return false;
        }
        return true;
    }

    void free_links(int number, const HostRoute &route)
    {
        for (const int crossed : route.links) {
            Link &link = links_[at(crossed)];
            if (link.flows > 0) {
                link.moving.erase(std::find(link.moving.begin(), link.moving.end(), number));
                deal(crossed);
            }
        }
        for (const int crossed : route.links) {
            if (links_[at(crossed)].flows > 0) {
                move_waiting(crossed);
            }
        }
    }

    // Who has waited longest for the link begins, if the rest of its way is free.
    void move_waiting(int link)
    {
        std::vector<int> &queue = waiting_[at(link)];
        for (std::size_t i = 0; i < queue.size() && !links_[at(link)].full();) {
            const int number = queue[i];
            if (!try_to_move(number)) {
                ++i;
                continue;
            }
            for (const int crossed : transfers_[at(number)].route->links) {
                if (links_[at(crossed)].flows > 0) {
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
    std::vector<Link> links_;
    std::vector<std::vector<int>> waiting_; // by link: transfers, in the order of arrival
    std::vector<int> changed_;              // links whose transfers have another share now
    Connections connections_;
    std::vector<Transfer> transfers_;
    std::vector<int> unused_; // of transfers_
    Events events_;
    double now_ = 0, most_us_ = 0;
    bool takes_longer_ = false; // than most_us_
    bool as_alone_ = true;      // so far
    std::uint64_t transfer_count_ = 0;
};

LinkClocks::LinkClocks(Routes &routes, LinkRule rule, bool mirrored)
    : clocks_(std::make_unique<Clocks>(routes, rule, mirrored))
{
}

LinkClocks::~LinkClocks() = default;

void LinkClocks::add(int host, SimRankPlan plan) { clocks_->add(host, std::move(plan)); }

void LinkClocks::expect(const std::vector<double> &bytes) { clocks_->expect(bytes); }

LinkClocks::Outcome LinkClocks::run(double most_us) { return clocks_->run(most_us); }

} // namespace hetcoll
