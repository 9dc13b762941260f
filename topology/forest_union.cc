// A link goes into a forest in which it closes no cycle. If it closes one in every forest, it can
// still take the place of a link on such a cycle, if that link finds room elsewhere, and so on. A
// breadth-first search finds a shortest chain of replacements; a shortest one leaves all forests
// without cycles. A link that once finds no room never will.
#include "topology/forest_union.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <numeric>
#include <utility>

namespace hetcoll {
namespace {

constexpr int kNone = -1;

class ForestUnion {
public:
    ForestUnion(int gpus, std::span<const LinkRoom> links, int forests)
        : gpus_(gpus), forests_{{.neighbours = std::vector<std::uint64_t>(gpus),
                                 .copies = forests}},
          links_(links.begin(), links.end()),
          link_at_(static_cast<std::size_t>(gpus) * gpus, kNone), toward_(gpus, kNone)
    {
        for (int link = 0; link < static_cast<int>(links_.size()); ++link) {
            link_at(links_[link].a, links_[link].b) = link;
            link_at(links_[link].b, links_[link].a) = link;
        }
    }

    // Puts as many copies of the link into forests as fit, and returns how many.
    int insert(int link)
    {
        const int wanted = links_[link].room;
        while (links_[link].room > 0 && find_chain(link)) {
            replace_along_chain(link);
        }
        return wanted - links_[link].room;
    }

    [[nodiscard]] std::vector<TreeBundle> take() && { return std::move(forests_); }

private:
    // How a search reached a link: `taker` takes its place in `forest`.
    struct Reached {
        int taker = kNone, forest = kNone;
        bool seen = false;
    };

    int &link_at(int a, int b) { return link_at_[static_cast<std::size_t>(a) * gpus_ + b]; }

    [[nodiscard]] static bool joins(const TreeBundle &forest, int a, int b)
    {
        return (forest.neighbours[a] >> b & 1) != 0;
    }

    static void toggle(TreeBundle &forest, const LinkRoom &link)
    {
        forest.neighbours[link.a] ^= std::uint64_t{1} << link.b;
        forest.neighbours[link.b] ^= std::uint64_t{1} << link.a;
    }

    // Sets toward_[gpu] to the next GPU on the way to `from`, for all GPUs up to `to`. False if
    // there is no way.
    bool find_path(const TreeBundle &forest, int from, int to)
    {
        std::uint64_t seen = std::uint64_t{1} << from;
        todo_.assign(1, from);
        while (!todo_.empty()) {
            const int here = todo_.back();
            todo_.pop_back();
            for (std::uint64_t next = forest.neighbours[here] & ~seen; next != 0;
                 next &= next - 1) {
                const int gpu = std::countr_zero(next);
                toward_[gpu] = here;
                if (gpu == to) {
                    return true;
                }
                todo_.push_back(gpu);
            }
            seen |= forest.neighbours[here];
        }
        return false;
    }

    // The chain ends with the link last_ that finds room in the forest last_forest_.
    bool find_chain(int first)
    {
        reached_.assign(links_.size(), {});
        reached_[first].seen = true;
        queue_.assign(1, first);
        for (std::size_t head = 0; head < queue_.size(); ++head) {
            const LinkRoom &link = links_[queue_[head]];
            for (int f = 0; f < static_cast<int>(forests_.size()); ++f) {
                if (joins(forests_[f], link.a, link.b)) {
                    continue; // it would only take its own place
                }
                if (!find_path(forests_[f], link.a, link.b)) {
                    last_ = queue_[head];
                    last_forest_ = f;
                    return true;
                }
                for (int gpu = link.b; gpu != link.a; gpu = toward_[gpu]) {
                    const int on_circle = link_at(gpu, toward_[gpu]);
                    if (!reached_[on_circle].seen) {
                        reached_[on_circle] = {queue_[head], f, true};
                        queue_.push_back(on_circle);
                    }
                }
            }
        }
        return false;
    }

    // Moves as many copies together as the chain has room for.
    void replace_along_chain(int first)
    {
        int copies = std::min(links_[first].room, forests_[last_forest_].copies);
        for (int link = last_; link != first; link = reached_[link].taker) {
            copies = std::min(copies, forests_[reached_[link].forest].copies);
        }
        links_[first].room -= copies;
        split(last_forest_, copies);
        for (int link = last_; link != first; link = reached_[link].taker) {
            split(reached_[link].forest, copies);
        }
        int forest = last_forest_;
        for (int link = last_; link != first; link = reached_[link].taker) {
            toggle(forests_[forest], links_[link]);
            forest = reached_[link].forest;
            toggle(forests_[forest], links_[link]);
        }
        toggle(forests_[forest], links_[first]);
        join_equal();
    }

    // Leaves `count` copies at this index, the rest at the end.
    void split(int forest, int copies)
    {
        if (forests_[forest].copies > copies) {
            TreeBundle rest = forests_[forest];
            rest.copies -= copies;
            forests_[forest].copies = copies;
            forests_.push_back(std::move(rest));
        }
    }

    void join_equal()
    {
        for (std::size_t kept = 0; kept < forests_.size(); ++kept) {
            for (std::size_t other = forests_.size() - 1; other > kept; --other) {
                if (forests_[other].neighbours == forests_[kept].neighbours) {
                    forests_[kept].copies += forests_[other].copies;
                    forests_.erase(forests_.begin() + static_cast<std::ptrdiff_t>(other));
                }
            }
        }
    }

    int gpus_;
    std::vector<TreeBundle> forests_;
    std::vector<LinkRoom> links_; // what is left of it
    std::vector<int> link_at_;    // by two GPUs
    std::vector<Reached> reached_;
    std::vector<int> queue_, todo_;
    std::vector<int> toward_; // by GPU, see find_path()
    int last_ = kNone, last_forest_ = kNone;
};

} // namespace

std::vector<TreeBundle> pack_bundles(int gpus, std::span<const LinkRoom> links, int count)
{
    assert(gpus >= 2 && gpus <= kMaxPackedGpus && count > 0);
    ForestUnion forests(gpus, links, count);
    int missing = count * (gpus - 1);
    for (int link = 0; link < static_cast<int>(links.size()) && missing > 0; ++link) {
        missing -= forests.insert(link);
    }
    return missing > 0 ? std::vector<TreeBundle>() : std::move(forests).take();
}

} // namespace hetcoll
