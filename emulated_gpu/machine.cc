#include "emulated_gpu/machine.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace hetcoll::emulated_gpu {
namespace {

constexpr std::size_t kMaxVertices = 1024, kMaxLinks = 16384;

using Words = std::vector<std::string>;

Words words_of(std::string_view line)
{
    Words words;
    line = line.substr(0, line.find('#'));
    while (true) {
        const auto start = line.find_first_not_of(" \t\r");
        if (start == line.npos) {
            return words;
        }
        line.remove_prefix(start);
        const auto end = std::min(line.find_first_of(" \t\r"), line.size());
        words.emplace_back(line.substr(0, end));
        line.remove_prefix(end);
    }
}

bool read_number(const std::string &text, double least, double most, double &number)
{
    char *end = nullptr;
    number = std::strtod(text.c_str(), &end);
    return end != text.c_str() && *end == '\0' && number >= least && number <= most;
}

bool parse_uuid(std::string_view text, Uuid &uuid)
{
    std::string digits;
    for (const char letter : text.substr(std::min(text.find('-') + 1, text.size()))) {
        if (letter != '-') {
            digits += letter;
        }
    }
    if (digits.size() != 2 * uuid.size() ||
        digits.find_first_not_of("0123456789abcdefABCDEF") != digits.npos) {
        return false;
    }
    for (std::size_t i = 0; i < uuid.size(); ++i) {
        uuid[i] =
            static_cast<std::uint8_t>(std::strtoul(digits.substr(2 * i, 2).c_str(), nullptr, 16));
    }
    return true;
}

int find_vertex(const Machine &machine, const std::string &name)
{
    for (std::size_t i = 0; i < machine.vertices.size(); ++i) {
        if (machine.vertices[i].name == name) {
            return static_cast<int>(i);
        }
    }
    return -1;
}

// The part of a vertex line that follows its name: a bus id or not, then pairs of words.
std::string read_properties(const Words &words, Vertex &vertex)
{
    std::size_t next = 2;
    const bool has_bus = words[0] == "gpu" || words[0] == "nic";
    if (has_bus) {
        if (words.size() < 3 || (words[2] != "-" && !parse_bus_id(words[2], vertex.bus))) {
            return "a PCI bus id is missing after the name, write 0000:06:00.0 or -";
        }
        next = 3;
    }
    for (; next < words.size(); next += 2) {
        const std::string &what = words[next];
        double number = 0;
        if (next + 1 == words.size()) {
            return "'" + what + "' has no value";
        }
        const std::string &value = words[next + 1];
        if (what == "numa" && read_number(value, 0, 1e6, number)) {
            vertex.numa = static_cast<int>(number);
        } else if (what == "model") {
            vertex.model = value;
        } else if (what == "adapter") {
            continue; // no network is emulated
        } else if (what != "uuid" || !parse_uuid(value, vertex.uuid)) {
            return "'" + what + " " + value + "' is not understood";
        }
    }
    return {};
}

std::string add_vertex(const Words &words, VertexKind kind, Machine &machine)
{
    if (words.size() < 2) {
        return "'" + words[0] + "' has no name";
    }
    if (find_vertex(machine, words[1]) >= 0 || machine.vertices.size() == kMaxVertices) {
        return "there is a '" + words[1] + "' already, or too much else";
    }
    Vertex vertex{.kind = kind, .name = words[1]};
    std::string problem = read_properties(words, vertex);
    if (problem.empty()) {
        if (kind == VertexKind::kGpu) {
            machine.gpus.push_back(static_cast<int>(machine.vertices.size()));
        }
        machine.vertices.push_back(std::move(vertex));
    }
    return problem;
}

std::string add_link(const Words &words, Machine &machine)
{
    static constexpr std::pair<const char *, LinkKind> kKinds[] = {{"nvlink", LinkKind::kNvlink},
                                                                   {"pcie", LinkKind::kPcie},
                                                                   {"socket", LinkKind::kSocket},
                                                                   {"network", LinkKind::kOther}};
    if (words.size() != 6 || machine.links.size() == kMaxLinks) {
        return "a link is 'link A B KIND COUNT GBPS'";
    }
    const int a = find_vertex(machine, words[1]), b = find_vertex(machine, words[2]);
    const auto kind = std::find_if(std::begin(kKinds), std::end(kKinds),
                                   [&](const auto &known) { return words[3] == known.first; });
    double count = 0, gbps = 0;
    if (a < 0 || b < 0 || a == b) {
        return "'" + words[a < 0 ? 1 : 2] + "' is not the name of another vertex above";
    }
    if (kind == std::end(kKinds) || !read_number(words[4], 1, 1024, count) ||
        !read_number(words[5], 1e-3, 1e5, gbps)) {
        return "'" + words[3] + " " + words[4] + " " + words[5] +
               "' is not a kind, a number of links and gigabytes a second";
    }
    machine.links.push_back({a, b, kind->second, static_cast<int>(count), gbps});
    return {};
}

std::string read_line(const Words &words, Machine &machine)
{
    static constexpr std::pair<const char *, VertexKind> kKinds[] = {
        {"gpu", VertexKind::kGpu},   {"nvswitch", VertexKind::kNvSwitch},
        {"cpu", VertexKind::kCpu},   {"pcie", VertexKind::kPcieSwitch},
        {"nic", VertexKind::kOther}, {"network", VertexKind::kOther}};
    if (words[0] == "machine") {
        for (std::size_t i = 1; i < words.size(); ++i) {
            machine.name += (i > 1 ? " " : "") + words[i];
        }
        return {};
    }
    if (words[0] == "link") {
        return add_link(words, machine);
    }
    for (const auto &[name, kind] : kKinds) {
        if (words[0] == name) {
            return add_vertex(words, kind, machine);
        }
    }
    return "'" + words[0] + "' cannot begin a line of a topology";
}

// Devices without a bus id or a UUID get one that is the same in every process.
void name_devices(Machine &machine)
{
    for (std::size_t i = 0; i < machine.gpus.size(); ++i) {
        Vertex &gpu = machine.vertices[static_cast<std::size_t>(machine.gpus[i])];
        if (gpu.bus == BusId{}) {
            gpu.bus.bus = 0x10 + static_cast<unsigned>(i);
        }
        if (gpu.uuid == Uuid{}) {
            static constexpr char kText[] = "EMUGPU";
            std::copy_n(kText, 6, gpu.uuid.begin());
            gpu.uuid[15] = static_cast<std::uint8_t>(i + 1);
        }
    }
}

} // namespace

