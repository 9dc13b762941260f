// The transfers that a simulated rank begins. Whoever runs it says when each has ended, by its
// token.
#pragma once

namespace hetcoll {

class Transfers {
public:
    virtual ~Transfers() = default;

    // A send meets the peer's receive of the same channel, in order; both end together. Peers are
    // numbers of actors.
    virtual void send(int peer, int channel, double bytes, int token) = 0;
    virtual void receive(int peer, int channel, int token) = 0;
    // Moves `bytes` through the memory of the actor's host.
    virtual void work(double bytes, int token) = 0;
};

} // namespace hetcoll
