#include "topology/layout.h"

#include "topology/print.h"

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <functional>
#include <limits>
#include <map>

namespace hetcoll {
namespace {

constexpr double kMargin = 24, kTitle = 40, kLegend = 40;
constexpr double kLeastBox = 66, kMostBox = 150, kLetter = 7; // width of boxes and of their text
constexpr double kGap = 14, kCpuGap = 34, kBoxHeight = 34, kRow = 74;
constexpr double kTrack = 18, kBar = 26, kBarGap = 34;

class LayOut {
public:
    explicit LayOut(const Topology &topology) : topology_(topology)
    {
        const std::size_t size = topology.vertices.size();
        layout_.boxes.resize(size);
        layout_.parent.assign(size, kNoVertex);
        layout_.parent_link.assign(size, kNoVertex);
        children_.resize(size);
        level_.assign(size, 0);
        std::size_t longest = 0;
        for (const Vertex &vertex : topology.vertices) {
            longest = std::max(longest, vertex.name.size());
        }
        box_width_ = std::clamp(longest * kLetter + 12, kLeastBox, kMostBox);
    }

    Layout make()
    {
        grow_tree();
        for (std::size_t v = 0; v < topology_.vertices.size(); ++v) {
            if (is_drawn(static_cast<int>(v)) && layout_.parent[v] == kNoVertex) {
                place_columns(static_cast<int>(v));
            }
        }
        const double above = place_nvlinks();
        place_rows(kTitle + above);
        layout_.width =
            std::max(next_x_ - kGap - (topology_.of_kind(VertexKind::kCpu).empty() ? 0 : kCpuGap) +
                         2 * kMargin,
                     420.0);
        return std::move(layout_);
    }

private:
    [[nodiscard]] VertexKind kind(int vertex) const { return topology_.vertices[vertex].kind; }
    [[nodiscard]] bool is_leaf(int vertex) const
    {
        return kind(vertex) == VertexKind::kGpu || kind(vertex) == VertexKind::kNic;
    }
    [[nodiscard]] bool is_drawn(int vertex) const
    {
        return kind(vertex) != VertexKind::kNvSwitch && kind(vertex) != VertexKind::kNetwork;
    }

    // From the CPUs up, each vertex hangs on the first one that reaches it.
    void grow_tree()
    {
        std::vector<bool> seen(topology_.vertices.size(), false);
        const auto grow = [&](int root) {
            std::deque<int> queue{root};
            for (seen[root] = true; !queue.empty(); queue.pop_front()) {
                const int at = queue.front();
                for (std::size_t i = 0; i < topology_.links.size() && (at == root || !is_leaf(at));
                     ++i) {
                    const Link &link = topology_.links[i];
                    const bool is_way =
                        link.kind == LinkKind::kPcie ||
                        (link.kind == LinkKind::kNvlink && kind(at) == VertexKind::kCpu);
                    const int next = link.other(at);
                    if (!is_way || (link.a != at && link.b != at) || seen[next] ||
                        !is_drawn(next) || kind(next) == VertexKind::kCpu) {
                        continue;
                    }
                    seen[next] = true;
                    layout_.parent[next] = at;
                    layout_.parent_link[next] = static_cast<int>(i);
                    children_[at].push_back(next);
                    queue.push_back(next);
                }
            }
        };
        for (const VertexKind first : {VertexKind::kCpu, VertexKind::kPcieSwitch}) {
            for (const int root : topology_.of_kind(first)) {
                if (!seen[root]) {
                    grow(root);
                }
            }
        }
        for (auto &children : children_) {
            std::sort(children.begin(), children.end());
        }
    }

    // Columns for the leaves below `vertex` and its own box in the middle of them. Returns how many
    // rows of boxes it is below the leaves.
    int place_columns(int vertex)
    {
        Box &box = layout_.boxes[vertex];
        box.width = box_width_;
        box.height = kBoxHeight;
        const double first_x = next_x_;
        int level = is_leaf(vertex) ? 0 : 1;
        for (const int child : children_[vertex]) {
            level = std::max(level, place_columns(child) + 1);
        }
        if (children_[vertex].empty()) {
            next_x_ += box_width_ + kGap;
        }
        box.x = kMargin + (first_x + next_x_ - kGap - box_width_) / 2;
        if (kind(vertex) == VertexKind::kCpu) {
            next_x_ += kCpuGap; // for what is written on the link to the next one
        }
        return level_[vertex] = level;
    }

