#include "topology/file.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

namespace hetcoll {
namespace {

using Words = std::vector<std::string_view>;

// Files may hold anything; messages hold one readable line.
std::string quote(std::string_view text)
{
    constexpr std::size_t kShown = 40;
    std::string shown = "'";
    for (const char c : text.substr(0, kShown)) {
        shown += c >= ' ' && c <= '~' ? c : '?';
    }
    return shown + (text.size() > kShown ? "...'" : "'");
}

template <class T> std::optional<T> number(std::string_view text)
{
    T value{};
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool whole = code == std::errc{} && end == text.data() + text.size();
    return whole ? std::optional<T>(value) : std::nullopt;
}

Words split(std::string_view line)
{
    Words words;
    constexpr std::string_view kBlank = " \t\r\v\f";
    for (std::size_t at = 0; (at = line.find_first_not_of(kBlank, at)) != line.npos;) {
        const std::size_t end = std::min(line.find_first_of(kBlank, at), line.size());
        words.push_back(line.substr(at, end - at));
        at = end;
    }
    return words;
}

std::optional<VertexKind> find_vertex_kind(std::string_view word)
{
    for (int kind = 0; kind < kVertexKindCount; ++kind) {
        if (word == vertex_kind_name(static_cast<VertexKind>(kind))) {
            return static_cast<VertexKind>(kind);
        }
    }
    return std::nullopt;
}

std::optional<LinkKind> find_link_kind(std::string_view word)
{
    for (int kind = 0; kind < kLinkKindCount; ++kind) {
        if (word == link_kind_name(static_cast<LinkKind>(kind))) {
            return static_cast<LinkKind>(kind);
        }
    }
    return std::nullopt;
}

bool has_bus(VertexKind kind) { return kind == VertexKind::kGpu || kind == VertexKind::kNic; }
bool has_numa(VertexKind kind) { return has_bus(kind) || kind == VertexKind::kCpu; }

class Parser {
public:
    Parser(std::string_view text, const std::string &path) : text_(text), path_(path) {}

    Result<Topology> parse()
    {
        while (!text_.empty()) {
            const std::size_t end = std::min(text_.find('\n'), text_.size());
            const std::string_view line = text_.substr(0, end);
            text_.remove_prefix(std::min(end + 1, text_.size()));
            ++line_;
            Status status = line.size() > kMaxTopologyLineBytes
                                ? error(Errc::kInvalid, "a line of %zu bytes, write at most %zu",
                                        line.size(), kMaxTopologyLineBytes)
                                : parse_line(line.substr(0, line.find('#')));
            if (!status.ok()) {
                return error(status.code(), "%s:%d: %s", path_.c_str(), line_,
                             status.message().c_str());
            }
        }
        if (!header_seen_) {
            return error(Errc::kInvalid, "%s: empty, begin with 'hetcoll topology 1'",
                         path_.c_str());
        }
        if (topology_.gpus().empty()) {
            return error(Errc::kInvalid, "%s: no GPU in it, add a line 'gpu NAME BUS_ID' for each",
                         path_.c_str());
        }
        for (const Vertex &vertex : topology_.vertices) {
            if (!vertex.adapter.empty() && topology_.find_nic(vertex.adapter) == kNoVertex) {
                return error(Errc::kInvalid,
                             "%s: the adapter of %s is %s, which is no nic: add its line, or leave "
                             "the adapter out",
                             path_.c_str(), vertex.name.c_str(), vertex.adapter.c_str());
            }
        }
        return std::move(topology_);
    }

private:
    Status parse_line(std::string_view line)
    {
        const Words words = split(line);
        if (words.empty()) {
            return {};
        }
        if (!header_seen_) {
            return parse_header(words);
        }
        if (words[0] == "machine") {
            return parse_machine(line.substr(line.find("machine") + 7));
        }
        if (words[0] == "link") {
            return parse_link(words);
        }
        if (const auto kind = find_vertex_kind(words[0])) {
            return parse_vertex(*kind, words);
        }
        return error(
            Errc::kInvalid,
            "%s cannot begin a line, write machine, gpu, nvswitch, pcie, cpu, nic, network or link",
            quote(words[0]).c_str());
    }

