// The next events of a run: events in the order of time, and those of one time in the order in
// which they were made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

namespace hetcoll {

struct Event {
    enum class Kind : std::uint8_t { kArrives, kTransferEnds, kWorkEnds, kPacesChange };
    double at;
    std::uint64_t order_and_kind;
    int what; // a transfer, or an actor
    int token;

    [[nodiscard]] Kind kind() const { return static_cast<Kind>(order_and_kind & 3); }
    friend bool operator>(const Event &a, const Event &b)
    {
        return a.at != b.at ? a.at > b.at : a.order_and_kind > b.order_and_kind;
    }
};

class Events {
public:
    [[nodiscard]] bool empty() const { return count_ == 0; }
    void push(double at, Event::Kind kind, int what, int token = 0)
    {
        ++count_;
        all_.push(make(at, kind, what, token));
    }
    // So much after `now`, which never goes back: what comes after the same delay comes in order.
    void push_after(double now, double delay, Event::Kind kind, int what)
    {
        ++count_;
        const Event event = make(now + delay, kind, what, 0);
        for (std::size_t i = 0; i < lines_.size(); ++i) {
            if (lines_[i].delay == delay) {
                lines_[i].push(event);
                if (lines_[i].has_one()) {
                    find_first();
                }
                return;
            }
        }
        if (lines_.size() < kMostLines) {
            lines_.push_back({.delay = delay, .events = {event}});
            find_first();
        } else {
            all_.push(event);
        }
    }
    [[nodiscard]] Event pop()
    {
        --count_;
        if (first_ >= 0 && (all_.empty() || all_.top() > lines_[at(first_)].next())) {
            const Event event = lines_[at(first_)].pop();
            find_first();
            return event;
        }
        const Event event = all_.top();
        all_.pop();
        return event;
    }

private:
    static constexpr std::size_t kMostLines = 4; // more would take longer to look at
    struct Line {
        double delay;
        std::size_t gone = 0;
        std::vector<Event> events;

        [[nodiscard]] bool empty() const { return gone == events.size(); }
        [[nodiscard]] bool has_one() const { return gone + 1 == events.size(); }
        [[nodiscard]] const Event &next() const { return events[gone]; }
        void push(const Event &event) { events.push_back(event); }
        [[nodiscard]] Event pop()
        {
            const Event event = events[gone];
            if (++gone == events.size()) {
                events.clear();
                gone = 0;
            }
            return event;
        }
    };

    [[nodiscard]] Event make(double at, Event::Kind kind, int what, int token)
    {
        return {at, order_++ << 2 | static_cast<unsigned>(kind), what, token};
    }

    static std::size_t at(int line) { return static_cast<std::size_t>(line); }
    void find_first()
    {
        first_ = -1;
        for (std::size_t i = 0; i < lines_.size(); ++i) {
            if (!lines_[i].empty() &&
                (first_ < 0 || lines_[at(first_)].next() > lines_[i].next())) {
                first_ = static_cast<int>(i);
            }
        }
    }

    std::priority_queue<Event, std::vector<Event>, std::greater<>> all_; // but those in lines
    std::vector<Line> lines_;
    int first_ = -1; // the line whose next event is the first of all lines; -1: all are empty
    std::size_t count_ = 0;
    std::uint64_t order_ = 0;
};

} // namespace hetcoll