    void place_rows(double leaves_y)
    {
        int lowest = 1;
        for (const int level : level_) {
            lowest = std::max(lowest, level);
        }
        for (std::size_t v = 0; v < topology_.vertices.size(); ++v) {
            const bool is_cpu = kind(static_cast<int>(v)) == VertexKind::kCpu;
            layout_.boxes[v].y = leaves_y + kRow * (is_cpu ? lowest : level_[v]);
        }
        layout_.height = leaves_y + kRow * lowest + kBoxHeight + place_sockets() + kLegend;
    }

    // Returns the height of what is below the CPUs.
    double place_sockets()
    {
        const std::vector<int> cpus = topology_.of_kind(VertexKind::kCpu);
        double height = 0;
        for (std::size_t i = 0; i < topology_.links.size(); ++i) {
            const Link &link = topology_.links[i];
            if (link.kind != LinkKind::kSocket) {
                continue;
            }
            const auto place = [&](int cpu) { return std::find(cpus.begin(), cpus.end(), cpu); };
            const bool a_first = layout_.boxes[link.a].x < layout_.boxes[link.b].x;
            const Box &left = layout_.boxes[a_first ? link.a : link.b];
            const Box &right = layout_.boxes[a_first ? link.b : link.a];
            if (std::abs(place(link.a) - place(link.b)) == 1) {
                const double y = left.y + left.height / 2;
                layout_.sockets.push_back(
                    {static_cast<int>(i), left.x + left.width, right.x, y, y});
                continue;
            }
            height += kTrack;
            // Ends of several links side by side: to the right of the left box, and the other way
            // round.
            const double shift = std::min(height / 3, left.width / 2 - 4);
            layout_.sockets.push_back({static_cast<int>(i), left.middle() + shift,
                                       right.middle() - shift, left.bottom(),
                                       left.bottom() + height});
        }
        return height;
    }

    // Returns the height of what is above the GPUs.
    double place_nvlinks()
    {
        const int track_count = assign_tracks();
        group_switches();
        std::map<int, int> bar_level = stack_bars();
        int bar_levels = 0;
        for (const auto &[bar, level] : bar_level) {
            bar_levels = std::max(bar_levels, level + 1);
        }
        const double tracks = track_count > 0 ? track_count * kTrack + kTrack : 0;
        const double height = tracks + bar_levels * (kBar + kBarGap);
        const double gpu_y = kTitle + height;
        for (Track &track : layout_.tracks) {
            track.y = gpu_y - kTrack * (track.y + 1);
        }
        for (std::size_t b = 0; b < layout_.bars.size(); ++b) {
            layout_.bars[b].box.y =
                gpu_y - tracks - (bar_level[static_cast<int>(b)] + 1) * (kBar + kBarGap);
        }
        for (Riser &riser : layout_.risers) {
            riser.from_y = gpu_y;
            riser.to_y = layout_.bars[riser.bar].box.bottom();
        }
        return height;
    }

    // Puts every direct NVLink on the lowest track that is free over its whole width; y is
    // the number of that track until the heights are known.
    int assign_tracks()
    {
        for (std::size_t i = 0; i < topology_.links.size(); ++i) {
            const Link &link = topology_.links[i];
            if (link.kind == LinkKind::kNvlink && kind(link.a) == VertexKind::kGpu &&
                kind(link.b) == VertexKind::kGpu) {
                const double a = layout_.boxes[link.a].middle(), b = layout_.boxes[link.b].middle();
                layout_.tracks.push_back({static_cast<int>(i), std::min(a, b), std::max(a, b), 0});
            }
        }
        std::stable_sort(
            layout_.tracks.begin(), layout_.tracks.end(),
            [](const Track &a, const Track &b) { return a.to_x - a.from_x < b.to_x - b.from_x; });
        std::vector<std::vector<const Track *>> used;
        for (Track &track : layout_.tracks) {
            std::size_t t = 0;
            const auto overlaps = [&](const Track *other) {
                return track.from_x <= other->to_x && other->from_x <= track.to_x;
            };
            while (t < used.size() && std::any_of(used[t].begin(), used[t].end(), overlaps)) {
                ++t;
            }
            used.resize(std::max(used.size(), t + 1));
            used[t].push_back(&track);
            track.y = static_cast<double>(t);
        }
        spread_ends();
        return static_cast<int>(used.size());
    }