    Status parse_header(const Words &words)
    {
        if (words[0].starts_with("<")) {
            return error(Errc::kInvalid, "this looks like XML, a topology file begins with "
                                         "'hetcoll topology 1'");
        }
        if (words.size() != 3 || words[0] != "hetcoll" || words[1] != "topology") {
            return error(
                Errc::kInvalid, "the first line is %s, it must be 'hetcoll topology 1'",
                quote({words[0].data(), words.back().data() + words.back().size()}).c_str());
        }
        if (words[2] != "1") {
            return error(Errc::kUnsupported,
                         "version %s of the format, this hetcoll reads version 1: use a newer "
                         "hetcoll or write the file again",
                         quote(words[2]).c_str());
        }
        header_seen_ = true;
        return {};
    }

    Status parse_machine(std::string_view rest)
    {
        std::string name;
        for (const std::string_view word : split(rest)) {
            name += (name.empty() ? "" : " ") + std::string(word);
        }
        if (!topology_.machine.empty()) {
            return error(Errc::kInvalid,
                         "a second machine, the first is %s: write one file for each",
                         quote(topology_.machine).c_str());
        }
        if (name.empty() ||
            !std::all_of(name.begin(), name.end(), [](char c) { return c >= ' ' && c <= '~'; })) {
            return error(Errc::kInvalid, "machine %s, write a name of printable characters",
                         quote(name).c_str());
        }
        topology_.machine = std::move(name);
        return {};
    }

    Status parse_vertex(VertexKind kind, const Words &words)
    {
        const std::string what(words[0]);
        const std::size_t fixed = has_bus(kind) ? 3 : 2;
        if (words.size() < fixed) {
            return error(Errc::kInvalid, "%s without %s, write '%s NAME%s'%s", what.c_str(),
                         words.size() < 2 ? "a name" : "a PCI bus id", what.c_str(),
                         has_bus(kind) ? " BUS_ID" : "",
                         has_bus(kind) ? ", with - for a bus id that is not known" : "");
        }
        Vertex vertex{.kind = kind, .name = std::string(words[1])};
        if (has_bus(kind)) {
            const auto bus = parse_bus_id(words[2]);
            if (!bus) {
                return error(Errc::kInvalid,
                             "%s is not a PCI bus id, write one like 0000:06:00.0, or -",
                             quote(words[2]).c_str());
            }
            vertex.bus = *bus;
        }
        for (std::size_t i = fixed; i < words.size(); i += 2) {
            const std::string_view value = i + 1 < words.size() ? words[i + 1] : std::string_view();
            if (Status status = set_property(vertex, words[i], value); !status.ok()) {
                return status;
            }
        }
        return add_vertex(topology_, std::move(vertex));
    }

    Status set_property(Vertex &vertex, std::string_view key, std::string_view value)
    {
        const bool gpu = vertex.kind == VertexKind::kGpu;
        if (key == "numa" && has_numa(vertex.kind)) {
            const auto numa = number<int>(value);
            if (!numa || *numa < 0 || *numa > kMaxVertices || vertex.numa != kUnknownNuma) {
                return error(Errc::kInvalid, "numa %s, write one node number from 0 to %d",
                             quote(value).c_str(), kMaxVertices);
            }
            vertex.numa = *numa;
            return {};
        }
        if (key == "model" && gpu) {
            if (!is_word(value) || !vertex.model.empty()) {
                return error(Errc::kInvalid,
                             "model %s, write one word of letters, digits and _.:+-",
                             quote(value).c_str());
            }
            vertex.model = value;
            return {};
        }
        if (key == "adapter" && gpu) {
            if (!is_word(value) || !vertex.adapter.empty()) {
                return error(Errc::kInvalid, "adapter %s, write the name of one nic",
                             quote(value).c_str());
            }
            vertex.adapter = value;
            return {};
        }
        if (key == "uuid" && gpu) {
            const auto uuid = parse_uuid(value);
            if (!uuid || !uuid->known() || vertex.uuid.known()) {
                return error(Errc::kInvalid,
                             "uuid %s, write one like "
                             "GPU-01234567-89ab-cdef-0123-456789abcdef",
                             quote(value).c_str());
            }
            vertex.uuid = *uuid;
            return {};
        }
        return error(Errc::kInvalid, "%s is not a property of a %s, it can have%s",
                     quote(key).c_str(), vertex_kind_name(vertex.kind),
                     gpu                     ? " numa, model, adapter and uuid"
                     : has_numa(vertex.kind) ? " numa"
                                             : " a name only");
    }

