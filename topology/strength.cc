// Dinkelbach's iteration: guess the strength as p/q, look for a partition that shows it is less,
// and take that partition's value as the next guess. Looking is cheap because q * (units that leave
// a set) - 2 p is submodular on sets that intersect: its minimum over partitions comes from one
// minimum cut per GPU (Cunningham, Optimal attack and reinforcement of a network, 1985; Barahona,
// Separating from the dominant of the spanning tree polytope, 1992).
#include "topology/strength.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <numeric>

namespace hetcoll {
namespace {

using Count = std::int64_t;

// Maximum flow by shortest augmenting paths on a dense graph: there are few GPUs.
class Flow {
public:
    explicit Flow(int vertices)
        : vertices_(vertices), room_(static_cast<std::size_t>(vertices) * vertices, 0),
          from_(static_cast<std::size_t>(vertices), kUnseen)
    {
    }

    void add(int from, int to, Count units) { room(from, to) += units; }

    // Pushes what goes from source to sink. Afterwards is_before_cut() knows the cut that limits
    // it.
    void run(int source, int sink)
    {
        while (find_path(source, sink)) {
            Count units = std::numeric_limits<Count>::max();
            for (int v = sink; v != source; v = from_[v]) {
                units = std::min(units, room(from_[v], v));
            }
            for (int v = sink; v != source; v = from_[v]) {
                room(from_[v], v) -= units;
                room(v, from_[v]) += units;
            }
        }
    }

    // Requires run(). True for the smallest set with the source in it that a minimum cut leaves.
    [[nodiscard]] bool is_before_cut(int vertex) const { return from_[vertex] != kUnseen; }

private:
    static constexpr int kUnseen = -1;

    Count &room(int from, int to) { return room_[static_cast<std::size_t>(from) * vertices_ + to]; }

    bool find_path(int source, int sink)
    {
        std::fill(from_.begin(), from_.end(), kUnseen);
        from_[source] = source;
        queue_.assign(1, source);
        for (std::size_t head = 0; head < queue_.size(); ++head) {
            const int here = queue_[head];
            for (int next = 0; next < vertices_; ++next) {
                if (from_[next] == kUnseen && room(here, next) > 0) {
                    from_[next] = here;
                    if (next == sink) {
                        return true;
                    }
                    queue_.push_back(next);
                }
            }
        }
        return false;
    }

    int vertices_;
    std::vector<Count> room_;
    std::vector<int> from_, queue_;
};

class Partitions {
public:
    explicit Partitions(const LinkUnits &links) : links_(links), part_(links.gpus) {}

    // Finds the partition P that minimises q * units_between_parts - p * |P|.
    void minimise(Count p, Count q)
    {
        std::iota(part_.begin(), part_.end(), 0);
        bound_.assign(part_.size(), 0);
        for (int gpu = 0; gpu < links_.gpus; ++gpu) {
            admit(gpu, p, q);
        }
    }

    [[nodiscard]] int parts() const
    {
        std::vector<int> names = part_;
        std::sort(names.begin(), names.end());
        return static_cast<int>(std::unique(names.begin(), names.end()) - names.begin());
    }

    [[nodiscard]] Count units_between_parts() const
    {
        Count sum = 0;
        for (int a = 0; a < links_.gpus; ++a) {
            for (int b = 0; b < a; ++b) {
                sum += part_[a] != part_[b] ? links_.between(a, b) : 0;
            }
        }
        return sum;
    }

private:
    // The least f(S) - bound(S without gpu) over sets S of the GPUs so far that contain this one,
    // where f(S) = q * (units that leave S) - 2 p. It is the GPU's bound, and S becomes one part.
    void admit(int gpu, Count p, Count q)
    {
        const auto leaving = [&](int from) { // towards GPUs not admitted yet
            Count sum = 0;
            for (int to = gpu + 1; to < links_.gpus; ++to) {
                sum += q * links_.between(from, to);
            }
            return sum;
        };
        Flow flow(gpu + 2);
        const int sink = gpu + 1;
        std::vector<Count> price(static_cast<std::size_t>(gpu));
        for (int other = 0; other < gpu; ++other) {
            price[other] = leaving(other) - bound_[other];
            if (price[other] > 0) {
                flow.add(other, sink, price[other]);
            } else {
                flow.add(gpu, other, -price[other]);
            }
            for (int third = other + 1; third <= gpu; ++third) {
                flow.add(other, third, q * links_.between(other, third));
                flow.add(third, other, q * links_.between(other, third));
            }
        }
        flow.run(gpu, sink);

        bound_[gpu] = leaving(gpu) - 2 * p;
        for (int other = 0; other < gpu; ++other) {
            if (!flow.is_before_cut(other)) {
                continue;
            }
            bound_[gpu] += price[other];
            const int absorbed = part_[other];
            std::replace(part_.begin(), part_.end(), absorbed, part_[gpu]);
        }
        for (int a = 0; a <= gpu; ++a) {
            for (int b = 0; b <= gpu; ++b) {
                if (flow.is_before_cut(a) && !flow.is_before_cut(b)) {
                    bound_[gpu] += q * links_.between(a, b);
                }
            }
        }
    }

    const LinkUnits &links_;
    std::vector<int> part_;    // by GPU: a name for its part
    std::vector<Count> bound_; // by GPU
};

} // namespace

Strength strength_of(const LinkUnits &links)
{
    [[maybe_unused]] const auto gpus = static_cast<std::size_t>(links.gpus);
    assert(links.units.size() == gpus * gpus);
    if (links.gpus < 2) {
        return {};
    }
    // The finest partition first.
    Strength guess{.numerator =
                       std::accumulate(links.units.begin(), links.units.end(), Count{0}) / 2,
                   .denominator = links.gpus - 1};
    Partitions partition(links);
    while (guess.numerator > 0) {
        const Count divisor = std::gcd(guess.numerator, guess.denominator);
        guess.numerator /= divisor;
        guess.denominator /= divisor;
        partition.minimise(guess.numerator, guess.denominator);
        const Count between = partition.units_between_parts(), cuts = partition.parts() - 1;
        if (between * guess.denominator >= guess.numerator * cuts) {
            return guess;
        }
        guess = {.numerator = between, .denominator = cuts};
    }
    return {};
}

} // namespace hetcoll
