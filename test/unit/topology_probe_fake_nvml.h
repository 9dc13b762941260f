// A libnvidia-ml for tests: knows the links that it is told, and fails where it is told to.
#pragma once

#include "topology/ids.h"

#include <map>
#include <string>
#include <vector>

namespace hetcoll::test {

struct FakeNvml {
    struct Link {
        bool active = true;
        unsigned type = 0; // nvmlIntNvLinkDeviceType_t; kNoType: NVML cannot tell
        std::string remote{};
        unsigned version = 0;                   // nvmlNvlinkVersion_t
        unsigned speed = 0;                     // MB/s by field 164; 0: NVML cannot tell
        unsigned common_speed = 0;              // by field 90
        bool missing = false;                   // no link has this number
        bool peers = true, host_memory = false; // what it carries
        int field_state = -1;                   // by field 165; -1: NVML cannot tell
    };
    struct Gpu {
        std::vector<Link> links{};
        bool mig = false;
        unsigned generation = 3, width = 16; // of its PCIe link
        std::map<BusId, int> levels{};       // what it has in common with another one; else 50
    };
    static constexpr unsigned kNoType = 0xdead;

    std::map<BusId, Gpu> gpus{};
    std::string failing{}; // the name of an entry point
    int failure = 999;     // what that answers
    int calls_until_failure = 0;
    int initialized = 0, calls = 0;
};

} // namespace hetcoll::test

extern "C" hetcoll::test::FakeNvml *hetcoll_fake_nvml();
