#include "test/unit/topology_probe_xml.h"

#include <unistd.h>

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <vector>

namespace hetcoll::test {
namespace {

class Writer {
public:
    Writer(const Topology &topology, const XmlOptions &options)
        : topology_(topology), options_(options), cpus_(topology.of_kind(VertexKind::kCpu))
    {
    }

    std::string write()
    {
        text_ = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                "<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n"
                "<topology version=\"2.0\">\n";
        open("Machine", sets((std::uint64_t{1} << cpus_.size()) - 1, true) + " os_index=\"0\"");
        info("DMIProductName", topology_.machine);
        for (std::size_t c = 0; c < cpus_.size(); ++c) {
            write_package(static_cast<int>(c));
        }
        close();
        if (options_.nvlinks) {
            write_nvlinks();
        }
        return text_ + "</topology>\n";
    }

private:
    static std::string hex(std::uint64_t mask)
    {
        char text[32];
        std::snprintf(text, sizeof text, "0x%08llx", static_cast<unsigned long long>(mask));
        return text;
    }

    static std::string sets(std::uint64_t mask, bool allowed = false)
    {
        std::string text;
        for (const char *set : {"cpuset", "nodeset"}) {
            text += std::string(" ") + set + "=\"" + hex(mask) + "\" complete_" + set + "=\"" +
                    hex(mask) + "\"";
            if (allowed) {
                text += std::string(" allowed_") + set + "=\"" + hex(mask) + "\"";
            }
        }
        return text;
    }

    int open(const char *type, const std::string &attributes)
    {
        text_ += std::string("<object type=\"") + type + "\"" + attributes + " gp_index=\"" +
                 std::to_string(++objects_) + "\">\n";
        return objects_;
    }
    void close() { text_ += "</object>\n"; }
    void info(const char *name, const std::string &value)
    {
        text_ += std::string("<info name=\"") + name + "\" value=\"" + value + "\"/>\n";
    }

    void write_package(int c)
    {
        const std::uint64_t mask = std::uint64_t{1} << c;
        const std::string index = " os_index=\"" + std::to_string(c) + "\"";
        packages_.push_back(open("Package", index + sets(mask)));
        info("CPUVendor", options_.cpu_vendor);
        info("CPUFamilyNumber", options_.cpu_family);
        info("CPUModelNumber", options_.cpu_model);
        open("NUMANode", index + sets(mask) + " local_memory=\"1073741824\"");
        close();
        open("PU", index + sets(mask));
        close();
        for (const Link &link : topology_.links) {
            if (link.kind == LinkKind::kPcie && (link.a == cpus_[c] || link.b == cpus_[c])) {
                open("Bridge", " bridge_type=\"0-1\" depth=\"0\" bridge_pci=\"0000:[00-ff]\"");
                write_below_port(link.other(cpus_[c]), cpus_[c], link.gbps, 1);
                close();
            }
        }
        if (c == 0) {
            for (const int nvswitch : topology_.of_kind(VertexKind::kNvSwitch)) {
                open("Bridge", " bridge_type=\"0-1\" depth=\"0\" bridge_pci=\"0000:[00-ff]\"");
                write_device(nvswitch, 1, " subtype=\"NVSwitch\"");
                close();
            }
        }
        close();
    }

    std::string new_bus()
    {
        char text[32];
        ++buses_;
        std::snprintf(text, sizeof text, "00ff:%02x:00.0", buses_);
        return text;
    }

    std::string pci(const std::string &bus, const char *type, double gbps)
    {
        return " pci_busid=\"" + bus + "\" pci_type=\"" + type + " 00\" pci_link_speed=\"" +
               std::to_string(gbps * 15.753846 / 12) + "\"";
    }

    void open_bridge(double gbps, int depth)
    {
        open("Bridge", " bridge_type=\"1-1\" depth=\"" + std::to_string(depth) +
                           "\" bridge_pci=\"0000:[00-ff]\"" +
                           pci(new_bus(), "0604 [8086:2030] [8086:0000]", gbps));
    }

    // The device behind a port of the CPU or of a switch.
    void write_below_port(int vertex, int above, double gbps, int depth)
    {
        open_bridge(gbps, depth);
        if (topology_.vertices[vertex].kind == VertexKind::kPcieSwitch) {
            open_bridge(gbps, depth + 1);
            for (const Link &link : topology_.links) {
                const bool here = link.a == vertex || link.b == vertex;
                if (link.kind == LinkKind::kPcie && here && link.other(vertex) != above) {
                    write_below_port(link.other(vertex), vertex, link.gbps, depth + 2);
                }
            }
            close();
        } else {
            write_device(vertex, gbps, "");
        }
        close();
    }

