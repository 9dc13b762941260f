// A network of queues in memory for aggregators and their workers: any participant may send
// anything to any other.
#pragma once

#include "aggregator/wire.h"

#include <map>
#include <memory>
#include <vector>

namespace hetcoll::test {

class MemoryWire;

// A message is read when it is received, so that a buffer that is used again too early shows.
class MemoryInternet {
public:
    // `port` 0: nobody can connect to it. The internet lives longest.
    std::unique_ptr<Wire> plug_in(std::uint16_t port = 0);

    struct Sent {
        std::vector<std::byte> header;
        std::size_t payload_bytes;
    };
    std::vector<Sent> sent; // by anybody, oldest first

private:
    friend class MemoryWire;
    std::map<std::uint16_t, MemoryWire *> listening_;
};

} // namespace hetcoll::test
