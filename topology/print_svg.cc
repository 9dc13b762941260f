#include "topology/layout.h"
#include "topology/print.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

namespace hetcoll {
namespace {

struct Look {
    const char *fill, *stroke;
};

Look look_of(VertexKind kind)
{
    switch (kind) {
    case VertexKind::kGpu: return {"#dcedc8", "#33691e"};
    case VertexKind::kNvSwitch: return {"#aed581", "#33691e"};
    case VertexKind::kPcieSwitch: return {"#cfd8dc", "#37474f"};
    case VertexKind::kCpu: return {"#ffe0b2", "#e65100"};
    case VertexKind::kNic: return {"#e1bee7", "#6a1b9a"};
    case VertexKind::kNetwork: break;
    }
    return {"#ffffff", "#000000"};
}

constexpr int kLabelSize = 11;
constexpr double kLabelHeight = 12;

double label_width(const std::string &words) { return static_cast<double>(words.size()) * 6.1 + 4; }

constexpr const char *kNvlinkColor = "#558b2f", *kPcieColor = "#546e7a", *kSocketColor = "#ef6c00";

std::string escape(const std::string &text)
{
    std::string safe;
    for (const char c : text) {
        switch (c) {
        case '&': safe += "&amp;"; break;
        case '<': safe += "&lt;"; break;
        case '>': safe += "&gt;"; break;
        default: safe += c;
        }
    }
    return safe;
}

// Elements of a picture as text.
class Svg {
public:
    void rect(const Box &box, Look look, double radius)
    {
        add("<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"%.0f\" fill=\"%s\" "
            "stroke=\"%s\"/>\n",
            box.x, box.y, box.width, box.height, radius, look.fill, look.stroke);
    }

    // Through these points, in right angles or not.
    void line(const std::vector<std::pair<double, double>> &points, const char *color, double width)
    {
        text_ += "<polyline fill=\"none\" points=\"";
        for (const auto &[x, y] : points) {
            add("%.1f,%.1f ", x, y);
        }
        add("\" stroke=\"%s\" stroke-width=\"%.1f\"/>\n", color, width);
    }

    enum class Align { kStart, kMiddle };
    void text(double x, double y, const std::string &words, int size, Align align,
              const char *color = "#212121")
    {
        add("<text x=\"%.1f\" y=\"%.1f\" font-size=\"%d\" text-anchor=\"%s\" fill=\"%s\">", x, y,
            size, align == Align::kMiddle ? "middle" : "start", color);
        text_ += escape(words) + "</text>\n";
    }

    // On a line: with a white background.
    void label(double x, double y, const std::string &words, const char *color)
    {
        const double width = label_width(words);
        add("<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.0f\" fill=\"#ffffff\"/>\n",
            x - width / 2, y - kLabelHeight / 2, width, kLabelHeight);
        text(x, y + 4, words, kLabelSize, Align::kMiddle, color);
    }

    [[nodiscard]] const std::string &body() const { return text_; }

private:
    template <class... Arguments> void add(const char *format, Arguments... arguments)
    {
        char line[256];
        std::snprintf(line, sizeof line, format, arguments...);
        text_ += line;
    }