    void write_device(int v, double gbps, const std::string &more)
    {
        const Vertex &vertex = topology_.vertices[v];
        const char *const type = vertex.kind == VertexKind::kGpu   ? "0302 [10de:1db8] [10de:0001]"
                                 : vertex.kind == VertexKind::kNic ? "0207 [15b3:101b] [15b3:0001]"
                                                                   : "0680 [10de:1ac2] [10de:0001]";
        const std::string bus = vertex.bus.known != 0 ? print_bus_id(vertex.bus) : new_bus();
        objects_of_[v] = open("PCIDev", pci(bus, type, gbps) + more);
        if (vertex.kind == VertexKind::kNic) {
            open("OSDev", " name=\"" + vertex.name + "\" osdev_type=\"3\"");
            close();
        } else if (vertex.kind == VertexKind::kGpu && options_.drivers) {
            objects_of_[v] = open("OSDev", " name=\"nvml" + std::to_string(gpus_++) +
                                               "\" subtype=\"NVML\" osdev_type=\"5\"");
            info("GPUModel", vertex.model);
            if (vertex.uuid.known()) {
                info("NVIDIAUUID", print_uuid(vertex.uuid));
            }
            close();
        }
        close();
    }

    void write_nvlinks()
    {
        std::vector<std::pair<std::string, int>> ends; // name of the object, vertex
        for (const auto &[vertex, object] : objects_of_) {
            const VertexKind kind = topology_.vertices[vertex].kind;
            if (kind != VertexKind::kNic) {
                const bool os = kind == VertexKind::kGpu && options_.drivers;
                ends.emplace_back((os ? "OSDev:" : "PCIDev:") + std::to_string(object), vertex);
            }
        }
        for (std::size_t c = 0; c < cpus_.size(); ++c) {
            ends.emplace_back("Package:" + std::to_string(packages_[c]), cpus_[c]);
        }
        std::string names, values;
        for (const auto &[name, a] : ends) {
            names += name + " ";
            for (const auto &[other, b] : ends) {
                values += std::to_string(a == b ? 1000000 : megabytes(a, b)) + " ";
            }
        }
        const std::string count = std::to_string(ends.size());
        text_ += "<distances2hetero nbobjs=\"" + count +
                 "\" kind=\"25\" name=\"NVLinkBandwidth\">\n" + "<indexes length=\"" +
                 std::to_string(names.size()) + "\">" + names + "</indexes>\n<u64values length=\"" +
                 std::to_string(values.size()) + "\">" + values +
                 "</u64values>\n</distances2hetero>\n";
    }

    [[nodiscard]] long megabytes(int a, int b) const
    {
        for (const Link &link : topology_.links) {
            if (link.kind == LinkKind::kNvlink &&
                ((link.a == a && link.b == b) || (link.a == b && link.b == a))) {
                return static_cast<long>(link.total_gbps() * 1000);
            }
        }
        return 0;
    }

    const Topology &topology_;
    const XmlOptions &options_;
    const std::vector<int> cpus_;
    std::string text_;
    int objects_ = 0, buses_ = 0, gpus_ = 0;
    std::vector<int> packages_;
    std::map<int, int> objects_of_; // by vertex
};

} // namespace

std::string hwloc_xml_of(const Topology &topology, const XmlOptions &options)
{
    return Writer(topology, options).write();
}

TemporaryFile::TemporaryFile(const std::string &name, const std::string &text)
    : path_(testing::TempDir() + "hetcoll-" + std::to_string(getpid()) + "-" + name)
{
    std::FILE *const file = std::fopen(path_.c_str(), "we");
    if (file == nullptr || std::fwrite(text.data(), 1, text.size(), file) != text.size() ||
        std::fclose(file) != 0) {
        std::fprintf(stderr, "test setup: %s cannot be written\n", path_.c_str());
        std::abort();
    }
}

TemporaryFile::~TemporaryFile() { unlink(path_.c_str()); }

Environment::Environment(const char *name, const std::string &value) : name_(name)
{
    setenv(name, value.c_str(), 1);
}

Environment::~Environment() { unsetenv(name_); }

} // namespace hetcoll::test