    // The ends of a GPU's links, side by side along its top: links to the left on the left, and the
    // outer of two nested ones nearer to the middle, so that they do not cross.
    void spread_ends()
    {
        for (const int gpu : topology_.gpus()) {
            struct End {
                double *x;
                double other; // distance to the other end, signed
            };
            std::vector<End> ends;
            for (Track &track : layout_.tracks) {
                const Link &link = topology_.links[track.link];
                const double middle = layout_.boxes[gpu].middle();
                if (link.a == gpu || link.b == gpu) {
                    const double there = layout_.boxes[link.other(gpu)].middle();
                    ends.push_back({there < middle ? &track.to_x : &track.from_x, there - middle});
                }
            }
            std::stable_sort(ends.begin(), ends.end(), [](const End &a, const End &b) {
                const bool a_right = a.other > 0, b_right = b.other > 0;
                return a_right != b_right ? b_right : a.other > b.other;
            });
            const double step = (box_width_ - 10) / (static_cast<double>(ends.size()) + 1);
            for (std::size_t i = 0; i < ends.size(); ++i) {
                *ends[i].x = layout_.boxes[gpu].x + 5 + step * (static_cast<double>(i) + 1);
            }
        }
    }

    void group_switches()
    {
        std::map<std::vector<int>, std::vector<int>> by_gpus;
        for (const int nvswitch : topology_.of_kind(VertexKind::kNvSwitch)) {
            std::vector<int> gpus;
            for (const Link &link : topology_.links) {
                if (link.kind == LinkKind::kNvlink && (link.a == nvswitch || link.b == nvswitch) &&
                    kind(link.other(nvswitch)) == VertexKind::kGpu) {
                    gpus.push_back(link.other(nvswitch));
                }
            }
            std::sort(gpus.begin(), gpus.end());
            by_gpus[gpus].push_back(nvswitch);
        }
        for (const auto &[gpus, switches] : by_gpus) {
            if (!gpus.empty()) {
                add_bar(gpus, switches);
            }
        }
    }

    void add_bar(const std::vector<int> &gpus, const std::vector<int> &switches)
    {
        const int index = static_cast<int>(layout_.bars.size());
        SwitchBar bar{
            .label = topology_.vertices[switches[0]].name, .box = {}, .switches = switches};
        if (switches.size() > 1) {
            bar.label += " to " + topology_.vertices[switches.back()].name + " (" +
                         std::to_string(switches.size()) + " NVSwitches)";
        }
        double first = std::numeric_limits<double>::infinity(), last = 0;
        for (const int gpu : gpus) {
            const Box &box = layout_.boxes[gpu];
            first = std::min(first, box.x);
            last = std::max(last, box.x + box.width);
            layout_.risers.push_back(
                {index, gpu, box.middle(), 0, 0, links_between(gpu, switches)});
        }
        bar.box = {first, 0, last - first, kBar};
        layout_.bars.push_back(std::move(bar));
    }

    [[nodiscard]] std::string links_between(int gpu, const std::vector<int> &switches) const
    {
        int count = 0;
        double gbps = 0, total = 0;
        for (const Link &link : topology_.links) {
            const bool here =
                link.kind == LinkKind::kNvlink && (link.a == gpu || link.b == gpu) &&
                std::find(switches.begin(), switches.end(), link.other(gpu)) != switches.end();
            count += here ? link.count : 0;
            total += here ? link.total_gbps() : 0;
            gbps = here ? link.gbps : gbps;
        }
        return count * gbps == total ? print_links(count, gbps) : print_gbps(total);
    }

    // Bars that lie side by side share a level; level 0 is next to the GPUs.
    std::map<int, int> stack_bars()
    {
        std::map<int, int> level;
        for (std::size_t b = 0; b < layout_.bars.size(); ++b) {
            const Box &box = layout_.bars[b].box;
            int free = 0;
            for (std::size_t other = 0; other < b; ++other) {
                const Box &placed = layout_.bars[other].box;
                if (box.x < placed.x + placed.width && placed.x < box.x + box.width) {
                    free = std::max(free, level[static_cast<int>(other)] + 1);
                }
            }
            level[static_cast<int>(b)] = free;
        }
        return level;
    }

    const Topology &topology_;
    Layout layout_;
    std::vector<std::vector<int>> children_;
    std::vector<int> level_; // rows below the leaves
    double box_width_ = 0, next_x_ = 0;
};

} // namespace

Layout lay_out(const Topology &topology) { return LayOut(topology).make(); }

std::string print_links(int count, double gbps)
{
    return (count == 1 ? "" : std::to_string(count) + " x ") + print_gbps(gbps);
}

} // namespace hetcoll