    std::string text_;
};

// More links, thicker, within reason.
double stroke(int count) { return std::min(1.2 * std::sqrt(count) + 0.3, 6.0); }

std::string cut(const std::string &name, double width)
{
    const auto room = static_cast<std::size_t>(width / 7);
    return name.size() <= room ? name : name.substr(0, room - 2) + "..";
}

// The second line in a box.
std::string detail(const Topology &topology, int index)
{
    const Vertex &vertex = topology.vertices[index];
    if (vertex.kind == VertexKind::kGpu && vertex.bus.known != 0) {
        const std::string bus = print_bus_id(vertex.bus);
        return bus.starts_with("0000:") ? bus.substr(5) : bus;
    }
    double network = 0;
    for (const Link &link : topology.links) {
        if (link.kind == LinkKind::kNetwork && (link.a == index || link.b == index)) {
            network += link.total_gbps();
        }
    }
    if (network > 0) {
        return print_gbps(network) + " GB/s";
    }
    return vertex.kind == VertexKind::kCpu && vertex.numa != kUnknownNuma
               ? "NUMA " + std::to_string(vertex.numa)
               : "";
}

// Where on its track a label of this width hides no other link on its way up: the place nearest to
// the middle, or the middle if there is none.
double label_x(const Layout &layout, const Track &track, double width)
{
    const auto is_free = [&](double x) {
        const auto hides = [&](double up_x, double up_y) {
            return up_y < track.y && std::abs(up_x - x) < width / 2 + 3;
        };
        return std::none_of(layout.tracks.begin(), layout.tracks.end(),
                            [&](const Track &other) {
                                return hides(other.from_x, other.y) || hides(other.to_x, other.y);
                            }) &&
               std::none_of(layout.risers.begin(), layout.risers.end(),
                            [&](const Riser &riser) { return hides(riser.x, riser.to_y); });
    };
    const double middle = (track.from_x + track.to_x) / 2;
    for (double off = 0; off < (track.to_x - track.from_x - width) / 2; off += 2) {
        for (const double x : {middle + off, middle - off}) {
            if (is_free(x)) {
                return x;
            }
        }
    }
    return middle;
}

void draw_nvlinks(const Topology &topology, const Layout &layout, Svg &svg)
{
    for (const Riser &riser : layout.risers) {
        svg.line({{riser.x, riser.from_y}, {riser.x, riser.to_y}}, kNvlinkColor, 3);
    }
    for (const Track &track : layout.tracks) {
        const Link &link = topology.links[track.link];
        const double end_y = layout.boxes[link.a].y;
        svg.line({{track.from_x, end_y},
                  {track.from_x, track.y},
                  {track.to_x, track.y},
                  {track.to_x, end_y}},
                 kNvlinkColor, stroke(link.count));
    }
    for (const Track &track : layout.tracks) { // over all lines
        const Link &link = topology.links[track.link];
        const std::string words = print_links(link.count, link.gbps);
        svg.label(label_x(layout, track, label_width(words)), track.y, words, kNvlinkColor);
    }
    for (const Riser &riser : layout.risers) {
        svg.label(riser.x, riser.to_y + 14, riser.label, kNvlinkColor);
    }
}

// Between switches of two bars, together.
void draw_trunks(const Topology &topology, const Layout &layout, Svg &svg)
{
    const auto has = [](const SwitchBar &bar, int vertex) {
        return std::find(bar.switches.begin(), bar.switches.end(), vertex) != bar.switches.end();
    };
    for (std::size_t i = 0; i < layout.bars.size(); ++i) {
        for (std::size_t j = i + 1; j < layout.bars.size(); ++j) {
            const SwitchBar &a = layout.bars[i], &b = layout.bars[j];
            int count = 0;
            double gbps = 0;
            for (const Link &link : topology.links) {
                if ((has(a, link.a) && has(b, link.b)) || (has(a, link.b) && has(b, link.a))) {
                    count += link.count;
                    gbps = std::max(gbps, link.gbps);
                }
            }
            if (count == 0) {
                continue;
            }
            const double y = a.box.y + a.box.height / 2, other_y = b.box.y + b.box.height / 2;
            svg.line({{a.box.middle(), y}, {b.box.middle(), other_y}}, kNvlinkColor, 4);
            const std::string label = print_links(count, gbps);
            if (y == other_y) { // in the gap between the two
                const bool a_left = a.box.x < b.box.x;
                const Box &left = a_left ? a.box : b.box, &right = a_left ? b.box : a.box;
                svg.text((left.x + left.width + right.x) / 2, a.box.y - 4, label, kLabelSize,
                         Svg::Align::kMiddle, kNvlinkColor);
            } else {
                svg.label((a.box.middle() + b.box.middle()) / 2, (y + other_y) / 2, label,
                          kNvlinkColor);
            }
        }
    }
}

void draw_tree(const Topology &topology, const Layout &layout, Svg &svg)
{
    for (std::size_t v = 0; v < topology.vertices.size(); ++v) {
        if (layout.parent[v] == kNoVertex) {
            continue;
        }
        const Link &link = topology.links[layout.parent_link[v]];
        const Box &box = layout.boxes[v], &below = layout.boxes[layout.parent[v]];
        const char *color = link.kind == LinkKind::kNvlink ? kNvlinkColor : kPcieColor;
        const double bend = below.y - 14;
        svg.line({{box.middle(), box.bottom()},
                  {box.middle(), bend},
                  {below.middle(), bend},
                  {below.middle(), below.y}},
                 color, stroke(link.count));
        svg.label(box.middle(), box.bottom() + 11, print_links(link.count, link.gbps), color);
    }
}

void draw_sockets(const Topology &topology, const Layout &layout, Svg &svg)
{
    for (const SocketLink &socket : layout.sockets) {
        svg.line({{socket.from_x, socket.end_y},
                  {socket.from_x, socket.y},
                  {socket.to_x, socket.y},
                  {socket.to_x, socket.end_y}},
                 kSocketColor, stroke(topology.links[socket.link].count) + 0.8);
    }
    for (const SocketLink &socket : layout.sockets) {
        const Link &link = topology.links[socket.link];
        svg.label((socket.from_x + socket.to_x) / 2, socket.y, print_links(link.count, link.gbps),
                  kSocketColor);
    }
}

void draw_boxes(const Topology &topology, const Layout &layout, Svg &svg)
{
    for (const SwitchBar &bar : layout.bars) {
        svg.rect(bar.box, look_of(VertexKind::kNvSwitch), 3);
        svg.text(bar.box.middle(), bar.box.y + 17, cut(bar.label, bar.box.width), 12,
                 Svg::Align::kMiddle);
    }
    for (std::size_t v = 0; v < topology.vertices.size(); ++v) {
        const Box &box = layout.boxes[v];
        if (box.width == 0) {
            continue;
        }
        const Vertex &vertex = topology.vertices[v];
        const std::string second = detail(topology, static_cast<int>(v));
        svg.rect(box, look_of(vertex.kind), vertex.kind == VertexKind::kGpu ? 6 : 2);
        svg.text(box.middle(), box.y + (second.empty() ? 21 : 15), cut(vertex.name, box.width), 12,
                 Svg::Align::kMiddle);
        svg.text(box.middle(), box.y + 28, second, 10, Svg::Align::kMiddle, "#616161");
    }
}

std::string title_of(const Topology &topology)
{
    const std::vector<int> gpus = topology.gpus();
    std::string title = topology.machine;
    if (!gpus.empty() && !topology.vertices[gpus[0]].model.empty()) {
        title += (title.empty() ? "" : ": ") + std::to_string(gpus.size()) + " x " +
                 topology.vertices[gpus[0]].model;
    }
    return title.empty() ? "topology" : title;
}

} // namespace

std::string print_svg(const Topology &topology)
{
    const Layout layout = lay_out(topology);
    Svg svg;
    const std::string title = title_of(topology);
    const double width = std::max(layout.width, 48 + static_cast<double>(title.size()) * 9);
    svg.text(24, 25, title, 15, Svg::Align::kStart);
    draw_nvlinks(topology, layout, svg);
    draw_trunks(topology, layout, svg);
    draw_tree(topology, layout, svg);
    draw_sockets(topology, layout, svg);
    draw_boxes(topology, layout, svg);
    const double y = layout.height - 12;
    svg.text(24, y, "GB/s of each link, each way:", kLabelSize, Svg::Align::kStart);
    svg.text(196, y, "NVLink", kLabelSize, Svg::Align::kStart, kNvlinkColor);
    svg.text(248, y, "PCIe", kLabelSize, Svg::Align::kStart, kPcieColor);
    svg.text(286, y, "between CPUs", kLabelSize, Svg::Align::kStart, kSocketColor);

    char head[256];
    std::snprintf(head, sizeof head,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
                  "viewBox=\"0 0 %.0f %.0f\" "
                  "font-family=\"DejaVu Sans, Helvetica, Arial, sans-serif\">\n<rect "
                  "width=\"100%%\" height=\"100%%\" "
                  "fill=\"#ffffff\"/>\n",
                  width, layout.height, width, layout.height);
    return head + svg.body() + "</svg>\n";
}

} // namespace hetcoll
