// What an actor of a simulation can do. Time passes in wait() and sleep_us() only.
#pragma once

#include <functional>

namespace hetcoll {

class Activities {
public:
    virtual ~Activities() = default;

    // Each begins something and returns at once; wait() gives the token back when it has ended.
    // A send meets the peer's receive of the same channel, in order; both end together. Peers are
    // numbers of actors.
    virtual void send(int peer, int channel, double bytes, int token) = 0;
    virtual void receive(int peer, int channel, int token) = 0;
    // Copies between the hosts of two actors; neither need know.
    virtual void copy(int from, int to, double bytes, int token) = 0;
    // Moves so many bytes through the memory of the actor's host.
    virtual void work(double bytes, int token) = 0;

    // Waits until one of them has ended. Requires that some have not.
    [[nodiscard]] virtual int wait() = 0;
    virtual void sleep_us(double us) = 0;
};

struct SimActor {
    int host;
    std::function<void(Activities &)> body;
};

} // namespace hetcoll