    Status parse_link(const Words &words)
    {
        if (words.size() != 6) {
            return error(
                Errc::kInvalid,
                "a link of %zu words, write 'link NAME NAME KIND COUNT GB/s', the rate of each "
                "link and direction",
                words.size() - 1);
        }
        Link link{.a = topology_.find(words[1]), .b = topology_.find(words[2])};
        if (link.a == kNoVertex || link.b == kNoVertex) {
            return error(Errc::kInvalid,
                         "%s is not the name of a vertex, add its line above this one",
                         quote(words[link.a == kNoVertex ? 1 : 2]).c_str());
        }
        const auto kind = find_link_kind(words[3]);
        const auto count = number<int>(words[4]);
        const auto gbps = number<double>(words[5]);
        if (!kind) {
            return error(Errc::kInvalid,
                         "%s is not a kind of link, write nvlink, pcie, socket or network",
                         quote(words[3]).c_str());
        }
        if (!count) {
            return error(Errc::kInvalid, "%s is not a number of links, write 1 to %d",
                         quote(words[4]).c_str(), kMaxLinkCount);
        }
        if (!gbps) {
            return error(Errc::kInvalid, "%s is not a rate, write GB/s from %g to %g",
                         quote(words[5]).c_str(), kMinLinkGbps, kMaxLinkGbps);
        }
        link.kind = *kind;
        link.count = *count;
        link.gbps = *gbps;
        return add_link(topology_, link);
    }

    std::string_view text_;
    const std::string &path_;
    int line_ = 0;
    bool header_seen_ = false;
    Topology topology_;
};

// The shortest text that reads back as the same number.
std::string print_number(double value)
{
    std::array<char, 32> text;
    const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
    return {text.data(), end};
}

} // namespace

Result<Topology> parse_topology(std::string_view text, const std::string &path)
{
    if (text.size() > kMaxTopologyFileBytes) {
        return error(Errc::kInvalid, "%s: larger than %zu bytes, this cannot be a topology file",
                     path.c_str(), kMaxTopologyFileBytes);
    }
    return Parser(text, path).parse();
}

std::string write_topology(const Topology &topology)
{
    std::string text = "hetcoll topology 1\n";
    if (!topology.machine.empty()) {
        text += "machine " + topology.machine + "\n";
    }
    for (const Vertex &vertex : topology.vertices) {
        text += std::string(vertex_kind_name(vertex.kind)) + " " + vertex.name;
        text += has_bus(vertex.kind) ? " " + print_bus_id(vertex.bus) : "";
        text += vertex.numa != kUnknownNuma ? " numa " + std::to_string(vertex.numa) : "";
        text += !vertex.model.empty() ? " model " + vertex.model : "";
        text += !vertex.adapter.empty() ? " adapter " + vertex.adapter : "";
        text += vertex.uuid.known() ? " uuid " + print_uuid(vertex.uuid) : "";
        text += "\n";
    }
    for (const Link &link : topology.links) {
        text += "link " + topology.vertices[link.a].name + " " + topology.vertices[link.b].name +
                " " + link_kind_name(link.kind) + " " + std::to_string(link.count) + " " +
                print_number(link.gbps) + "\n";
    }
    return text;
}

} // namespace hetcoll
