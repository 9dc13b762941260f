// A topology as the XML file that hwloc would write on such a machine, so that every shipped one is
// a fixture.
#pragma once

#include "topology/topology.h"

#include <string>

namespace hetcoll::test {

struct XmlOptions {
    bool nvlinks = true; // as distances, which hwloc has if it was built with NVML
    bool drivers = true; // what the GPUs' drivers call them; else only PCI is known
    const char *cpu_family = "6", *cpu_model = "85", *cpu_vendor = "GenuineIntel";
};

// CPUs, PCIe switches, GPUs and NICs; at most 32 CPUs. NVSwitches become PCI devices of the first
// CPU.
[[nodiscard]] std::string hwloc_xml_of(const Topology &topology, const XmlOptions &options = {});

// A file in the temporary folder of the test; removed at the end of the scope.
class TemporaryFile {
public:
    TemporaryFile(const std::string &name, const std::string &text);
    ~TemporaryFile();
    TemporaryFile(const TemporaryFile &) = delete;
    TemporaryFile &operator=(const TemporaryFile &) = delete;

    [[nodiscard]] const std::string &path() const { return path_; }

private:
    std::string path_;
};

// A variable of the environment, until the end of the scope.
class Environment {
public:
    Environment(const char *name, const std::string &value);
    ~Environment();
    Environment(const Environment &) = delete;
    Environment &operator=(const Environment &) = delete;

private:
    const char *name_;
};

} // namespace hetcoll::test
