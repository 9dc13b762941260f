#include "tools/this_machine.h"

#include "device/driver.h"
#include "machine/topology_links.h"
#include "topology/route.h"
#include "topology_probe/probe.h"

#include <cctype>
#include <utility>

namespace hetcoll {
namespace {

std::string name_of(const Fingerprint &fingerprint)
{
    std::string name;
    for (const char *key : {"gpu", "links", "driver"}) {
        const auto fact = fingerprint.facts.find(key);
        if (fact != fingerprint.facts.end() && fact->second != Fingerprint::kAny) {
            name += (name.empty() ? "" : ".") + fact->second;
        }
    }
    std::string word;
    for (const char c : name) {
        const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-';
        if (plain) {
            word += c;
        } else if (!word.empty() && word.back() != '-') {
            word += '-';
        }
    }
    return word;
}

} // namespace

Result<ThisMachine> look_at_machine()
{
    ThisMachine machine;
    const DriverLibrary library;
    int gpus = 0;
    if (!DriverLibrary::may_have_gpu() || library.get() == nullptr ||
        library.get()->cuInit(0) != CUDA_SUCCESS ||
        library.get()->cuDeviceGetCount(&gpus) != CUDA_SUCCESS || gpus == 0) {
        return machine;
    }
    machine.emulated = library.is_emulated();
    MachineProbe probe({});
    Result<Topology> topology = probe.probe_machine(library.get());
    if (!topology.ok()) {
        return topology.take_status();
    }
    if (Status status = add_unknown_links(*topology); !status.ok()) {
        return status;
    }
    machine.gpus = static_cast<int>(topology->gpus().size());
    machine.fingerprint = fingerprint_of(*topology, machine.emulated ? "emulated" : "");
    machine.name = name_of(machine.fingerprint);
    machine.topology = std::move(*topology);
    return machine;
}

} // namespace hetcoll