std::string print_uuid(const char *prefix, const Uuid &uuid)
{
    std::string text = prefix;
    for (std::size_t i = 0; i < uuid.size(); ++i) {
        char byte[4];
        std::snprintf(byte, sizeof byte, "%02x", uuid[i]);
        text += (i == 0 || i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "") + std::string(byte);
    }
    return text;
}

bool parse_bus_id(std::string_view text, BusId &bus)
{
    const std::string copy(text);
    BusId read;
    int end = 0;
    const auto matches = [&] { return end == static_cast<int>(copy.size()); };
    if (std::sscanf(copy.c_str(), "%8x:%2x:%2x.%1x%n", &read.domain, &read.bus, &read.device,
                    &read.function, &end) != 4 ||
        !matches()) {
        read.domain = 0;
        if (std::sscanf(copy.c_str(), "%2x:%2x.%1x%n", &read.bus, &read.device, &read.function,
                        &end) != 3 ||
            !matches()) {
            return false;
        }
    }
    bus = read;
    return true;
}

std::string parse_machine(std::string_view text, Machine &machine)
{
    machine = {};
    bool has_header = false;
    for (int number = 1; !text.empty(); ++number) {
        const auto end = std::min(text.find('\n'), text.size());
        const Words words = words_of(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
        if (words.empty()) {
            continue;
        }
        std::string problem;
        if (has_header) {
            problem = read_line(words, machine);
        } else if (words != Words{"hetcoll", "topology", "1"}) {
            problem = "the first line is not 'hetcoll topology 1'";
        }
        if (!problem.empty()) {
            return "line " + std::to_string(number) + ": " + problem;
        }
        has_header = true;
    }
    name_devices(machine);
    return machine.gpus.empty() ? "it has no GPUs" : "";
}

std::string keep_gpus(Machine &machine, std::string_view list)
{
    std::vector<int> kept;
    const std::string copy(list);
    for (const char *next = copy.c_str();; ++next) {
        char *end = nullptr;
        const long first = std::strtol(next, &end, 10);
        long last = first;
        bool valid = end != next;
        if (valid && *end == '-') {
            next = end + 1;
            last = std::strtol(next, &end, 10);
            valid = end != next;
        }
        if (!valid || first < 0 || last >= static_cast<long>(machine.gpus.size()) || last < first) {
            return "'" + copy + "' is not a list of GPUs from 0 to " +
                   std::to_string(machine.gpus.size() - 1) + " as in 0,3-5";
        }
        for (long gpu = first; gpu <= last; ++gpu) {
            const int vertex = machine.gpus[static_cast<std::size_t>(gpu)];
            if (std::find(kept.begin(), kept.end(), vertex) != kept.end()) {
                return "GPU " + std::to_string(gpu) + " is there twice in '" + copy + "'";
            }
            kept.push_back(vertex);
        }
        next = end;
        if (*next == '\0') {
            machine.gpus = std::move(kept);
            return {};
        }
        if (*next != ',') {
            return "'" + copy + "' is not a list of GPUs as in 0,3-5";
        }
    }
}

Machine pcie_box(int gpus, double gbps)
{
    Machine machine;
    machine.name = "PCIe-box";
    machine.vertices.push_back({.kind = VertexKind::kCpu, .name = "cpu0", .numa = 0});
    for (int i = 0; i < gpus; ++i) {
        machine.gpus.push_back(i + 1);
        machine.vertices.push_back(
            {.kind = VertexKind::kGpu, .name = "gpu" + std::to_string(i), .numa = 0});
        machine.links.push_back({i + 1, 0, LinkKind::kPcie, 1, gbps});
    }
    name_devices(machine);
    return machine;
}

} // namespace hetcoll::emulated_gpu
